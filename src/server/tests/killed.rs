//! Processes that are killed at any event of a lesson, again and again: the next one goes on, and the lesson ends the same.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_stream::stream;
use futures::StreamExt;
use futures::stream::BoxStream;
use learnharness::app::native::event::ToolCallEntry;
use learnharness::app::native::view::Next;
use learnharness::app::native::{
    AgentEvent, AssistantEvent, AssistantMessage, Message, Seq, StopReason, ToolCall, ToolResultMessage, fold,
};
use learnharness::app::transcript::scan::next::next;
use learnharness::server::llm::catalog::Models;
use learnharness::server::llm::options::Options;
use learnharness::server::llm::{Dialect, Request, StreamEvent};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::record::quiz;
use crate::support::app::TestApp;
use crate::support::judge::faults_of;
use crate::support::model::{catalog_model, line};

/// `(id, name, arguments)`.
pub(crate) type ScriptedCall<'a> = (&'a str, &'a str, Value);

/// The answers of a whole lesson, in order: a text and calls.
fn lesson() -> Vec<(&'static str, Vec<ScriptedCall<'static>>)> {
    let assessment = json!({"assessment": {"known": [], "shaky": [], "unknown": ["sums"], "goal": "Add."}});
    let block = |id: &str| json!({"id": id, "title": id, "objective": "Know it.", "concepts": []});
    let plan = json!({"title": "Sums", "goal": "Add.", "blocks": [block("a"), block("b")]});
    let progress = |id: &str, status: &str| json!({"blockId": id, "status": status});
    vec![
        ("Let me see.", vec![("q1", "quiz", quiz())]),
        ("", vec![("d", "probe_done", assessment)]),
        ("A plan.", vec![("p", "plan_init", plan), ("p1", "plan_progress", progress("a", "started"))]),
        (
            "On.",
            vec![("p2", "plan_progress", progress("a", "done")), ("p3", "plan_progress", progress("b", "started"))],
        ),
        ("Now.", vec![("q2", "quiz", quiz()), ("q3", "quiz", json!({"question": "What?"}))]),
        ("That was it.", Vec::new()),
    ]
}

/// A model that says the next answer of the lesson: the one after those that the request holds whole.
struct Script {
    requests: Arc<Mutex<Vec<Request<'static>>>>,
}

impl Dialect for Script {
    fn stream(&self, request: Request, _: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let request = request.into_owned();
        self.requests.lock().unwrap().push(request.clone());
        let is_whole = |message: &&Cow<'_, Message>| {
            message.as_assistant().is_some_and(|answer| answer.stop_reason != StopReason::Aborted)
        };
        let said = request.messages.iter().filter(is_whole).count();
        let (text, calls) = lesson().swap_remove(said.min(lesson().len() - 1));
        stream! {
            let mut message = AssistantMessage { model: request.model.id.clone(), ..AssistantMessage::default() };
            yield StreamEvent::Start(Box::new(message.clone()));
            for event in steps(text, &calls) {
                fold(&mut message, &event);
                let whole = matches!(event, AssistantEvent::ToolCallStart { .. }).then(|| Box::new(message.clone()));
                yield StreamEvent::Update { event, whole };
                tokio::task::yield_now().await;
            }
            message.stop_reason = if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
            yield StreamEvent::End(Box::new(message));
        }
        .boxed()
    }
}

/// The steps in which a model says a text and makes calls.
pub(crate) fn steps(text: &str, calls: &[ScriptedCall<'_>]) -> Vec<AssistantEvent> {
    let mut steps = Vec::new();
    if !text.is_empty() {
        steps.push(AssistantEvent::TextStart { content_index: 0 });
        steps.extend(text.chars().map(|letter| AssistantEvent::TextDelta { content_index: 0, delta: letter.into() }));
    }
    for (content_index, (id, name, args)) in (usize::from(!text.is_empty())..).zip(calls) {
        let arguments = args.clone();
        let call = ToolCall { id: (*id).to_owned(), name: (*name).to_owned(), arguments, ..ToolCall::default() };
        let tool_call = Box::new(ToolCallEntry::ToolCall(call));
        steps.push(AssistantEvent::ToolCallStart { content_index });
        steps.push(AssistantEvent::ToolCallDelta { content_index, delta: args.to_string() });
        steps.push(AssistantEvent::ToolCallEnd { content_index, tool_call });
    }
    steps
}

/// When a process ends: after it has shown so many events and was given so many more moments.
#[derive(Clone, Copy, Debug)]
struct Kill {
    events: usize,
    moments: usize,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// It was told to.
    Orderly,
    Dead,
}

/// What readers were shown as being in the record.
type Shown = Vec<(Seq, Message)>;

/// A reader and learner of one process, until the lesson is over or the process dies.
struct Visit<'a> {
    app: &'a TestApp,
    kill: Option<Kill>,
    events: usize,
    shown: &'a mut Shown,
}

/// The process is dead.
struct Dead;

