//! What compiles for the server only.

pub mod llm;
