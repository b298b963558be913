//! What a record becomes in a request, in either API: histories that broke others (`fixtures/faults`), read by a provider
//! that refuses what a real one would.

use std::collections::BTreeSet;
use std::path::Path;

use learnharness::app::native::{Message, Seq, Stored};
use learnharness::server::agent::context::to_llm;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::{Api, Model};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::thinking::ThinkingLevel;
use learnharness::server::llm::transport::Limits;
use serde_json::{Value, json};

use crate::support::dialect::{ask, model, play, speaker};
use crate::support::provider::{Provider, Reply};

type IsLegal = fn(&str) -> bool;

const APIS: [Api; 2] = [Api::OpenAiCompletions, Api::AnthropicMessages];

#[tokio::test]
async fn ids_are_legal_for_whoever_is_asked_and_stay_together() {
    let fault = load("21-id-charset-cross-provider");
    let record = record(&fault["stimulus"]["record"]);
    let nine: IsLegal = |id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let plain: IsLegal = |id| id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let targets: [(Api, &str, IsLegal); 3] = [
        (Api::OpenAiCompletions, "openai", |id| id.len() <= 40),
        (Api::OpenAiCompletions, "mistral", nine),
        (Api::AnthropicMessages, "anthropic", plain),
    ];
    for (api, provider, is_legal) in targets {
        let ask = |model: Model| Model { provider: provider.to_owned(), ..model };
        let first = sent(api, &record, ask).await;
        let ids: BTreeSet<String> = ids(&first).into_iter().collect();
        assert!(ids.len() == 4 && ids.iter().all(|id| is_legal(id)), "{provider}: {ids:?}");
        assert_eq!(first, sent(api, &record, ask).await, "the same record makes the same request");
    }
}

#[tokio::test]
async fn thinking_goes_to_the_model_that_thought_it_and_to_no_other() {
    let fault = load("24-cross-model-replay");
    let record = record(&fault["stimulus"]["record"]);
    let ask = |id: &'static str| move |model: Model| Model { id: id.to_owned(), ..model };
    for api in APIS {
        let text = sent(api, &record, ask("m-b")).await.to_string();
        for word in ["thinking", "reasoning", "signature", "From m-a.", "From g.", "AAAA"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(["Hello", "Done", "c1", "now you"].iter().all(|word| text.contains(word)), "{text}");
    }
    let own = sent(Api::AnthropicMessages, &record, ask("m-a")).await;
    let block = json!({"type": "thinking", "thinking": "From m-a.", "signature": "c2lnLWE="});
    assert_eq!(own[1]["content"][0], block);
}

#[tokio::test]
async fn a_server_that_wants_its_reasoning_back_gets_it_with_every_answer() {
    let fault = load("28-reasoning-content-replay");
    let record = record(&fault["stimulus"]["record"]);
    let ask = |id: &'static str| {
        move |mut model: Model| {
            model.compat.requires_reasoning_content_on_assistant_messages = Some(id == "acme/think-1");
            Model { id: id.to_owned(), reasoning: true, ..model }
        }
    };
    let own = sent(Api::OpenAiCompletions, &record, ask("acme/think-1")).await;
    assert_eq!([&own[1]["reasoning_content"], &own[3]["reasoning_content"]], ["First list.", ""]);
    let other = sent(Api::OpenAiCompletions, &record, ask("other")).await;
    assert!(!other.to_string().contains("reasoning"), "{other}");
}

#[tokio::test]
async fn however_a_record_was_cut_each_call_is_answered_once_right_after_it() {
    let fault = load("38-dangling-calls-in-history");
    let wanted = [
        "u1 | ok +c1 +c2 | c1=a | c2=Interrupted; effects unknown. | still there?",
        "u1 | Let me | go on",
        "u1 | hm | u2",
        "u1 | +c1 | c1=a | steer",
        "u1 | +c1 | c1=a | u2",
    ];
    let variants = fault["stimulus"]["variants"].as_array().unwrap();
    for (variant, wanted) in variants.iter().zip(wanted) {
        for api in APIS {
            let messages = sent(api, &record(&variant["record"]), |model| model).await;
            assert_eq!(told(&messages), wanted, "{} {messages}", variant["name"]);
        }
    }
}

