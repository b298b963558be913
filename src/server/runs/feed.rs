//! The live side of a chat: where its record is, the open tail of its run, and the channel to its readers.
//!
//! The record plus the tail is the log: a reader who takes a snapshot and a subscription under one lock misses nothing
//! and gets nothing twice.

use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::backlog::{Receiver, Sender};
use crate::app::native::view::Retry;
use crate::app::native::{AgentEvent, AssistantEvent, AssistantMessage, Message, Seq, fold};

/// Bytes of events that a reader may be behind before it attaches anew: of a thousand chats they fit the memory that a
/// small machine has.
const BACKLOG: usize = 128 * 1024;

/// One event on its way to the readers.
#[derive(Debug)]
pub(super) struct Publication {
    pub(super) event: AgentEvent,
    /// The record's position once this event is seen.
    pub(super) position: Seq,
    /// The position of the message that this event is about, when it is in the record already.
    pub(super) seq: Option<Seq>,
    /// The run that begins with it.
    pub(super) begins: Option<String>,
    /// The event as JSON, written once for all readers.
    pub(super) json: String,
}

impl Publication {
    /// The memory that it takes, about: what is in the JSON is in the event as well.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.json.len()
    }
}

pub(super) fn to_json(event: &AgentEvent) -> String {
    serde_json::to_string(event).unwrap_or_else(|error| {
        tracing::error!(%error, "an event could not be written");
        String::from(r#"{"type":"error","error":{"kind":"internal","message":"An event could not be written."}}"#)
    })
}

/// The open run of a chat, as far as it is not in the record yet.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) run: String,
    pub(super) cancel: CancellationToken,
    /// The record's position before the run's first message.
    pub(super) start: Seq,
    /// True once `agent_start` is out.
    pub(super) started: bool,
    /// True while a turn is open.
    pub(super) turn: bool,
    /// Turns so far, the open one included.
    pub(super) turns: usize,
    /// Position of the open turn's answer, once it is in the record.
    pub(super) answer: Option<Seq>,
    pub(super) message: Option<AssistantMessage>,
    /// True when the open message has grown since it was last kept.
    unsaved: bool,
    /// What made the open message what it is.
    pub(super) step: Option<AssistantEvent>,
    /// The wait before the model is asked again.
    pub(super) retry: Option<Retry>,
    /// Calls of the open batch whose result is not in the record: their start, and their end if they have ended.
    pub(super) calls: Vec<OpenCall>,
}

#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) start: AgentEvent,
    pub(super) end: Option<AgentEvent>,
}

/// A chat's feed.
pub(super) struct Feed {
    /// Held while something is appended and announced outside of a run, so that positions come in order.
    pub(super) gate: tokio::sync::Mutex<()>,
    /// Held for moments only, never across an await: events are applied and sent under it.
    state: Mutex<State>,
    sender: Sender<Publication>,
}

struct State {
    position: Seq,
    /// A message of a learner, a tool or the server that has started and not ended, with its place if it has one by then.
    opened: Option<(Message, Option<Seq>)>,
    tail: Option<Tail>,
    /// True from the first claim until `turn-settled`.
    busy: bool,
}

/// What a reader starts from.
pub(super) struct Snapshot {
    pub(super) position: Seq,
    pub(super) opened: Option<(Message, Option<Seq>)>,
    pub(super) tail: Option<Tail>,
    pub(super) busy: bool,
    pub(super) live: Receiver<Publication>,
}

impl Feed {
    pub(super) fn new(position: Seq) -> Self {
        Self::with_backlog(position, BACKLOG)
    }

    /// A feed whose readers may be behind by so many bytes of events.
    pub(super) fn with_backlog(position: Seq, backlog: usize) -> Self {
        Self {
            gate: tokio::sync::Mutex::default(),
            state: Mutex::new(State { position, opened: None, tail: None, busy: false }),
            sender: Sender::new(backlog),
        }
    }

