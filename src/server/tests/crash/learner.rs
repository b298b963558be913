//! A learner who takes one lesson after the other through every fall of the server, and does what the chat asks for.

use std::collections::HashSet;
use std::time::Duration;

use learnharness::app::native::plan::BlockStatus;
use learnharness::app::native::question::{Quiz, QuizKind};
use learnharness::app::native::view::{Next, PlanVerdict};
use learnharness::app::native::{Answer, InputEvent, Question};
use learnharness::app::transcript::scan::next::{next, pending};
use learnharness::app::transcript::scan::plan::plan;
use learnharness::app::transcript::unit::Body;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Gone};
use super::ledger::{Fault, arrived};
use super::reader::{Ended, Reader};
use super::watcher::{updates, watch};

/// Moves that bring a lesson no further, in each lesson.
const PRANKS: u32 = 8;
/// What a lesson may take; more is a circle.
const MOVES: u32 = 300;

pub(super) struct Learner {
    client: Client,
    rng: StdRng,
    watchers: u32,
    /// Inputs so far, for their ids.
    count: u32,
}

/// One lesson.
struct Lesson {
    chat: String,
    reader: Reader,
    pranks: u32,
    hinted: HashSet<String>,
}

impl Learner {
    pub(super) fn new(client: Client, seed: u64, watchers: u32) -> Self {
        Self { client, rng: StdRng::seed_from_u64(seed), watchers, count: 0 }
    }

    /// Takes lessons until there are to be no more; the last one to its end.
    pub(super) async fn learn(mut self, no_more: CancellationToken) {
        loop {
            let chat = self.client.create().await;
            let over = CancellationToken::new();
            let mut watchers = JoinSet::new();
            for _ in 0..self.watchers {
                watchers.spawn(watch(self.client.clone(), chat.clone(), self.rng.random(), over.clone()));
            }
            let reader = Reader::new(&self.client, &chat);
            let mut lesson = Lesson { chat, reader, pranks: PRANKS, hinted: HashSet::new() };
            let outcome = self.take(&mut lesson).await;
            over.cancel();
            let watchers = watchers.join_all().await;
            if outcome.is_ok() {
                self.client.house.ledger.close(&lesson.chat);
                self.compare(&lesson, watchers).await;
            }
            // Who lost the lesson to our own hands takes another one to its end.
            if no_more.is_cancelled() && !self.client.house.ledger.is_taken(&lesson.chat) {
                return;
            }
        }
    }

    async fn take(&mut self, lesson: &mut Lesson) -> Result<(), Gone> {
        for _ in 0..MOVES {
            let ended = lesson.reader.settle(updates(&mut self.rng)).await;
            let recovered = std::mem::take(&mut lesson.reader.recovered);
            self.client.house.ledger.count(|figures| figures.recovered += recovered);
            if ended == Ended::Gone {
                return Err(self.gone(lesson));
            }
            let input = match self.choose(lesson) {
                Some(input) => input,
                None if self.has_all_steers(lesson).await => return Ok(()),
                None => say("Go on."),
            };
            if self.send(lesson, &input).await.is_err() {
                return Err(self.gone(lesson));
            }
        }
        let stands = self.client.describe(&lesson.chat).await;
        self.fault(lesson, &format!("no end after {MOVES} moves: {stands}"));
        Err(Gone)
    }

