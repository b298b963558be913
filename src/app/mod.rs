//! What compiles for the server and for the browser.

pub mod api;
pub mod native;
pub mod pages;
pub mod parts;
pub mod platform;
#[cfg(feature = "ssr")]
pub mod serve;
pub mod state;
pub mod transcript;
