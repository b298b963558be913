//! The dialects against faults that were reported in public for systems like this one (`fixtures/faults`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use learnharness::app::native::partial::ARGUMENTS_FAULT;
use learnharness::app::native::{AssistantMessage, StopReason};
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::Api;
use learnharness::server::llm::transport::Limits;
use serde_json::{Value, json};

use crate::support::dialect::{ask, finished, model, play, speaker};
use crate::support::provider::{End, Provider, Reply};
use crate::support::report::Report;

/// Variants of reported faults that we answer otherwise, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("29-eof-before-terminal/2", "[DONE] without a finish_reason is an error, as in the reference"),
    ("31-empty-turn/7", "the words of a refusal are the text of the answer"),
];

#[tokio::test]
async fn reported_faults_are_answered_as_they_should_be() {
    let mut report = Report::new(DIFFERENCES);
    for path in fixtures("faults") {
        let fault = load(&path);
        // Faults of rendering stand beside those of providers.
        let Some(variants) = fault["stimulus"]["variants"].as_array() else { continue };
        for (number, variant) in variants.iter().enumerate() {
            let api = match variant["api"].as_str() {
                Some("openai-chat") => Api::OpenAiCompletions,
                Some("anthropic-messages") => Api::AnthropicMessages,
                _ => continue,
            };
            let found = compare_final(api, variant).await;
            report.add(&format!("{}/{}", fault["id"].as_str().unwrap(), number + 1), found);
        }
    }
    report.close();
}

async fn compare_final(api: Api, variant: &Value) -> Option<String> {
    let mut reply = Reply::events(variant["chunks"].as_array().unwrap().iter().map(bytes));
    reply.status = variant["status"].as_u64().unwrap() as u16;
    reply =
        reply.header("content-type", variant["content_type"].as_str().unwrap()).end(match variant["end"].as_str() {
            Some("hang" | "abort") => End::Hang,
            Some("reset") => End::Reset,
            _ => End::Close,
        });
    let provider = Provider::start([reply]).await;
    let request = Request { model: model(api, &provider), ..ask(&provider) };
    let stop = (variant["end"] == "abort").then(|| json!({"eventType": "thinking_delta"}));
    let dialect = speaker(api, Limits { retries: 0, ..Limits::default() });
    let events = play(&*dialect, request, &provider, stop.as_ref()).await;
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
            "aborted" => json!(message.stop_reason == StopReason::Aborted),
            "signatures" => signatures(&message),
            "stop" if wanted == "other" => json!(ran.then_some("other")),
            "stop" if wanted == "tool_calls" && api == Api::OpenAiCompletions => json!(ran.then_some("tool_calls")),
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

fn signatures(message: &AssistantMessage) -> Value {
    json!(message.content)
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block.get("thinkingSignature").cloned())
        .collect()
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
