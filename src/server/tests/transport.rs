//! The transport's own limits, by way of the `openai-completions` dialect: failures as words, tries, silence, stops, keys.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use learnharness::app::native::{AssistantMessage, StopReason};
use learnharness::server::clock::now_ms;
use learnharness::server::llm::catalog::Key;
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::sse::EVENT_LIMIT;
use learnharness::server::llm::transport::{Limits, Transport};
use learnharness::server::llm::{Dialect, StreamEvent};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::dialect::{ask, finished, openai as dialect, play};
use crate::support::provider::{End, Gate, Provider, Reply};
use crate::support::soon;

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
    assert_eq!(*waits.lock().unwrap(), [7 * SECOND, SECOND]);
    let retries = events.iter().map_while(|event| match event {
        StreamEvent::Retry(retry) => Some(retry.clone()),
        _ => None,
    });
    let told: Vec<_> = retries.map(|retry| (retry.attempt, retry.wait_ms, retry.reason)).collect();
    let slow = "The provider asks to slow down (429). It asks to wait 7 s.".to_owned();
    let gone = "The provider could not be reached: it closed the connection.".to_owned();
    assert_eq!(told, [(1, 7_000, slow), (2, 1_000, gone)]);
    assert!(matches!(events[2], StreamEvent::Start(_)), "{events:?}");
}

#[tokio::test]
async fn the_wait_that_an_error_asks_for_in_its_body_is_kept() {
    let body = r#"{"error":{"code":429,"message":"Slow down","details":[{"@type":"RetryInfo","retryDelay":"3s"}]}}"#;
    let far = r#"{"error":{"message":"Please try again in 2m30s."}}"#;
    let provider = Provider::start([Reply::status(429, body), Reply::status(429, far)]).await;
    let events = play(&dialect(Limits::default()), ask(&provider), &provider, None).await;
    let StreamEvent::Retry(retry) = &events[0] else { panic!("{events:?}") };
    assert_eq!((retry.wait_ms, provider.requests().len()), (3_000, 2), "the second asks for too long a wait");
    let words = "The provider asks to slow down (429): Please try again in 2m30s. It asks to wait 150 s.";
    assert_eq!(finished(&events).error_message.as_deref(), Some(words));
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
    let short = || Limits { idle: SECOND / 20, tail: SECOND / 20, retries: 0, ..Limits::default() };
    let never = Gate::default();
    let words = "Error |  | The provider fell silent: it sent nothing for 0.05 s.";
    let impatient = Limits { first_byte: SECOND / 20, ..short() };
    check(vec![Reply::events([says("late")]).before(&never)], impatient, words, 1).await;
    check(vec![Reply::events([": wait\n\n"]).end(End::Hang)], short(), words, 1).await;
    let words = "Error | Start | The provider fell silent: it sent nothing for 0.05 s.";
    check(vec![Reply::events([says("Start"), ": keepalive\n\n".into()]).end(End::Hang)], short(), words, 1).await;
    let finished = chunk(&json!({"content": "All"}), Some("stop"));
    check(vec![Reply::events([finished.clone()]).end(End::Hang)], short(), "Stop | All | -", 1).await;
    check(vec![Reply::events([finished]).end(End::Reset)], short(), "Stop | All | -", 1).await;
}

/// Cancels `stream`; its end must come at once.
async fn outcome_of_a_stop(mut stream: BoxStream<'static, StreamEvent>, cancel: &CancellationToken) -> String {
    let start = Instant::now();
    cancel.cancel();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert!(start.elapsed() < SECOND / 10, "{:?}", start.elapsed());
    outcome(&finished(&events))
}

/// Plays one reply, cancels when `ready` says so, and returns the outcome; the connection must be closed.
async fn cancelled(reply: Reply, ready: impl Fn(&StreamEvent) -> bool) -> String {
    let provider = Provider::start([reply]).await;
    let cancel = CancellationToken::new();
    let mut stream = dialect(Limits::default()).stream(ask(&provider), cancel.clone());
    while stream.next().await.is_some_and(|event| !ready(&event)) {}
    let outcome = outcome_of_a_stop(stream, &cancel).await;
    soon("the end of the connection", provider.closed(1)).await;
    outcome
}

const STOPPED: &str = "Aborted |  | The answer was stopped.";

#[tokio::test]
async fn a_stop_ends_the_answer_at_once_and_keeps_the_text() {
    let stalled = Reply::events([says("Half")]).end(End::Hang);
    let said = |event: &StreamEvent| matches!(event, StreamEvent::Update { event, .. } if json!(event)["type"] == "text_delta");
    assert_eq!(cancelled(stalled, said).await, "Aborted | Half | The answer was stopped.");
    let flood = Reply::events([says("Half")]).end(End::Beat(": keepalive\n\n"));
    assert_eq!(cancelled(flood, said).await, "Aborted | Half | The answer was stopped.");
    let thinks = Reply::events([chunk(&json!({"reasoning_content": "Hm"}), None)]).end(End::Hang);
    let thought = |event: &StreamEvent| matches!(event, StreamEvent::Update { event, .. } if json!(event)["type"] == "thinking_delta");
    assert_eq!(cancelled(thinks, thought).await, STOPPED);
    let started = Reply::events([": ping\n\n"]).end(End::Hang);
    let begun = |event: &StreamEvent| matches!(event, StreamEvent::Start(_));
    assert_eq!(cancelled(started, begun).await, STOPPED);
}

