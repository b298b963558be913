//! The teacher after the plan: block by block prose, quiz and what the answer calls for; then the summary.

use serde_json::json;

use crate::app::native::Plan;
use crate::app::native::plan::{PLAN_PROGRESS, PlanBlock};
use crate::app::native::question::{ASK, QUIZ, QuizKind, Verdict};

use super::change::QUICK;
use super::history::{Answered, Call, Entry, History, Outcome};
use super::judge::{JUDGE, accepts, remedy_key};
use super::pack::{ANY, Pack, PackBlock, PackQuiz};
use super::probe::named;
use super::reply::{Waiting, other_pack, to_tail};
use super::shelf::Packs;
use super::step::Step;
use super::words::list;

/// The question that offers another lesson at the end.
const FAREWELL: &str = "Would you like another lesson?";

/// All that a step of the teaching is derived from.
pub(super) struct Lesson<'a> {
    pub(super) packs: &'a Packs,
    pub(super) pack: &'a Pack,
    pub(super) history: &'a History<'a>,
    /// The tools that may be called.
    pub(super) tools: &'a [&'a str],
}

/// One block of the accepted plan, with its place in it.
struct Planned<'a> {
    number: usize,
    block: &'a PackBlock,
    is_quick: bool,
}

/// What a block still needs.
enum Need<'a> {
    /// `prose` comes before the quiz, unless it was posed before.
    Quiz {
        prose: &'a str,
        quiz: &'a PackQuiz,
        why: Why,
    },
    Nothing,
}

/// Why a quiz is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Lesson,
    QuickCheck,
    /// The quick check went wrong, and the whole block begins.
    CheckFailed,
    /// The quiz of the failed check, at the end of the whole block.
    Verification,
}

impl<'a> Lesson<'a> {
    /// The next step of teaching `plan`.
    pub(super) fn next(&self, plan: &Plan) -> Step {
        if let Some(step) = self.judge_first() {
            return step;
        }
        let planned = self.planned(plan);
        let count = planned.len();
        for (at, block) in planned.iter().enumerate() {
            if self.progress(&block.block.id, "done") {
                continue;
            }
            let need = self.need(block);
            if matches!(need, Need::Quiz { .. }) && !self.progress(&block.block.id, "started") {
                return self.begin(Step::thinking(format!("Next is \"{}\".", block.block.title)), block, count, true);
            }
            match need {
                Need::Quiz { prose, quiz, why } => return self.pose(prose, quiz, why),
                Need::Nothing if self.offers(PLAN_PROGRESS) => return self.finish(block, planned.get(at + 1), count),
                Need::Nothing => {}
            }
        }
        self.close(&planned)
    }

