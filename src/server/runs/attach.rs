//! Readers: from a position of the record to now by a valid event sequence, then live.

use std::collections::HashSet;
use std::sync::Arc;

use async_stream::stream;
use futures::Stream;
use tokio::sync::broadcast::error::RecvError;

use super::feed::{Feed, Publication, Snapshot, Tail, to_json};
use super::{Runs, refused};
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
                match reader.catch_up(&snapshot).await {
                    Ok(items) => for item in items { yield item },
                    Err(error) => {
                        yield reader.item(&AgentEvent::Error(error));
                        return;
                    }
                }
                if !snapshot.busy {
                    yield reader.item(&AgentEvent::TurnSettled);
                    if !follow { return }
                }
                loop {
                    let received = tokio::select! {
                        received = snapshot.live.recv() => received,
                        () = shutdown.cancelled() => return,
                    };
                    match received {
                        Ok(publication) => {
                            if let Some(item) = reader.take(&publication) { yield item }
                            if !follow && matches!(publication.event, AgentEvent::TurnSettled) { return }
                            if is_gone(&publication.event) { return }
                        }
                        Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return,
                    }
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
    /// The open answer as the reader has it.
    message: Option<AssistantMessage>,
    /// Another message that has started and not ended for the reader.
    opened: Option<Message>,
    /// True after a lag: the next update is sent whole.
    stale: bool,
    retry: Option<Retry>,
    calls: HashSet<String>,
}