    /// True when no steer waits for the lesson that is over; from now on none is written for it.
    async fn has_all_steers(&self, lesson: &Lesson) -> bool {
        let steers = loop {
            match self.client.house.ledger.no_more_steers(&lesson.chat) {
                Some(steers) => break steers,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        arrived(&lesson.reader.live.record).len() == steers
    }

    /// Our own hands may have taken the chat away; else it must not be gone.
    fn gone(&self, lesson: &Lesson) -> Gone {
        if !self.client.house.ledger.is_taken(&lesson.chat) {
            self.fault(lesson, "the chat is gone");
        }
        Gone
    }

    fn fault(&self, lesson: &Lesson, words: &str) {
        self.client.house.ledger.fault(Fault::Stuck, format!("{}: {words}", lesson.chat));
    }

    /// What the learner does now; none at the end of the lesson.
    fn choose(&mut self, lesson: &mut Lesson) -> Option<InputEvent> {
        let record = &lesson.reader.live.record;
        let retry =
            lesson.reader.view().last().is_some_and(|unit| unit.parts.iter().any(|part| offers_retry(&part.body)));
        match next(record) {
            Next::Reply | Next::Handoff => Some(InputEvent::Retry),
            Next::Answer(_) => {
                let asked = pending(record);
                let asked = asked.choose(&mut self.rng)?;
                let question = Question::from_args(&asked.tool_name, &asked.args);
                Some(self.answer(&mut lesson.pranks, &mut lesson.hinted, &asked.tool_call_id, &question.ok()?))
            }
            _ if retry => Some(InputEvent::Retry),
            Next::Verdict(_) => Some(self.judge(&mut lesson.pranks)),
            Next::Idle if is_over(lesson) => None,
            Next::Idle if record.is_empty() => Some(say("Teach me fractions.")),
            Next::Idle => Some(say("Go on.")),
        }
    }

    fn judge(&mut self, pranks: &mut u32) -> InputEvent {
        if self.plays(pranks, 0.2) {
            return InputEvent::Verdict { accepted: false, note: Some("Make it shorter.".to_owned()) };
        }
        if self.plays(pranks, 0.2) {
            let note = Some("That is a lot.".to_owned());
            return InputEvent::Text { text: "How long will it take?".to_owned(), note };
        }
        InputEvent::Verdict { accepted: true, note: None }
    }

    fn answer(
        &mut self,
        pranks: &mut u32,
        hinted: &mut HashSet<String>,
        tool_call_id: &str,
        question: &Question,
    ) -> InputEvent {
        let tool_call_id = tool_call_id.to_owned();
        let has_hint = matches!(question, Question::Quiz(quiz) if quiz.hint.is_some());
        if has_hint && self.rng.random_bool(0.3) && hinted.insert(tool_call_id.clone()) {
            return InputEvent::Hint { tool_call_id };
        }
        if self.plays(pranks, 0.1) {
            return say("Why is that?");
        }
        if self.plays(pranks, 0.05) {
            return InputEvent::Objection { tool_call_id, reason: "It is not fair.".to_owned() };
        }
        if self.plays(pranks, 0.05) {
            return InputEvent::Answer { tool_call_id, answer: Answer::default(), dismissed: true };
        }
        let dont_know = self.plays(pranks, 0.1);
        let answer = if dont_know { Answer { dont_know, ..Answer::default() } } else { self.solve(pranks, question) };
        InputEvent::Answer { tool_call_id, answer, dismissed: false }
    }

    /// A right answer, or a wrong one.
    fn solve(&mut self, pranks: &mut u32, question: &Question) -> Answer {
        let wrong = self.plays(pranks, 0.25);
        match question {
            Question::Quiz(Quiz { kind: QuizKind::Short, correct, .. }) => {
                let text = if wrong { Some("something else".to_owned()) } else { correct.first().cloned() };
                Answer { text, ..Answer::default() }
            }
            Question::Quiz(Quiz { options, correct, .. }) if wrong => {
                let values = options.iter().filter(|option| !correct.contains(option)).take(1).cloned().collect();
                Answer { values, ..Answer::default() }
            }
            Question::Quiz(Quiz { correct, kind, .. }) => {
                let count = if *kind == QuizKind::Multi { correct.len() } else { 1 };
                Answer { values: correct.iter().take(count).cloned().collect(), ..Answer::default() }
            }
            Question::Ask(ask) if ask.options.is_empty() => {
                Answer { text: Some("fractions".to_owned()), ..Answer::default() }
            }
            Question::Ask(ask) => Answer { values: ask.options.iter().take(1).cloned().collect(), ..Answer::default() },
        }
    }

    fn plays(&mut self, pranks: &mut u32, chance: f64) -> bool {
        let plays = *pranks > 0 && self.rng.random_bool(chance);
        *pranks -= u32::from(plays);
        plays
    }

    /// Sends an input: once, twice with one id, or as two clients who do not know of each other.
    async fn send(&mut self, lesson: &Lesson, input: &InputEvent) -> Result<(), Gone> {
        let (ledger, chat) = (self.client.house.ledger.clone(), &lesson.chat);
        if let InputEvent::Retry = input {
            ledger.count(|figures| figures.retries += 1);
        }
        let mut make = || {
            self.count += 1;
            let token = token(self.count);
            let input = stamped(input, &token);
            ledger.send(chat, &token, &input);
            (token, input)
        };
        let (token, first) = make();
        let deliver = self.client.deliver(chat, &token, &first);
        match self.rng.random_range(0..10) {
            0 => {
                let again = self.client.deliver(chat, &token, &first);
                tokio::try_join!(deliver, again).map(drop)
            }
            1 => {
                let (other, second) = make();
                let second = self.client.deliver(chat, &other, &second);
                tokio::try_join!(deliver, second).map(drop)
            }
            _ => deliver.await,
        }
    }

    /// Holds the finished chat against all that was seen of it.
    async fn compare(&self, lesson: &Lesson, watchers: Vec<Reader>) {
        if self.client.audit_at_the_end(&lesson.chat).await.is_err() {
            self.gone(lesson);
            return;
        }
        let mut fresh = Reader::new(&self.client, &lesson.chat);
        fresh.settle("full").await;
        for reader in watchers.iter().chain([&lesson.reader]) {
            if (reader.position(), reader.view()) != (fresh.position(), fresh.view()) {
                let words = format!(
                    "{}: a reader at {} sees another lesson than a fresh one at {}:\n{:#?}\n{:#?}",
                    lesson.chat,
                    reader.position(),
                    fresh.position(),
                    reader.view().last(),
                    fresh.view().last()
                );
                self.client.house.ledger.fault(Fault::Reader, words);
            }
        }
    }
}

fn say(text: &str) -> InputEvent {
    InputEvent::Text { text: text.to_owned(), note: None }
}

/// A number in signs that no teacher takes for words; whole, no token is a part of another.
fn token(number: u32) -> String {
    let signs: String = format!("{number:b}").chars().map(|bit| if bit == '1' { '•' } else { '·' }).collect();
    format!("‹{signs}›")
}

/// The input with its token in it, by which it is found in the record.
fn stamped(input: &InputEvent, token: &str) -> InputEvent {
    let mut input = input.clone();
    match &mut input {
        InputEvent::Text { text, .. } => *text = format!("{text} {token}"),
        InputEvent::Answer { answer, .. } => answer.note = Some(token.to_owned()),
        InputEvent::Verdict { note, .. } => *note = Some(format!("{} {token}", note.take().unwrap_or_default())),
        InputEvent::Objection { reason, .. } => *reason = format!("{reason} {token}"),
        InputEvent::Hint { .. } | InputEvent::Retry => {}
    }
    input
}

fn offers_retry(body: &Body) -> bool {
    matches!(body, Body::Failed { can_retry: true, .. } | Body::Stopped { can_retry: true, .. })
}

/// All that was planned is done.
fn is_over(lesson: &Lesson) -> bool {
    plan(&lesson.reader.live.record).is_some_and(|plan| {
        plan.verdict == PlanVerdict::Accepted && plan.progress.iter().all(|status| *status == BlockStatus::Done)
    })
}
