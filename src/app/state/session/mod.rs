//! A chat as its page lives it: what is known of it, what streams in, and what the learner sends.
//!
//! On the server it holds the first view and nothing happens to it. In the browser it stays in touch with its chat (see
//! `connection`).

mod connection;

use std::future::Future;
use std::pin::pin;

use futures::future::{Either, select};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Map;

use super::{Keyed, Outline};
use crate::app::api;
use crate::app::native::input::{LONGEST_TEXT, too_long};
use crate::app::native::question::{Graded, Verdict, check_answer, grade, unanswered};
use crate::app::native::view::{ChatView, Pending, Phase, Retry};
use crate::app::native::{
    Accepted, Answer, ErrorBody, ErrorKind, InputEvent, Message, Question, Seq, Stored, ToolResultMessage,
};
use crate::app::platform;
use crate::app::transcript::{Live, Unit, group};
use connection::Connection;

/// Milliseconds before an input that met a busy chat is sent again: its run may be about to end.
const AGAIN_MS: u32 = 300;
/// How often an input is sent in all to a chat that is busy.
const BUSY_SENDINGS: u32 = 3;
/// How often an input is sent in all to a server that was there just before.
const SENDINGS: u32 = 20;
/// Milliseconds until an input without an answer is sent again; by its id it is taken once.
const PATIENCE_MS: u32 = 15_000;
/// How often a page looks whether what it has stopped has ended.
const STOP_LOOKS: u32 = 5;
/// Milliseconds between two questions whether the server is there again.
const GLANCE_MS: u32 = 200;

/// What became of the learner's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Taken,
    Refused,
}

/// A chat on its page. Copies are the same session.
#[derive(Clone, Copy)]
pub struct Session {
    pub chat: StoredValue<String>,
    live: StoredValue<Live>,
    /// Messages shown before the server has them.
    ahead: StoredValue<Vec<Message>>,
    /// The answer that is on its way, by its question: what is refused is given back.
    given: StoredValue<Option<(String, Answer)>>,
    units: StoredValue<Keyed<Seq, Unit>>,
    pub outline: RwSignal<Outline>,
    pub running: RwSignal<bool>,
    /// The run waits before it asks its model again.
    pub waits: RwSignal<Option<Retry>>,
    /// The server does not answer; the page tries again by itself.
    pub lost: RwSignal<bool>,
    /// The chat was deleted.
    pub gone: RwSignal<bool>,
    /// True from an input's sending until the first sign of what became of it.
    pub submitted: RwSignal<bool>,
    /// The learner has asked for a stop that the server has not taken yet.
    pub stopping: RwSignal<bool>,
    /// Why the last input was not taken; it goes with the next one, or with its cause.
    pub trouble: RwSignal<Option<ErrorBody>>,
    /// The last verdict on an answer, in words to be heard.
    pub feedback: RwSignal<String>,
    /// The end of the lesson is kept in sight; what the learner does puts it there again.
    pub pinned: RwSignal<bool>,
    /// Counts what was shown anew.
    pub shown: RwSignal<u32>,
    connection: StoredValue<Connection>,
    /// True while a refresh waits for its frame.
    due: StoredValue<bool>,
}

impl Session {
    /// A session that knows what the server said first.
    #[must_use]
    pub fn new(view: ChatView) -> Self {
        let mut live = Live::new(view.messages);
        live.tail.running = view.running;
        let outline = Outline::of(&live.record);
        let units = Keyed::new(keyed(group(&live.record, &live.tail)));
        Self {
            chat: StoredValue::new(view.id),
            live: StoredValue::new(live),
            ahead: StoredValue::new(Vec::new()),
            given: StoredValue::new(None),
            units: StoredValue::new(units),
            outline: RwSignal::new(outline),
            running: RwSignal::new(view.running),
            waits: RwSignal::new(view.retry),
            lost: RwSignal::new(false),
            gone: RwSignal::new(false),
            submitted: RwSignal::new(false),
            stopping: RwSignal::new(false),
            trouble: RwSignal::new(None),
            feedback: RwSignal::new(String::new()),
            pinned: RwSignal::new(true),
            shown: RwSignal::new(0),
            connection: StoredValue::new(Connection::default()),
            due: StoredValue::new(false),
        }
    }