    /// Opens a run that holds the chat; it stops when the token is cancelled.
    pub(super) fn begin(&self, run: &str, start: Seq) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut state = self.state();
        state.busy = true;
        state.tail = Some(Tail {
            run: run.to_owned(),
            cancel: cancel.clone(),
            start,
            started: false,
            turn: false,
            turns: 0,
            answer: None,
            message: None,
            unsaved: false,
            step: None,
            retry: None,
            calls: Vec::new(),
        });
        cancel
    }

    /// Applies an event to the tail and sends it. `seq` is the place of the message that the event is about, when the record
    /// has it.
    pub(super) fn publish(&self, event: AgentEvent, seq: Option<Seq>) {
        let mut state = self.state();
        state.apply(&event, seq);
        let position = state.position;
        self.sender.send(|| {
            let json = to_json(&event);
            let begins =
                matches!(event, AgentEvent::AgentStart).then(|| state.tail.as_ref().map(|tail| tail.run.clone()));
            let publication = Publication { event, position, seq, begins: begins.flatten(), json };
            let bytes = publication.bytes();
            (publication, bytes)
        });
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let state = self.state();
        Snapshot {
            position: state.position,
            opened: state.opened.clone(),
            tail: state.tail.clone(),
            busy: state.busy,
            live: self.sender.subscribe(),
        }
    }

    /// True while a run is open, or the next one of the same activation is about to be.
    pub(super) fn is_busy(&self) -> bool {
        self.state().busy
    }

    /// True once the open run's `agent_start` is out.
    pub(super) fn has_started(&self) -> bool {
        self.state().tail.as_ref().is_some_and(|tail| tail.started)
    }

    /// The open run's id and its stop.
    pub(super) fn open_run(&self) -> Option<(String, CancellationToken)> {
        self.state().tail.as_ref().map(|tail| (tail.run.clone(), tail.cancel.clone()))
    }

    /// The wait of the open run before it asks its model again.
    pub(super) fn retry(&self) -> Option<Retry> {
        self.state().tail.as_ref().and_then(|tail| tail.retry.clone())
    }

    /// What of the open message has not been kept: the run, the position that it follows, and the message as JSON. It counts
    /// as kept from now on.
    pub(super) fn unsaved(&self) -> Option<(String, Seq, String)> {
        let mut state = self.state();
        let position = state.position;
        let tail = state.tail.as_mut().filter(|tail| tail.unsaved)?;
        tail.unsaved = false;
        let message = tail.message.as_ref()?;
        match serde_json::to_string(message) {
            Ok(json) => Some((tail.run.clone(), position, json)),
            Err(error) => {
                tracing::error!(%error, "an open message could not be written");
                None
            }
        }
    }

    /// The open message was not kept after all.
    pub(super) fn not_saved(&self) {
        if let Some(tail) = &mut self.state().tail {
            tail.unsaved = tail.message.is_some();
        }
    }

    /// Bytes that are kept for readers who have not taken them.
    #[cfg(test)]
    pub(super) fn unread(&self) -> usize {
        self.sender.bytes()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn apply(&mut self, event: &AgentEvent, seq: Option<Seq>) {
        if let (AgentEvent::MessageEnd { .. }, Some(seq)) = (event, seq) {
            self.position = self.position.max(seq);
        }
        match event {
            AgentEvent::MessageStart { message } if !matches!(message, Message::Assistant(_)) => {
                self.opened = Some((message.clone(), seq));
            }
            AgentEvent::MessageEnd { .. } | AgentEvent::AgentEnd { .. } => self.opened = None,
            _ => {}
        }
        if let AgentEvent::TurnSettled = event {
            self.busy = false;
        }
        if let AgentEvent::AgentEnd { .. } = event {
            self.tail = None;
        }
        if let Some(tail) = &mut self.tail {
            tail.apply(event, seq);
        }
    }
}

impl Tail {
    fn apply(&mut self, event: &AgentEvent, seq: Option<Seq>) {
        match event {
            AgentEvent::AgentStart => self.started = true,
            AgentEvent::TurnStart => {
                self.turn = true;
                self.turns += 1;
                self.answer = None;
            }
            AgentEvent::MessageStart { message: Message::Assistant(message) } => {
                self.message = Some(message.clone());
                self.unsaved = true;
                self.step = None;
                self.retry = None;
            }
            AgentEvent::MessageUpdate { message, assistant_message_event } => {
                self.unsaved = true;
                self.step = Some(assistant_message_event.clone());
                match (message.as_deref(), &mut self.message) {
                    (Some(Message::Assistant(message)), _) => self.message = Some(message.clone()),
                    (_, Some(message)) => fold(message, assistant_message_event),
                    (_, None) => {}
                }
            }
            AgentEvent::MessageEnd { message: Message::Assistant(_) } => {
                self.message = None;
                self.unsaved = false;
                self.answer = seq;
            }
            AgentEvent::MessageEnd { message: Message::ToolResult(result) } => {
                self.calls.retain(|call| call.id != result.tool_call_id);
            }
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                self.calls.push(OpenCall { id: tool_call_id.clone(), start: event.clone(), end: None });
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, .. } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == *tool_call_id) {
                    call.end = Some(event.clone());
                }
            }
            AgentEvent::TurnEnd { .. } => {
                self.turn = false;
                self.retry = None;
                self.calls.clear();
            }
            AgentEvent::Activity(activity) => self.retry.clone_from(&activity.retry),
            AgentEvent::MessageStart { .. }
            | AgentEvent::MessageEnd { .. }
            | AgentEvent::ToolExecutionUpdate { .. }
            | AgentEvent::AgentEnd { .. }
            | AgentEvent::TurnSettled
            | AgentEvent::Error(_) => {}
        }
    }
}
