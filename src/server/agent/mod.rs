//! The agent: a model in a loop with tools.

pub mod batch;
mod circles;
mod coerce;
pub mod context;
pub mod cut;
pub mod empty;
mod remarks;
pub mod run_loop;
pub mod schema;
pub mod tool;
pub mod tools;

pub use run_loop::{Config, Context, Halted, Sink, Steering, run_loop};
pub use tool::{Tool, ToolError};
