//! Readers who come, lag, leave and come again, of runs that are played from a script.

use std::collections::VecDeque;
use std::time::Duration;

use futures::poll;
use futures::stream::BoxStream;
use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;
use crate::app::native::event::ToolOutput;
use crate::app::native::{AssistantEvent, Block};
use crate::app::transcript::live::{Applied, Tail};
use crate::app::transcript::{Live, sample, script};
use crate::server::agent::Sink;
use crate::server::runs::drive::RunSink;
use crate::server::runs::silent::models;

/// How a reader behaves.
#[derive(Clone, Debug)]
struct Visit {
    /// It attaches after this many events.
    at: usize,
    /// Messages that it does not know of those that there are.
    behind: usize,
    /// Positions that it claims to know beyond the record's end.
    beyond: u32,
    updates: Updates,
    follow: bool,
    /// It takes a look after so many events.
    every: usize,
    /// It leaves after so many looks, and comes again with the next one.
    leaves: usize,
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let updates = prop_oneof![Just(Updates::Full), Just(Updates::Delta)];
    let place = (0usize..200, 0usize..4, prop_oneof![4 => Just(0), 1 => 1u32..5]);
    let visit = (place, updates, any::<bool>(), 1usize..60, 1usize..20).prop_map(
        |((at, behind, beyond), updates, follow, every, leaves)| {
            let behind = if beyond > 0 { 0 } else { behind };
            Visit { at, behind, beyond, updates, follow, every, leaves }
        },
    );
    proptest::collection::vec(visit, 1..6)
}

/// The events of two runs that make this record.
fn play(record: &[Stored], cut: usize) -> Vec<(Seq, AgentEvent)> {
    let mut events = script::events(&record[..cut], 0);
    events.extend(script::events(record, cut));
    lively(events)
}

/// The same with what a script leaves out: waits before answers, and calls of a batch that go on side by side.
fn lively(events: Vec<(Seq, AgentEvent)>) -> Vec<(Seq, AgentEvent)> {
    let mut all = Vec::new();
    let mut ends = Vec::new();
    for (position, event) in events {
        match &event {
            AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args } => {
                let partial_result = ToolOutput { content: vec![Block::text("so far")], details: None };
                let (tool_call_id, tool_name, args) = (tool_call_id.clone(), tool_name.clone(), args.clone());
                let update = AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, args, partial_result };
                all.extend([(position, event), (position, update)]);
                continue;
            }
            AgentEvent::ToolExecutionEnd { .. } => {
                ends.insert(0, (position, event));
                continue;
            }
            AgentEvent::MessageStart { message: Message::Assistant(_) } => {
                let retry = Some(Retry { attempt: 1, wait_ms: 1000, reason: "The provider is busy.".to_owned() });
                let waits = AgentEvent::Activity(Box::new(Activity { running: true, jobs: None, retry }));
                all.push((position, waits));
            }
            _ => {}
        }
        all.append(&mut ends);
        all.push((position, event));
    }
    all
}

/// What a native client relies on.
#[derive(Default)]
struct Order {
    running: bool,
    turn: bool,
    open: Option<String>,
    /// Calls that have started, and whether they have ended.
    calls: HashMap<String, bool>,
}

impl Order {
    fn check(&mut self, item: &Item, event: &AgentEvent) {
        let must = |holds: bool, words: &str| assert!(holds, "{words}: {}", item.json);
        let role = |message: &Message| serde_json::to_value(message).unwrap()["role"].to_string();
        match event {
            AgentEvent::AgentStart => {
                must(!std::mem::replace(&mut self.running, true), "a run inside a run");
                self.turn = false;
            }
            AgentEvent::TurnStart => {
                must(self.running && !std::mem::replace(&mut self.turn, true), "a turn out of place");
            }
            AgentEvent::TurnEnd { .. } => {
                must(std::mem::take(&mut self.turn) && self.open.is_none(), "the end of no turn");
                self.calls.clear();
            }
            AgentEvent::AgentEnd { .. } => must(std::mem::take(&mut self.running), "the end of no run"),
            AgentEvent::TurnSettled => must(!self.running && self.open.is_none(), "settled in a run"),
            AgentEvent::MessageStart { message } => {
                must(self.open.replace(role(message)).is_none(), "a message inside a message");
            }
            AgentEvent::MessageUpdate { .. } => must(self.open.is_some(), "an update of nothing"),
            AgentEvent::MessageEnd { message } => {
                must(self.open.take() == Some(role(message)), "the end of another message");
            }
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                must(self.calls.insert(tool_call_id.clone(), false).is_none(), "a call starts twice");
            }
            AgentEvent::ToolExecutionUpdate { tool_call_id, .. } => {
                must(self.calls.contains_key(tool_call_id), "a call that runs not reports");
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, .. } => {
                must(self.calls.insert(tool_call_id.clone(), true) == Some(false), "a call ends twice");
            }
            AgentEvent::Error(_) | AgentEvent::Activity(_) => {}
        }
    }
}