/// Waits for `moment`, sees that the answer does not come, cancels, and returns the outcome.
async fn stopped_at(url: &str, moment: impl Future<Output = ()>) -> String {
    let provider = Provider::start([]).await;
    let mut request = ask(&provider);
    request.model.base_url = url.to_owned();
    let cancel = CancellationToken::new();
    let mut stream = dialect(Limits::default()).stream(request, cancel.clone());
    tokio::select! {
        event = stream.next() => panic!("{event:?}"),
        () = moment => {}
    }
    assert!(tokio::time::timeout(SECOND / 20, stream.next()).await.is_err());
    outcome_of_a_stop(stream, &cancel).await
}

#[tokio::test]
async fn a_stop_while_the_headers_or_the_body_of_an_error_are_awaited_closes_the_connection() {
    let provider = Provider::start([Reply::events([says("late")]).before(&Gate::default())]).await;
    assert_eq!(stopped_at(provider.url(), provider.asked(1)).await, STOPPED);
    soon("the end of the connection", provider.closed(1)).await;
    let out = Gate::default();
    provider.push(Reply::status(503, r#"{"error":"#).open(&out).end(End::Hang));
    assert_eq!(stopped_at(provider.url(), out.opened()).await, STOPPED);
    soon("the end of the connection", provider.closed(2)).await;
}

/// An address whose connections never come about: its queue is full and nobody takes from it.
async fn unanswered() -> (String, Vec<TcpStream>, TcpListener) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(connected) = tokio::time::timeout(SECOND / 5, TcpStream::connect(addr)).await {
        queue.push(connected.unwrap());
    }
    (format!("http://{addr}"), queue, listener)
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_given_up_and_a_stop_does_not_wait_for_it() {
    let (url, _queue, _listener) = unanswered().await;
    assert_eq!(stopped_at(&url, std::future::ready(())).await, STOPPED);
    let provider = Provider::start([]).await;
    let mut request = ask(&provider);
    request.model.base_url = url;
    let limits = Limits { connect: SECOND / 20, retries: 1, ..Limits::default() };
    let events = soon("the end", play(&dialect(limits), request, &provider, None)).await;
    assert!(matches!(events[0], StreamEvent::Retry(_)), "{events:?}");
    let words = finished(&events).error_message.unwrap();
    assert!(words.starts_with("The provider could not be reached: "), "{words}");
}

#[tokio::test]
async fn an_answer_may_take_as_long_as_it_goes_on() {
    let provider = Provider::start([Reply::events([says("Go")]).end(End::Beat(": on\n\ndata: {}\n\n"))]).await;
    let limits = Limits { first_byte: SECOND / 2, idle: SECOND / 2, tail: SECOND / 2, ..Limits::default() };
    let cancel = CancellationToken::new();
    let stream = dialect(limits).stream(ask(&provider), cancel.clone());
    let events = stream.take_until(tokio::time::sleep(SECOND)).collect::<Vec<_>>().await;
    let is_over = events.iter().any(|event| matches!(event, StreamEvent::End(_)));
    assert!(!is_over && events.len() > 1, "{events:?}");
}

#[tokio::test]
async fn a_line_of_data_may_have_eight_mebibytes_and_no_more() {
    let frame = says("").trim_end().len() - "data: ".len();
    let line = |length: usize| says(&"q".repeat(length - frame));
    let provider =
        Provider::start([Reply::events([line(EVENT_LIMIT), stop()]), Reply::events([line(EVENT_LIMIT + 1), stop()])])
            .await;
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let message = finished(&play(&dialect(Limits::default()), ask(&provider), &provider, None).await);
        outcomes.push((message.text().len(), message.error_message));
    }
    let words = "The provider sent something that is not an answer: one event is longer than 8388608 bytes.";
    assert_eq!(outcomes, [(EVENT_LIMIT - frame, None), (0, Some(words.to_owned()))]);
}

#[tokio::test]
async fn a_stop_before_the_first_byte_and_between_two_tries_ends_the_answer() {
    let provider =
        Provider::start([Reply::events([says("late")]).before(&Gate::default()), Reply::status(500, "")]).await;
    let waiting = dialect(Limits::default());
    let events = play(&waiting, ask(&provider), &provider, Some(&json!({"request": 1}))).await;
    assert_eq!(outcome(&finished(&events)), STOPPED);
    let pause = Arc::new(|_| Box::pin(std::future::pending()) as futures::future::BoxFuture<'static, ()>);
    let dialect = OpenAiCompletions::new(Transport::new(Limits::default(), pause).unwrap(), || 0);
    let cancel = CancellationToken::new();
    let mut stream = dialect.stream(ask(&provider), cancel.clone());
    assert!(matches!(stream.next().await, Some(StreamEvent::Retry(_))));
    assert!(tokio::time::timeout(SECOND / 20, stream.next()).await.is_err());
    assert_eq!(outcome_of_a_stop(stream, &cancel).await, STOPPED);
    assert_eq!(provider.requests().len(), 2);
    soon("the end of both connections", provider.closed(2)).await;
}

#[tokio::test]
async fn the_end_mark_ends_the_answer_though_the_connection_stays_open() {
    let provider = Provider::start([Reply::events([says("done"), stop()]).end(End::Hang)]).await;
    let events = play(&dialect(Limits::default()), ask(&provider), &provider, None).await;
    assert_eq!(outcome(&finished(&events)), "Stop | done | -");
    soon("the end of the connection", provider.closed(1)).await;
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
