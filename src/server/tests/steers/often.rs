//! Steers at any moment: around the end of a run, at every event of a batch that is stopped, through deaths of the process,
//! and among all that a learner does.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use async_stream::stream;
use futures::StreamExt;
use futures::stream::BoxStream;
use learnharness::app::native::view::Next;
use learnharness::app::native::{AgentEvent, AssistantEvent, AssistantMessage, Message, StopReason, Stored, fold};
use learnharness::app::transcript::scan::next::next;
use learnharness::server::llm::catalog::Models;
use learnharness::server::llm::options::Options;
use learnharness::server::llm::{Dialect, Request, StreamEvent};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{arrived, marker, steer};
use crate::killed::{die, steps};
use crate::record::quiz;
use crate::support::app::TestApp;
use crate::support::judge::faults_of;
use crate::support::model::{catalog_model, line};

/// A model that goes round: a batch, a word, a question, a word.
struct Round {
    requests: Mutex<Vec<Request<'static>>>,
}

/// The answer that follows `said` answers: a text, and calls of `(id, name, arguments)`.
fn answer(said: usize) -> (&'static str, Vec<(String, &'static str, Value)>) {
    let id = |letter: &str| format!("{letter}{said}");
    match said % 4 {
        0 => ("See.", vec![(id("a"), "gone", json!({"at": said})), (id("b"), "gone", json!({"at": said}))]),
        2 => ("So?", vec![(id("q"), "quiz", quiz())]),
        _ => ("Well.", Vec::new()),
    }
}

impl Dialect for Round {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let request = request.into_owned();
        let whole = |message: &&Cow<'_, Message>| {
            message.as_assistant().is_some_and(|answer| answer.stop_reason != StopReason::Aborted)
        };
        let (text, calls) = answer(request.messages.iter().filter(whole).count());
        let mut message = AssistantMessage { model: request.model.id.clone(), ..AssistantMessage::default() };
        self.requests.lock().unwrap().push(request);
        stream! {
            yield StreamEvent::Start(Box::new(message.clone()));
            let calls: Vec<_> = calls.iter().map(|(id, name, args)| (id.as_str(), *name, args.clone())).collect();
            for event in steps(text, &calls) {
                tokio::task::yield_now().await;
                if cancel.is_cancelled() {
                    message.stop_reason = StopReason::Aborted;
                    yield StreamEvent::End(Box::new(message));
                    return;
                }
                fold(&mut message, &event);
                let whole = matches!(event, AssistantEvent::ToolCallStart { .. }).then(|| Box::new(message.clone()));
                yield StreamEvent::Update { event, whole };
            }
            message.stop_reason = if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
            yield StreamEvent::End(Box::new(message));
        }
        .boxed()
    }
}

/// One process over the data, with its runs going on.
struct Process {
    app: TestApp,
    model: Arc<Round>,
}

impl Process {
    async fn begin(dir: &Arc<TempDir>) -> Self {
        let model = Arc::new(Round { requests: Mutex::default() });
        let models = Models { model: catalog_model(), dialect: model.clone(), options: Options::default() };
        let app = TestApp::process(dir.clone(), models).await;
        app.runs.recover().await.unwrap();
        Self { app, model }
    }

    async fn settled(&self, chat: &str) -> Vec<Stored> {
        self.app.follow(chat).await.settled().await;
        self.app.record(chat).await
    }

    /// No request was one that a provider refuses.
    async fn judge(&self) {
        let requests = std::mem::take(&mut *self.model.requests.lock().unwrap());
        for request in &requests {
            assert_eq!(faults_of(request).await, Vec::<String>::new());
        }
    }
}