/// A reader under way, with what it made of the stream so far.
struct Visitor {
    stream: BoxStream<'static, Item>,
    live: Live,
    order: Order,
    visit: Visit,
    looks: usize,
    /// The stream has ended by itself.
    over: bool,
}

impl Visitor {
    async fn come(runs: &Runs, chat: &str, visit: Visit, live: Live) -> Self {
        let from = From::After(Seq(live.position().0 + visit.beyond));
        let stream = runs.attach(chat, from, visit.updates, visit.follow).await.unwrap().boxed();
        Self { stream, live, order: Order::default(), visit, looks: 0, over: false }
    }

    /// Leaves, and comes again with the record as it knows it.
    async fn come_again(&mut self, runs: &Runs, chat: &str) {
        let (visit, live) = (self.visit.clone(), Live::new(self.live.record.clone()));
        *self = Self::come(runs, chat, Visit { beyond: 0, ..visit }, live).await;
    }

    fn take(&mut self, item: Option<&Item>) {
        let Some(item) = item else {
            assert!(!self.visit.follow, "a stream that stays has ended");
            self.over = true;
            return;
        };
        let event: AgentEvent = serde_json::from_str(&item.json).unwrap();
        self.order.check(item, &event);
        let applied = self.live.apply(Some(item.position), &event);
        assert_ne!(applied, Applied::Gap, "{}", item.json);
    }

    /// Takes what is there now.
    async fn look(&mut self) {
        // What is read from the store comes a moment later; a reader that misses it here gets it at its next look.
        while !self.over
            && let std::task::Poll::Ready(item) = poll!(self.stream.next())
        {
            self.take(item.as_ref());
        }
    }

    /// Reads on until it is as far as `end`, or its stream has ended where a run did.
    async fn until(&mut self, end: &Live, settled: &[Live]) {
        while !self.over && (self.live != *end || !self.visit.follow) {
            let next = tokio::time::timeout(PATIENCE, self.stream.next()).await;
            self.take(next.unwrap_or_else(|_| panic!("{:#?} is not {end:#?}", self.live)).as_ref());
        }
        assert!(self.live == *end || settled.contains(&self.live), "{:#?} is not {end:#?}", self.live);
    }
}

/// Far more than a reader needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// So few bytes that whoever does not look often loses its place.
const FEW: usize = 12 * 1024;

/// A chat whose runs are played.
struct Stage {
    _folder: tempfile::TempDir,
    store: Store,
    runs: Runs,
    chat: String,
    feed: Arc<Feed>,
    sink: RunSink,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        let runs = Runs::new(store.clone(), models());
        let chat = runs.create_chat().await.unwrap();
        let feed = Arc::new(Feed::with_backlog(Seq::START, FEW));
        runs.inner.feeds.lock().await.insert(chat.clone(), Arc::downgrade(&feed));
        let sink = RunSink {
            store: store.clone(),
            feed: feed.clone(),
            chat: chat.clone(),
            run: "run".to_owned(),
            echoes: VecDeque::new(),
            answer: Seq::START,
        };
        Self { _folder: folder, store, runs, chat, feed, sink }
    }

    async fn play(&mut self, position: Seq, event: AgentEvent) {
        if let AgentEvent::AgentStart = event {
            // A handoff keeps the claim for the run that follows.
            self.store.release(&self.chat, &self.sink.run).await.unwrap();
            self.sink.run.push('+');
            self.store.claim(&self.chat, &self.sink.run, Vec::new(), 0).await.unwrap();
            self.feed.begin(&self.sink.run, position);
        }
        match event {
            AgentEvent::TurnSettled => self.feed.publish(event, None),
            event => drop(self.sink.emit(event).await.unwrap()),
        }
    }
}

