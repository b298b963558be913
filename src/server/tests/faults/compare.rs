//! What came of a scripted answer, against what the fault says must come of it.

use std::collections::BTreeSet;

use learnharness::app::native::partial::ARGUMENTS_FAULT;
use learnharness::app::native::{AssistantMessage, StopReason};
use learnharness::server::llm::catalog::Api;
use serde_json::{Value, json};

/// Characters of an error that a person is shown.
const WORDS: usize = 300;

/// Where `message` is not what is wanted. `requests` is how many there were when one more was allowed.
pub(crate) fn difference(
    api: Api,
    message: &AssistantMessage,
    requests: Option<usize>,
    wanted: &Value,
) -> Option<String> {
    let ran = matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse);
    let words = message.error_message.clone().unwrap_or_default();
    let mut wrong = Vec::new();
    let ids: BTreeSet<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    if ids.len() != message.tool_calls().count() || ids.contains("") {
        wrong.push(format!("ids {ids:?}"));
    }
    if words.chars().count() > WORDS || words.contains(['<', '\n']) || words.contains("203.0.113.9") {
        wrong.push(format!("the words {words:?}"));
    }
    for (field, wanted) in wanted.as_object().into_iter().flatten() {
        let made = match field.as_str() {
            "text" => json!(message.text()),
            "text_len" => json!(message.text().len()),
            "text_prefix" => json!(wanted.as_str().filter(|prefix| message.text().starts_with(prefix))),
            "thinking" => json!(thinking(message)),
            "aborted" => json!(message.stop_reason == StopReason::Aborted),
            "signatures" => signatures(message),
            "stop" if wanted == "other" => json!(ran.then_some("other")),
            "stop" if wanted == "tool_calls" && api == Api::OpenAiCompletions => json!(ran.then_some("tool_calls")),
            "stop" => message.extra.get("rawStopReason").cloned().unwrap_or_default(),
            "error" => json!(message.stop_reason == StopReason::Error),
            "words" => json!(wanted.as_str().filter(|part| words.contains(part))),
            "tool_calls" => Value::Array(masked(&calls(message), wanted)),
            "empty" => json!(is_empty(message)),
            "retryable" => requests.map_or(wanted.clone(), |requests| json!(requests == 2)),
            _ => wanted.clone(),
        };
        if made != *wanted {
            wrong.push(format!("{field}: made {made}, wanted {wanted}"));
        }
    }
    (!wrong.is_empty()).then(|| format!("{}; {words:?}", wrong.join("; ")))
}

/// The calls that would run.
fn calls(message: &AssistantMessage) -> Vec<Value> {
    let ran = matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse);
    let calls = message.tool_calls().filter(|_| ran).map(|call| {
        let readable = !call.extra.contains_key(ARGUMENTS_FAULT) && call.arguments.is_object();
        json!([call.id, call.name, if readable { call.arguments.clone() } else { json!("INVALID") }])
    });
    calls.collect()
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

/// Nothing to read and nothing to do, and no refusal that says why.
fn is_empty(message: &AssistantMessage) -> bool {
    let refused = message.stop_reason == StopReason::Error;
    message.text().trim().is_empty() && message.tool_calls().next().is_none() && !refused
}

fn thinking(message: &AssistantMessage) -> String {
    json!(message.content).as_array().into_iter().flatten().filter_map(|block| block["thinking"].as_str()).collect()
}

fn signatures(message: &AssistantMessage) -> Value {
    let blocks = json!(message.content);
    let signatures = blocks.as_array().into_iter().flatten().filter_map(|block| block.get("thinkingSignature"));
    signatures.filter(|signature| **signature != "").cloned().collect()
}