#[tokio::test]
async fn an_id_that_comes_again_keeps_its_calls_apart_and_each_with_its_result() {
    let call = |text: &str| json!({"role": "assistant", "text": text, "calls": [["call_0", "ls", {"path": "."}]]});
    let result = |text: &str| json!({"role": "tool", "id": "call_0", "text": text});
    let user = |text: &str| json!({"role": "user", "text": text});
    let twice = json!({"role": "assistant", "text": "two", "calls": [["call_0", "ls", {}], ["call_0", "ls", {}]]});
    let interrupted = "Interrupted; effects unknown.";
    let cases = [
        (
            json!([user("u"), call("one"), result("a"), call("two"), result("b"), call("three"), result("c")]),
            "u | one +call_0 | call_0=a | two +call_0_2 | call_0_2=b | three +call_0_3 | call_0_3=c".to_owned(),
        ),
        (
            json!([user("u"), call("one"), call("two"), result("b"), user("v")]),
            format!("u | one +call_0 | call_0={interrupted} | two +call_0_2 | call_0_2=b | v"),
        ),
        (
            json!([user("u"), twice, result("a"), result("b")]),
            "u | two +call_0 +call_0_2 | call_0=a | call_0_2=b".to_owned(),
        ),
        (
            json!([user("u"), result("early"), call("one"), call("two"), result("b"), result("too many")]),
            "u | one +call_0 | call_0=too many | two +call_0_2 | call_0_2=b".to_owned(),
        ),
    ];
    for (short, wanted) in cases {
        for api in APIS {
            let messages = sent(api, &record(&short), |model| model).await;
            assert_eq!(told(&messages), wanted, "{messages}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_another_model_began_goes_on_without_thinking() {
    let user = json!({"role": "user", "text": "u"});
    let thinks = |model: Model| Model { reasoning: true, ..model };
    let call = |model: &str, id: &str| {
        json!({"role": "assistant", "api": "anthropic-messages", "model": model, "thinking": [["Hm.", "c2ln"]], "text": "t",
            "calls": [[id, "ls", {}]]})
    };
    let result = |id: &str| json!({"role": "tool", "id": id, "text": "a"});
    let short = |first: &str| json!([user, call(first, "c1"), result("c1"), call("acme/think-1", "c2"), result("c2")]);
    for (first, thinking, thoughts) in [("acme/think-1", "enabled", 2), ("other", "disabled", 0)] {
        let body = sent_thinking(&record(&short(first)), thinks).await;
        let kept = body["messages"].to_string().matches("\"thinking\":\"Hm.\"").count();
        assert_eq!((&body["thinking"]["type"], kept), (&json!(thinking), thoughts), "{body}");
    }
}

/// The body of a request to Anthropic's API for an answer with thinking; the provider judges it.
async fn sent_thinking(record: &[Stored], change: impl Fn(Model) -> Model) -> Value {
    let provider = Provider::start([Reply::status(400, "")]).await;
    let model = change(model(Api::AnthropicMessages, &provider));
    let options = Options { thinking: ThinkingLevel::Low, ..Options::default() };
    let request = Request { model, messages: to_llm(record), options, ..ask(&provider) };
    play(&*speaker(Api::AnthropicMessages, Limits { retries: 0, ..Limits::default() }), request, &provider, None).await;
    provider.requests()[0].body.clone()
}

/// The messages of the request that a record makes; the provider judges them.
async fn sent(api: Api, record: &[Stored], change: impl Fn(Model) -> Model) -> Value {
    let provider = Provider::start([Reply::status(400, "")]).await;
    let request = Request { model: change(model(api, &provider)), messages: to_llm(record), ..ask(&provider) };
    play(&*speaker(api, Limits { retries: 0, ..Limits::default() }), request, &provider, None).await;
    provider.requests()[0].body["messages"].clone()
}

/// A record in the fixtures' short form. An answer without a maker is the asked model's, but for its ids.
fn record(short: &Value) -> Vec<Stored> {
    let messages = short.as_array().unwrap().iter().map(message);
    messages.zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message }).collect()
}

fn message(short: &Value) -> Message {
    let message = match short["role"].as_str().unwrap() {
        "user" => json!({"role": "user", "content": short["text"]}),
        "tool" => json!({
            "role": "toolResult", "toolCallId": short["id"], "toolName": "ls", "isError": false,
            "content": [{"type": "text", "text": short["text"]}],
        }),
        _ => json!({
            "role": "assistant", "content": blocks(short), "provider": "acme",
            "api": if short["api"] == "anthropic-messages" { "anthropic-messages" } else { "openai-completions" },
            "model": short["model"].as_str().unwrap_or("acme/think-1"),
            "stopReason": short["status"].as_str().unwrap_or("stop"),
        }),
    };
    serde_json::from_value(message).unwrap()
}

fn blocks(short: &Value) -> Vec<Value> {
    let mut blocks = Vec::new();
    for thought in short["thinking"].as_array().into_iter().flatten() {
        blocks.push(json!({"type": "thinking", "thinking": thought[0], "thinkingSignature": thought[1]}));
    }
    if let Some(text) = short["reasoning_content"].as_str() {
        blocks.push(json!({"type": "thinking", "thinking": text, "thinkingSignature": "reasoning_content"}));
    }
    if short["reasoning_details"].is_array() {
        let signature = short["reasoning_details"].to_string();
        blocks.push(json!({"type": "thinking", "thinking": "", "thinkingSignature": signature}));
    }
    blocks.extend(short["text"].as_str().map(|text| json!({"type": "text", "text": text})));
    for call in short["calls"].as_array().into_iter().flatten() {
        blocks.push(json!({"type": "toolCall", "id": call[0], "name": call[1], "arguments": call[2]}));
    }
    blocks
}

/// The ids of the calls of a request in either API.
fn ids(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    let calls = messages.flat_map(|message| {
        let chat = message["tool_calls"].as_array().into_iter().flatten();
        chat.chain(message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "tool_use"))
    });
    calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

/// A request's messages in one line, the same for both APIs: texts, `+call`, `call=result`.
fn told(messages: &Value) -> String {
    let mut lines = Vec::new();
    for message in messages.as_array().unwrap() {
        let mut words: Vec<String> = message["content"].as_str().map(str::to_owned).into_iter().collect();
        if message["role"] == "tool" {
            words = vec![format!("{}={}", message["tool_call_id"].as_str().unwrap(), words[0])];
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str().unwrap() {
                "text" => words.push(block["text"].as_str().unwrap().to_owned()),
                "tool_result" => {
                    let (id, text) = (block["tool_use_id"].as_str().unwrap(), block["content"].as_str().unwrap());
                    lines.push(format!("{id}={text}"));
                }
                _ => {}
            }
        }
        words.extend(ids(&json!([message])).iter().map(|id| format!("+{id}")));
        if !words.is_empty() {
            lines.push(words.join(" "));
        }
    }
    lines.join(" | ")
}

fn load(name: &str) -> Value {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/tests/fixtures/faults");
    serde_json::from_slice(&std::fs::read(fixtures.join(format!("{name}.json"))).unwrap()).unwrap()
}