async fn check(text: &str, cut: usize, visits: &[Visit]) {
    let whole = sample::record(text);
    let mut stage = Stage::new().await;
    let (mut watched, mut settled) = (Live::default(), Vec::new());
    let mut visitors: Vec<Visitor> = Vec::new();
    for (index, (position, event)) in play(&whole, cut.min(whole.len())).into_iter().enumerate() {
        for visit in visits.iter().filter(|visit| visit.at == index) {
            let known = watched.record.len().saturating_sub(visit.behind);
            let live = Live::new(watched.record[..known].to_vec());
            visitors.push(Visitor::come(&stage.runs, &stage.chat, visit.clone(), live).await);
        }
        watched.apply(Some(position), &event);
        if let AgentEvent::TurnSettled = event {
            settled.push(watched.clone());
        }
        stage.play(position, event).await;
        for visitor in visitors.iter_mut().filter(|visitor| index % visitor.visit.every == 0) {
            visitor.looks += 1;
            if visitor.looks > visitor.visit.leaves && !visitor.over {
                visitor.come_again(&stage.runs, &stage.chat).await;
            }
            visitor.look().await;
        }
    }
    // Before the first run a chat is settled too.
    settled.push(Live { tail: Tail { settled: true, ..Tail::default() }, ..Live::default() });
    for mut visitor in visitors {
        visitor.until(&watched, &settled).await;
    }
    assert_eq!(stage.store.messages(&stage.chat, Seq::START).await.unwrap(), whole);
    stage.store.close().await;
}

/// Readers on threads of their own, while a run is played on another.
async fn check_at_once(text: &str, cut: usize, visits: Vec<Visit>) {
    let whole = sample::record(text);
    let events = play(&whole, cut.min(whole.len()));
    let mut end = Live::default();
    for (position, event) in &events {
        end.apply(Some(*position), event);
    }
    let mut stage = Stage::new().await;
    let mut readers = JoinSet::new();
    for visit in visits {
        let (runs, chat, end) = (stage.runs.clone(), stage.chat.clone(), end.clone());
        readers.spawn(async move {
            for _ in 0..visit.at {
                tokio::task::yield_now().await;
            }
            let mut visitor = Visitor::come(&runs, &chat, visit.clone(), Live::default()).await;
            while visitor.live != end {
                let next = tokio::time::timeout(PATIENCE, visitor.stream.next()).await;
                visitor.take(next.unwrap_or_else(|_| panic!("{:#?} is not {end:#?}", visitor.live)).as_ref());
                visitor.looks += 1;
                if visitor.looks % (10 * visitor.visit.leaves) == 0 && visitor.live != end {
                    visitor.come_again(&runs, &chat).await;
                }
            }
        });
    }
    for (position, event) in events {
        stage.play(position, event).await;
        tokio::task::yield_now().await;
    }
    while let Some(read) = readers.join_next().await {
        read.unwrap();
    }
    stage.store.close().await;
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

    #[test]
    fn readers_on_other_threads_miss_nothing_and_get_nothing_twice(
        text in sample::lesson(),
        cut in 0usize..20,
        visits in visits(),
    ) {
        let visits = visits.into_iter().map(|visit| Visit { beyond: 0, follow: true, ..visit }).collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        runtime.block_on(check_at_once(&text, cut, visits));
    }
}

