//! Scanners: pure, linear functions over a record that say what holds in it.

pub mod next;
pub mod phase;

pub use next::{next, pending};
pub use phase::phase;
