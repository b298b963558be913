//! Answers that break off or fall silent in the middle (faults 34 and 36), and what a learner does about them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use learnharness::app::native::{AgentEvent, StopReason};
use learnharness::server::llm::catalog::{Api, Models};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::transport::Limits;
use learnharness::server::llm::{Dialect, StreamEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::folders;
use super::variant::bytes;
use crate::support::app::TestApp;
use crate::support::dialect::{ask_of, finished, hear, model, model_at, offline, response, speaker};
use crate::support::provider::{End, Provider, Reply};

const COMMENT: &str = ": keepalive\n\n";

fn stimulus(name: &str) -> Value {
    let path = folders()[0].join(format!("{name}.json"));
    let fault: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    fault["stimulus"].clone()
}

/// Both APIs' beginnings of the stall, each with what keeps its connection alive and says nothing.
fn stalls() -> [(Api, Vec<u8>, &'static str); 3] {
    let chunks = &stimulus("34-keepalive-only-stall")["chunks"];
    assert_eq!(chunks[1]["repeat_timed"]["text"], COMMENT);
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let said = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Start"}}),
    ];
    let anthropic = said.map(event).concat().into_bytes();
    [
        (Api::OpenAiCompletions, bytes(&chunks[0]).unwrap(), COMMENT),
        (Api::AnthropicMessages, anthropic.clone(), COMMENT),
        (Api::AnthropicMessages, anthropic, "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
    ]
}

fn stalled(api: Api, limits: Limits, first: Vec<u8>, beat: &'static str) -> Arc<dyn Dialect> {
    offline(api, limits, move |_: &_| response(200, "text/event-stream", vec![first.clone()], End::Beat(beat)))
}

#[tokio::test]
async fn comments_alone_do_not_keep_an_answer_alive() {
    for (api, first, beat) in stalls() {
        let idle = Duration::from_millis(100);
        let dialect = stalled(api, Limits { idle, retries: 0, ..Limits::default() }, first, beat);
        let began = Instant::now();
        let message = finished(&hear(&*dialect, ask_of(model_at(api, "http://nowhere")), None).await);
        let took = began.elapsed();
        assert!(took >= idle && took < idle * 20, "{api:?}: {took:?}");
        assert_eq!((message.stop_reason, message.text().as_str()), (StopReason::Error, "Start"), "{api:?}");
    }
}

#[tokio::test]
async fn a_stop_during_a_stall_ends_the_answer_at_once() {
    for (api, first, beat) in stalls() {
        let dialect = stalled(api, Limits::default(), first, beat);
        let cancel = CancellationToken::new();
        let mut stream = dialect.stream(ask_of(model_at(api, "http://nowhere")), cancel.clone());
        let mut events = Vec::new();
        let mut stopped = None;
        while let Some(event) = stream.next().await {
            if matches!(event, StreamEvent::Update { .. }) {
                cancel.cancel();
                stopped.get_or_insert_with(Instant::now);
            }
            events.push(event);
        }
        assert!(stopped.unwrap().elapsed() < Duration::from_millis(500), "{api:?}");
        let message = finished(&events);
        assert_eq!((message.stop_reason, message.text().as_str()), (StopReason::Aborted, "Start"), "{api:?}");
    }
}

fn reply(script: &Value) -> Reply {
    let reply = Reply::events(script["chunks"].as_array().unwrap().iter().map(|chunk| bytes(chunk).unwrap()));
    if script["end"] == "reset" { reply.end(End::Reset) } else { reply }
}

/// An application that speaks with this provider.
async fn app(provider: &Provider) -> TestApp {
    let models = Models {
        model: model(Api::OpenAiCompletions, provider),
        dialect: speaker(Api::OpenAiCompletions, Limits::default()),
        options: Options::default(),
    };
    TestApp::with_models(models).await
}

#[tokio::test]
async fn an_answer_that_broke_off_is_asked_for_again_by_the_learner_and_by_nobody_else() {
    let responses = stimulus("36-retry-after-partial-text")["responses"].clone();
    let [first, second] = [reply(&responses[0]), reply(&responses[1])];
    let last = second.clone();
    let provider = Provider::start([first, second, last]).await;
    let app = app(&provider).await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "How?").await;
    reader.until("the end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
    let half = "Plan: first, sort";
    let whole = "Plan: first, sort the list.";
    assert_eq!(app.lines(&chat).await, ["user How?", &format!("assistant[Error] {half}")]);
    assert_eq!(reader.live.record.len(), 2);
    assert_eq!(provider.requests().len(), 1, "nobody has asked again");
    assert_eq!(app.input(&chat, json!({"type": "retry"})).await.status, 202);
    reader.settled().await;
    app.text(&chat, "Go on.").await;
    reader.settled().await;
    let requests = provider.requests();
    let messages = requests[2].body["messages"].as_array().unwrap();
    let said: Vec<&Value> = messages.iter().map(|message| &message["content"]).skip(1).collect();
    assert_eq!(said, ["How?", whole, "Go on."]);
    assert!(!requests[1].body.to_string().contains(half), "{}", requests[1].body);
}

#[tokio::test]
async fn a_connection_that_breaks_before_any_word_is_tried_again_and_leaves_no_trace() {
    let responses = stimulus("36-retry-after-partial-text")["responses"].clone();
    for broken in [Reply::events([""]).end(End::Refuse), Reply::events([""]).end(End::Reset)] {
        let provider = Provider::start([broken, reply(&responses[1])]).await;
        let app = app(&provider).await;
        let chat = app.chat().await;
        let mut reader = app.watch(&chat).await;
        app.text(&chat, "How?").await;
        reader.settled().await;
        assert_eq!(app.lines(&chat).await, ["user How?", "assistant[Stop] Plan: first, sort the list."]);
        assert_eq!(provider.requests().len(), 2);
    }
}
