//! learnharness: a learner talks with an AI teacher that is an agent.
//!
//! The code map, in reading order:
//!
//! - [`app`] compiles for the server and for the browser:
//!   `native` (the vocabulary of messages and events), `transcript` (the pure view-model), `api` (server functions),
//!   `state`, `pages` and `parts` (what a learner sees), `platform` (the one file that branches on the browser).
//! - `server` compiles natively only: `config`, `http` (routes and guard), `llm` (dialects), `agent` (the loop and its
//!   tools), `teaching` (phases), `runs` (who is running), `store` (SQLite), `captures` (what went over the wire), `command` (the
//!   command line).
//! - `client` compiles for WASM only: the hydrate entry, the event source and every other browser call.
//!
//! Who may name whom is held by `src/server/tests/tidy.rs`.

// The type of the chat page nests deeper than the default allows.
#![recursion_limit = "256"]

pub mod app;
#[cfg(feature = "hydrate")]
pub mod client;
#[cfg(feature = "ssr")]
pub mod server;
