//! What a model has thought and signed goes back to it byte for byte: an answer at random, streamed in pieces, stored,
//! loaded, and sent again.

use std::sync::LazyLock;

use learnharness::app::native::{AssistantMessage, Message, Seq, Stored};
use learnharness::server::agent::context::to_llm;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::Api;
use learnharness::server::llm::transport::Limits;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::support::dialect::{ask_of, finished, hear, model_at, offline, response};
use crate::support::judge::{body_of, judge};
use crate::support::provider::End;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap());

/// The message that comes of `events`.
async fn streamed(api: Api, events: &[String]) -> AssistantMessage {
    let pieces: Vec<Vec<u8>> = events.iter().map(|event| event.clone().into_bytes()).collect();
    let respond = move |_: &_| response(200, "text/event-stream", pieces.clone(), End::Close);
    let dialect = offline(api, Limits { retries: 0, ..Limits::default() }, respond);
    finished(&hear(&*dialect, ask_of(model_at(api, "http://nowhere")), None).await)
}

/// What the same model is sent when `answer` was stored, loaded, and a learner went on: the answer's message.
async fn sent_again(api: Api, answer: AssistantMessage) -> Value {
    let mut record = vec![Message::user("Hi", 0), Message::Assistant(answer), Message::user("Go on", 0)];
    for message in &mut record {
        *message = serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap();
    }
    let record: Vec<Stored> =
        record.into_iter().zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message }).collect();
    let request = Request { messages: to_llm(&record), ..ask_of(model_at(api, "http://nowhere")) };
    let body = body_of(request).await;
    let faults = judge(api, &body);
    assert!(faults.is_empty(), "{faults:#?}");
    body["messages"][1].clone()
}

/// A text of any signs, cut anywhere; never empty.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ -~äβ水🌱\"\\\\\n]{1,12}", 1..5)
}

fn base64() -> impl Strategy<Value = String> {
    "[A-Za-z0-9+/]{4,40}={0,2}"
}

/// One entry of `reasoning_details` as it is kept, and the pieces that it comes in.
type Entry = (Map<String, Value>, Vec<Value>);

fn entry() -> impl Strategy<Value = Entry> {
    let known = (prop::option::of("[a-z0-9-]{1,12}"), prop::option::of("[a-z0-9.-]{1,12}"));
    let text = (pieces(), known.clone(), prop::option::of(base64()), any::<bool>()).prop_map(
        |(pieces, (id, format), signature, is_summary)| {
            let (kind, field) = if is_summary { ("reasoning.summary", "summary") } else { ("reasoning.text", "text") };
            let mut first = json!({"type": kind, field: ""});
            for (name, value) in [("id", id), ("format", format)] {
                if let Some(value) = value {
                    first[name] = value.into();
                }
            }
            let mut whole = first.as_object().unwrap().clone();
            whole.insert(field.to_owned(), pieces.concat().into());
            let mut parts: Vec<Value> = pieces.iter().map(|piece| json!({"type": kind, field: piece})).collect();
            first[field] = parts[0][field].clone();
            parts[0] = first;
            if let Some(signature) = signature.filter(|_| !is_summary) {
                whole.insert("signature".to_owned(), signature.clone().into());
                parts.push(json!({"type": kind, field: "", "signature": signature}));
            }
            (whole, parts)
        },
    );
    let sealed = (base64(), known).prop_map(|(data, (id, format))| {
        let mut whole = json!({"type": "reasoning.encrypted", "data": data});
        for (name, value) in [("id", id), ("format", format)] {
            if let Some(value) = value {
                whole[name] = value.into();
            }
        }
        (whole.as_object().unwrap().clone(), vec![whole])
    });
    prop_oneof![3 => text, 1 => sealed]
}

