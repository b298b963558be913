//! The `anthropic-messages` dialect where servers that speak it differ: names, blocks and ends that are not as promised.

use std::time::{Duration, Instant};

use learnharness::app::native::partial::ARGUMENTS_FAULT;
use learnharness::app::native::{AssistantMessage, StopReason, fold};
use learnharness::server::llm::catalog::Api;
use learnharness::server::llm::transport::Limits;
use learnharness::server::llm::{Request, StreamEvent};
use serde_json::{Value, json};

use crate::support::dialect::{ask, finished, model, play, speaker};
use crate::support::provider::{End, Provider, Reply};
use crate::support::soon;

fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "model": "acme/think-1", "usage": {"input_tokens": 5}}})
}

fn opens(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn closes(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn ends(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}})
}

/// Plays one reply and gives the events.
async fn events(reply: Reply) -> Vec<StreamEvent> {
    let provider = Provider::start([reply]).await;
    let request = Request { model: model(Api::AnthropicMessages, &provider), ..ask(&provider) };
    let dialect = speaker(Api::AnthropicMessages, Limits { retries: 0, ..Limits::default() });
    play(&*dialect, request, &provider, None).await
}

async fn answer(pieces: &[String]) -> AssistantMessage {
    finished(&events(Reply::events(pieces)).await)
}

fn outcome(message: &AssistantMessage) -> String {
    let words = message.error_message.as_deref().unwrap_or("-");
    format!("{:?} | {} | {words}", message.stop_reason, message.text())
}

#[tokio::test]
async fn events_without_names_are_told_by_their_data() {
    let data = [
        start(),
        opens(0, &json!({"type": "text", "text": "He"})),
        delta(0, &json!({"type": "text_delta", "text": "llo"})),
        closes(0),
        ends("end_turn"),
        json!({"type": "message_stop"}),
    ];
    let nameless: Vec<String> = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    assert_eq!(outcome(&answer(&nameless).await), "Stop | Hello | -");
}

#[tokio::test]
async fn pings_are_silence() {
    let said = [start(), opens(0, &json!({"type": "text", "text": "Half"}))].map(|data| named(&data));
    for ping in
        ["event: ping\ndata: {\"type\": \"ping\"}\n\n", "event: ping\ndata: \n\n", "data: {\"type\": \"ping\"}\n\n"]
    {
        let provider = Provider::start([Reply::events(&said).end(End::Beat(ping))]).await;
        let request = Request { model: model(Api::AnthropicMessages, &provider), ..ask(&provider) };
        let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
        let dialect = speaker(Api::AnthropicMessages, limits);
        let start = Instant::now();
        let events = soon("the end of the answer", play(&*dialect, request, &provider, None)).await;
        let words = "Error | Half | The provider fell silent: it sent nothing for 0.05 s.";
        assert_eq!(outcome(&finished(&events)), words);
        assert!(start.elapsed() < Duration::from_secs(1), "{ping}");
    }
}

#[tokio::test]
async fn a_call_may_come_whole_and_one_without_its_end_is_not_trusted() {
    let call = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "ls", "input": input});
    let pieces = [
        start(),
        opens(0, &call("whole", json!({"path": "."}))),
        closes(0),
        opens(1, &call("cut", json!({}))),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "{\"path\":\"a"})),
        ends("tool_use"),
    ];
    let message = answer(&pieces.iter().map(named).collect::<Vec<_>>()).await;
    let calls: Vec<_> = message.tool_calls().collect();
    assert_eq!((message.stop_reason, &calls[0].arguments), (StopReason::ToolUse, &json!({"path": "."})));
    assert!(!calls[0].extra.contains_key(ARGUMENTS_FAULT) && calls[1].extra.contains_key(ARGUMENTS_FAULT), "{calls:?}");
}

#[tokio::test]
async fn an_end_without_its_reason_is_no_end_and_a_reason_without_the_end_mark_is() {
    let said = [start(), opens(0, &json!({"type": "text", "text": "Half"}))];
    let mut pieces: Vec<String> = said.iter().map(named).collect();
    assert_eq!(outcome(&answer(&pieces).await), "Error | Half | The answer stopped before it was finished.");
    pieces.push(named(&ends("end_turn")));
    assert_eq!(outcome(&answer(&pieces).await), "Stop | Half | -");
    pieces.push(named(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})));
    let words = "The provider reported an error (overloaded_error): Overloaded.";
    assert_eq!(outcome(&answer(&pieces).await), format!("Error | Half | {words}"));
    let refusal = json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}});
    pieces.truncate(2);
    pieces.push(named(&refusal));
    assert_eq!(outcome(&answer(&pieces).await), "Error | Half | The provider's filter withheld the answer (refusal).");
}

#[tokio::test]
async fn halves_of_a_character_join_across_deltas() {
    let half = |unit: &str| {
        let data = delta(0, &json!({"type": "text_delta", "text": "HALF"})).to_string().replace("HALF", unit);
        format!("event: content_block_delta\ndata: {data}\n\n")
    };
    let pieces = [
        named(&start()),
        named(&opens(0, &json!({"type": "text", "text": ""}))),
        half("\\ud83c"),
        half("\\udf31 \\ud83c"),
        named(&closes(0)),
        named(&ends("end_turn")),
    ];
    assert_eq!(outcome(&answer(&pieces).await), "Stop | 🌱 \u{fffd} | -");
}

#[tokio::test]
async fn a_reader_that_folds_has_the_message_wherever_its_bytes_are_cut() {
    let pieces = [
        start(),
        opens(0, &json!({"type": "thinking", "thinking": "H", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "m 🌱"})),
        delta(0, &json!({"type": "signature_delta", "signature": "c2ln"})),
        closes(0),
        opens(1, &json!({"type": "tool_use", "id": "t1", "name": "ls", "input": {}})),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "1}"})),
        closes(1),
        ends("tool_use"),
        json!({"type": "message_stop"}),
    ];
    let stream: String = pieces.iter().map(named).collect();
    let whole = events(Reply::events([&stream])).await;
    let mut reader = AssistantMessage::default();
    for event in &whole {
        match event {
            StreamEvent::Retry(_) | StreamEvent::Upstream(_) => panic!("{event:?}"),
            StreamEvent::Start(message) => reader = (**message).clone(),
            StreamEvent::Update { whole: Some(message), .. } => reader.clone_from(message),
            StreamEvent::Update { event, whole: None } => fold(&mut reader, event),
            StreamEvent::End(message) => assert_eq!(reader.content, message.content),
        }
    }
    assert_eq!(json!(reader.content)[0]["thinkingSignature"], "c2ln");
    for cut in (1..stream.len()).step_by(7) {
        let (head, tail) = stream.as_bytes().split_at(cut);
        assert_eq!(events(Reply::events([head, tail])).await, whole, "cut at {cut}");
    }
}
