//! The tools, one a file, and the one list that says which phase has which.

mod ask_user_question;
mod judge;
mod plan_init;
mod plan_progress;
mod probe_done;
mod quiz;

use std::sync::Arc;

use serde_json::json;

use super::tool::{Done, Tool};
use crate::app::native::Block;
use crate::app::native::event::ToolOutput;
use crate::app::native::view::Phase;

/// The tools of a phase, in the order in which the instructions name them.
#[must_use]
pub fn registry(phase: Phase) -> Vec<Arc<dyn Tool>> {
    match phase {
        Phase::Probe => vec![
            Arc::new(quiz::Quiz::for_probe()),
            Arc::new(ask_user_question::AskUserQuestion::new()),
            Arc::new(probe_done::ProbeDone::new()),
        ],
        Phase::Plan | Phase::Teach => vec![
            Arc::new(quiz::Quiz::for_teaching()),
            Arc::new(ask_user_question::AskUserQuestion::new()),
            Arc::new(plan_init::PlanInit::new()),
            Arc::new(plan_progress::PlanProgress::new()),
            Arc::new(judge::Judge::new()),
        ],
    }
}

/// The stand-in for an answer that a human still owes; it is never stored.
fn posed() -> Done {
    let text = "The question is posed; the learner's answer comes as this call's result.";
    let output = ToolOutput { content: vec![Block::text(text)], details: Some(json!({"posed": true})) };
    Done { output, markers: Vec::new() }
}