    #[must_use]
    pub fn units(&self) -> Keyed<Seq, Unit> {
        self.units.get_value()
    }

    /// True when the chat can take an input now, as far as the page knows.
    #[must_use]
    pub fn is_idle(self) -> bool {
        !self.submitted.get() && !self.running.get() && !self.gone.get()
    }

    /// The answer to this question that was sent and not taken.
    #[must_use]
    pub fn given(self, tool_call_id: &str) -> Option<Answer> {
        self.given.get_value().filter(|(id, _)| id == tool_call_id).map(|(_, answer)| answer)
    }

    /// Sends the learner's words, and tells what became of them.
    pub fn say(self, text: String, tell: impl FnOnce(Fate) + 'static) {
        if self.submitted.get_untracked() {
            return tell(Fate::Refused);
        }
        if text.chars().count() > LONGEST_TEXT {
            self.complain(&ErrorBody::new(ErrorKind::Invalid, too_long()));
            return tell(Fate::Refused);
        }
        self.ahead.set_value(vec![Message::user(&text, 0)]);
        self.send(InputEvent::Text { text, note: None }, tell);
    }

    /// Sends an answer; the card shows its grading at once.
    pub fn answer(self, asked: &Pending, answer: Answer, dismissed: bool) {
        if self.submitted.get_untracked() {
            return;
        }
        let Ok(question) = Question::from_args(&asked.tool_name, &asked.args) else { return };
        if !dismissed && let Err(words) = check_answer(&question, &answer) {
            return self.complain(&ErrorBody::new(ErrorKind::Invalid, words));
        }
        let graded = if dismissed { unanswered(&question, Verdict::Skipped) } else { grade(&question, &answer) };
        let probes = self.outline.with_untracked(|outline| outline.phase == Phase::Probe);
        self.feedback.set(if probes { "Noted.".to_owned() } else { in_words(&graded, &question) });
        self.ahead.set_value(vec![result(asked, &graded)]);
        let tool_call_id = asked.tool_call_id.clone();
        self.given.set_value(Some((tool_call_id.clone(), answer.clone())));
        self.send(InputEvent::Answer { tool_call_id, answer, dismissed }, |_| {});
    }

    /// Sends any other input.
    pub fn input(self, input: InputEvent) {
        if !self.submitted.get_untracked() {
            self.send(input, |_| {});
        }
    }

    /// Records that the learner looked at the hint; the page shows it already.
    pub fn hint(self, input: InputEvent) {
        let chat = self.chat.get_value();
        self.live_task(async move {
            if let Err(error) = api::take_input(chat, Some(platform::new_id()), input).await {
                self.complain(&error);
            }
        });
    }

    /// Stops what runs.
    pub fn stop(self) {
        if self.stopping.get_untracked() {
            return;
        }
        self.trouble.set(None);
        self.stopping.set(true);
        self.live_task(async move {
            let outcome = self.stopped().await;
            let _ = self.stopping.try_set(false);
            if let Err(error) = outcome {
                self.complain(&error);
            }
            // The run ends a moment after the stop; a page that has no stream must not wait for its next look.
            for _ in 0..STOP_LOOKS {
                self.look().await;
                if self.running.try_get_untracked() != Some(true) {
                    break;
                }
                platform::sleep(GLANCE_MS).await;
            }
        });
    }

    /// Undoes the deletion of the chat.
    pub fn restore(self, tell: impl FnOnce() + 'static) {
        let chat = self.chat.get_value();
        self.live_task(async move {
            match api::restore_chat(chat).await {
                Ok(()) => tell(),
                Err(error) => self.complain(&error),
            }
        });
    }

