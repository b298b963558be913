//! The teacher's plan: proposing one from what the probe found, and changing it whenever the learner asks for that.

use serde_json::to_value;

use crate::app::native::Plan;
use crate::app::native::plan::{PLAN_INIT, PLAN_PROGRESS, PlanBlock};

use super::change::{CAN, Change, QUICK, Setting, apply, is_quick};
use super::heard::{Heard, heard};
use super::history::{Entry, History, Outcome, texts};
use super::pack::{Pack, PackBlock};
use super::probe::{Finding, assess, finding};
use super::reply::{Listener, Waiting};
use super::shelf::Packs;
use super::step::Step;
use super::words::{Set, list, words};

/// The chat's plan as it stands.
pub(super) struct Standing {
    pub(super) plan: Plan,
    pub(super) is_accepted: bool,
    /// The plan before it.
    previous: Option<Plan>,
    /// Ids of the blocks that have been taught.
    done: Vec<String>,
    /// The id of the block that is being taught.
    current: Option<String>,
}

impl Standing {
    /// True when the teaching has begun, so that the plan changes in the middle of it.
    fn is_in_lesson(&self) -> bool {
        self.current.is_some() || !self.done.is_empty()
    }
}

/// All that a plan is derived from.
#[derive(Clone, Copy)]
pub(super) struct Planner<'a> {
    pub(super) packs: &'a Packs,
    pub(super) pack: &'a Pack,
    pub(super) history: &'a History<'a>,
}

