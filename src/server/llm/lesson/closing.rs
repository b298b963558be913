//! The end of a lesson: the summary of what was taught, a parting before that, and what is said after it.

use serde_json::json;

use crate::app::native::question::{ASK, Verdict};

use super::heard::{Heard, heard};
use super::history::{Entry, Instead};
use super::pack::{Pack, PackBlock};
use super::probe::named;
use super::reply::{Waiting, other_pack};
use super::step::Step;
use super::teach::{Lesson, Planned};
use super::words::{Set, list, words};

/// The question that offers another lesson at the end.
const FAREWELL: &str = "Would you like another lesson?";
/// The question that a wish to stop leads to.
const PARTING: &str = "Shall we end the lesson here?";
const END: &str = "End here, with a short summary";
const STAY: &str = "Go on with the lesson";

impl<'a> Lesson<'a> {
    /// What is said when the learner wants to stop, or has stopped; none when the lesson goes on.
    pub(super) fn parting(&self, planned: &[Planned<'a>]) -> Option<Step> {
        let texts = self.history.new_texts();
        let last = texts.last().map(|text| heard(text));
        if self.is_over(planned) {
            return None;
        }
        if self.has_parted() {
            return match texts.last() {
                Some(text) if resumes(text) || self.told.is_some() => None,
                Some(_) if self.has_said_summary() => Some(
                    Step::thinking("The lesson has ended at the learner's wish.")
                        .maybe_say(self.reply(Waiting::Nothing))
                        .or_say("You are welcome.")
                        .say("We ended the lesson here. To take it up again, write \"go on\"."),
                ),
                Some(_) | None => Some(self.part(planned)),
            };
        }
        if last != Some(Heard::Stop) {
            return None;
        }
        if !self.offers(ASK) {
            return Some(self.part(planned));
        }
        let args = json!({"question": PARTING, "options": [END, STAY], "multiSelect": false, "allowOther": false});
        let step = Step::thinking("The learner wants to stop. I offer a short summary and let them decide.");
        Some(step.say("Of course. I can sum up what we have done, and nothing is lost.").call("parting", ASK, args))
    }

    /// True when the last thing that was asked is whether to end, and the learner wants to.
    fn has_parted(&self) -> bool {
        let Some(call) = self.history.calls().next_back().filter(|call| call.question() == Some(PARTING)) else {
            return false;
        };
        match (call.answered(), &call.instead) {
            (Some(answered), _) => answered.answer.values.iter().any(|value| value == END),
            // "Yes" and "stop" say the same in words, "go on" says the opposite.
            (None, Some(Instead::Wrote(Heard::Stop))) => true,
            (None, Some(Instead::Wrote(Heard::GoOn))) => self.after_parting().next().is_some_and(|text| !resumes(text)),
            (None, _) => false,
        }
    }

    /// The learner's texts since it was asked whether to end.
    fn after_parting(&self) -> impl Iterator<Item = &str> {
        let is_parting = |entry: &Entry<'_>| matches!(entry, Entry::Call(call) if call.question() == Some(PARTING));
        let from = self.history.entries.iter().rposition(is_parting).unwrap_or(self.history.entries.len());
        self.history.entries[from..].iter().filter_map(|entry| match entry {
            Entry::Learner(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn has_said_summary(&self) -> bool {
        matches!(
            self.history.entries.iter().rev().find(|entry| matches!(entry, Entry::Said | Entry::Call(_))),
            Some(Entry::Said)
        )
    }

    /// True when all blocks of the plan are done.
    fn is_over(&self, planned: &[Planned<'a>]) -> bool {
        planned.iter().all(|planned| self.progress(&planned.block.id, "done"))
    }

    /// The short summary of a lesson that ends early.
    fn part(&self, planned: &[Planned<'a>]) -> Step {
        let (begun, ahead): (Vec<&Planned<'a>>, Vec<&Planned<'a>>) =
            planned.iter().partition(|planned| self.answers(planned.block).next().is_some());
        let titles: Vec<String> = ahead.iter().map(|planned| format!("\"{}\"", planned.block.title)).collect();
        let left = if titles.is_empty() { String::new() } else { format!("Still to come: {}.", list(&titles)) };
        Step::thinking("The learner wants to end here. I sum up what the answers so far showed.")
            .say("### Summary so far")
            .say(self.can(&begun))
            .say(self.review(&begun))
            .say(left)
            .say("This chat keeps it all. To take the lesson up again, write \"go on\".")
    }

    /// The summary; or, when that was said, a word on what the learner writes after the end.
    pub(super) fn close(&self, planned: &[Planned<'a>]) -> Step {
        let is_lesson = |entry: &Entry<'_>| match entry {
            Entry::Call(call) => call.question() != Some(FAREWELL),
            Entry::Accepted(_) => true,
            _ => false,
        };
        let entries = &self.history.entries;
        let last = entries.iter().rposition(is_lesson).unwrap_or(0);
        if entries[last..].iter().any(|entry| matches!(entry, Entry::Said)) {
            return self.afterwards();
        }
        let (_, reaction) = self.reaction();
        let taught = |block: &PackBlock| planned.iter().any(|planned| planned.block.id == block.id);
        let left_out = self.pack.blocks.iter().filter(|block| !taught(block));
        let left_out: Vec<String> = left_out.map(|block| format!("\"{}\"", block.title)).collect();
        let opening = if left_out.is_empty() {
            "You have worked through the whole of it.".to_owned()
        } else {
            format!("You have worked through your plan. Left out of it: {}.", list(&left_out))
        };
        Step::thinking("All blocks are done. I close with what the lesson held and what these answers showed.")
            .maybe_say(self.reply(Waiting::Nothing))
            .maybe_say(reaction)
            .say("### Summary")
            .say(opening)
            .say(self.can(&planned.iter().collect::<Vec<_>>()))
            .say(self.review(&planned.iter().collect::<Vec<_>>()))
            .say(&self.pack.closing)
    }

    /// What the learner can do now, of the blocks in which an answer has shown it; and what the others were about.
    fn can(&self, planned: &[&Planned<'a>]) -> String {
        let is_shown = |planned: &&&Planned<'a>| self.answers(planned.block).any(|verdict| verdict == Verdict::Correct);
        let (shown, open): (Vec<&&Planned<'a>>, Vec<&&Planned<'a>>) = planned.iter().partition(is_shown);
        let points = |of: &[&&Planned<'a>]| {
            of.iter().map(|planned| format!("- {}", planned.block.can)).collect::<Vec<_>>().join("\n")
        };
        let mut parts = Vec::new();
        if !shown.is_empty() {
            parts.push(format!("You can now\n\n{}", points(&shown)));
        }
        if !open.is_empty() {
            parts.push(format!("Worth coming back to: how to\n\n{}", points(&open)));
        }
        parts.join("\n\n")
    }

    /// How the last answers to a block's quizzes count.
    fn answers(&self, block: &'a PackBlock) -> impl Iterator<Item = Verdict> {
        block.steps.iter().filter_map(|step| self.verdicts(&step.quiz).pop())
    }

    /// What went well and what to look at again, from the answers.
    fn review(&self, planned: &[&Planned<'a>]) -> String {
        let (mut right, mut again, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        for quiz in planned.iter().flat_map(|planned| &planned.block.steps).map(|step| &step.quiz) {
            match self.verdicts(quiz).last() {
                Some(Verdict::Correct) => right.push(quiz.concept.as_str()),
                Some(Verdict::Skipped) => skipped.push(quiz.concept.as_str()),
                Some(Verdict::Wrong | Verdict::Open | Verdict::DontKnow | Verdict::Noted | Verdict::NotAnswered) => {
                    again.push(quiz.concept.as_str());
                }
                None => {}
            }
        }
        right.retain(|concept| !again.contains(concept) && !skipped.contains(concept));
        skipped.retain(|concept| !again.contains(concept));
        let mut sentences = Vec::new();
        for (concepts, opening) in [
            (&mut right, "What went well in your answers:"),
            (&mut again, "Worth another look:"),
            (&mut skipped, "Left out for now:"),
        ] {
            let mut seen = std::collections::BTreeSet::new();
            concepts.retain(|concept| seen.insert(*concept));
            if !concepts.is_empty() {
                sentences.push(format!("{opening} {}.", list(concepts)));
            }
        }
        if again.is_empty() && skipped.is_empty() && !right.is_empty() {
            sentences.push("Nothing needs another look right now.".to_owned());
        }
        sentences.join(" ")
    }

    fn afterwards(&self) -> Step {
        let texts = self.history.new_texts();
        let elsewhere = |pack: &Pack| {
            Step::thinking("Each chat holds one lesson, so the other one needs a chat of its own.")
                .say(format!("Gladly: start a new chat and write \"{}\" there. This chat stays as it is.", pack.title))
        };
        if let Some(other) = texts.iter().rev().find_map(|text| other_pack(self.packs, self.pack, text)) {
            return elsewhere(other);
        }
        if texts.is_empty()
            && let Some((call, answered)) = self.history.fresh_answer()
            && call.question() == Some(FAREWELL)
        {
            return match named(self.packs, answered) {
                Some(pack) => elsewhere(pack),
                None => Step::thinking("No other lesson, then.")
                    .say("All right. Until next time, and enjoy what you know now."),
            };
        }
        if texts.last().is_some_and(|text| heard(text) == Heard::Stop) {
            return Step::thinking("The learner takes leave.").say("Until next time, and enjoy what you know now.");
        }
        let step = Step::thinking("The lesson is over, and there is nothing scripted for what comes after it.")
            .maybe_say(self.reply(Waiting::Nothing))
            .say("This lesson is done.");
        let others: Vec<&str> = self
            .packs
            .all()
            .iter()
            .filter(|pack| pack.slug != self.pack.slug)
            .map(|pack| pack.title.as_str())
            .collect();
        if others.is_empty() || !self.offers(ASK) {
            return step
                .say("To go through it again, start a new chat. With a key for a real model you could go on freely.");
        }
        if self.history.posed(FAREWELL).next().is_some() {
            return step.say(format!("For another one, start a new chat: {}.", list(&others)));
        }
        let args = json!({"question": FAREWELL, "options": others, "multiSelect": false, "allowOther": true});
        step.say("There are other lessons, each in a chat of its own.").call("farewell", ASK, args)
    }
}

/// True for a text that asks to take the lesson up again, and does not only agree or thank.
fn resumes(text: &str) -> bool {
    let goes_on = Set("go on continue next resume proceed carry ready start no keep back");
    heard(text) == Heard::GoOn && goes_on.is_in(&words(text))
}
