//! The two APIs at the wire: what a request holds for the teacher, and the teacher's answer as a stream.

use std::time::Duration;

use learnharness::server::llm::catalog::Api;
use serde_json::{Value, json};

use super::teacher::{Answer, Call, Heard, Said};
use crate::support::provider::Reply;

/// Reads a request's conversation.
pub(super) fn heard(api: Api, body: &Value) -> Heard {
    let mut turns = Vec::new();
    for message in list(&body["messages"]) {
        match api {
            Api::AnthropicMessages => blocks(message, &mut turns),
            Api::OpenAiCompletions | Api::Lesson => chat(message, &mut turns),
        }
    }
    let is_prober = |tool: &Value| tool["name"] == "probe_done" || tool["function"]["name"] == "probe_done";
    Heard { probes: list(&body["tools"]).any(is_prober), turns }
}

fn chat(message: &Value, turns: &mut Vec<Said>) {
    match word(&message["role"]) {
        "user" => turns.push(Said::Learner(text(&message["content"]))),
        "tool" => {
            let id = word(&message["tool_call_id"]).to_owned();
            turns.push(Said::Result { id, text: text(&message["content"]) });
        }
        "assistant" => {
            let call = |call: &Value| Call {
                id: word(&call["id"]).to_owned(),
                name: word(&call["function"]["name"]).to_owned(),
                args: serde_json::from_str(word(&call["function"]["arguments"])).unwrap_or_default(),
            };
            let calls = list(&message["tool_calls"]).map(call).collect();
            turns.push(Said::Teacher { text: text(&message["content"]), calls });
        }
        _ => {}
    }
}

fn blocks(message: &Value, turns: &mut Vec<Said>) {
    let content = &message["content"];
    if message["role"] == "assistant" {
        let made = list(content).filter(|block| block["type"] == "tool_use").map(|block| Call {
            id: word(&block["id"]).to_owned(),
            name: word(&block["name"]).to_owned(),
            args: block["input"].clone(),
        });
        return turns.push(Said::Teacher { text: text(content), calls: made.collect() });
    }
    for block in list(content).filter(|block| block["type"] == "tool_result") {
        let id = word(&block["tool_use_id"]).to_owned();
        turns.push(Said::Result { id, text: text(&block["content"]) });
    }
    let said = text(content);
    if !said.is_empty() {
        turns.push(Said::Learner(said));
    }
}

/// Writes an answer as a stream whose pieces come this far apart. `serial` makes ids that no other answer has.
pub(super) fn reply(api: Api, serial: u64, answer: &Answer, apart: Duration) -> Reply {
    let (before, said, after) = match api {
        Api::AnthropicMessages => messages(serial, answer),
        Api::OpenAiCompletions | Api::Lesson => completions(serial, answer),
    };
    let mut reply = Reply::events(before);
    for piece in said {
        reply = if answer.slow { reply.pause(apart).then(piece) } else { reply.then(piece) };
    }
    after.into_iter().fold(reply, Reply::then)
}

/// Pieces before the text, of the text, and after it.
type Pieces = (Vec<String>, Vec<String>, Vec<String>);

fn completions(serial: u64, answer: &Answer) -> Pieces {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": format!("gen-{serial}"), "model": "acme/think-1", "choices": [choice]}))
    };
    let thought = answer.thought.iter().map(|thought| chunk(json!({"reasoning_content": thought}), None));
    let said = answer.sentences.iter().map(|words| chunk(json!({"content": words}), None)).collect();
    let mut after = Vec::new();
    for (nth, (name, args)) in answer.calls.iter().enumerate() {
        let call = |function: Value| json!({"index": nth, "id": format!("call_{serial}_{nth}"), "type": "function", "function": function});
        after.push(chunk(json!({"tool_calls": [call(json!({"name": name, "arguments": ""}))]}), None));
        for half in halves(&args.to_string()) {
            let part = json!({"index": nth, "function": {"arguments": half}});
            after.push(chunk(json!({"tool_calls": [part]}), None));
        }
    }
    after.push(chunk(json!({}), Some(if answer.calls.is_empty() { "stop" } else { "tool_calls" })));
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 40}});
    after.push(format!("data: {usage}\n\ndata: [DONE]\n\n"));
    (thought.collect(), said, after)
}

fn messages(serial: u64, answer: &Answer) -> Pieces {
    let named = |data: Value| format!("event: {}\ndata: {data}\n\n", word(&data["type"]));
    let open = |index: usize, block: Value| {
        named(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta =
        |index: usize, delta: Value| named(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let close = |index: usize| named(json!({"type": "content_block_stop", "index": index}));
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let message = json!({"id": format!("msg_{serial}"), "role": "assistant", "model": "acme/think-1", "usage": usage});
    let mut before = vec![named(json!({"type": "message_start", "message": message}))];
    let mut index = 0;
    if let Some(thought) = &answer.thought {
        before.push(open(0, json!({"type": "thinking", "thinking": "", "signature": ""})));
        before.push(delta(0, json!({"type": "thinking_delta", "thinking": thought})));
        before.push(delta(0, json!({"type": "signature_delta", "signature": format!("signed-{serial}")})));
        before.push(close(0));
        index = 1;
    }
    before.push(open(index, json!({"type": "text", "text": ""})));
    let said =
        answer.sentences.iter().map(|words| delta(index, json!({"type": "text_delta", "text": words}))).collect();
    let mut after = vec![close(index)];
    for (nth, (name, args)) in answer.calls.iter().enumerate() {
        let at = index + 1 + nth;
        let id = format!("toolu_{serial}_{nth}");
        after.push(open(at, json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
        let parts = halves(&args.to_string());
        after.extend(parts.map(|half| delta(at, json!({"type": "input_json_delta", "partial_json": half}))));
        after.push(close(at));
    }
    let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    let end = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 40}});
    after.extend([named(end), named(json!({"type": "message_stop"}))]);
    (before, said, after)
}

fn halves(text: &str) -> [String; 2] {
    let (first, second) = text.split_at(text.len() / 2);
    [first.to_owned(), second.to_owned()]
}

/// The text of a content, whatever form it has.
fn text(content: &Value) -> String {
    match content {
        Value::String(words) => words.clone(),
        parts => list(parts).filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