async fn moments(count: usize) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Each of these steers stands in the record once, in their order, between no call and its result.
fn check(record: &[Stored], ids: &[String]) {
    let lines = || record.iter().map(|stored| line(&stored.message)).collect::<Vec<_>>();
    assert_eq!(arrived(record), ids, "{:#?}", lines());
    let mut called: Vec<(usize, &str)> = Vec::new();
    let mut steered = 0;
    for (at, stored) in record.iter().enumerate() {
        match &stored.message {
            Message::Assistant(answer) => called.extend(answer.tool_calls().map(|call| (at, call.id.as_str()))),
            Message::ToolResult(result) => {
                let asked = called.iter().rfind(|(_, id)| *id == result.tool_call_id).map(|(asked, _)| *asked);
                assert!(asked.unwrap() >= steered, "a steer came between {} and its call: {:#?}", at, lines());
            }
            Message::Custom(custom) if custom.custom_type == "steer" => steered = at,
            Message::User(_) | Message::Custom(_) => {}
        }
    }
}

/// Lets a lesson go on until nothing waits, with what the learner owes and then a word.
async fn finish(process: &Process, chat: &str) -> Vec<Stored> {
    for _ in 0..8 {
        let record = process.settled(chat).await;
        if process.app.store.waiting_steers(chat).await.unwrap().is_empty() {
            return record;
        }
        let input = match next(&record) {
            Next::Answer(ids) => json!({"type": "answer", "toolCallId": ids[0], "answer": {"values": ["4"]}}),
            Next::Idle | Next::Reply | Next::Verdict(_) | Next::Handoff => json!({"type": "text", "text": "go on"}),
        };
        assert_eq!(process.app.input(chat, input).await.status, 202);
    }
    panic!("the steers go on waiting: {:#?}", process.app.lines(chat).await);
}

#[tokio::test]
async fn a_steer_around_the_end_of_a_run_is_answered_once_in_that_run_or_one_more() {
    let process = Process::begin(&Arc::new(TempDir::new().unwrap())).await;
    let Process { app, .. } = &process;
    let done = || json!({"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": "Hello."}]});
    let mut runs = [0; 3];
    for at in 0..200 {
        let chat = app.chat_with(vec![serde_json::from_value(done()).unwrap()]).await;
        let mut reader = app.watch(&chat).await;
        app.text(&chat, "hi").await;
        // One answer of five pieces has twelve events, with what is around it.
        let (events, some) = (at % 14, at / 14);
        for _ in 0..events {
            if matches!(reader.next().await.unwrap().event, Some(AgentEvent::TurnSettled)) {
                break;
            }
        }
        moments(some * 3).await;
        steer(app, &chat, &format!("s{at}")).await;
        let record = process.settled(&chat).await;
        check(&record, &[format!("s{at}")]);
        let place = record.iter().position(|stored| line(&stored.message) == "marker steer").unwrap();
        assert!(record[place + 1].message.as_assistant().is_some(), "nobody answered at {at}");
        let log = app.stream(&format!("/api/chats/{chat}/stream?after=1")).await.rest().await;
        let told = log.iter().filter(
            |sent| matches!(&sent.event, Some(AgentEvent::MessageEnd { message }) if line(message) == "marker steer"),
        );
        assert_eq!(told.count(), 1);
        while reader.live.position() < record.last().unwrap().seq {
            reader.next().await;
        }
        let count = reader.log.iter().filter(|line| line.ends_with("agent_start")).count();
        runs[count] += 1;
    }
    assert!(runs[1] > 0 && runs[2] > 0 && runs[0] == 0, "{runs:?}");
    process.judge().await;
}

