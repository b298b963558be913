//! A chat as its page lives it: what is known of it, what streams in, and what the learner sends.
//!
//! On the server it holds the first view and nothing happens to it. In the browser it opens a stream while the page is seen
//! and something runs, and asks every two seconds otherwise.

use std::future::Future;

use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Map;

use super::{Keyed, Outline};
use crate::app::api;
use crate::app::native::input::{LONGEST_TEXT, too_long};
use crate::app::native::question::{Graded, Verdict, check_answer, grade, unanswered};
use crate::app::native::view::{ChatView, Pending, Phase};
use crate::app::native::{
    AgentEvent, Answer, ErrorBody, ErrorKind, InputEvent, Message, Question, Seq, Stored, ToolResultMessage,
};
use crate::app::platform::{self, Following, Listening, Ticker, Told};
use crate::app::transcript::{Live, Unit, group};

/// Milliseconds between two looks at a chat that is not streamed.
const LOOK_MS: u32 = 2_000;
/// Milliseconds before an input that met a busy chat or no server is sent again.
const AGAIN_MS: u32 = 500;
/// How often an input is sent in all.
const SENDINGS: u32 = 12;

/// How the page is connected to its chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing runs; the page looks from time to time.
    Resting,
    Streaming,
    /// The server does not answer; the page tries again by itself.
    Lost,
}

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
    units: StoredValue<Keyed<Seq, Unit>>,
    pub outline: RwSignal<Outline>,
    pub running: RwSignal<bool>,
    /// How many ms the run waits before it asks its model again.
    pub waits: RwSignal<Option<u64>>,
    pub link: RwSignal<Link>,
    /// True from an input's sending until the first sign of what became of it.
    pub submitted: RwSignal<bool>,
    /// Why the last input was not taken, for the learner.
    pub trouble: RwSignal<Option<String>>,
    /// The last verdict on an answer, in words to be heard.
    pub feedback: RwSignal<String>,
    /// The end of the lesson is kept in sight; what the learner does puts it there again.
    pub pinned: RwSignal<bool>,
    /// Counts what was shown anew.
    pub shown: RwSignal<u32>,
    stream: StoredValue<Option<Following>>,
    watch: StoredValue<Option<(Ticker, Option<Listening>)>>,
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
            units: StoredValue::new(units),
            outline: RwSignal::new(outline),
            running: RwSignal::new(view.running),
            waits: RwSignal::new(None),
            link: RwSignal::new(Link::Resting),
            submitted: RwSignal::new(false),
            trouble: RwSignal::new(None),
            feedback: RwSignal::new(String::new()),
            pinned: RwSignal::new(true),
            shown: RwSignal::new(0),
            stream: StoredValue::new(None),
            watch: StoredValue::new(None),
            due: StoredValue::new(false),
        }
    }

    #[must_use]
    pub fn units(&self) -> Keyed<Seq, Unit> {
        self.units.get_value()
    }

    /// Begins to follow the chat; it ends with the owner that this is called under.
    pub fn begin(self) {
        if self.running.get_untracked() {
            self.connect();
        }
        let ticker = platform::every(LOOK_MS, move || self.look_if_resting());
        let shown = platform::on_visibility(move || self.shown_or_hidden());
        self.watch.set_value(Some((ticker, shown)));
        on_cleanup(move || {
            self.watch.try_set_value(None);
            self.stream.try_set_value(None);
        });
    }

    /// Sends the learner's words, and tells what became of them.
    pub fn say(self, text: String, tell: impl FnOnce(Fate) + 'static) {
        if text.chars().count() > LONGEST_TEXT {
            self.trouble.set(Some(too_long()));
            return tell(Fate::Refused);
        }
        self.ahead.set_value(vec![Message::user(&text, 0)]);
        self.send(InputEvent::Text { text, note: None }, tell);
    }

    /// Sends an answer; the card shows its grading at once.
    pub fn answer(self, asked: &Pending, answer: Answer, dismissed: bool) {
        let Ok(question) = Question::from_args(&asked.tool_name, &asked.args) else { return };
        if !dismissed && let Err(words) = check_answer(&question, &answer) {
            return self.trouble.set(Some(words));
        }
        let graded = if dismissed { unanswered(&question, Verdict::Skipped) } else { grade(&question, &answer) };
        let probes = self.outline.with_untracked(|outline| outline.phase == Phase::Probe);
        self.feedback.set(if probes { "Noted.".to_owned() } else { in_words(&graded, &question) });
        self.ahead.set_value(vec![result(asked, &graded)]);
        let tool_call_id = asked.tool_call_id.clone();
        self.send(InputEvent::Answer { tool_call_id, answer, dismissed }, |_| {});
    }

    /// Sends any other input.
    pub fn input(self, input: InputEvent) {
        self.send(input, |_| {});
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

    /// Stops what runs, or closes the question that waits.
    pub fn stop(self) {
        let chat = self.chat.get_value();
        self.live_task(async move {
            match api::abort(chat).await {
                Ok(_) => self.look().await,
                Err(error) => self.complain(&error),
            }
        });
    }

    fn send(self, input: InputEvent, tell: impl FnOnce(Fate) + 'static) {
        self.trouble.set(None);
        self.submitted.set(true);
        self.pinned.set(true);
        self.refresh();
        let (chat, id) = (self.chat.get_value(), platform::new_id());
        self.live_task(async move {
            match taken(&chat, &id, &input).await {
                Ok(accepted) => {
                    tell(Fate::Taken);
                    if accepted.run_id.is_some() {
                        let _ = self.running.try_set(true);
                        self.connect();
                    } else {
                        self.look().await;
                    }
                }
                Err(error) => {
                    self.ahead.try_set_value(Vec::new());
                    self.refresh();
                    self.complain(&error);
                    tell(Fate::Refused);
                    self.look().await;
                }
            }
        });
    }

    fn complain(self, error: &ErrorBody) {
        let _ = self.submitted.try_set(false);
        let _ = self.feedback.try_set(String::new());
        let _ = self.trouble.try_set(Some(error.error.message.clone()));
    }

    /// Opens the stream at the record's position, unless it is open or nobody looks.
    fn connect(self) {
        let open = self.stream.try_with_value(Option::is_some).unwrap_or(true);
        if open || !platform::is_visible() {
            return;
        }
        let (Some(chat), Some(position)) = (self.chat.try_get_value(), self.live.try_with_value(Live::position)) else {
            return;
        };
        let url = format!("/api/chats/{chat}/stream?after={position}&updates=delta&follow=1");
        let following = platform::follow(&url, move |told| self.told(told));
        let link = if following.is_some() { Link::Streaming } else { Link::Lost };
        self.stream.try_set_value(following);
        let _ = self.link.try_set(link);
    }

    fn told(self, told: Told) {
        match told {
            Told::Event(id, event) => self.take(id, &event),
            Told::Lost => {
                self.stream.try_set_value(None);
                let _ = self.link.try_set(Link::Lost);
                self.live_task(self.look());
            }
        }
    }

    fn take(self, id: Option<Seq>, event: &AgentEvent) {
        use crate::app::transcript::live::Applied;
        let Some(applied) = self.live.try_update_value(|live| live.apply(id, event)) else { return };
        match event {
            AgentEvent::AgentStart => {
                let _ = self.running.try_set(true);
            }
            AgentEvent::MessageEnd { .. } if applied == Applied::Taken => {
                self.ahead.try_set_value(Vec::new());
                let _ = self.submitted.try_set(false);
            }
            AgentEvent::TurnSettled => {
                // What waits now must show together with the end of the run.
                self.refresh();
                let _ = self.running.try_set(false);
                let _ = self.submitted.try_set(false);
                let _ = self.link.try_set(Link::Resting);
                let _ = self.trouble.try_set(None);
                self.stream.try_set_value(None);
            }
            _ => {}
        }
        let waits = self.live.try_with_value(|live| live.tail.retry.as_ref().map(|retry| retry.wait_ms)).flatten();
        if self.waits.try_get_untracked() != Some(waits) {
            let _ = self.waits.try_set(waits);
        }
        if applied == Applied::Gap {
            self.live_task(self.look());
        }
        self.refresh_soon();
    }

    fn look_if_resting(self) {
        let streaming = self.stream.try_with_value(Option::is_some).unwrap_or(true);
        let submitted = self.submitted.try_get_untracked().unwrap_or(true);
        if !streaming && !submitted && platform::is_visible() {
            self.live_task(self.look());
        }
    }

    fn shown_or_hidden(self) {
        if platform::is_visible() {
            self.live_task(self.look());
        } else {
            self.stream.try_set_value(None);
        }
    }

    /// Asks for what is new, and opens the stream if something runs.
    async fn look(self) {
        let (Some(chat), Some(position)) = (self.chat.try_get_value(), self.live.try_with_value(Live::position)) else {
            return;
        };
        let sending = self.submitted.try_get_untracked();
        match api::chat(&chat, position).await {
            Ok(view) => {
                let streaming = self.stream.try_with_value(Option::is_some).unwrap_or(true);
                // What was asked for before an input was sent knows nothing of it.
                let is_stale = sending == Some(false) && self.submitted.try_get_untracked() != Some(false);
                if streaming || is_stale {
                    return;
                }
                self.ahead.try_set_value(Vec::new());
                self.live.try_update_value(|live| {
                    live.extend(view.messages);
                    if !view.running {
                        live.apply(None, &AgentEvent::TurnSettled);
                    }
                });
                let _ = self.submitted.try_set(false);
                let _ = self.running.try_set(view.running);
                let _ = self.link.try_set(Link::Resting);
                self.refresh();
                if view.running {
                    self.connect();
                }
            }
            Err(error) if error.error.kind == ErrorKind::Offline => {
                let _ = self.link.try_set(Link::Lost);
            }
            Err(error) => self.complain(&error),
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

/// Sends an input until it is taken or refused for good; the same id makes it one input.
async fn taken(chat: &str, id: &str, input: &InputEvent) -> Result<crate::app::native::Accepted, ErrorBody> {
    let mut sendings = 1;
    loop {
        let sent = api::take_input(chat.to_owned(), Some(id.to_owned()), input.clone()).await;
        match sent {
            Err(error) if sendings < SENDINGS && matches!(error.error.kind, ErrorKind::Busy | ErrorKind::Offline) => {
                sendings += 1;
                platform::sleep(AGAIN_MS).await;
            }
            outcome => return outcome,
        }
    }
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
