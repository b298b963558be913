//! The teacher after the plan: block by block prose, quiz and what the answer calls for. `closing` has the end.

use serde_json::json;

use crate::app::native::Plan;
use crate::app::native::plan::{PLAN_PROGRESS, PlanBlock};
use crate::app::native::question::{QUIZ, QuizKind, Verdict};

use super::change::is_quick;
use super::history::{Answered, Call, History, Outcome};
use super::judge::{JUDGE, accepts, remedy_key};
use super::pack::{ANY, Pack, PackBlock, PackQuiz};
use super::reply::{Again, Listener, WAITS, Waiting, again};
use super::shelf::Packs;
use super::step::Step;

/// All that a step of the teaching is derived from.
pub(super) struct Lesson<'a> {
    pub(super) packs: &'a Packs,
    pub(super) pack: &'a Pack,
    pub(super) history: &'a History<'a>,
    /// The tools that may be called.
    pub(super) tools: &'a [&'a str],
    /// What is to be said to the learner's text, when that is settled already.
    pub(super) told: Option<String>,
}

/// One block of the accepted plan, with its place in it.
pub(super) struct Planned<'a> {
    number: usize,
    pub(super) block: &'a PackBlock,
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

/// How far the plan is.
#[derive(Clone, Copy)]
struct Place<'a> {
    planned: &'a Planned<'a>,
    /// The block of the plan before it.
    before: Option<&'a Planned<'a>>,
    count: usize,
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
        if let Some(step) = self.parting(&planned) {
            return step;
        }
        let place = |at: usize| Place {
            planned: &planned[at],
            before: at.checked_sub(1).map(|before| &planned[before]),
            count: planned.len(),
        };
        for (at, block) in planned.iter().enumerate() {
            if self.progress(&block.block.id, "done") {
                continue;
            }
            let need = self.need(block);
            if matches!(need, Need::Quiz { .. }) && !self.progress(&block.block.id, "started") {
                let step = Step::thinking(format!("Next is \"{}\".", block.block.title))
                    .maybe_say(self.reply(Waiting::Nothing));
                return self.begin(step, place(at));
            }
            match need {
                Need::Quiz { prose, quiz, why } => return self.pose(block, prose, quiz, why),
                Need::Nothing if self.offers(PLAN_PROGRESS) => {
                    let following = (at + 1 < planned.len()).then(|| place(at + 1));
                    return self.finish(block, following);
                }
                Need::Nothing => {}
            }
        }
        self.close(&planned)
    }

    fn planned(&self, plan: &Plan) -> Vec<Planned<'a>> {
        let known =
            plan.blocks.iter().filter_map(|block: &PlanBlock| Some((self.pack.block(&block.id)?, is_quick(block))));
        known.enumerate().map(|(at, (block, is_quick))| Planned { number: at + 1, block, is_quick }).collect()
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }

    /// What there is to say to the learner's words.
    pub(super) fn reply(&self, waiting: Waiting<'a>) -> Option<String> {
        let Self { history, packs, pack, .. } = self;
        self.told.clone().or_else(|| Listener { history, packs, pack, waiting }.reply())
    }

    /// True when the block's progress was reported, or can't be.
    pub(super) fn progress(&self, block: &str, status: &str) -> bool {
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
    pub(super) fn verdicts(&self, quiz: &PackQuiz) -> Vec<Verdict> {
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

    /// Announces a block.
    fn begin(&self, step: Step, place: Place<'_>) -> Step {
        let Place { planned, before, count } = place;
        let block = planned.block;
        let aim = if planned.is_quick {
            "You seem to know this one, so it is a short recap and one question.".to_owned()
        } else {
            format!("The aim: {}", block.objective)
        };
        // The bridge speaks of the block before it in the lesson, so it is said only right after that one.
        let natural = self.pack.before(&block.id);
        let follows = before.zip(natural).is_some_and(|(before, natural)| before.block.id == natural.id);
        step.say(if follows { block.bridge.as_str() } else { "" })
            .say(format!("### {}", block.title))
            .say(format!("Block {} of {count}. {aim}", planned.number))
            .call(&format!("start-{}", block.id), PLAN_PROGRESS, json!({"blockId": block.id, "status": "started"}))
    }

    fn finish(&self, planned: &Planned<'a>, following: Option<Place<'_>>) -> Step {
        let block = planned.block;
        let (thought, reaction) = self.reaction();
        let after = if planned.is_quick { "" } else { block.after.as_str() };
        let step = Step::thinking(thought.unwrap_or_else(|| format!("That was all of \"{}\".", block.title)))
            .maybe_say(self.reply(Waiting::Nothing))
            .maybe_say(reaction)
            .say(after)
            .say(format!("That completes \"{}\".", block.title))
            .call(&format!("done-{}", block.id), PLAN_PROGRESS, json!({"blockId": block.id, "status": "done"}));
        match following {
            Some(following) if !self.progress(&following.planned.block.id, "started") => self.begin(step, following),
            Some(_) | None => step,
        }
    }

    fn pose(&self, planned: &Planned<'a>, prose: &'a str, quiz: &'a PackQuiz, why: Why) -> Step {
        if self.history.is_open(&quiz.question) {
            return self.pose_again(planned, prose, quiz);
        }
        let (thought, reaction) = self.reaction();
        let link = match why {
            Why::Lesson => "",
            Why::QuickCheck => "First a recap.",
            Why::CheckFailed => "So let us go through this block in full.",
            Why::Verification => "Now the question of the quick check once more, after the whole block.",
        };
        let (before, after) = if why == Why::Verification { ("", link) } else { (link, "") };
        let thought = thought.unwrap_or_else(|| format!("I explain first, then I check: {}.", quiz.concept));
        Step::thinking(thought)
            .maybe_say(self.reply(Waiting::Nothing))
            .maybe_say(reaction)
            .maybe_say(self.back_to(planned))
            .say(before)
            .say(prose)
            .say(after)
            .or_say("A question:")
            .call(&quiz.id, QUIZ, quiz.args())
    }

    /// Poses a question again that the learner has written instead of answering: once, and then when they ask for it.
    /// What was said before it stays said.
    fn pose_again(&self, planned: &Planned<'a>, prose: &'a str, quiz: &'a PackQuiz) -> Step {
        let block = planned.block;
        let recap = (prose != block.recap).then_some(block.recap.as_str());
        let step = Step::thinking("The question has no answer yet; what was said before it stays said.")
            .maybe_say(self.reply(Waiting::Quiz { quiz, recap }))
            .maybe_say(self.back_to(planned));
        if again(self.history, &quiz.question) == Again::Wait {
            return step.say(WAITS);
        }
        step.say("Here is the question again.").call(&quiz.id, QUIZ, quiz.args())
    }

    /// Says which block goes on, when another one came in between.
    fn back_to(&self, planned: &Planned<'_>) -> Option<String> {
        let block_of = |call: &Call<'_>| -> Option<String> {
            if call.name == PLAN_PROGRESS {
                return Some(call.args.get("blockId")?.as_str()?.to_owned());
            }
            let question = call.question()?;
            let (block, _) = self.pack.quizzes().find(|(_, quiz)| quiz.question == question)?;
            Some(block.id.clone())
        };
        let last = self.history.calls().rev().find_map(block_of)?;
        let block = planned.block;
        (last != block.id).then(|| format!("### {}\n\nNow back to this block.", block.title))
    }

    /// What the teacher thinks of the fresh answer and says to it.
    pub(super) fn reaction(&self) -> (Option<String>, Option<String>) {
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
