//! What a case scripts: the provider's replies, the model and the wishes of a request, the tools.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use learnharness::app::native::event::ToolOutput;
use learnharness::app::native::{Block, Message, UserMessage};
use learnharness::server::agent::tool::{After, Call, Done, Face, Mode, Replay};
use learnharness::server::agent::{Tool, ToolError};
use learnharness::server::llm::catalog::{Key, Model};
use learnharness::server::llm::options::{Cache, Options, ToolChoice};
use learnharness::server::llm::transport::Limits;
use learnharness::server::llm::{Sampling, ToolSpec, js};
use serde_json::{Value, json};

use crate::support::provider::{End, Gate, Reply};

/// The provider's answers, one a request.
pub(super) fn replies(case: &Value) -> Vec<Reply> {
    items(&case["responses"]).map(|reply| self::reply(case, reply)).collect()
}

fn reply(case: &Value, reply: &Value) -> Reply {
    let mut scripted = Reply::events(items(&reply["chunks"]).map(bytes));
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

fn bytes(chunk: &Value) -> Vec<u8> {
    match &chunk["b64"] {
        Value::String(text) => base64::prelude::BASE64_STANDARD.decode(text).unwrap(),
        _ => chunk.as_str().unwrap().as_bytes().to_vec(),
    }
}

/// The model. Its address is the real one (quirks are seen by it), but without TLS, so that a proxy can read along.
pub(super) fn model(case: &Value) -> Model {
    let mut known = case["model"].clone();
    known["api"] = case["api"].clone();
    let model: Model = serde_json::from_value(known).unwrap();
    let key = match &case["options"]["apiKey"] {
        Value::Null if case["options"].as_object().unwrap().contains_key("apiKey") => None,
        key => Some(Key(key.as_str().unwrap_or("test-key").to_owned())),
    };
    Model { key, base_url: model.base_url.replacen("https:", "http:", 1), ..model }
}

pub(super) fn options(case: &Value) -> Options {
    let (options, stream) = (&case["options"], &case["options"]["stream"]);
    Options {
        thinking: serde_json::from_value(options["thinkingLevel"].clone()).unwrap_or_default(),
        max_tokens: stream["maxTokens"].as_u64(),
        temperature: stream["temperature"].as_f64(),
        cache: match stream["cacheRetention"].as_str() {
            Some("none") => Cache::None,
            Some("long") => Cache::Long,
            _ => Cache::Short,
        },
        tool_choice: match &stream["toolChoice"] {
            Value::Null => None,
            Value::String(word) => Some(ToolChoice::Word(word.clone())),
            object => Some(ToolChoice::Object(object.clone())),
        },
        headers: serde_json::from_value(stream["headers"].clone()).unwrap_or_default(),
        fields: stream["samplingParams"].as_object().cloned().unwrap_or_default(),
        avoid: Vec::new(),
        user: stream["metadata"]["user_id"].as_str().map(str::to_owned),
    }
}

/// The reference asks again only when told to.
pub(super) fn limits(case: &Value) -> Limits {
    Limits {
        retries: case["options"]["stream"]["maxRetries"].as_u64().unwrap_or(0) as u32,
        longest_wait: Duration::from_millis(case["options"]["maxRetryDelayMs"].as_u64().unwrap_or(60_000)),
        ..Limits::default()
    }
}

/// What one prompt brings: a text (as the reference's agent writes it), a message or several.
pub(super) fn prompts(prompt: &Value) -> Vec<Message> {
    match prompt {
        Value::String(text) => {
            let blocks = json!([{"type": "text", "text": text}]);
            let content = serde_json::from_value(blocks).unwrap();
            vec![Message::User(UserMessage { content, timestamp: 0, extra: serde_json::Map::new() })]
        }
        Value::Array(_) => serde_json::from_value(prompt.clone()).unwrap(),
        _ if prompt["continue"] == true => Vec::new(),
        _ => vec![serde_json::from_value(prompt.clone()).unwrap()],
    }
}

/// Calls that tools got, in the order of their starts.
pub(super) type Executions = Arc<Mutex<Vec<Value>>>;

/// The case's tools, by their scripts. A tool that ends a run for the case ends it here. As in a registry, no two have
/// one name where the provider refuses that.
pub(super) fn tools(case: &Value, executions: &Executions) -> Vec<Arc<dyn Tool>> {
    let mut names = HashSet::new();
    let tools = items(&case["tools"]).filter(|spec| names.insert(&spec["name"]) || case["api"] != "anthropic-messages");
    tools.map(|spec| tool(case, spec, executions)).collect()
}

fn tool(case: &Value, spec: &Value, executions: &Executions) -> Arc<dyn Tool> {
    let sequential = spec["executionMode"] == "sequential" || case["options"]["toolExecution"] == "sequential";
    let ends =
        spec["script"]["terminate"] == true || items(&case["stopAfter"]["toolNames"]).any(|name| *name == spec["name"]);
    let face = Face {
        spec: ToolSpec {
            name: spec["name"].as_str().unwrap().to_owned(),
            description: spec["description"].as_str().unwrap_or_default().to_owned(),
            parameters: spec["parameters"].clone(),
            sampling: if spec["constrainedSampling"].is_object() { Sampling::Strict } else { Sampling::Free },
        },
        label: "Scripted",
        snippet: "does what it did for the reference",
        mode: if sequential { Mode::Sequential } else { Mode::Parallel },
        after: if ends { After::StopRun } else { After::GoOn },
        replay: Replay::Again,
    };
    Arc::new(Scripted { face, script: spec["script"].clone(), executions: executions.clone() })
}

struct Scripted {
    face: Face,
    script: Value,
    executions: Executions,
}

#[async_trait]
impl Tool for Scripted {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        let execution = json!({"toolCallId": call.id, "toolName": self.face.spec.name, "params": call.args});
        self.executions.lock().unwrap().push(execution);
        let script = self.script["byCall"].get(&call.id).unwrap_or(&self.script);
        let honours = script["honoursAbort"] == true;
        for update in items(&script["updates"]) {
            call.updates.send(output(vec![Block::text(update["text"].as_str().unwrap())], &update["details"]));
            wait(&call, update["thenMs"].as_u64(), honours).await?;
        }
        wait(&call, script["delayMs"].as_u64(), honours).await?;
        if let Some(words) = script["throws"].as_str() {
            return Err(ToolError(words.to_owned()));
        }
        let content = match script.get("content") {
            Some(Value::Null) => Vec::new(),
            Some(content) => serde_json::from_value(content.clone()).unwrap(),
            None if script["echo"] == true => vec![Block::text(js::json(&call.args))],
            None => vec![Block::text(script["returns"].as_str().unwrap_or("ok"))],
        };
        Ok(Done { output: output(content, &script["details"]), markers: Vec::new() })
    }
}

fn output(content: Vec<Block>, details: &Value) -> ToolOutput {
    ToolOutput { content, details: Some(details.clone()).filter(|details| !details.is_null()) }
}

/// Milliseconds are turns of the scheduler here: the shorter wait is over first, and nobody sleeps.
async fn wait(call: &Call, turns: Option<u64>, honours: bool) -> Result<(), ToolError> {
    for _ in 0..turns.unwrap_or(0) {
        tokio::task::yield_now().await;
        if honours && call.cancel.is_cancelled() {
            return Err(ToolError("tool saw abort".to_owned()));
        }
    }
    Ok(())
}

pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