    fn planned(&self, plan: &Plan) -> Vec<Planned<'a>> {
        let known = plan.blocks.iter().filter_map(|block: &PlanBlock| {
            let is_quick = block.objective.starts_with(QUICK);
            Some((self.pack.block(&block.id)?, is_quick))
        });
        known.enumerate().map(|(at, (block, is_quick))| Planned { number: at + 1, block, is_quick }).collect()
    }

    fn offers(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }

    /// True when the block's progress was reported, or can't be.
    fn progress(&self, block: &str, status: &str) -> bool {
        let reports = |call: &Call<'_>| {
            call.name == PLAN_PROGRESS
                && call.outcome != Outcome::None
                && call.args.get("blockId").and_then(|id| id.as_str()) == Some(block)
                && call.args.get("status").and_then(|status| status.as_str()) == Some(status)
        };
        let unreported = status == "started" && !self.offers(PLAN_PROGRESS);
        unreported || self.history.calls().any(reports)
    }

    /// A short answer that nothing matched is judged before anything else is said.
    fn judge_first(&self) -> Option<Step> {
        let (call, answered) = self.history.fresh_answer()?;
        let is_judged = self.judgement(call).is_some();
        if answered.verdict != Verdict::Open || is_judged || !self.offers(JUDGE) {
            return None;
        }
        let quiz = self.quiz(call)?;
        let (verdict, reason, thought) = if accepts(quiz, own_words(answered)) {
            (
                "correct",
                "It says the same as an accepted answer, in other words.",
                "It means the same as an accepted one.",
            )
        } else {
            (
                "wrong",
                "It matches no accepted answer of this question.",
                "It matches no accepted one, so I count it as wrong.",
            )
        };
        Some(
            Step::thinking(format!(
                "The answer \"{}\" is not among the expected forms. {thought}",
                own_words(answered)
            ))
            .say("Let me look at your answer.")
            .call(
                &format!("judge-{}", quiz.id),
                JUDGE,
                json!({"toolCallId": call.id, "verdict": verdict, "reason": reason}),
            ),
        )
    }

    /// The verdict of a `judge` call on an answer.
    fn judgement(&self, call: &Call<'_>) -> Option<Verdict> {
        let on_it = |judge: &&Call<'_>| {
            judge.name == JUDGE && judge.args.get("toolCallId").and_then(|id| id.as_str()) == Some(call.id)
        };
        let judge = self.history.calls().rev().find(on_it)?;
        let is_right = judge.args.get("verdict").and_then(|verdict| verdict.as_str()) == Some("correct");
        Some(if is_right { Verdict::Correct } else { Verdict::Wrong })
    }

    /// How an answer counts, with open ones judged.
    fn verdict(&self, quiz: &PackQuiz, call: Option<&Call<'_>>, answered: &Answered) -> Verdict {
        if answered.verdict != Verdict::Open {
            return answered.verdict;
        }
        let judged = call.and_then(|call| self.judgement(call));
        let own = || if accepts(quiz, own_words(answered)) { Verdict::Correct } else { Verdict::Wrong };
        judged.unwrap_or_else(own)
    }

    /// How the answers to a quiz count, in order.
    fn verdicts(&self, quiz: &PackQuiz) -> Vec<Verdict> {
        let calls: Vec<_> = self.history.posed(&quiz.question).filter(|call| call.answered().is_some()).collect();
        let answers = self.history.answers(&quiz.question);
        answers.iter().enumerate().map(|(at, answered)| self.verdict(quiz, calls.get(at).copied(), answered)).collect()
    }

    fn quiz(&self, call: &Call<'_>) -> Option<&'a PackQuiz> {
        let question = call.question()?;
        self.pack.quizzes().map(|(_, quiz)| quiz).find(|quiz| quiz.question == question)
    }

    fn need(&self, planned: &Planned<'a>) -> Need<'a> {
        let block = planned.block;
        let Some(last) = block.steps.last() else { return Need::Nothing };
        let check = if planned.is_quick { self.verdicts(&last.quiz) } else { Vec::new() };
        if planned.is_quick {
            match check.first() {
                None => return Need::Quiz { prose: &block.recap, quiz: &last.quiz, why: Why::QuickCheck },
                Some(Verdict::Correct | Verdict::Skipped) => return Need::Nothing,
                Some(Verdict::Wrong | Verdict::Open | Verdict::DontKnow | Verdict::Noted | Verdict::NotAnswered) => {}
            }
        }
        for (at, step) in block.steps.iter().enumerate() {
            let is_last = at + 1 == block.steps.len();
            let needed = if planned.is_quick && is_last { 2 } else { 1 };
            if self.verdicts(&step.quiz).len() < needed {
                let why = match (planned.is_quick, at, is_last) {
                    (false, ..) => Why::Lesson,
                    (true, _, true) => Why::Verification,
                    (true, 0, false) => Why::CheckFailed,
                    (true, _, false) => Why::Lesson,
                };
                return Need::Quiz { prose: &step.prose, quiz: &step.quiz, why };
            }
        }
        Need::Nothing
    }

    /// Announces a block; `reply` when free words of the learner are to be answered here.
    fn begin(&self, step: Step, planned: &Planned<'_>, count: usize, reply: bool) -> Step {
        let reply = if reply { to_tail(self.history, self.packs, self.pack, Waiting::Nothing) } else { None };
        let block = planned.block;
        let aim = if planned.is_quick {
            "You seem to know this one, so it is a short recap and one question.".to_owned()
        } else {
            format!("The aim: {}", block.objective)
        };
        step.maybe_say(reply)
            .say(format!("### {}", block.title))
            .say(format!("Block {} of {count}. {aim}", planned.number))
            .call(&format!("start-{}", block.id), PLAN_PROGRESS, json!({"blockId": block.id, "status": "started"}))
    }

    fn finish(&self, planned: &Planned<'a>, following: Option<&Planned<'a>>, count: usize) -> Step {
        let block = planned.block;
        let (thought, reaction) = self.reaction();
        let reply = to_tail(self.history, self.packs, self.pack, Waiting::Nothing);
        let after = if planned.is_quick { "" } else { block.after.as_str() };
        let step = Step::thinking(thought.unwrap_or_else(|| format!("That was all of \"{}\".", block.title)))
            .maybe_say(reply)
            .maybe_say(reaction)
            .say(after)
            .say(format!("That completes \"{}\".", block.title))
            .call(&format!("done-{}", block.id), PLAN_PROGRESS, json!({"blockId": block.id, "status": "done"}));
        match following {
            Some(following) if !self.progress(&following.block.id, "started") => {
                self.begin(step, following, count, false)
            }
            Some(_) | None => step,
        }
    }

    fn pose(&self, prose: &str, quiz: &PackQuiz, why: Why) -> Step {
        let step = if self.history.is_open(&quiz.question) {
            let reply = to_tail(self.history, self.packs, self.pack, Waiting::Quiz(quiz));
            Step::thinking("The question has no answer yet, so it comes again; what was said before stays said.")
                .maybe_say(reply)
                .say("Here is the question again.")
        } else {
            let (thought, reaction) = self.reaction();
            let reply = to_tail(self.history, self.packs, self.pack, Waiting::Nothing);
            let link = match why {
                Why::Lesson => "",
                Why::QuickCheck => "First a recap.",
                Why::CheckFailed => "So let us go through this block in full.",
                Why::Verification => "Now the question of the quick check once more, after the whole block.",
            };
            let (before, after) = if why == Why::Verification { ("", link) } else { (link, "") };
            let thought = thought.unwrap_or_else(|| format!("I explain first, then I check: {}.", quiz.concept));
            Step::thinking(thought)
                .maybe_say(reply)
                .maybe_say(reaction)
                .say(before)
                .say(prose)
                .say(after)
                .or_say("A question:")
        };
        step.call(&quiz.id, QUIZ, quiz.args())
    }

    /// What the teacher thinks of the fresh answer and says to it.
    fn reaction(&self) -> (Option<String>, Option<String>) {
        let Some((call, answered)) = self.history.fresh_answer() else { return (None, None) };
        let Some(quiz) = self.quiz(call) else { return (None, None) };
        let (thought, said) = match self.verdict(quiz, Some(call), answered) {
            Verdict::Correct => {
                ("The answer is right, so I say what was good about it and go on.", quiz.praise.clone())
            }
            Verdict::DontKnow => ("The learner doesn't know, so I explain it from another side.", quiz.unsure.clone()),
            Verdict::Skipped => {
                let said = format!("Skipped, no problem. For the record: {}", quiz.explanation);
                ("The learner skipped the question; I only say what it was about.", said)
            }
            Verdict::Wrong | Verdict::Open | Verdict::Noted | Verdict::NotAnswered => {
                let thought = "The answer shows a typical slip; what helps against just that one comes first.";
                (thought, remedy(quiz, answered))
            }
        };
        let note = answered.answer.note.as_deref().is_some_and(|note| !note.trim().is_empty());
        let noted = if note {
            "\n\n(I saw your note. Being scripted I can't reply to it, but it is in the record.)"
        } else {
            ""
        };
        (Some(format!("{thought} It is about {}.", quiz.concept)), Some(format!("{said}{noted}")))
    }

    /// The summary; or, when that was said, a word on what the learner writes after the end.
    fn close(&self, planned: &[Planned<'_>]) -> Step {
        let is_lesson = |entry: &Entry<'_>| matches!(entry, Entry::Call(call) if call.question() != Some(FAREWELL));
        let entries = &self.history.entries;
        let last = entries.iter().rposition(is_lesson).unwrap_or(0);
        if entries[last..].iter().any(|entry| matches!(entry, Entry::Said)) {
            return self.afterwards();
        }
        let (_, reaction) = self.reaction();
        Step::thinking("All blocks are done. I close with what the lesson held and what these answers showed.")
            .maybe_say(reaction)
            .say("### Summary")
            .say(&self.pack.closing)
            .say(self.review(planned))
    }

    /// What went well and what to look at again, from the answers.
    fn review(&self, planned: &[Planned<'_>]) -> String {
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
        let taught = |block: &PackBlock| planned.iter().any(|planned| planned.block.id == block.id);
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
        let left_out: Vec<&str> =
            self.pack.blocks.iter().filter(|block| !taught(block)).map(|block| block.title.as_str()).collect();
        if !left_out.is_empty() {
            let list = list(&left_out);
            sentences.push(format!("The summary speaks of the whole lesson; your plan left out {list}."));
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
        let step = Step::thinking("The lesson is over, and there is nothing scripted for what comes after it.")
            .say("This lesson is done. I am scripted, so I can't go beyond it here.");
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
        let args = json!({"question": FAREWELL, "options": others, "multiSelect": false, "allowOther": true});
        step.say("There are other lessons, each in a chat of its own.").call("farewell", ASK, args)
    }
}

/// What helps against a wrong answer: the remedy of each wrong option, or of the slip that a short answer shows.
fn remedy(quiz: &PackQuiz, answered: &Answered) -> String {
    let mut keys: Vec<&str> = Vec::new();
    match quiz.kind {
        QuizKind::Short => keys.push(remedy_key(quiz, own_words(answered))),
        QuizKind::Single | QuizKind::Multi => {
            let chosen = &answered.answer.values;
            keys.extend(chosen.iter().filter(|value| !quiz.correct.contains(value)).map(String::as_str));
            if quiz.correct.iter().any(|right| !chosen.contains(right)) && quiz.kind == QuizKind::Multi {
                keys.push(ANY);
            }
        }
    }
    let remedies: Vec<&str> = keys.iter().filter_map(|key| quiz.remedies.get(*key)).map(String::as_str).collect();
    if remedies.is_empty() { quiz.explanation.clone() } else { remedies.join("\n\n") }
}

fn own_words(answered: &Answered) -> &str {
    answered.answer.text.as_deref().or(answered.answer.other.as_deref()).unwrap_or_default()
}
