//! Readers: from a position of the record to now by a valid event sequence, then live.

use std::collections::HashMap;
use std::sync::Arc;

use async_stream::{stream, try_stream};
use futures::{Stream, StreamExt};

use super::backlog::Missed;
use super::feed::{Feed, Publication, Snapshot, Tail, to_json};
use super::{Runs, refused};
use crate::app::native::event::ToolResultEntry;
use crate::app::native::view::{Activity, Retry};
use crate::app::native::{
    AgentEvent, AssistantMessage, ErrorBody, ErrorKind, Message, Seq, Stored, ToolResultMessage, fold,
};
use crate::server::store::Store;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// After this position.
    After(Seq),
    /// At the start of the open run, or now.
    OpenRun,
}

/// How updates of an open message are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// Each with the whole message.
    Full,
    /// Without the message where folding gives it.
    Delta,
}

/// One event for a reader, with the position that it leaves the reader at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub position: Seq,
    pub json: String,
    /// True for `turn-settled`.
    pub settled: bool,
}

impl Runs {
    /// Attaches a reader. Without `follow` the stream ends after `turn-settled`; with it, it begins with `activity` and stays.
    ///
    /// # Errors
    /// `not-found` when there is no such chat.
    pub async fn attach(
        &self,
        chat: &str,
        from: From,
        updates: Updates,
        follow: bool,
    ) -> Result<impl Stream<Item = Item> + Send + use<>, ErrorBody> {
        let feed = self.feed(chat).await?;
        let shutdown = self.inner.shutdown.clone();
        let mut reader = Reader {
            store: self.inner.store.clone(),
            chat: chat.to_owned(),
            feed,
            updates,
            position: Seq::START,
            seen: Seen::default(),
        };
        let last = reader.store.last(chat).await.map_err(refused)?;
        let mut snapshot = reader.feed.snapshot();
        reader.position = match from {
            // A position that the record does not have yet would skip what comes at it.
            From::After(seq) => seq.min(last),
            From::OpenRun => snapshot.tail.as_ref().map_or(snapshot.position, |tail| tail.start),
        };
        Ok(stream! {
            if follow {
                let activity = Activity { running: snapshot.busy, jobs: Some(Vec::new()), retry: None };
                yield reader.item(&AgentEvent::Activity(Box::new(activity)));
            }
            loop {
                let mut failure = None;
                {
                    let mut missed = std::pin::pin!(reader.catch_up(&snapshot));
                    while let Some(item) = missed.next().await {
                        match item {
                            Ok(item) => yield item,
                            Err(error) => failure = Some(error),
                        }
                    }
                }
                if let Some(error) = failure {
                    yield reader.item(&AgentEvent::Error(error));
                    return;
                }
                // A reader that stays does not keep what it attached with.
                let Snapshot { mut live, busy, .. } = snapshot;
                if !busy {
                    yield reader.item(&AgentEvent::TurnSettled);
                    if !follow { return }
                }
                loop {
                    let received = tokio::select! {
                        received = live.recv() => received,
                        () = shutdown.cancelled() => return,
                    };
                    match received {
                        Ok(publication) => {
                            if let Some(item) = reader.take(&publication) { yield item }
                            if !follow && matches!(publication.event, AgentEvent::TurnSettled) { return }
                            if is_gone(&publication.event) { return }
                        }
                        Err(Missed::Behind) => break,
                        Err(Missed::Closed) => return,
                    }
                }
                // What was missed may have been the end of the chat.
                if let Err(error) = reader.store.last(&reader.chat).await {
                    yield reader.item(&AgentEvent::Error(refused(error)));
                    return;
                }
                snapshot = reader.feed.snapshot();
            }
        })
    }
}

/// True for what is said last of a chat that is deleted.
fn is_gone(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Error(body) if body.error.kind == ErrorKind::Gone)
}

/// A reader's place.
struct Reader {
    store: Store,
    chat: String,
    feed: Arc<Feed>,
    updates: Updates,
    position: Seq,
    seen: Seen,
}

/// What of the open run the reader knows, so that a second attach (after a lag) repeats nothing that must not be repeated.
#[derive(Default)]
struct Seen {
    run: Option<String>,
    turn: bool,
    turns: usize,
    /// True while an answer is open for the reader.
    answering: bool,
    /// The open answer as the reader has it, where it has to be sent whole.
    copy: Option<AssistantMessage>,
    /// Another message that has started and not ended for the reader.
    opened: Option<Message>,
    retry: Option<Retry>,
    /// Position of the open turn's answer, once its end was sent.
    answer: Option<Seq>,
    /// The calls of the open batch.
    calls: HashMap<String, Call>,
}

/// How far a call is for the reader.
#[derive(Clone, Copy)]
enum Call {
    Open,
    Ended,
}