#[tokio::test]
async fn a_steer_whose_run_is_stopped_at_any_event_is_in_the_record_or_waits() {
    let process = Process::begin(&Arc::new(TempDir::new().unwrap())).await;
    let Process { app, .. } = &process;
    let mut places = [0; 2];
    for at in 0..60 {
        let chat = app.chat().await;
        let mut reader = app.watch(&chat).await;
        app.text(&chat, "hi").await;
        for _ in 0..2 {
            reader.next().await;
        }
        steer(app, &chat, &format!("s{at}")).await;
        for _ in 0..at / 2 {
            if matches!(reader.next().await.unwrap().event, Some(AgentEvent::TurnSettled)) {
                break;
            }
        }
        moments(at % 2).await;
        app.stop(&chat).await;
        let record = process.settled(&chat).await;
        let waiting = app.store.waiting_steers(&chat).await.unwrap().len();
        assert_eq!(arrived(&record).len() + waiting, 1);
        places[waiting] += 1;
        app.text(&chat, "go on").await;
        let record = process.settled(&chat).await;
        check(&record, &[format!("s{at}")]);
        let requests = process.model.requests.lock().unwrap().clone();
        let last = requests.iter().rev().find(|request| request.session == chat).unwrap();
        let told = last.messages.iter().filter(|message| line(message).contains(&format!("This is s{at}.")));
        assert_eq!(told.count(), 1);
    }
    assert!(places[0] > 0 && places[1] > 0, "{places:?}");
    process.judge().await;
}

/// What happens to a chat.
#[derive(Clone, Copy, Debug)]
enum Act {
    Steer,
    /// The learner does what the chat waits for, or else writes.
    Answer,
    Text,
    Stop,
    /// The runs get on by so many moments.
    Moments(usize),
    Settle,
    Crash,
}

/// Plays these acts and then goes on to the end.
fn play(acts: &[Act]) {
    let dir = Arc::new(TempDir::new().unwrap());
    let mut chat = None;
    let mut ids = Vec::new();
    for (nth, life) in acts.split(|act| matches!(act, Act::Crash)).enumerate() {
        let is_last = nth == acts.iter().filter(|act| matches!(act, Act::Crash)).count();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let process = Process::begin(&dir).await;
            let chat = match &chat {
                Some(chat) => String::clone(chat),
                None => chat.insert(process.app.chat().await).clone(),
            };
            for act in life {
                perform(&process, &chat, *act, &mut ids).await;
            }
            if is_last {
                check(&finish(&process, &chat).await, &ids);
            }
            process.judge().await;
        });
        die(runtime, &dir);
    }
}

async fn perform(process: &Process, chat: &str, act: Act, ids: &mut Vec<String>) {
    let app = &process.app;
    match act {
        Act::Steer => {
            ids.push(format!("s{}", ids.len()));
            app.store.steer(chat, &ids[ids.len() - 1], marker(&ids[ids.len() - 1]), 0).await.unwrap();
            app.runs.steered(chat).await.unwrap();
        }
        Act::Answer => {
            if let Next::Answer(of) = next(&app.record(chat).await) {
                app.input(chat, json!({"type": "answer", "toolCallId": of[0], "answer": {"values": ["4"]}})).await;
            }
        }
        Act::Text => drop(app.input(chat, json!({"type": "text", "text": "go on"})).await),
        Act::Stop => drop(app.stop(chat).await),
        Act::Moments(count) => moments(count).await,
        Act::Settle => drop(process.settled(chat).await),
        Act::Crash => unreachable!("it ends the process"),
    }
}

#[test]
fn a_process_that_dies_between_any_two_steps_of_a_delivery_delivers_once() {
    // Moments of a run with a batch and its steers are some hundred; the store's writes are among them.
    for count in (0..160).step_by(2) {
        play(&[Act::Steer, Act::Text, Act::Moments(count), Act::Steer, Act::Crash, Act::Settle]);
    }
    for count in (0..40).step_by(2) {
        // The wake of an idle chat, and that of the next process.
        let idle = [Act::Text, Act::Settle, Act::Stop, Act::Steer, Act::Text];
        play(&[&idle[..], &[Act::Moments(count), Act::Crash, Act::Moments(count), Act::Crash]].concat());
    }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Steer),
        2 => Just(Act::Text),
        2 => Just(Act::Answer),
        1 => Just(Act::Stop),
        6 => (0usize..80).prop_map(Act::Moments),
        2 => Just(Act::Settle),
        1 => Just(Act::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_steer_arrives_once_and_in_order_among_all_that_may_happen(acts in proptest::collection::vec(act(), 1..30)) {
        play(&acts);
    }
}
