//! A reader of a chat's stream: parses server-sent events, keeps the view that a page would have, and checks that what it
//! is sent is a sequence that a native client understands.

use std::collections::HashSet;

use axum::body::BodyDataStream;
use futures::StreamExt;
use learnharness::app::native::{AgentEvent, Message, Seq};
use learnharness::app::transcript::Live;

use super::soon;

pub(crate) struct Reader {
    bytes: BodyDataStream,
    text: String,
    pub(crate) live: Live,
    /// All events so far, as `position type`.
    pub(crate) log: Vec<String>,
    order: Order,
}

/// One event with its position; `event` is none for `[DONE]`.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) id: Seq,
    pub(crate) event: Option<AgentEvent>,
    pub(crate) data: String,
}

impl Reader {
    pub(crate) fn new(bytes: BodyDataStream) -> Self {
        Self { bytes, text: String::new(), live: Live::default(), log: Vec::new(), order: Order::default() }
    }

    /// Goes on from what another reader had.
    pub(crate) fn knowing(mut self, live: Live) -> Self {
        self.order = Order::after(live.position());
        self.live = live;
        self
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        let log = format!("an event after {:#?}", self.log.last());
        soon(&log, self.receive()).await
    }

    async fn receive(&mut self) -> Option<Sent> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(sent) = parse(&block) {
                    return Some(self.take(sent));
                }
                continue;
            }
            let piece = self.bytes.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Reads to the first event that `wanted` holds for.
    pub(crate) async fn until(&mut self, what: &str, mut wanted: impl FnMut(&AgentEvent, &Live) -> bool) -> Sent {
        loop {
            let sent = self.next().await.unwrap_or_else(|| panic!("the stream ended before {what}: {:#?}", self.log));
            if sent.event.as_ref().is_some_and(|event| wanted(event, &self.live)) {
                return sent;
            }
        }
    }

    /// Reads until nothing is left to do.
    pub(crate) async fn settled(&mut self) {
        self.until("turn-settled", |event, _| matches!(event, AgentEvent::TurnSettled)).await;
    }

    /// Reads until the open answer's text is `text`.
    pub(crate) async fn says(&mut self, text: &str) {
        self.until(text, |_, live| live.tail.open.as_ref().is_some_and(|open| open.text() == text)).await;
    }

    /// Reads to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(sent) = self.next().await {
            all.push(sent);
        }
        all
    }

    fn take(&mut self, sent: Sent) -> Sent {
        let Some(event) = &sent.event else {
            self.log.push(format!("{} [DONE]", sent.id));
            return sent;
        };
        self.log.push(format!("{} {}", sent.id, kind(event)));
        self.order.check(sent.id, event).unwrap_or_else(|error| panic!("{error}\n{:#?}", self.log));
        self.live.apply(Some(sent.id), event);
        sent
    }
}

/// An event's type and what it is about, in one line.
pub(crate) fn kind(event: &AgentEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    let mut line = json["type"].as_str().unwrap().to_owned();
    for field in [&json["message"]["role"], &json["message"]["toolCallId"], &json["toolCallId"]] {
        if let Some(text) = field.as_str() {
            line.push(' ');
            line.push_str(text);
        }
    }
    line
}

/// The event of a block; none for a comment.
pub(crate) fn parse(block: &str) -> Option<Sent> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    let data = field("data:")?.to_owned();
    let id = field("id:").expect("an event without an id").parse().unwrap();
    let event = (data != "[DONE]").then(|| serde_json::from_str(&data).unwrap());
    Some(Sent { id, event, data })
}

/// What a native client relies on.
#[derive(Default)]
pub(crate) struct Order {
    position: Seq,
    running: bool,
    turn: bool,
    open: Option<String>,
    tools: HashSet<String>,
}

impl Order {
    /// Of a reader who knows the record up to here.
    pub(crate) fn after(position: Seq) -> Self {
        Self { position, ..Self::default() }
    }

    pub(crate) fn check(&mut self, id: Seq, event: &AgentEvent) -> Result<(), String> {
        let must = |holds: bool, words: &str| if holds { Ok(()) } else { Err(format!("{words}: {}", kind(event))) };
        must(id >= self.position, "positions go back")?;
        let stored = matches!(event, AgentEvent::MessageEnd { .. });
        must(stored || id == self.position || self.position == Seq::START, "a position moves without a message_end")?;
        must(id.0 <= self.position.0 + 1 || self.position == Seq::START, "a position is skipped")?;
        self.position = id;
        match event {
            AgentEvent::AgentStart => {
                must(!self.running, "a run inside a run")?;
                *self = Self { position: id, running: true, ..Self::default() };
            }
            AgentEvent::TurnStart => {
                must(self.running && !self.turn, "a turn out of place")?;
                self.turn = true;
            }
            AgentEvent::MessageStart { message } => {
                must(self.open.is_none(), "a message inside a message")?;
                self.open = Some(role(message));
            }
            AgentEvent::MessageUpdate { .. } => must(self.open.is_some(), "an update of no message")?,
            AgentEvent::MessageEnd { message } => {
                must(self.open.take() == Some(role(message)), "the end of another message")?;
            }
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                must(self.running && self.tools.insert(tool_call_id.clone()), "a call starts twice")?;
            }
            AgentEvent::ToolExecutionUpdate { tool_call_id, .. } => {
                must(self.tools.contains(tool_call_id), "a call that runs not reports")?;
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, .. } => {
                must(self.tools.contains(tool_call_id), "a call that runs not ends")?;
            }
            AgentEvent::TurnEnd { .. } => {
                must(self.turn, "the end of no turn")?;
                self.turn = false;
                self.tools.clear();
            }
            AgentEvent::AgentEnd { .. } => {
                must(self.running, "the end of no run")?;
                self.running = false;
                self.open = None;
            }
            AgentEvent::TurnSettled => must(!self.running, "settled in a run")?,
            AgentEvent::Error(_) | AgentEvent::Activity(_) => {}
        }
        Ok(())
    }
}

fn role(message: &Message) -> String {
    match message {
        Message::User(_) => "user".to_owned(),
        Message::Assistant(_) => "assistant".to_owned(),
        Message::ToolResult(result) => result.tool_call_id.clone(),
        Message::Custom(custom) => custom.id.clone(),
    }
}