impl Reader {
    /// The events from the reader's position to the snapshot. What is in the record comes a page at a time, so that a slow
    /// reader of a long record holds little of it; the last item is an error when it cannot be read.
    fn catch_up<'a>(&'a mut self, snapshot: &'a Snapshot) -> impl Stream<Item = Result<Item, ErrorBody>> + Send + 'a {
        try_stream! {
            let open = snapshot.tail.as_ref().filter(|tail| tail.started);
            if let Some(item) = self.end_placeholder(snapshot) { yield item }
            let is_over = self.seen.run.is_some() && self.seen.run.as_ref() != open.map(|tail| &tail.run);
            if is_over || self.is_turn_over(open) {
                while let Some(page) = self.stored(snapshot.position).await? {
                    for item in page { yield item }
                }
                if let Some(item) = self.end_turn().await? { yield item }
            }
            if is_over {
                self.seen = Seen::default();
                yield self.item(&AgentEvent::AgentEnd { messages: Vec::new() });
            }
            if let Some(tail) = open {
                for item in self.begin(tail) { yield item }
            }
            while let Some(page) = self.stored(snapshot.position).await? {
                for item in page { yield item }
            }
            if let Some(item) = self.opened(snapshot) { yield item }
            if let Some(tail) = open {
                for item in self.tail(tail) { yield item }
            }
        }
    }

    /// True when the turn that is open for the reader is not the one that is open now.
    fn is_turn_over(&self, open: Option<&Tail>) -> bool {
        self.seen.turn && open.is_some_and(|tail| !tail.turn || tail.turns != self.seen.turns)
    }

    /// The end of the turn that is open for the reader, as the record has it; none when nothing was answered in it.
    async fn end_turn(&mut self) -> Result<Option<Item>, ErrorBody> {
        let Some(answer) = self.seen.answer.take().filter(|_| self.seen.turn) else { return Ok(None) };
        self.seen.turn = false;
        let before = Seq(answer.0.saturating_sub(1));
        let mut since = self.store.messages(&self.chat, before).await.map_err(refused)?.into_iter();
        let Some(Stored { message, .. }) = since.next() else { return Ok(None) };
        let of_turn = since.map(|stored| stored.message).take_while(|message| message.as_assistant().is_none());
        let tool_results = of_turn.filter_map(|message| match message {
            Message::ToolResult(result) => Some(ToolResultEntry::ToolResult(result)),
            Message::User(_) | Message::Assistant(_) | Message::Custom(_) => None,
        });
        Ok(Some(self.item(&AgentEvent::TurnEnd { message, tool_results: tool_results.collect() })))
    }

    /// The starts of the open run and its turn, as far as the reader has not had them.
    fn begin(&mut self, tail: &Tail) -> Vec<Item> {
        let mut items = Vec::new();
        if self.seen.run.is_none() {
            self.seen.run = Some(tail.run.clone());
            items.push(self.item(&AgentEvent::AgentStart));
        }
        if self.seen.turns != tail.turns {
            self.seen.calls.clear();
        }
        if tail.turn && (!self.seen.turn || self.seen.turns != tail.turns) {
            items.push(self.item(&AgentEvent::TurnStart));
        }
        (self.seen.turn, self.seen.turns) = (tail.turn, tail.turns);
        items
    }

    /// The start of a message that is no answer and has not ended, unless the reader has had it.
    fn opened(&mut self, snapshot: &Snapshot) -> Option<Item> {
        let (message, seq) = snapshot.opened.as_ref()?;
        if seq.is_some_and(|seq| seq <= self.position) || self.seen.opened.as_ref() == Some(message) {
            return None;
        }
        self.seen.opened = Some(message.clone());
        Some(self.item(&AgentEvent::MessageStart { message: message.clone() }))
    }

    /// The end of a stand-in for an answer that the reader saw begin: it is never stored, so nothing else ends it.
    fn end_placeholder(&mut self, snapshot: &Snapshot) -> Option<Item> {
        let is_over = |message: &mut Message| {
            let open = snapshot.opened.as_ref().is_some_and(|(open, _)| open == message);
            !open && message.as_tool_result().is_some_and(ToolResultMessage::is_posed_placeholder)
        };
        let message = self.seen.opened.take_if(is_over)?;
        Some(self.item(&AgentEvent::MessageEnd { message }))
    }

    /// The next of the stored messages between the reader's position and `until`; none when it has them all.
    async fn stored(&mut self, until: Seq) -> Result<Option<Vec<Item>>, ErrorBody> {
        if until <= self.position {
            return Ok(None);
        }
        let messages = self.store.page(&self.chat, self.position, until).await.map_err(refused)?;
        if messages.is_empty() {
            return Ok(None);
        }
        let mut items = Vec::with_capacity(2 * messages.len());
        for Stored { seq, message } in messages {
            let open = match &message {
                Message::Assistant(_) => {
                    self.seen.answer.get_or_insert(seq);
                    std::mem::take(&mut self.seen.answering)
                }
                message => self.seen.opened.take().as_ref() == Some(message),
            };
            if !open {
                items.push(self.item(&AgentEvent::MessageStart { message: message.clone() }));
            }
            self.position = seq;
            items.push(self.item(&AgentEvent::MessageEnd { message }));
        }
        Ok(Some(items))
    }

