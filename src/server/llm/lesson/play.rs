//! What the scripted teacher says next: a pure function of the messages and the tools on offer.

use std::borrow::Borrow;

use crate::app::native::plan::{PLAN_INIT, PROBE_DONE};
use crate::app::native::question::{ASK, QUIZ};
use crate::app::native::{Block, Message};
use crate::server::llm::ToolSpec;

use super::history::{History, Job};
use super::plan::{Course, Planner};
use super::probe;
use super::shelf::Packs;
use super::step::Step;
use super::teach::Lesson;

/// The blocks of the next answer: a thought, a text, then calls of tools that are on offer.
///
/// It keeps no state: the same messages and tools give the same blocks. The ids of its calls are
/// `lesson-<calls so far>-<what it calls for>`.
#[must_use]
pub fn play(packs: &Packs, messages: &[impl Borrow<Message>], tools: &[ToolSpec]) -> Vec<Block> {
    let tools: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let history = History::read(messages);
    let made = history.calls().count();
    let arrived = arrived(&history);
    let step = if !arrived.is_empty() && history.is_quiet() {
        Step::thinking("The learner has the word. I only say what came from the background.")
    } else {
        next(packs, &history, &tools)
    };
    step.say_first(arrived).into_blocks(made)
}

/// A sentence on each background job that has ended; the lesson goes on where it was.
fn arrived(history: &History<'_>) -> String {
    let sentences = history.ended_jobs().map(|Job { kind, outcome }| match outcome.as_str() {
        "done" => format!("The result of the {kind} in the background is there: you find it above."),
        "aborted" => format!("The {kind} in the background was stopped."),
        _ => format!("The {kind} in the background did not work out. The lesson does not need it."),
    });
    sentences.collect::<Vec<_>>().join(" ")
}

fn next(packs: &Packs, history: &History<'_>, tools: &[&str]) -> Step {
    let Some(pack) = probe::chosen(packs, history) else {
        return probe::offer(packs, history, tools.contains(&ASK));
    };
    if !tools.contains(&QUIZ) {
        return Step::thinking("I have no way to ask questions, and without them no lesson can be played.").say(
            "I am a scripted teacher, and my lessons live on their questions. Questions are switched off here; please \
             switch them on in the settings.",
        );
    }
    let planner = Planner { packs, pack, history };
    if tools.contains(&PROBE_DONE) {
        return probe::next(planner);
    }
    let standing = planner.standing();
    let Some(standing) = standing.filter(|standing| standing.is_accepted || tools.contains(&PLAN_INIT)) else {
        return if tools.contains(&PLAN_INIT) {
            planner.propose()
        } else {
            Step::thinking("I have no way to show a plan, and without a plan I don't teach.").say(
                "I can't show you a plan, because plans are switched off here. Please switch them on in the settings.",
            )
        };
    };
    if !standing.is_accepted {
        return planner.revise(&standing);
    }
    let lesson = |told| Lesson { packs, pack, history, tools, told };
    if !tools.contains(&PLAN_INIT) {
        return lesson(None).next(&standing.plan);
    }
    match planner.change_course(&standing) {
        Course::Stays => lesson(None).next(&standing.plan),
        Course::Told(words) => lesson(Some(words)).next(&standing.plan),
        Course::Changes(step) => step,
    }
}