fn chunk(delta: &Value, finish: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

/// A block of Anthropic's as it is kept, and the deltas that it comes in.
type Told = (Value, Value, Vec<Value>);

fn thought() -> impl Strategy<Value = Told> {
    let open = (pieces(), base64(), 0..3_usize, any::<bool>()).prop_map(|(pieces, signature, cut, silent)| {
        let text = if silent { String::new() } else { pieces.concat() };
        let mut deltas: Vec<Value> = pieces
            .iter()
            .filter(|_| !silent)
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        // Some servers sign in several pieces, the first of them with the block's start.
        let (start, rest) = signature.split_at(cut);
        deltas.push(json!({"type": "signature_delta", "signature": rest}));
        let opening = json!({"type": "thinking", "thinking": "", "signature": start});
        (json!({"type": "thinking", "thinking": text, "signature": signature}), opening, deltas)
    });
    let sealed = base64().prop_map(|data| {
        let block = json!({"type": "redacted_thinking", "data": data});
        (block.clone(), block, Vec::new())
    });
    prop_oneof![4 => open, 1 => sealed]
}

fn events(told: &[Told]) -> Vec<String> {
    let named = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let mut events =
        vec![named(json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}))];
    for (index, (_, opening, deltas)) in told.iter().enumerate() {
        events.push(named(json!({"type": "content_block_start", "index": index, "content_block": opening})));
        for delta in deltas {
            events.push(named(json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(named(json!({"type": "content_block_stop", "index": index})));
    }
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}});
    events.extend([named(end), named(json!({"type": "message_stop"}))]);
    events
}

proptest! {
    #[test]
    fn reasoning_details_go_back_as_they_came(entries in prop::collection::vec(entry(), 1..5), text in pieces()) {
        let mut chunks = Vec::new();
        let mut kept = Vec::new();
        for (index, (mut whole, parts)) in entries.into_iter().enumerate() {
            whole.insert("index".to_owned(), index.into());
            kept.push(Value::Object(whole));
            for mut part in parts {
                part["index"] = index.into();
                chunks.push(chunk(&json!({"reasoning_details": [part]}), &Value::Null));
            }
        }
        chunks.extend(text.iter().map(|piece| chunk(&json!({"content": piece}), &Value::Null)));
        chunks.extend([chunk(&json!({"content": "."}), &json!("stop")), "data: [DONE]\n\n".to_owned()]);
        let sent = RUNTIME.block_on(async {
            let answer = streamed(Api::OpenAiCompletions, &chunks).await;
            sent_again(Api::OpenAiCompletions, answer).await
        });
        prop_assert_eq!(&sent["reasoning_details"], &json!(kept));
        prop_assert_eq!(&sent["content"], &json!(text.concat() + "."));
    }

    #[test]
    fn readable_reasoning_goes_back_in_the_field_that_it_came_in(
        field in prop::sample::select(vec!["reasoning", "reasoning_content", "reasoning_text"]),
        thoughts in pieces(),
    ) {
        let mut chunks: Vec<String> =
            thoughts.iter().map(|piece| chunk(&json!({field: piece}), &Value::Null)).collect();
        chunks.extend([chunk(&json!({"content": "4"}), &json!("stop")), "data: [DONE]\n\n".to_owned()]);
        let sent = RUNTIME.block_on(async {
            let answer = streamed(Api::OpenAiCompletions, &chunks).await;
            sent_again(Api::OpenAiCompletions, answer).await
        });
        let thought = thoughts.concat();
        let wanted = if thought.trim().is_empty() { Value::Null } else { thought.into() };
        prop_assert_eq!(&sent[field], &wanted);
    }

    #[test]
    fn signed_thinking_goes_back_as_it_came(thoughts in prop::collection::vec(thought(), 0..4), text in pieces()) {
        let mut told = thoughts;
        let text = text.concat() + ".";
        let block = json!({"type": "text", "text": text});
        told.push((block, json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})]));
        let sent = RUNTIME.block_on(async {
            let answer = streamed(Api::AnthropicMessages, &events(&told)).await;
            sent_again(Api::AnthropicMessages, answer).await
        });
        let kept: Vec<&Value> = told.iter().map(|(block, ..)| block).collect();
        prop_assert_eq!(&sent["content"], &json!(kept));
    }
}