    /// The wait for the next try, the open message, and the calls of the open batch.
    fn tail(&mut self, tail: &Tail) -> Vec<Item> {
        let mut items = Vec::new();
        if tail.retry.is_some() && tail.retry != self.seen.retry {
            let activity = Activity { running: true, jobs: None, retry: tail.retry.clone() };
            items.push(self.item(&AgentEvent::Activity(Box::new(activity))));
        }
        self.seen.retry.clone_from(&tail.retry);
        self.seen.answer = tail.answer;
        if let Some(message) = &tail.message {
            // The first update after an attach is sent whole.
            let mut is_due = self.updates == Updates::Full;
            if !self.seen.answering {
                items.push(self.item(&AgentEvent::MessageStart { message: Message::Assistant(message.clone()) }));
                is_due = true;
            } else if let Some(step) = &tail.step {
                // The last of the updates that were skipped stands for all of them.
                items.push(self.item(&AgentEvent::update(step.clone(), Some(message.clone()))));
            }
            self.seen.answering = true;
            self.seen.copy = is_due.then(|| message.clone());
        }
        for call in &tail.calls {
            let known = self.seen.calls.get(&call.id).copied();
            if known.is_none() {
                items.push(self.item(&call.start));
            }
            if let (Some(end), None | Some(Call::Open)) = (&call.end, known) {
                items.push(self.item(end));
            }
            let call_now = if call.end.is_some() { Call::Ended } else { Call::Open };
            self.seen.calls.insert(call.id.clone(), call_now);
        }
        items
    }

    /// A live event; none when the reader has its message already.
    fn take(&mut self, publication: &Publication) -> Option<Item> {
        if publication.seq.is_some_and(|seq| seq <= self.position) {
            return None;
        }
        match &publication.event {
            AgentEvent::MessageUpdate { message, assistant_message_event } => {
                return self.update(publication, message.as_deref(), assistant_message_event);
            }
            AgentEvent::AgentStart => self.seen.run.clone_from(&publication.begins),
            AgentEvent::TurnStart => {
                self.seen.turn = true;
                self.seen.turns += 1;
                self.seen.answer = None;
            }
            AgentEvent::TurnEnd { .. } => {
                self.seen.turn = false;
                self.seen.calls.clear();
            }
            AgentEvent::MessageStart { message: Message::Assistant(message) } => {
                self.seen.answering = true;
                self.seen.copy = (self.updates == Updates::Full).then(|| message.clone());
            }
            AgentEvent::MessageStart { message } => self.seen.opened = Some(message.clone()),
            AgentEvent::MessageEnd { message: Message::Assistant(_) } => {
                (self.seen.answering, self.seen.copy) = (false, None);
                self.seen.answer = publication.seq;
            }
            AgentEvent::MessageEnd { .. } => self.seen.opened = None,
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                self.seen.calls.insert(tool_call_id.clone(), Call::Open);
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, .. } => {
                self.seen.calls.insert(tool_call_id.clone(), Call::Ended);
            }
            AgentEvent::AgentEnd { .. } => self.seen = Seen::default(),
            AgentEvent::ToolExecutionUpdate { .. } | AgentEvent::TurnSettled | AgentEvent::Error(_) => {}
            AgentEvent::Activity(activity) => self.seen.retry.clone_from(&activity.retry),
        }
        self.position = self.position.max(publication.position);
        let settled = matches!(publication.event, AgentEvent::TurnSettled);
        Some(Item { position: self.position, json: publication.json.clone(), settled })
    }

    /// An update in the reader's form; the whole message where the reader asked for it or lost its place.
    fn update(
        &mut self,
        publication: &Publication,
        whole: Option<&Message>,
        event: &crate::app::native::AssistantEvent,
    ) -> Option<Item> {
        if !self.seen.answering {
            return None;
        }
        let Some(mut message) = self.seen.copy.take() else {
            return Some(Item { position: self.position, json: publication.json.clone(), settled: false });
        };
        match whole {
            Some(Message::Assistant(whole)) => message.clone_from(whole),
            _ => fold(&mut message, event),
        }
        let item = self.item(&AgentEvent::update(event.clone(), Some(message.clone())));
        self.seen.copy = Some(message).filter(|_| self.updates == Updates::Full);
        Some(item)
    }

    fn item(&self, event: &AgentEvent) -> Item {
        Item { position: self.position, json: to_json(event), settled: matches!(event, AgentEvent::TurnSettled) }
    }
}

#[cfg(test)]
mod tests;
