//! What holds in a chat right now, scanned from its record: the part of the page around the transcript.

use crate::app::native::Stored;
use crate::app::native::Usage;
use crate::app::native::view::{Next, Pending, Phase, PlanView};
use crate::app::transcript::scan;

/// The state of a lesson between two messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    pub title: String,
    pub phase: Phase,
    pub next: Next,
    pub pending: Vec<Pending>,
    /// The questions whose hint the learner has looked at, by their calls.
    pub hinted: Vec<String>,
    pub plan: Option<PlanView>,
    pub usage: Usage,
    /// Tokens of the last request and its answer; 0 before the first.
    pub context: u64,
}

impl Outline {
    #[must_use]
    pub fn of(record: &[Stored]) -> Self {
        Self {
            title: scan::title(record).unwrap_or_else(|| "New lesson".to_owned()),
            phase: scan::phase(record),
            next: scan::next(record),
            pending: scan::pending(record),
            hinted: scan::hinted(record),
            plan: scan::plan(record),
            usage: scan::usage(record),
            context: scan::context_tokens(record),
        }
    }
}
