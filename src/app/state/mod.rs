//! The reactive state of a page.

pub mod keyed;
pub mod outline;
pub mod session;

pub use keyed::Keyed;
pub use outline::Outline;
pub use session::{Fate, Session};