/// An open answer, and a reader who has seen its start and takes no more.
async fn stalled(stage: &mut Stage, updates: Updates) -> Visitor {
    stage.play(Seq::START, AgentEvent::AgentStart).await;
    stage.play(Seq::START, AgentEvent::TurnStart).await;
    let message =
        Message::Assistant(AssistantMessage { content: vec![Block::text("")], ..AssistantMessage::default() });
    stage.play(Seq::START, AgentEvent::MessageStart { message }).await;
    let visit = Visit { at: 0, behind: 0, beyond: 0, updates, follow: true, every: 1, leaves: 1 };
    let mut visitor = Visitor::come(&stage.runs, &stage.chat, visit, Live::default()).await;
    while visitor.live.tail.open.is_none() {
        let next = visitor.stream.next().await;
        visitor.take(next.as_ref());
    }
    visitor
}

fn delta(text: &str) -> AgentEvent {
    AgentEvent::update(AssistantEvent::TextDelta { content_index: 0, delta: text.to_owned() }, None)
}

#[tokio::test]
async fn what_a_reader_that_takes_nothing_leaves_behind_is_bounded() {
    let mut stage = Stage::new().await;
    let mut slow = stalled(&mut stage, Updates::Delta).await;
    for _ in 0..20_000 {
        stage.play(Seq::START, delta(&"a".repeat(200))).await;
        assert!(stage.feed.unread() <= FEW);
    }
    let mut count = 0;
    while slow.live.tail.open.as_ref().is_some_and(|open| open.text().len() < 200 * 20_000) {
        let next = slow.stream.next().await;
        slow.take(next.as_ref());
        count += 1;
    }
    assert_eq!(count, 1, "one update stands for all");
    stage.play(Seq::START, delta("b")).await;
    let next = slow.stream.next().await.unwrap();
    assert!(next.json.len() < 200, "it follows the deltas again: {}", &next.json[..200]);
    drop(slow);
    assert_eq!(stage.feed.unread(), 0);
    stage.play(Seq::START, delta("c")).await;
    assert_eq!(stage.feed.unread(), 0, "nothing is kept for nobody");
    stage.store.close().await;
}

#[tokio::test]
async fn a_turn_that_ended_while_a_reader_lagged_has_its_answer_and_its_results() {
    let text = "teacher[toolUse] ls#1 {}\nresult ls#1 x\nteacher Well.";
    let whole = sample::record(text);
    let mut stage = Stage::new().await;
    let visit = Visit { at: 0, behind: 0, beyond: 0, updates: Updates::Delta, follow: true, every: 1, leaves: 1 };
    let mut slow: Option<Visitor> = None;
    let mut ends = Vec::new();
    for (position, event) in play(&whole, whole.len()) {
        let is_turn = matches!(event, AgentEvent::TurnStart);
        stage.play(position, event).await;
        if is_turn && slow.is_none() && stage.feed.has_started() {
            let mut visitor = Visitor::come(&stage.runs, &stage.chat, visit.clone(), Live::default()).await;
            visitor.look().await;
            slow = Some(visitor);
        }
        // More than it may be behind.
        for _ in 0..40 {
            stage.feed.publish(AgentEvent::Activity(Box::default()), None);
        }
    }
    let mut slow = slow.unwrap();
    while !slow.live.tail.settled {
        let item = slow.stream.next().await.unwrap();
        let event: AgentEvent = serde_json::from_str(&item.json).unwrap();
        slow.take(Some(&item));
        if let AgentEvent::TurnEnd { message, tool_results } = event {
            ends.push((message, tool_results.len()));
        }
    }
    assert_eq!(ends[0], (whole[0].message.clone(), 1));
    assert_eq!(slow.live.record, whole);
    stage.store.close().await;
}

#[tokio::test]
async fn a_reader_that_missed_the_end_of_a_deleted_chat_is_told() {
    let stage = Stage::new().await;
    let stream = stage.runs.attach(&stage.chat, From::OpenRun, Updates::Delta, true).await.unwrap();
    let mut stream = stream.boxed();
    for _ in 0..2 {
        stream.next().await.unwrap();
    }
    assert!(poll!(stream.next()).is_pending());
    stage.runs.delete_chat(&stage.chat).await.unwrap();
    for _ in 0..200 {
        stage.feed.publish(AgentEvent::Activity(Box::default()), None);
    }
    let last: Vec<Item> = stream.collect().await;
    assert_eq!(last.len(), 1);
    assert!(last[0].json.contains("\"gone\""), "{}", last[0].json);
    stage.store.close().await;
}
