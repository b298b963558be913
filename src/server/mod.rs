//! What compiles for the server only.

pub mod agent;
pub mod captures;
pub mod clock;
pub mod command;
pub mod config;
pub mod http;
pub mod llm;
pub mod runs;
pub mod store;
pub mod teaching;

use std::sync::Arc;

use config::Config;
use http::Assets;
use runs::Runs;

/// What pages, server functions and routes reach the server through.
#[derive(Clone)]
pub struct Services {
    pub config: Arc<Config>,
    pub runs: Runs,
    /// None when the browser side is not built.
    pub assets: Option<Assets>,
}