    fn send(self, input: InputEvent, tell: impl FnOnce(Fate) + 'static) {
        self.trouble.set(None);
        self.submitted.set(true);
        self.pinned.set(true);
        self.refresh();
        // What was asked for before knows nothing of the input.
        self.leave();
        self.connection.update_value(|connection| connection.sending = true);
        self.live_task(async move {
            let outcome = self.taken(&input).await;
            self.connection.try_update_value(|connection| connection.sending = false);
            match outcome {
                Ok(accepted) => {
                    self.given.try_set_value(None);
                    tell(Fate::Taken);
                    if accepted.run_id.is_some() {
                        let _ = self.running.try_set(true);
                        self.connect().await;
                    } else {
                        self.look().await;
                    }
                }
                Err(error) => {
                    tell(Fate::Refused);
                    self.refused(&input, error).await;
                }
            }
        });
    }

    /// Sends an input until it is taken or refused for good; its id makes it one input.
    async fn taken(self, input: &InputEvent) -> Result<Accepted, ErrorBody> {
        let Some(chat) = self.chat.try_get_value() else { return Err(offline()) };
        let id = platform::new_id();
        let mut sendings = 0;
        loop {
            sendings += 1;
            match within_patience(api::take_input(chat.clone(), Some(id.clone()), input.clone())).await {
                Err(error) if error.error.kind == ErrorKind::Busy && sendings < BUSY_SENDINGS => {
                    platform::sleep(AGAIN_MS).await;
                }
                Err(error) if error.error.kind == ErrorKind::Offline && sendings < SENDINGS => {
                    platform::sleep(GLANCE_MS * (sendings - 1)).await;
                    self.reach().await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Sends a stop until it is taken or refused for good, or nothing runs any more: a question that waits by then is not
    /// what the learner wanted closed.
    async fn stopped(self) -> Result<(), ErrorBody> {
        let Some(chat) = self.chat.try_get_value() else { return Ok(()) };
        let mut sendings = 0;
        while self.running.try_get_untracked() == Some(true) {
            sendings += 1;
            match within_patience(api::abort(chat.clone())).await {
                Err(error) if error.error.kind == ErrorKind::Offline && sendings < SENDINGS => {
                    platform::sleep(GLANCE_MS * (sendings - 1)).await;
                    self.reach().await;
                }
                outcome => return outcome.map(drop),
            }
        }
        Ok(())
    }

    /// Waits until the server is there, or the page is left.
    async fn reach(self) {
        self.look().await;
        while self.lost.try_get_untracked() == Some(true) {
            platform::sleep(GLANCE_MS).await;
        }
    }

    /// An input was not taken: what was shown ahead of it is taken back, and the learner told what holds instead.
    async fn refused(self, input: &InputEvent, error: ErrorBody) {
        self.ahead.try_set_value(Vec::new());
        self.refresh();
        if error.error.kind == ErrorKind::Gone {
            return self.deleted();
        }
        self.complain(&error);
        self.look().await;
        let InputEvent::Answer { tool_call_id, .. } = input else { return };
        let accepted = self.live.try_with_value(|live| answer_to(&live.record, tool_call_id)).flatten();
        if let Some(accepted) = accepted {
            self.complain(&ErrorBody::new(ErrorKind::Answered, accepted));
        }
    }

    fn complain(self, error: &ErrorBody) {
        let _ = self.submitted.try_set(false);
        let _ = self.feedback.try_set(String::new());
        let _ = self.trouble.try_set(Some(error.clone()));
    }

    /// Forgets the trouble if it is one of those that `is_over` knows.
    fn calm(self, is_over: impl FnOnce(ErrorKind) -> bool) {
        let over =
            self.trouble.try_with_untracked(|trouble| trouble.as_ref().is_some_and(|error| is_over(error.error.kind)));
        if over == Some(true) {
            let _ = self.trouble.try_set(None);
        }
    }

    /// Shows what has come, with the next frame.
    fn refresh_soon(self) {
        if self.due.try_get_value() == Some(false) {
            self.due.set_value(true);
            platform::next_frame(move || {
                self.due.try_set_value(false);
                self.refresh();
            });
        }
    }

    fn refresh(self) {
        let (Some(ahead), Some(units)) = (self.ahead.try_get_value(), self.units.try_get_value()) else { return };
        let shown = self.live.try_with_value(|live| {
            if ahead.is_empty() {
                return (group(&live.record, &live.tail), Outline::of(&live.record));
            }
            let mut live = live.clone();
            let first = live.position();
            live.record.extend(ahead.into_iter().scan(first, |seq, message| {
                *seq = seq.next();
                Some(Stored { seq: *seq, message })
            }));
            (group(&live.record, &live.tail), Outline::of(&live.record))
        });
        let Some((grouped, outline)) = shown else { return };
        units.sync(keyed(grouped));
        if self.outline.try_with_untracked(|known| *known != outline) == Some(true) {
            self.outline.set(outline);
        }
        let _ = self.shown.try_update(|count| *count += 1);
    }

    /// Runs a task of the page; it finds its session gone when the page is left.
    fn live_task(self, task: impl Future<Output = ()> + 'static) {
        spawn_local(task);
    }
}

/// What the server says to a request, or that it said nothing for too long.
async fn within_patience<T>(request: impl Future<Output = Result<T, ErrorBody>>) -> Result<T, ErrorBody> {
    match select(pin!(request), pin!(platform::sleep(PATIENCE_MS))).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(offline()),
    }
}

fn offline() -> ErrorBody {
    ErrorBody::new(ErrorKind::Offline, "The server cannot be reached.")
}

/// What holds for a question that has an answer, in words for the one whose own came too late.
fn answer_to(record: &[Stored], tool_call_id: &str) -> Option<String> {
    let mut results = record.iter().filter_map(|stored| stored.message.as_tool_result());
    let result = results.rfind(|result| result.tool_call_id == tool_call_id)?;
    let graded: Graded = serde_json::from_value(result.details.clone()?).ok()?;
    Some(match graded.verdict {
        Verdict::NotAnswered => "This question was closed without an answer before yours came.".to_owned(),
        Verdict::Skipped => "This question was skipped before your answer came.".to_owned(),
        Verdict::DontKnow => {
            "This question was answered before yours came: “I don't know”. That answer counts.".to_owned()
        }
        Verdict::Correct | Verdict::Wrong | Verdict::Open | Verdict::Noted => {
            format!("This question was answered before yours came: “{}”. That answer counts.", graded.answer.shown())
        }
    })
}

fn keyed(units: Vec<Unit>) -> impl Iterator<Item = (Seq, Unit)> {
    units.into_iter().map(|unit| (unit.key, unit))
}

/// The result that the server will store, as far as a card shows it.
fn result(asked: &Pending, graded: &Graded) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: asked.tool_call_id.clone(),
        tool_name: asked.tool_name.clone(),
        content: Vec::new(),
        details: serde_json::to_value(graded).ok(),
        usage: None,
        is_error: false,
        timestamp: 0,
        extra: Map::new(),
    })
}

fn in_words(graded: &Graded, question: &Question) -> String {
    match graded.verdict {
        Verdict::Correct => "Correct.".to_owned(),
        Verdict::Wrong => format!("Not quite. Right is: {}.", graded.right(question)),
        Verdict::Open => "Your teacher will look at this answer.".to_owned(),
        Verdict::DontKnow => "Noted: you don't know this yet.".to_owned(),
        Verdict::Skipped => "Skipped.".to_owned(),
        Verdict::Noted => "Noted.".to_owned(),
        Verdict::NotAnswered => String::new(),
    }
}