impl Reader {
    /// The events from the reader's position to the snapshot.
    async fn catch_up(&mut self, snapshot: &Snapshot) -> Result<Vec<Item>, ErrorBody> {
        let mut items = Vec::new();
        let open = snapshot.tail.as_ref().filter(|tail| tail.started);
        items.extend(self.end_placeholder(snapshot));
        if self.seen.run.is_some() && self.seen.run != open.map(|tail| tail.run.clone()) {
            items.extend(self.stored(snapshot.position).await?);
            items.push(self.item(&AgentEvent::AgentEnd { messages: Vec::new() }));
            self.seen = Seen::default();
        }
        if let Some(tail) = open {
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
        }
        items.extend(self.stored(snapshot.position).await?);
        if let Some((message, seq)) = &snapshot.opened
            && seq.is_none_or(|seq| seq > self.position)
            && self.seen.opened.as_ref() != Some(message)
        {
            self.seen.opened = Some(message.clone());
            items.push(self.item(&AgentEvent::MessageStart { message: message.clone() }));
        }
        if let Some(tail) = open {
            self.tail(tail, &mut items);
        }
        Ok(items)
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

    /// The stored messages between the reader's position and `until`.
    async fn stored(&mut self, until: Seq) -> Result<Vec<Item>, ErrorBody> {
        if until <= self.position {
            return Ok(Vec::new());
        }
        let messages = self.store.messages(&self.chat, self.position).await.map_err(refused)?;
        let mut items = Vec::new();
        for Stored { seq, message } in messages.into_iter().take_while(|stored| stored.seq <= until) {
            let open = match &message {
                Message::Assistant(_) => self.seen.message.take().is_some(),
                message => self.seen.opened.take().as_ref() == Some(message),
            };
            if !open {
                items.push(self.item(&AgentEvent::MessageStart { message: message.clone() }));
            }
            self.position = seq;
            items.push(self.item(&AgentEvent::MessageEnd { message }));
        }
        Ok(items)
    }

    /// The wait for the next try, the open message, and the calls of the open batch.
    fn tail(&mut self, tail: &Tail, items: &mut Vec<Item>) {
        if tail.retry.is_some() && tail.retry != self.seen.retry {
            let activity = Activity { running: true, jobs: None, retry: tail.retry.clone() };
            items.push(self.item(&AgentEvent::Activity(Box::new(activity))));
        }
        self.seen.retry.clone_from(&tail.retry);
        if let Some(message) = &tail.message {
            match (&self.seen.message, &tail.step) {
                (None, _) => {
                    items.push(self.item(&AgentEvent::MessageStart { message: Message::Assistant(message.clone()) }));
                }
                // The last of the updates that were skipped stands for all of them.
                (Some(known), Some(step)) if known != message => {
                    items.push(self.item(&AgentEvent::update(step.clone(), Some(message.clone()))));
                }
                (Some(_), _) => {}
            }
            self.seen.message = Some(message.clone());
            self.seen.stale = true;
        }
        for call in &tail.calls {
            if self.seen.calls.insert(call.id.clone()) {
                items.push(self.item(&call.start));
            }
            if let Some(end) = &call.end {
                items.push(self.item(end));
            }
        }
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
            AgentEvent::AgentStart => {
                self.seen.run = self.feed.open_run().map(|(run, _)| run).or_else(|| Some(String::new()));
            }
            AgentEvent::TurnStart => {
                self.seen.turn = true;
                self.seen.turns += 1;
            }
            AgentEvent::TurnEnd { .. } => {
                self.seen.turn = false;
                self.seen.calls.clear();
            }
            AgentEvent::MessageStart { message: Message::Assistant(message) } => {
                self.seen.message = Some(message.clone());
                self.seen.stale = false;
            }
            AgentEvent::MessageStart { message } => self.seen.opened = Some(message.clone()),
            AgentEvent::MessageEnd { message: Message::Assistant(_) } => self.seen.message = None,
            AgentEvent::MessageEnd { .. } => self.seen.opened = None,
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                self.seen.calls.insert(tool_call_id.clone());
            }
            AgentEvent::AgentEnd { .. } => self.seen = Seen::default(),
            AgentEvent::ToolExecutionUpdate { .. }
            | AgentEvent::ToolExecutionEnd { .. }
            | AgentEvent::TurnSettled
            | AgentEvent::Error(_) => {}
            AgentEvent::Activity(activity) => self.seen.retry.clone_from(&activity.retry),
        }
        self.position = self.position.max(publication.position);
        let settled = matches!(publication.event, AgentEvent::TurnSettled);
        Some(Item { position: self.position, json: publication.json().to_owned(), settled })
    }

    /// An update in the reader's form; the whole message where the reader asked for it or lost its place.
    fn update(
        &mut self,
        publication: &Publication,
        whole: Option<&Message>,
        event: &crate::app::native::AssistantEvent,
    ) -> Option<Item> {
        let message = self.seen.message.as_mut()?;
        match whole {
            Some(Message::Assistant(whole)) => message.clone_from(whole),
            _ => fold(message, event),
        }
        let stale = std::mem::take(&mut self.seen.stale);
        if self.updates == Updates::Full || (stale && whole.is_none()) {
            let update = AgentEvent::update(event.clone(), Some(message.clone()));
            return Some(self.item(&update));
        }
        Some(Item { position: self.position, json: publication.json().to_owned(), settled: false })
    }

    fn item(&self, event: &AgentEvent) -> Item {
        Item { position: self.position, json: to_json(event), settled: matches!(event, AgentEvent::TurnSettled) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;

    use futures::stream::BoxStream;
    use futures::{StreamExt, poll};
    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::app::transcript::live::Applied;
    use crate::app::transcript::{Live, sample, script};
    use crate::server::agent::Sink;
    use crate::server::llm::catalog::{Api, Model, Models};
    use crate::server::llm::options::Options;
    use crate::server::llm::{Dialect, Request, StreamEvent};
    use crate::server::runs::drive::RunSink;

    /// When a reader attaches (after this many events), how far it is behind, how it wants updates, and after how many
    /// events it takes a look.
    #[derive(Clone, Debug)]
    struct Visit {
        at: usize,
        behind: usize,
        updates: Updates,
        every: usize,
    }

    fn visits() -> impl Strategy<Value = Vec<Visit>> {
        let updates = prop_oneof![Just(Updates::Full), Just(Updates::Delta)];
        let visit = (0usize..200, 0usize..4, updates, 1usize..60).prop_map(|(at, behind, updates, every)| Visit {
            at,
            behind,
            updates,
            every,
        });
        proptest::collection::vec(visit, 1..6)
    }

    /// The events of two runs that make this record.
    fn play(record: &[Stored], cut: usize) -> Vec<(Seq, AgentEvent)> {
        let mut events = script::events(&record[..cut], 0);
        events.extend(script::events(record, cut));
        events
    }

    /// Nobody is asked: the runs are played from a script.
    struct Silent;

    impl Dialect for Silent {
        fn stream(&self, _: Request, _: CancellationToken) -> BoxStream<'static, StreamEvent> {
            futures::stream::pending().boxed()
        }
    }

    pub(in crate::server::runs) fn models() -> Models {
        let model =
            Model { id: "silent".to_owned(), provider: "tests".to_owned(), api: Api::Lesson, ..Model::default() };
        Models { model, dialect: Arc::new(Silent), options: Options::default() }
    }

    /// A reader under way, with what it made of the stream so far.
    struct Visitor<S> {
        stream: S,
        live: Live,
        every: usize,
        open: Option<String>,
    }

    impl<S: Stream<Item = Item> + Unpin> Visitor<S> {
        fn take(&mut self, item: &Item) {
            let event: AgentEvent = serde_json::from_str(&item.json).unwrap();
            match &event {
                AgentEvent::MessageStart { message } => {
                    let role = serde_json::to_value(message).unwrap()["role"].to_string();
                    assert_eq!(self.open.replace(role), None, "a message inside a message: {}", item.json);
                }
                AgentEvent::MessageUpdate { .. } => assert!(self.open.is_some(), "an update of nothing: {}", item.json),
                AgentEvent::MessageEnd { message } => {
                    let role = serde_json::to_value(message).unwrap()["role"].to_string();
                    assert_eq!(self.open.take(), Some(role), "the end of another message: {}", item.json);
                }
                AgentEvent::AgentEnd { .. } => self.open = None,
                _ => {}
            }
            let applied = self.live.apply(Some(item.position), &event);
            assert_ne!(applied, Applied::Gap, "{}", item.json);
        }

        /// Takes what is there now.
        async fn look(&mut self) {
            // What is read from the store comes a moment later; a reader that misses it here gets it at its next look.
            while let std::task::Poll::Ready(Some(item)) = poll!(self.stream.next()) {
                self.take(&item);
            }
        }

        async fn until(&mut self, end: &Live) {
            while self.live != *end {
                let next = tokio::time::timeout(std::time::Duration::from_secs(10), self.stream.next()).await;
                self.take(&next.unwrap_or_else(|_| panic!("{:#?} is not {end:#?}", self.live)).unwrap());
            }
        }
    }

    async fn check(text: &str, cut: usize, visits: &[Visit]) {
        let whole = sample::record(text);
        let events = play(&whole, cut.min(whole.len()));
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        let runs = Runs::new(store.clone(), models());
        let chat = runs.create_chat().await.unwrap();
        // So few that whoever does not look often loses its place.
        let feed = Arc::new(Feed::with_backlog(Seq::START, 16));
        runs.inner.feeds.lock().await.insert(chat.clone(), Arc::downgrade(&feed));
        let mut watched = Live::default();
        let mut visitors = Vec::new();
        let mut sink = RunSink {
            store: store.clone(),
            feed: feed.clone(),
            chat: chat.clone(),
            run: "run".to_owned(),
            echoes: VecDeque::new(),
            answer: Seq::START,
        };
        for (index, (position, event)) in events.into_iter().enumerate() {
            for visit in visits.iter().filter(|visit| visit.at == index) {
                let known = watched.record.len().saturating_sub(visit.behind);
                let live = Live::new(watched.record[..known].to_vec());
                let from = From::After(live.position());
                let stream = Box::pin(runs.attach(&chat, from, visit.updates, true).await.unwrap());
                visitors.push(Visitor { stream, live, every: visit.every, open: None });
            }
            match &event {
                AgentEvent::AgentStart => {
                    store.claim(&chat, "run", Vec::new(), 0).await.unwrap();
                    feed.begin("run", position);
                }
                AgentEvent::TurnSettled => feed.publish(event.clone(), None),
                _ => {}
            }
            if !matches!(event, AgentEvent::TurnSettled) {
                sink.emit(event.clone()).await.unwrap();
            }
            watched.apply(Some(position), &event);
            for visitor in visitors.iter_mut().filter(|visitor| index % visitor.every == 0) {
                visitor.look().await;
            }
        }
        for mut visitor in visitors {
            visitor.until(&watched).await;
        }
        assert_eq!(store.messages(&chat, Seq::START).await.unwrap(), whole);
        store.close().await;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whoever_attaches_at_any_moment_and_reads_at_any_pace_ends_where_all_end(
            text in sample::lesson(),
            cut in 0usize..20,
            visits in visits(),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(check(&text, cut, &visits));
        }
    }
}
