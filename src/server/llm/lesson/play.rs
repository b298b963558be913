//! What the scripted teacher says next: a pure function of the messages and the tools on offer.

use crate::app::native::plan::{PLAN_INIT, PROBE_DONE};
use crate::app::native::question::{ASK, QUIZ};
use crate::app::native::{Block, Message};
use crate::server::llm::ToolSpec;

use super::history::History;
use super::plan::{Stage, propose, revise, stage};
use super::probe;
use super::shelf::Packs;
use super::step::Step;
use super::teach::Lesson;

/// The blocks of the next answer: a thought, a text, then calls of tools that are on offer.
///
/// It keeps no state: the same messages and tools give the same blocks. The ids of its calls are
/// `lesson-<calls so far>-<what it calls for>`.
#[must_use]
pub fn play(packs: &Packs, messages: &[Message], tools: &[ToolSpec]) -> Vec<Block> {
    let tools: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let history = History::read(messages);
    let made = history.calls().count();
    next(packs, &history, &tools).into_blocks(made)
}

fn next(packs: &Packs, history: &History<'_>, tools: &[&str]) -> Step {
    let Some(pack) = probe::chosen(packs, history) else {
        return probe::offer(packs, history, tools.contains(&ASK));
    };
    if !tools.contains(&QUIZ) {
        return Step::thinking("Without the quiz tool no lesson can be played.").say(
            "I am a scripted teacher, and my lessons live on their questions. The tool for them (quiz) is switched off in \
             the settings; please switch it on.",
        );
    }
    if tools.contains(&PROBE_DONE) {
        return probe::next(packs, pack, history);
    }
    let lesson = Lesson { packs, pack, history, tools };
    match stage(pack, history) {
        Stage::Accepted(plan) => lesson.next(&plan),
        Stage::Missing | Stage::Open { .. } if !tools.contains(&PLAN_INIT) => {
            Step::thinking("There is no tool for a plan, and without a plan I don't teach.")
                .say("I can't put up a plan, because the tool for it (plan_init) is not on offer.")
        }
        Stage::Missing => propose(pack, history),
        Stage::Open { plan, sent_back, wishes } => revise(packs, pack, history, &plan, sent_back, &wishes),
    }
}