impl Planner<'_> {
    /// Reads the plan; none while this lesson has none. A plan none of whose blocks this lesson has is no plan for it.
    pub(super) fn standing(&self) -> Option<Standing> {
        let mut plans = self.history.plans().filter_map(|(call, after)| {
            let plan = Plan::from_args(call.args).ok()?;
            plan.blocks.iter().any(|block| self.pack.block(&block.id).is_some()).then_some((plan, after))
        });
        let (plan, after) = plans.next()?;
        let is_accepted = after.iter().any(|entry| matches!(entry, Entry::Accepted(_)));
        let previous = plans.next().map(|(plan, _)| plan);
        let reported = |status: &str| -> Vec<String> {
            let calls = self.history.calls().filter(|call| call.name == PLAN_PROGRESS && call.outcome != Outcome::None);
            let of = calls.filter(|call| call.args.get("status").and_then(|status| status.as_str()) == Some(status));
            of.filter_map(|call| Some(call.args.get("blockId")?.as_str()?.to_owned())).collect()
        };
        let done = reported("done");
        let current = reported("started").pop().filter(|id| !done.contains(id));
        Some(Standing { plan, is_accepted, previous, done, current })
    }

    /// Proposes the first plan, with the changes that the learner has asked for before.
    pub(super) fn propose(&self) -> Step {
        if let Some(step) = self.refused() {
            return step;
        }
        let blocks = self.blocks();
        let wishes = self.early_wishes(&texts(&self.history.entries));
        let (blocks, asked) = wishes.map_or((blocks, String::new()), |Change { blocks, done, .. }| {
            (blocks, format!("As you asked: {}.", done.join("; ")))
        });
        let plan = self.plan_of(blocks);
        let quick = plan.blocks.iter().filter(|block| is_quick(block)).count();
        let shape = match quick {
            0 => "Each block has a few short questions.".to_owned(),
            1 => "One block is a quick check only, because you seem to know it.".to_owned(),
            _ => format!("{quick} blocks are quick checks only, because you seem to know them."),
        };
        Step::thinking("I plan the blocks of the lesson; what the answers showed as known becomes a quick check.")
            .say(self.seen())
            .say(asked)
            .say(format!(
                "So this is my plan, in {} blocks. {shape} Accept it, or ask for changes: you can leave blocks out, change \
                 their order, keep only some, or make it shorter.",
                plan.blocks.len()
            ))
            .call("plan", PLAN_INIT, args(&plan))
    }

    /// What texts before there is a plan ask of it; none when nothing in them is clearly about the plan.
    pub(super) fn early_wishes(&self, texts: &[&str]) -> Option<Change> {
        let all = self.blocks();
        let plan = self.plan_of(all.clone());
        let setting = Setting { plan: &plan, all: &all, done: &[], current: None, previous: None };
        let is_wish = |text: &&str| {
            let change = apply(text, setting);
            !is_question(text) && !change.done.is_empty() && is_plain(&change, &[*text])
        };
        let wishes: Vec<&str> = texts.iter().copied().filter(is_wish).collect();
        (!wishes.is_empty()).then(|| apply(&wishes.join("\n"), setting))
    }

    /// Answers while the plan waits: changes it when that was asked for, and else says that it waits.
    pub(super) fn revise(&self, standing: &Standing) -> Step {
        let asked = self.history.asked();
        let sent_back = asked.iter().any(|entry| matches!(entry, Entry::Changes(_)));
        let wishes: Vec<&str> = asked
            .iter()
            .filter_map(|entry| match entry {
                Entry::Learner(text) | Entry::Changes(Some(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let change = self.changed(standing, &wishes);
        let is_chat = !sent_back && !is_about_plan(&change, &wishes);
        if is_chat {
            return self.wait(standing);
        }
        if !sent_back && change.done.is_empty() {
            return self.stay(&change);
        }
        if let Some(step) = self.refused() {
            return step;
        }
        self.put_up(standing, &change, wishes.is_empty())
    }

    /// In the middle of teaching: a changed plan, when the learner clearly asks for one.
    pub(super) fn change_course(&self, standing: &Standing) -> Course {
        let wishes = texts(self.history.asked());
        let change = self.changed(standing, &wishes);
        let is_asked_for = is_plain(&change, &wishes) && is_about_plan(&change, &wishes);
        if !is_asked_for || wishes.last().is_some_and(|text| heard(text) != Heard::Other) {
            return Course::Stays;
        }
        if change.done.is_empty() {
            return Course::Told(change.not_done.join(" "));
        }
        Course::Changes(self.refused().unwrap_or_else(|| self.put_up(standing, &change, false)))
    }

    fn changed(&self, standing: &Standing, wishes: &[&str]) -> Change {
        let all = self.blocks();
        let setting = Setting {
            plan: &standing.plan,
            all: &all,
            done: &standing.done,
            current: standing.current.as_deref(),
            previous: standing.previous.as_ref(),
        };
        apply(&wishes.join("\n"), setting)
    }

    /// Puts up the plan after a note: changed, or as it was when nothing of the note could be done.
    fn put_up(&self, standing: &Standing, change: &Change, is_without_words: bool) -> Step {
        let plan = self.plan_of(change.blocks.clone());
        let (thought, said) = if !change.done.is_empty() {
            let said = format!("I changed the plan: {}.", change.done.join("; "));
            ("The learner asks for a change that I understand, so I change the plan accordingly.", said)
        } else if is_without_words {
            let said = "You sent the plan back without a word on what should change, so it stays as it is.".to_owned();
            ("I can't tell what should change, so I ask.", said)
        } else {
            ("Nothing in the note changes the plan. I say so.", "The plan stays as it is.".to_owned())
        };
        let is_helpless = change.has_trouble || change.done.is_empty() && !change.is_understood;
        let ask = match (change.done.is_empty(), standing.is_in_lesson()) {
            (true, _) => "",
            (false, false) => "Is it right like this?",
            (false, true) => "Is it right like this? As soon as you accept it, I go on.",
        };
        Step::thinking(thought)
            .say(said)
            .say(change.not_done.join(" "))
            .say(if is_helpless { CAN } else { "" })
            .say(ask)
            .call("plan", PLAN_INIT, args(&plan))
    }

    /// A plan of these blocks; its goal speaks of them alone.
    fn plan_of(&self, blocks: Vec<PlanBlock>) -> Plan {
        let taught: Vec<&PackBlock> = blocks.iter().filter_map(|block| self.pack.block(&block.id)).collect();
        Plan { title: self.pack.title.clone(), goal: goal(self.pack, &taught), blocks }
    }

    /// The blocks of the lesson as they stand in a plan.
    fn blocks(&self) -> Vec<PlanBlock> {
        let plan_block = |block: &PackBlock| {
            let mut probes = self.pack.probes().filter(|probe| probe.block == block.id).peekable();
            let is_known =
                probes.peek().is_some() && probes.all(|probe| finding(probe, self.history) == Finding::Known);
            PlanBlock {
                id: block.id.clone(),
                title: block.title.clone(),
                objective: if is_known { format!("{QUICK}{}", block.objective) } else { block.objective.clone() },
                concepts: block.concepts.clone(),
            }
        };
        self.pack.blocks.iter().map(plan_block).collect()
    }

    /// What the first questions showed, in words.
    fn seen(&self) -> String {
        let found = assess(self.pack, self.history);
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

    /// Says why a text that is about the plan leaves it as it is.
    fn stay(&self, change: &Change) -> Step {
        Step::thinking("The text changes nothing in the plan, so that goes on waiting.")
            .say(format!("The plan stays as it is. {}", change.not_done.join(" ")))
            .say(if change.has_trouble { CAN } else { "" })
    }

    /// Answers a text that is not about the plan, and says once that the plan waits.
    fn wait(&self, standing: &Standing) -> Step {
        let step = Step::thinking("The plan waits for the learner's verdict; a text is none.");
        let new = self.history.new_texts();
        let text = new.last().copied().unwrap_or_default();
        let words = words(text);
        let denies = Set("no nope not never don dont").is_in(&words);
        let agrees = Set("good great accept agree agreed perfect").is_in(&words);
        match heard(text) {
            Heard::GoOn | Heard::Other if denies && words.len() <= 2 => {
                return step.say("Then say what should change.").say(CAN);
            }
            heard if heard == Heard::GoOn || heard == Heard::Other && agrees && !denies => {
                return step.say(if standing.previous.is_some() && standing.is_in_lesson() {
                    "Then please accept the plan with its button, and I go on. If you would rather have the plan from before, \
                     write \"never mind\"."
                } else {
                    "Then please accept the plan with its button, and I begin."
                });
            }
            Heard::Stop => {
                return step.say("All right, we stop here. The plan stays, and I go on whenever you accept it.");
            }
            _ => {}
        }
        let listener = Listener { history: self.history, packs: self.packs, pack: self.pack, waiting: Waiting::Plan };
        let mut plans = self.history.plans();
        let has_said = plans.next().is_some_and(|(_, after)| after.iter().any(|entry| matches!(entry, Entry::Said)));
        let step = step.maybe_say(listener.reply());
        if has_said {
            return step.or_say("The plan waits for your word.");
        }
        step.say(
            "The plan waits for your word: accept it, or ask for changes, such as \"skip …\", \"start with …\" or \
             \"shorter\".",
        )
    }

    fn refused(&self) -> Option<Step> {
        let (count, reason) = self.history.refusals(PLAN_INIT);
        (count >= 2).then(|| {
            Step::thinking(format!("The plan was refused twice: {}", reason.unwrap_or("no reason was given.")))
                .say("I can't put up the plan, because it was refused twice. Write anything to let me try again.")
        })
    }
}

/// How the lesson goes on when the learner writes in the middle of it.
pub(super) enum Course {
    /// The text is not about the plan.
    Stays,
    /// It is, and nothing can be changed; these words say why.
    Told(String),
    Changes(Step),
}

/// What a learner can do after these blocks.
pub(super) fn goal(pack: &Pack, taught: &[&PackBlock]) -> String {
    if pack.blocks.iter().all(|block| taught.iter().any(|taught| taught.id == block.id)) {
        return pack.goal.clone();
    }
    let can: Vec<&str> = taught.iter().map(|block| block.can.as_str()).collect();
    match can.as_slice() {
        [] => pack.goal.clone(),
        [only] => format!("You will be able to {only}."),
        [most @ .., last] => format!("You will be able to {}, and to {last}.", most.join(", to ")),
    }
}

/// True when a change was asked for so plainly that the texts can hardly be about anything else: with words for changing
/// a plan, or in few words of which all are understood.
fn is_plain(change: &Change, wishes: &[&str]) -> bool {
    let is_short = wishes.iter().map(|text| words(text).len()).sum::<usize>() <= 6;
    let has_numbers = wishes.iter().any(|text| text.contains(|character: char| character.is_ascii_digit()));
    let is_bare = !change.has_trouble && !change.is_claim && !change.done.is_empty();
    change.is_firm || is_short && is_bare && !has_numbers
}

/// True when a change answers to texts that were meant for the plan: not to a question, nor to words that were not
/// understood.
fn is_about_plan(change: &Change, wishes: &[&str]) -> bool {
    if wishes.iter().all(|text| is_question(text)) {
        return false;
    }
    !change.done.is_empty() || change.is_understood || change.has_trouble && change.is_clear
}

/// True for a question that is no request, as "can we skip it?" is one.
fn is_question(text: &str) -> bool {
    let asking = Set("what why how when where who which is are was were do does did has have had am");
    let begins = words(text).first().is_some_and(|word| asking.has(word));
    text.trim_end().ends_with('?') && begins
}

fn args(plan: &Plan) -> serde_json::Value {
    to_value(plan).unwrap_or_default()
}
