//! The transport's own limits, by way of the `openai-completions` dialect: failures as words, tries, silence, stops, keys.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use learnharness::app::native::{AssistantMessage, StopReason};
use learnharness::server::clock::now_ms;
use learnharness::server::llm::catalog::Key;
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::transport::{Limits, Transport};
use learnharness::server::llm::{Dialect, StreamEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::dialect::{ask, finished, openai as dialect, play};
use crate::support::provider::{End, Gate, Provider, Reply};

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
async fn a_provider_may_name_the_time_at_which_to_ask_again() {
    let at = std::time::UNIX_EPOCH + Duration::from_millis(now_ms() as u64) + 30 * SECOND;
    let date = httpdate::fmt_http_date(at);
    let provider =
        Provider::start([Reply::status(503, "").header("retry-after", &date), Reply::events([stop()])]).await;
    let (sender, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let pause = Arc::new(move |wait| {
        sender.send(wait).unwrap();
        Box::pin(std::future::ready(())) as futures::future::BoxFuture<'static, ()>
    });
    let transport = Transport::new(Limits::default(), pause).unwrap();
    play(&OpenAiCompletions::new(transport, || 0), ask(&provider), &provider, None).await;
    let wait: Duration = waits.recv().await.unwrap();
    assert!((25 * SECOND..=30 * SECOND).contains(&wait), "{wait:?}");
}

#[tokio::test]
async fn headers_of_the_model_are_sent_and_a_wish_beats_them() {
    let provider = Provider::start([Reply::events([stop()])]).await;
    let mut request = ask(&provider);
    request.model.key = Some(Key("k".into()));
    let headers =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    request.model.headers = headers(&[("x-title", "model"), ("x-kept", "yes"), ("authorization", "")]);
    request.options.headers = headers(&[("x-title", "wish")]);
    play(&dialect(Limits::default()), request, &provider, None).await;
    let sent = provider.requests().remove(0);
    let sent = ["x-title", "x-kept", "authorization"].map(|name| sent.header(name));
    assert_eq!(sent, [Some("wish"), Some("yes"), None], "an empty one is taken away");
}

#[tokio::test]
async fn of_a_server_that_never_says_how_an_answer_ended_the_end_of_the_stream_counts() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "ls", "arguments": "{}"}}]});
    let provider = Provider::start([Reply::events([says("All")]), Reply::events([chunk(&call, None)])]).await;
    let mut request = ask(&provider);
    request.model.compat.supports_finish_reason = Some(false);
    for expected in ["Stop | All | -", "ToolUse |  | -"] {
        let events = play(&dialect(Limits::default()), request.clone(), &provider, None).await;
        assert_eq!(outcome(&finished(&events)), expected);
    }
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
