//! The teacher's plan: proposing one from what the probe found, and changing it until the learner accepts.

use serde_json::to_value;

use crate::app::native::Plan;
use crate::app::native::plan::{PLAN_INIT, PlanBlock};

use super::change::{Change, QUICK, another_order, apply};
use super::history::{Entry, History, texts};
use super::pack::{Pack, PackBlock};
use super::probe::{Finding, assess, finding};
use super::reply::{Waiting, only_goes_on, to_tail};
use super::shelf::Packs;
use super::step::Step;
use super::words::{holds, list};

/// Where the chat's plan is.
pub(super) enum Stage {
    /// There is none for this lesson yet.
    Missing,
    /// The learner has not decided, or sent it back; with what they asked for since.
    Open {
        plan: Plan,
        sent_back: bool,
        wishes: Vec<String>,
    },
    Accepted(Plan),
}

/// Reads where the plan is. A plan none of whose blocks this lesson has is no plan for it.
pub(super) fn stage(pack: &Pack, history: &History<'_>) -> Stage {
    let Some((call, after)) = history.plan() else { return Stage::Missing };
    let plan = match Plan::from_args(call.args) {
        Ok(plan) if plan.blocks.iter().any(|block| pack.block(&block.id).is_some()) => plan,
        Ok(_) | Err(_) => return Stage::Missing,
    };
    if after.iter().any(|entry| matches!(entry, Entry::Accepted)) {
        return Stage::Accepted(plan);
    }
    let sent_back = after.iter().any(|entry| matches!(entry, Entry::Changes(_)));
    let mut wishes = Vec::new();
    for entry in after {
        match entry {
            Entry::Learner(text) | Entry::Changes(Some(text)) => wishes.push(text.clone()),
            Entry::Changes(None)
            | Entry::Handoff(_)
            | Entry::Accepted
            | Entry::Hint
            | Entry::Objection
            | Entry::Aside
            | Entry::Said
            | Entry::Call(_) => {}
        }
    }
    Stage::Open { plan, sent_back, wishes }
}

/// Proposes the first plan.
pub(super) fn propose(pack: &Pack, history: &History<'_>) -> Step {
    if let Some(step) = refused(history) {
        return step;
    }
    let plan = Plan { title: pack.title.clone(), goal: pack.goal.clone(), blocks: blocks(pack, history) };
    let quick = plan.blocks.iter().filter(|block| block.objective.starts_with(QUICK)).count();
    let shape = match quick {
        0 => "Each block has a few short questions.".to_owned(),
        1 => "One block is a quick check only, because you seem to know it.".to_owned(),
        _ => format!("{quick} blocks are quick checks only, because you seem to know them."),
    };
    Step::thinking("I plan all blocks of the lesson; what the probe showed as known becomes a quick check.")
        .say(seen(pack, history))
        .say(format!(
            "So this is my plan, in {} blocks. {shape} Accept it, or ask for changes: you can leave blocks out, move one to \
             the front, keep only some, or make it shorter.",
            plan.blocks.len()
        ))
        .call("plan", PLAN_INIT, args(&plan))
}

/// Answers while the plan waits: changes it when that was asked for, and else says that it waits.
pub(super) fn revise(
    packs: &Packs,
    pack: &Pack,
    history: &History<'_>,
    plan: &Plan,
    sent_back: bool,
    wishes: &[String],
) -> Step {
    let all = blocks(pack, history);
    let mut changed = Change { plan: plan.clone(), said: Vec::new() };
    for wish in wishes {
        if let Some(Change { plan, said }) = apply(wish, &changed.plan, &all) {
            changed.plan = plan;
            changed.said.extend(said);
        }
    }
    let is_understood = !changed.said.is_empty();
    // A text that changes nothing is no reason to put the plan up again.
    if !sent_back && (!is_understood || changed.plan == *plan) {
        return wait(packs, pack, history, &changed.said);
    }
    if let Some(step) = refused(history) {
        return step;
    }
    if is_understood {
        return Step::thinking("The learner asks for a change that I understand, so I change the plan accordingly.")
            .say(format!("I changed the plan: {}.", changed.said.join("; ")))
            .say("Is it right like this?")
            .call("plan", PLAN_INIT, args(&changed.plan));
    }
    let other = another_order(plan);
    let first = other.blocks.first().map_or("", |block| block.title.as_str());
    Step::thinking("The note asks for nothing that my rules understand. I say so and propose an order of my own.")
        .say(
            "I am scripted, and I understand only a few kinds of changes: leaving blocks out (\"skip …\"), moving one to the \
             front (\"start with …\"), keeping only some (\"only …\") and making the plan shorter.",
        )
        .say(format!("So that you have a choice, here is another order, which begins with \"{first}\"."))
        .call("plan", PLAN_INIT, args(&other))
}

/// The blocks of the lesson as they stand in a plan.
fn blocks(pack: &Pack, history: &History<'_>) -> Vec<PlanBlock> {
    let plan_block = |block: &PackBlock| {
        let mut probes = pack.probes().filter(|probe| probe.block == block.id).peekable();
        let is_known = probes.peek().is_some() && probes.all(|probe| finding(probe, history) == Finding::Known);
        PlanBlock {
            id: block.id.clone(),
            title: block.title.clone(),
            objective: if is_known { format!("{QUICK}{}", block.objective) } else { block.objective.clone() },
            concepts: block.concepts.clone(),
        }
    };
    pack.blocks.iter().map(plan_block).collect()
}

fn args(plan: &Plan) -> serde_json::Value {
    to_value(plan).unwrap_or_default()
}

/// What the probe showed, in words.
fn seen(pack: &Pack, history: &History<'_>) -> String {
    let found = assess(pack, history);
    let mut parts = Vec::new();
    if !found.known.is_empty() {
        parts.push(format!("you are on firm ground with {}", list(&found.known)));
    }
    if !found.shaky.is_empty() {
        parts.push(format!("there was a slip with {}", list(&found.shaky)));
    }
    if !found.unknown.is_empty() {
        parts.push(format!("with {} I start from the beginning", list(&found.unknown)));
    }
    format!("Your answers show me this: {}.", parts.join("; "))
}

fn wait(packs: &Packs, pack: &Pack, history: &History<'_>, said: &[String]) -> Step {
    let new = history.new_texts();
    let agrees = new.last().is_some_and(|text| {
        only_goes_on(text)
            || ["looks good", "good", "great", "accept", "agree", "perfect"].iter().any(|word| holds(text, word))
    });
    let step = Step::thinking("The plan waits for the learner's verdict; a text is none.");
    if agrees {
        return step.say("Then please accept the plan with its button, and I begin with the first block.");
    }
    let reply = if said.is_empty() { to_tail(history, packs, pack, Waiting::Nothing) } else { None };
    let reply = reply.or_else(|| (!said.is_empty()).then(|| format!("The plan stays as it is: {}.", said.join("; "))));
    step.maybe_say(reply).say(if texts(history.tail()).len() + history.entries.len() % 2 == 1 {
        "The plan waits for your word: accept it, or ask for changes."
    } else {
        "I begin as soon as you accept the plan. If it doesn't suit you, ask for changes, such as \"skip …\" or \"start \
         with …\"."
    })
}

fn refused(history: &History<'_>) -> Option<Step> {
    let (count, reason) = history.refusals(PLAN_INIT);
    (count >= 2).then(|| {
        Step::thinking("The plan was refused twice, so I say why.").say(format!(
            "I can't put up the plan: {}. Write anything to let me try again.",
            reason.unwrap_or("no reason was given").trim_end_matches('.')
        ))
    })
}
