//! What compiles for the server only.

pub mod agent;
pub mod clock;
pub mod llm;
pub mod store;
