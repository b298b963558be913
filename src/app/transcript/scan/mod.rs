//! Scanners: pure, linear functions over a record that say what holds in it.

pub mod activity;
pub mod hint;
pub mod next;
pub mod phase;
pub mod plan;
pub mod title;
pub mod usage;

pub use activity::activity;
pub use hint::hinted;
pub use next::{next, pending};
pub use phase::phase;
pub use plan::plan;
pub use title::title;
pub use usage::{context_tokens, usage};