impl Visit<'_> {
    async fn play(&mut self, chat: &str) -> Result<(), Dead> {
        let mut reader = self.app.follow(chat).await;
        loop {
            while let Some(sent) = reader.next().await {
                let event = sent.event.unwrap();
                if let AgentEvent::MessageEnd { message } = &event
                    && !message.as_tool_result().is_some_and(ToolResultMessage::is_posed_placeholder)
                {
                    self.shown.push((sent.id, message.clone()));
                }
                self.live_on().await?;
                if matches!(event, AgentEvent::TurnSettled) {
                    break;
                }
            }
            let record = self.app.record(chat).await;
            let input = match next(&record) {
                Next::Answer(ids) => json!({"type": "answer", "toolCallId": ids[0], "answer": {"values": ["4"]}}),
                Next::Verdict(_) => json!({"type": "verdict", "accepted": true}),
                Next::Idle if record.is_empty() => json!({"type": "text", "text": "hi"}),
                Next::Idle if record.iter().any(|stored| line(&stored.message).ends_with("That was it.")) => {
                    return Ok(());
                }
                Next::Reply | Next::Handoff | Next::Idle => json!({"type": "retry"}),
            };
            let taken = self.app.input(chat, input).await;
            assert_eq!(taken.status, 202, "{}", taken.text);
        }
    }

    async fn live_on(&mut self) -> Result<(), Dead> {
        self.events += 1;
        let Some(kill) = self.kill.filter(|kill| kill.events <= self.events) else { return Ok(()) };
        for _ in 0..kill.moments {
            tokio::task::yield_now().await;
        }
        if kill.how == How::Orderly {
            self.app.runs.shut_down().await;
        }
        Err(Dead)
    }
}

/// Plays the lesson through these deaths; returns its record and what was shown of it.
fn played(kills: &[Kill]) -> (Vec<(Seq, Message)>, Shown) {
    let dir = Arc::new(TempDir::new().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (mut shown, mut chat) = (Shown::new(), None);
    for kill in kills.iter().copied().map(Some).chain([None]) {
        let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = process.block_on(async {
            let dialect = Arc::new(Script { requests: requests.clone() });
            let models = Models { model: catalog_model(), dialect, options: Options::default() };
            let app = TestApp::process(dir.clone(), models).await;
            app.runs.recover().await.unwrap();
            let chat = match &chat {
                Some(chat) => String::clone(chat),
                None => chat.insert(app.chat().await).clone(),
            };
            let mut visit = Visit { app: &app, kill, events: 0, shown: &mut shown };
            let over = visit.play(&chat).await.is_ok();
            let asked: Vec<Request<'_>> = std::mem::take(&mut *requests.lock().unwrap());
            for request in asked {
                assert_eq!(faults_of(&request).await, Vec::<String>::new());
            }
            if over { Some(app.record(&chat).await) } else { None }
        });
        die(process, &dir);
        if let (Some(record), None) = (ended, kill) {
            return (record.into_iter().map(|stored| (stored.seq, stored.message)).collect(), shown);
        }
    }
    unreachable!("the last process is not killed")
}

/// Drops everything that the process does, and waits until its last write is through or rolled back.
pub(crate) fn die(process: Runtime, dir: &TempDir) {
    process.shutdown_timeout(Duration::from_secs(10));
    let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    after.block_on(async {
        let url = format!("sqlite://{}", dir.path().join("learnharness.db").display());
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        pool.begin_with("BEGIN IMMEDIATE").await.unwrap().rollback().await.unwrap();
        pool.close().await;
    });
}

/// What must not depend on deaths: the whole answers in order, and everything else that was done. A question that cannot be
/// asked is refused in other words when that is left to the server.
fn essence(record: &[(Seq, Message)]) -> (Vec<String>, Vec<String>) {
    let words = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let lines = record.iter().map(|(_, message)| line(message));
    let lines: Vec<String> = lines.map(|line| if line.starts_with("result!") { words(line) } else { line }).collect();
    let of_death = |line: &String| {
        line.starts_with("assistant[Aborted]")
            || ["marker interrupted", "marker notice", "marker retry"].contains(&line.as_str())
    };
    let (answers, mut rest): (Vec<String>, Vec<String>) =
        lines.into_iter().filter(|line| !of_death(line)).partition(|line| line.starts_with("assistant"));
    rest.sort();
    (answers, rest)
}

fn check(kills: &[Kill]) {
    let (undisturbed, _) = played(&[]);
    let (record, shown) = played(kills);
    for (seq, message) in shown {
        assert_eq!(record.iter().find(|(stored, _)| *stored == seq).map(|(_, message)| message), Some(&message));
    }
    assert_eq!(essence(&record), essence(&undisturbed));
}

#[test]
fn the_lesson_is_played_to_its_end_without_any_death() {
    let (record, _) = played(&[]);
    let (answers, rest) = essence(&record);
    assert_eq!(answers.len(), lesson().len());
    assert_eq!(rest.iter().filter(|line| *line == "marker plan-block").count(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_lesson_ends_the_same_however_often_its_process_is_killed(
        kills in proptest::collection::vec((1usize..110, 0usize..60, proptest::bool::ANY), 1..5),
    ) {
        let how = |told| if told { How::Orderly } else { How::Dead };
        let kill = |(events, moments, told)| Kill { events, moments, how: how(told) };
        let kills: Vec<Kill> = kills.into_iter().map(kill).collect();
        check(&kills);
    }
}
