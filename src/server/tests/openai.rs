//! The `openai-completions` dialect against a scripted provider: the reference packages' recorded answers, faults that
//! were reported in public, and our own limits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use learnharness::app::native::partial::ARGUMENTS_FAULT;
use learnharness::app::native::{AssistantMessage, Message, StopReason, fold};
use learnharness::server::llm::catalog::{Api, Key, Model, Prices};
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::transport::{Limits, Transport};
use learnharness::server::llm::{Dialect, Request, StreamEvent, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::provider::{End, Gate, Provider, Reply};

/// Recorded cases that differ from the reference on purpose, and why. A case that differs and is not here fails; so
/// does one that is here and differs no more.
const REFERENCE_DIFFERENCES: &[(&str, &str)] = &[
    ("finish-length-tool", "arguments that are cut off carry a mark, so that nobody runs them"),
    ("text-content-array", "the texts of the parts, instead of \"[object Object]\""),
    ("text-lone-surrogate-answer", "halves join across deltas, and one that stays alone is U+FFFD"),
    ("tool-args-invalid-json", "arguments that are broken beyond repair carry a mark, so that nobody runs them"),
    ("tool-duplicate-ids", "one id on two indexes is two calls, and the second gets an id of its own"),
    ("tool-id-changes-same-index", "a new id with a name begins a new call, also on a used index"),
    ("tool-piece-without-id-or-index", "a piece with neither id nor index goes on in the last call"),
    ("tool-unknown-without-tools", "no empty list of tools: OpenAI itself refuses one"),
    ("usage-cost-tiers", "prices have no tiers yet"),
    ("usage-twice", "usage that comes before the finish is applied once, at the end: updates stay small"),
];

/// Variants of reported faults that we answer otherwise, and why.
const FAULT_DIFFERENCES: &[(&str, &str)] = &[
    ("29-eof-before-terminal/2", "[DONE] without a finish_reason is an error, as in the reference"),
    ("31-empty-turn/7", "the words of a refusal are the text of the answer"),
];

/// Fields of the reference's requests that this dialect does not send yet.
const NOT_SENT: [&str; 3] = ["store", "max_completion_tokens", "reasoning"];

#[tokio::test]
async fn recorded_answers_are_what_the_reference_made_of_them() {
    let mut report = Report::new(REFERENCE_DIFFERENCES);
    for path in fixtures("pi/cases") {
        let case = load(&path);
        let golden = load(&fixture("pi/golden").join(path.file_name().unwrap()));
        let found = compare(&case, &golden).await;
        report.add(case["name"].as_str().unwrap(), found);
    }
    report.close();
}

/// Plays a recorded case answer by answer and says where it differs.
async fn compare(case: &Value, golden: &Value) -> Option<String> {
    let provider =
        Provider::start(case["responses"].as_array().unwrap().iter().map(|reply| recorded_reply(case, reply))).await;
    let dialect = dialect(Limits {
        retries: case["options"]["stream"]["maxRetries"].as_u64().unwrap_or(0) as u32,
        longest_wait: Duration::from_millis(case["options"]["maxRetryDelayMs"].as_u64().unwrap_or(60_000)),
        ..Limits::default()
    });
    let wanted_requests = golden["requests"].as_array().unwrap();
    let mut messages: Vec<Value> = case["history"].as_array().cloned().unwrap_or_default();
    let mut expected: Vec<Value> = Vec::new();
    let mut abort = Some(&case["abortAt"]).filter(|selector| !selector.is_null());
    for event in golden["events"].as_array().unwrap() {
        let kind = event["type"].as_str().unwrap();
        if !matches!(kind, "message_start" | "message_update" | "message_end") {
            continue;
        }
        if event["message"]["role"] == "assistant" {
            expected.push(comparable(event));
        }
        if kind != "message_end" {
            continue;
        }
        // An answer for which the reference asked nobody is the loop's own.
        if event["message"]["role"] == "assistant" && provider.requests().len() < wanted_requests.len() {
            let request = recorded_request(case, &provider, &messages);
            let made = play(&dialect, request, &provider, abort.take()).await;
            let made: Vec<Value> = wire_events(made).iter().map(comparable).collect();
            if made != expected {
                return Some(first_difference(&made, &expected));
            }
        }
        if event["message"]["role"] == "assistant" {
            expected.clear();
        }
        messages.push(event["message"].clone());
    }
    let made: Vec<Value> =
        provider.requests().iter().map(|request| json!({"path": request.path, "body": request.body})).collect();
    let wanted: Vec<Value> = wanted_requests.iter().map(sent_by_us).collect();
    let made: Vec<Value> = made.iter().map(comparable).collect();
    (made != wanted).then(|| first_difference(&made, &wanted))
}

/// The reference's request without what this dialect does not send yet.
fn sent_by_us(request: &Value) -> Value {
    let mut body = request["body"].clone();
    for field in NOT_SENT {
        body.as_object_mut().unwrap().shift_remove(field);
    }
    for tool in body["tools"].as_array_mut().into_iter().flatten() {
        tool["function"].as_object_mut().unwrap().shift_remove("strict");
    }
    if body["tools"].is_null() {
        body.as_object_mut().unwrap().shift_remove("tools");
    }
    comparable(&json!({"path": request["path"], "body": body}))
}

fn recorded_reply(case: &Value, reply: &Value) -> Reply {
    let mut scripted =
        Reply::events(reply["chunks"].as_array().into_iter().flatten().map(|chunk| chunk.as_str().unwrap()));
    scripted.status = reply["status"].as_u64().unwrap_or(200) as u16;
    for (name, value) in reply["headers"].as_object().into_iter().flatten() {
        scripted = scripted.header(name, value.as_str().unwrap());
    }
    if case["abortAt"]["request"].is_number() {
        scripted = scripted.before(&Gate::default());
    }
    scripted.end(match reply["end"].as_str() {
        Some("hang") => End::Hang,
        Some("destroy") => End::Reset,
        Some("refuse") => End::Refuse,
        _ => End::Close,
    })
}

fn recorded_request(case: &Value, provider: &Provider, messages: &[Value]) -> Request {
    let known = &case["model"];
    let price = |name: &str| known["cost"][name].as_f64().unwrap();
    let replayed =
        messages.iter().filter(|message| !matches!(message["stopReason"].as_str(), Some("error" | "aborted")));
    Request {
        model: Model {
            id: known["id"].as_str().unwrap().into(),
            provider: known["provider"].as_str().unwrap().into(),
            base_url: format!("{}/api/v1", provider.url()),
            key: Some(Key("test-key".into())),
            reasoning: true,
            prices: Prices {
                input: price("input"),
                output: price("output"),
                cache_read: price("cacheRead"),
                cache_write: price("cacheWrite"),
            },
            ..model(provider)
        },
        system: case["systemPrompt"].as_str().unwrap_or_default().into(),
        messages: replayed.map(|message| serde_json::from_value(message.clone()).unwrap()).collect(),
        tools: case["tools"].as_array().into_iter().flatten().map(tool).collect(),
        session: String::new(),
    }
}

fn tool(tool: &Value) -> ToolSpec {
    ToolSpec {
        name: tool["name"].as_str().unwrap().into(),
        description: tool["description"].as_str().unwrap().into(),
        parameters: tool["parameters"].clone(),
    }
}

/// Runs one request to its end; `abort` is a recorded selector of the moment to cancel.
async fn play(
    dialect: &OpenAiCompletions,
    request: Request,
    provider: &Provider,
    abort: Option<&Value>,
) -> Vec<StreamEvent> {
    let cancel = CancellationToken::new();
    let mut stream = dialect.stream(request, cancel.clone());
    let mut events = Vec::new();
    let mut left = abort.map_or(0, |abort| abort["nth"].as_u64().unwrap_or(1));
    if let Some(count) = abort.and_then(|abort| abort["request"].as_u64()) {
        tokio::select! {
            biased;
            () = provider.asked(count as usize) => cancel.cancel(),
            event = stream.next() => events.extend(event),
        }
    }
    while let Some(event) = stream.next().await {
        if let (StreamEvent::Update { event, .. }, Some(abort)) = (&event, abort)
            && json!(event)["type"] == abort["eventType"]
        {
            left -= 1;
            if left == 0 {
                cancel.cancel();
            }
        }
        events.push(event);
    }
    events
}

/// The events as an agent sends them, every update with its message as a folding reader has it.
fn wire_events(events: Vec<StreamEvent>) -> Vec<Value> {
    let mut reader = AssistantMessage::default();
    let mut wire = Vec::new();
    for event in events {
        match event {
            StreamEvent::Start(message) => {
                reader = message.clone();
                wire.push(json!({"type": "message_start", "message": Message::Assistant(message)}));
            }
            StreamEvent::Update { event, whole } => {
                match whole {
                    Some(whole) => reader = *whole,
                    None => fold(&mut reader, &event),
                }
                let message = Message::Assistant(reader.clone());
                wire.push(json!({"type": "message_update", "assistantMessageEvent": event, "message": message}));
            }
            StreamEvent::End(message) => {
                let message = Message::Assistant(*message);
                if wire.is_empty() {
                    wire.push(json!({"type": "message_start", "message": message}));
                }
                wire.push(json!({"type": "message_end", "message": message}));
            }
        }
    }
    wire
}

/// Without scratch fields and the letters of error texts; numbers are doubles.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "partialArgs" | "streamIndex"))
            .map(|(name, value)| match name.as_str() {
                "errorMessage" => (name.clone(), json!("<words>")),
                _ => (name.clone(), comparable(value)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn first_difference(made: &[Value], wanted: &[Value]) -> String {
    let at = made.iter().zip(wanted).position(|(made, wanted)| made != wanted).unwrap_or(made.len().min(wanted.len()));
    let show = |items: &[Value]| items.get(at).map_or("nothing".to_owned(), Value::to_string);
    format!("at {at}\n  made   {}\n  wanted {}", show(made), show(wanted))
}

#[tokio::test]
async fn reported_faults_are_answered_as_they_should_be() {
    let mut report = Report::new(FAULT_DIFFERENCES);
    for path in fixtures("faults") {
        let fault = load(&path);
        // Faults of rendering stand beside those of providers.
        let Some(variants) = fault["stimulus"]["variants"].as_array() else { continue };
        for (number, variant) in variants.iter().enumerate() {
            if variant["api"] == "openai-chat" {
                let found = compare_final(variant).await;
                report.add(&format!("{}/{}", fault["id"].as_str().unwrap(), number + 1), found);
            }
        }
    }
    report.close();
}

async fn compare_final(variant: &Value) -> Option<String> {
    let mut reply = Reply::events(variant["chunks"].as_array().unwrap().iter().map(bytes));
    reply.status = variant["status"].as_u64().unwrap() as u16;
    reply =
        reply.header("content-type", variant["content_type"].as_str().unwrap()).end(match variant["end"].as_str() {
            Some("hang") => End::Hang,
            Some("reset") => End::Reset,
            _ => End::Close,
        });
    let provider = Provider::start([reply]).await;
    let events = play(&dialect(Limits { retries: 0, ..Limits::default() }), ask(&provider), &provider, None).await;
    let message = finished(&events);
    let wanted = &variant["expect_final"];
    let ran = matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse);
    let calls: Vec<Value> = message
        .tool_calls()
        .filter(|_| ran)
        .map(|call| {
            let readable = !call.extra.contains_key(ARGUMENTS_FAULT) && call.arguments.is_object();
            json!([call.id, call.name, if readable { call.arguments.clone() } else { json!("INVALID") }])
        })
        .collect();
    let ids: BTreeSet<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    let mut wrong = Vec::new();
    if ids.len() != message.tool_calls().count() || ids.contains("") {
        wrong.push(format!("ids {ids:?}"));
    }
    for (field, wanted) in wanted.as_object().unwrap() {
        let made = match field.as_str() {
            "text" => json!(message.text()),
            "text_len" => json!(message.text().len()),
            "text_prefix" => json!(message.text().starts_with(wanted.as_str().unwrap()).then_some(wanted)),
            "thinking" => json!(thinking(&message)),
            "stop" if wanted == "other" => json!(ran.then_some("other")),
            "stop" if wanted == "tool_calls" => json!(ran.then_some("tool_calls")),
            "stop" => message.extra.get("rawStopReason").cloned().unwrap_or_default(),
            "error" => json!(message.stop_reason == StopReason::Error),
            "tool_calls" => Value::Array(masked(&calls, wanted)),
            _ => wanted.clone(),
        };
        if made != *wanted {
            wrong.push(format!("{field}: made {made}, wanted {wanted}"));
        }
    }
    (!wrong.is_empty()).then(|| format!("{}; {:?}", wrong.join("; "), message.error_message))
}

/// `calls` with "*" for every id that may be anything.
fn masked(calls: &[Value], wanted: &Value) -> Vec<Value> {
    let any_id = |at: usize| wanted[at][0] == "*";
    calls
        .iter()
        .enumerate()
        .map(|(at, call)| if any_id(at) { json!(["*", call[1], call[2]]) } else { call.clone() })
        .collect()
}

fn thinking(message: &AssistantMessage) -> String {
    json!(message.content).as_array().unwrap().iter().filter_map(|block| block["thinking"].as_str()).collect()
}

fn bytes(chunk: &Value) -> Vec<u8> {
    if let Some(text) = chunk["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(repeat) = chunk["repeat"].as_object() {
        return repeat["unit"].as_str().unwrap().repeat(repeat["times"].as_u64().unwrap() as usize).into_bytes();
    }
    let hex = chunk["hex"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

const SECOND: Duration = Duration::from_secs(1);

/// One event of a stream that says `delta`.
fn chunk(delta: &Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"id": "gen-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

fn says(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

fn stop() -> String {
    chunk(&json!({}), Some("stop")) + "data: [DONE]\n\n"
}

/// What an answer came to, in one line.
fn outcome(message: &AssistantMessage) -> String {
    let words = message.error_message.as_deref().unwrap_or("-");
    format!("{:?} | {} | {words}", message.stop_reason, message.text())
}

/// Plays `replies` for one request and checks the outcome and the number of requests.
async fn check(replies: Vec<Reply>, limits: Limits, expected: &str, requests: usize) {
    let provider = Provider::start(replies).await;
    let events = play(&dialect(limits), ask(&provider), &provider, None).await;
    assert_eq!(outcome(&finished(&events)), expected);
    assert_eq!(provider.requests().len(), requests, "{expected}");
}

#[tokio::test]
async fn failures_are_words_for_a_person() {
    let once = || Limits { retries: 0, ..Limits::default() };
    let cases = [
        (
            Reply::status(401, r#"{"error":{"message":"No such key"}}"#),
            "The provider refused the key (401): No such key.",
        ),
        (
            Reply::status(429, "").header("retry-after", "30"),
            "The provider asks to slow down (429). It asks to wait 30 s.",
        ),
        (Reply::events([""]).end(End::Refuse), "The provider could not be reached: it closed the connection."),
        (Reply::events([""]), "The answer stopped before it was finished."),
        (Reply::events(["<html>Sign in"]), "The provider sent something that is not an answer: it sent a web page."),
        (
            Reply::events([chunk(&json!({}), Some("content_filter"))]),
            "The provider's filter withheld the answer (content_filter).",
        ),
    ];
    for (reply, words) in cases {
        check(vec![reply], once(), &format!("Error |  | {words}"), 1).await;
    }
    let provider = Provider::start([]).await;
    let mut request = ask(&provider);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    request.model.base_url = format!("http://{closed}");
    let words = finished(&play(&dialect(once()), request.clone(), &provider, None).await).error_message.unwrap();
    assert!(words.starts_with("The provider could not be reached: Connection refused"), "{words}");
    request.model.base_url = "no address".into();
    let words = finished(&play(&dialect(once()), request.clone(), &provider, None).await).error_message.unwrap();
    assert_eq!(words, "The provider rejected the request: its address is not a web address.");
    request.model.key = Some(Key("a\nb".into()));
    let words = finished(&play(&dialect(once()), request, &provider, None).await).error_message.unwrap();
    assert_eq!(words, "The provider refused the key: it holds characters that no key has; it was not sent.");
}

#[tokio::test]
async fn a_key_goes_to_the_provider_and_nowhere_else() {
    let secret = "sk-test-NEVERSHOW";
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {secret}"}}}}"#);
    let provider = Provider::start([
        Reply::status(401, &echo),
        Reply::events([says("a"), format!("data: {echo}\n\n")]),
        Reply::status(307, "").header("location", "/elsewhere"),
    ])
    .await;
    for _ in 0..3 {
        let mut request = ask(&provider);
        request.model.key = Some(Key(secret.into()));
        assert!(!format!("{request:?}").contains("NEVERSHOW"));
        let events = play(&dialect(Limits::default()), request, &provider, None).await;
        assert_eq!(finished(&events).stop_reason, StopReason::Error);
        assert!(!format!("{events:?}").contains("NEVERSHOW"), "{events:?}");
    }
    let keys: Vec<_> =
        provider.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert_eq!(keys, vec![Some(format!("Bearer {secret}")); 3]);
}

#[tokio::test]
async fn a_passing_failure_before_the_first_byte_is_asked_again_with_the_providers_delay() {
    let provider = Provider::start([
        Reply::status(429, "").header("retry-after", "7"),
        Reply::events([""]).end(End::Reset),
        Reply::events([says("Hi"), stop()]),
    ])
    .await;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let pause = {
        let waits = Arc::clone(&waits);
        Arc::new(move |wait| {
            waits.lock().unwrap().push(wait);
            Box::pin(std::future::ready(())) as futures::future::BoxFuture<'static, ()>
        })
    };
    let transport = Transport::new(Limits::default(), pause).unwrap();
    let events = play(&OpenAiCompletions::new(transport, || 0), ask(&provider), &provider, None).await;
    assert_eq!(outcome(&finished(&events)), "Stop | Hi | -");
    assert!(matches!(events[0], StreamEvent::Start(_)), "no event tells of the tries before");
    assert_eq!(*waits.lock().unwrap(), [7 * SECOND, SECOND]);
}

#[tokio::test]
async fn asking_again_has_an_end() {
    let busy = || Reply::status(503, "");
    check(vec![busy(), busy(), busy(), busy()], Limits::default(), "Error |  | The provider is overloaded (503).", 3)
        .await;
    check(vec![Reply::status(400, "")], Limits::default(), "Error |  | The provider rejected the request (400).", 1)
        .await;
    let far = Reply::status(429, "").header("retry-after", "3600");
    let words = "Error |  | The provider asks to slow down (429). It asks to wait 3600 s.";
    check(vec![far], Limits::default(), words, 1).await;
    let cut = Reply::events([says("Plan")]).end(End::Reset);
    let words = "Error | Plan | The connection broke before the answer was finished.";
    check(vec![cut, Reply::events([stop()])], Limits::default(), words, 1).await;
}

#[tokio::test]
async fn silence_has_limits_and_comments_are_silence() {
    let short =
        || Limits { first_byte: SECOND / 20, idle: SECOND / 20, tail: SECOND / 20, retries: 0, ..Limits::default() };
    let never = Gate::default();
    let words = "Error |  | The provider fell silent: it sent nothing for 0.05 s.";
    check(vec![Reply::events([says("late")]).before(&never)], short(), words, 1).await;
    check(vec![Reply::events([": wait\n\n"]).end(End::Hang)], short(), words, 1).await;
    let words = "Error | Start | The provider fell silent: it sent nothing for 0.05 s.";
    check(vec![Reply::events([says("Start"), ": keepalive\n\n".into()]).end(End::Hang)], short(), words, 1).await;
    let finished = chunk(&json!({"content": "All"}), Some("stop"));
    check(vec![Reply::events([finished.clone()]).end(End::Hang)], short(), "Stop | All | -", 1).await;
    check(vec![Reply::events([finished]).end(End::Reset)], short(), "Stop | All | -", 1).await;
}

/// Plays one reply, cancels when `ready` says so, and returns the outcome; the end must come at once and close the
/// connection.
async fn cancelled(reply: Reply, ready: impl Fn(&StreamEvent) -> bool) -> String {
    let provider = Provider::start([reply]).await;
    let cancel = CancellationToken::new();
    let mut stream = dialect(Limits::default()).stream(ask(&provider), cancel.clone());
    let mut events = Vec::new();
    while stream.next().await.is_some_and(|event| !ready(&event)) {}
    let start = Instant::now();
    cancel.cancel();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert!(start.elapsed() < SECOND / 10, "{:?}", start.elapsed());
    tokio::time::timeout(2 * SECOND, provider.closed(1)).await.expect("the connection is closed");
    outcome(&finished(&events))
}

#[tokio::test]
async fn a_stop_ends_the_answer_at_once_and_keeps_the_text() {
    let stalled = Reply::events([says("Half")]).end(End::Hang);
    let said = |event: &StreamEvent| matches!(event, StreamEvent::Update { event, .. } if json!(event)["type"] == "text_delta");
    assert_eq!(cancelled(stalled, said).await, "Aborted | Half | The answer was stopped.");
    let started = Reply::events([": ping\n\n"]).end(End::Hang);
    let begun = |event: &StreamEvent| matches!(event, StreamEvent::Start(_));
    assert_eq!(cancelled(started, begun).await, "Aborted |  | The answer was stopped.");
}

#[tokio::test]
async fn a_stop_before_the_first_byte_and_between_two_tries_ends_the_answer() {
    let provider =
        Provider::start([Reply::events([says("late")]).before(&Gate::default()), Reply::status(500, "")]).await;
    let waiting = dialect(Limits::default());
    let events = play(&waiting, ask(&provider), &provider, Some(&json!({"request": 1}))).await;
    assert_eq!(outcome(&finished(&events)), "Aborted |  | The answer was stopped.");
    let cancel = CancellationToken::new();
    let pause = {
        let cancel = cancel.clone();
        Arc::new(move |_| {
            cancel.cancel();
            Box::pin(std::future::pending()) as futures::future::BoxFuture<'static, ()>
        })
    };
    let dialect = OpenAiCompletions::new(Transport::new(Limits::default(), pause).unwrap(), || 0);
    let events: Vec<_> = dialect.stream(ask(&provider), cancel).collect().await;
    assert_eq!(outcome(&finished(&events)), "Aborted |  | The answer was stopped.");
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn the_end_mark_ends_the_answer_though_the_connection_stays_open() {
    let provider = Provider::start([Reply::events([says("done"), stop()]).end(End::Hang)]).await;
    let events = play(&dialect(Limits::default()), ask(&provider), &provider, None).await;
    assert_eq!(outcome(&finished(&events)), "Stop | done | -");
    tokio::time::timeout(2 * SECOND, provider.closed(1)).await.expect("the connection is closed");
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_its_bytes_are_cut() {
    let stream = format!(": hi\r\n\r\n{}{}{}", says("<think>a🌱</think>Å"), says("ngström"), stop());
    let cuts = (1..stream.len()).map(|cut| {
        let (head, tail) = stream.as_bytes().split_at(cut);
        // The second piece waits, so that the first arrives alone.
        let gate = Gate::default();
        (Reply::events([head]).wait(&gate).then(tail), gate)
    });
    let provider = Provider::start([Reply::events([&stream])]).await;
    let dialect = dialect(Limits::default());
    let whole = play(&dialect, ask(&provider), &provider, None).await;
    assert_eq!(outcome(&finished(&whole)), "Stop | Ångström | -");
    for (reply, gate) in cuts {
        provider.push(reply);
        let mut stream = dialect.stream(ask(&provider), CancellationToken::new());
        let mut events: Vec<_> = stream.next().await.into_iter().collect();
        gate.open();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        assert_eq!(events, whole);
    }
}

#[tokio::test]
async fn a_plain_delta_brings_no_message() {
    let mut pieces: Vec<String> = (0..100).map(|_| says("word ")).collect();
    pieces.push(stop());
    let provider = Provider::start([Reply::events(pieces)]).await;
    let events = play(&dialect(Limits::default()), ask(&provider), &provider, None).await;
    let whole = events.iter().filter(|event| matches!(event, StreamEvent::Update { whole: Some(_), .. })).count();
    assert_eq!((events.len(), whole), (104, 2), "the first carries the response's id, the last how it ended");
}

#[tokio::test]
async fn reasoning_goes_back_to_its_own_model_only() {
    let answer = json!({
        "role": "assistant", "api": "openai-completions", "provider": "acme", "model": "acme/think-1", "stopReason": "stop",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "reasoning"},
            {"type": "text", "text": "Hello"},
        ],
    });
    let provider = Provider::start([Reply::events([stop()]), Reply::events([stop()])]).await;
    for id in ["acme/think-1", "other/model"] {
        let mut request = ask(&provider);
        request.model.id = id.into();
        request.messages.insert(0, serde_json::from_value(answer.clone()).unwrap());
        play(&dialect(Limits::default()), request, &provider, None).await;
    }
    let sent: Vec<Value> = provider.requests().iter().map(|request| request.body["messages"][0].clone()).collect();
    let same = json!({"role": "assistant", "content": "Hello", "reasoning": "Hm."});
    assert_eq!(sent, [same, json!({"role": "assistant", "content": "Hello"})]);
}

/// Collects what differs, and holds it against the list of differences.
struct Report {
    listed: &'static [(&'static str, &'static str)],
    wrong: Vec<String>,
}

impl Report {
    fn new(listed: &'static [(&'static str, &'static str)]) -> Self {
        Self { listed, wrong: Vec::new() }
    }

    fn add(&mut self, name: &str, difference: Option<String>) {
        let listed = self.listed.iter().any(|(known, _)| *known == name);
        match difference {
            Some(difference) if !listed => self.wrong.push(format!("{name} {difference}")),
            None if listed => self.wrong.push(format!("{name} is listed but no longer differs")),
            _ => {}
        }
    }

    fn close(self) {
        assert!(self.wrong.is_empty(), "{} cases:\n{}", self.wrong.len(), self.wrong.join("\n"));
    }
}

fn model(provider: &Provider) -> Model {
    Model {
        id: "acme/think-1".into(),
        provider: "acme".into(),
        api: Api::OpenAiCompletions,
        base_url: provider.url().into(),
        key: None,
        needs_key: false,
        reasoning: false,
        prices: Prices::default(),
        context_window: 100_000,
        max_tokens: 4_096,
    }
}

fn ask(provider: &Provider) -> Request {
    Request {
        model: model(provider),
        system: String::new(),
        messages: vec![Message::user("Hi", 0)],
        tools: Vec::new(),
        session: String::new(),
    }
}

/// A dialect that waits for nothing between two tries.
fn dialect(limits: Limits) -> OpenAiCompletions {
    let transport = Transport::new(limits, Arc::new(|_| Box::pin(std::future::ready(())))).unwrap();
    OpenAiCompletions::new(transport, || 0)
}

fn finished(events: &[StreamEvent]) -> AssistantMessage {
    match events.last() {
        Some(StreamEvent::End(message)) => *message.clone(),
        other => panic!("the stream ended with {other:?}"),
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/tests/fixtures").join(name)
}

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(fixture(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn load(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
