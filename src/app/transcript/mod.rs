//! The pure view-model of a lesson.
//!
//! [`scan`] says what holds in a record, [`live`] is the state of a reader who follows a run, [`mod@group`] makes the units
//! that a page shows of both, and [`markdown`] makes HTML of their texts.

pub mod group;
pub mod label;
pub mod live;
pub mod markdown;
pub mod scan;
pub mod unit;

pub use group::group;
pub use live::{Live, Tail};
pub use unit::{Part, PartKey, Unit};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
pub(crate) mod script;
