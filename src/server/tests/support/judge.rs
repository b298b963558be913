//! Reads a request as its provider does, and says what the provider would refuse: the rules that the two APIs publish, and
//! those that their refusals tell. Every mock of a model judges every request with it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::{Api, Model};
use learnharness::server::llm::transport::{Call, Limits};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::dialect::{offline, response};
use super::provider::End;

/// The start of the one fault that only some servers find: OpenAI refuses ids of more than 40 characters.
pub(crate) const LONG_ID: &str = "a long id";
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What is wrong with `request` in either API.
pub(crate) async fn faults_of(request: &Request<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for api in [Api::OpenAiCompletions, Api::AnthropicMessages] {
        let model = Model { api, base_url: "http://nowhere".to_owned(), ..request.model.clone() };
        faults.extend(judge(api, &body_of(Request { model, ..request.clone() }).await));
    }
    faults
}

/// The body that the dialect of a request's model sends for it.
pub(crate) async fn body_of(request: Request<'_>) -> Value {
    let body = Arc::new(Mutex::new(Value::Null));
    let seen = body.clone();
    let respond = move |call: &Call| {
        *seen.lock().unwrap() = serde_json::from_slice(&call.body).unwrap();
        response(400, "", Vec::new(), End::Close)
    };
    let dialect = offline(request.model.api, Limits { retries: 0, ..Limits::default() }, respond);
    dialect.stream(request, CancellationToken::new()).for_each(|_| async {}).await;
    std::mem::take(&mut *body.lock().unwrap())
}

/// What is wrong with the body of a request.
pub(crate) fn judge(api: Api, body: &Value) -> Vec<String> {
    let mut court = Court::default();
    court.tools(body);
    match api {
        Api::AnthropicMessages => court.anthropic(&with_blocks(body)),
        Api::OpenAiCompletions | Api::Lesson => court.chat(body),
    }
    court.faults
}

#[derive(Default)]
struct Court {
    faults: Vec<String>,
}

impl Court {
    fn must(&mut self, holds: bool, fault: &str, what: &Value) {
        if !holds {
            self.faults.push(format!("{fault}: {what}"));
        }
    }

    fn tools(&mut self, body: &Value) {
        for tool in items(&body["tools"]) {
            let face = if tool["function"].is_object() { &tool["function"] } else { tool };
            self.must(is_name(&face["name"]), "a tool's name", tool);
        }
    }
}

/// Chat completions. Sources: the API reference ("Create chat completion"), and OpenAI's refusals.
impl Court {
    fn chat(&mut self, body: &Value) {
        let messages: Vec<&Value> = items(&body["messages"]).collect();
        let last = messages.last().map_or("", |message| text(&message["role"]));
        self.must(last == "user" || last == "tool", "the last message", &body["messages"]);
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            let role = text(&message["role"]);
            self.must(role == "tool" || open.is_empty(), "calls without a result", &json!(open));
            match role {
                "tool" => {
                    let id = text(&message["tool_call_id"]);
                    self.must(open.contains(&id), "a result without its call", message);
                    open.retain(|known| *known != id);
                    self.content(message, &["text"]);
                }
                "assistant" => open = self.assistant(message),
                "user" => self.content(message, &["text", "image_url"]),
                "system" | "developer" => self.content(message, &["text"]),
                _ => self.must(false, "a role", message),
            }
        }
        self.must(open.is_empty(), "calls without a result", &json!(open));
    }

    /// An answer; gives the ids of its calls.
    fn assistant<'a>(&mut self, message: &'a Value) -> Vec<&'a str> {
        let calls = &message["tool_calls"];
        self.must(calls.is_null() || items(calls).next().is_some(), "an empty list of calls", message);
        if calls.is_null() || !message["content"].is_null() && message["content"] != "" {
            self.content(message, &["text"]);
        }
        let mut ids = Vec::new();
        for call in items(calls) {
            let id = text(&call["id"]);
            self.must(!id.is_empty(), "a call without an id", call);
            self.must(id.encode_utf16().count() <= 40, LONG_ID, call);
            self.must(!ids.contains(&id), "an id that comes twice", message);
            self.must(call["type"] == "function", "a call's type", call);
            self.must(is_name(&call["function"]["name"]), "a call's name", call);
            let arguments = serde_json::from_str::<Value>(text(&call["function"]["arguments"]));
            self.must(arguments.is_ok_and(|arguments| arguments.is_object()), "arguments that are no object", call);
            ids.push(id);
        }
        ids
    }

    /// Content that is there and says something, in parts of these kinds.
    fn content(&mut self, message: &Value, kinds: &[&str]) {
        match &message["content"] {
            Value::String(words) => self.must(!words.trim().is_empty(), "empty content", message),
            Value::Array(parts) => {
                self.must(!parts.is_empty(), "no parts", message);
                for part in parts {
                    self.must(kinds.contains(&text(&part["type"])), "a part's type", message);
                    let words = part["text"].as_str();
                    self.must(words.is_none_or(|words| !words.trim().is_empty()), "an empty text", message);
                    let url = part["image_url"]["url"].as_str();
                    let shown = |url: &str| IMAGES.iter().any(|kind| url.starts_with(&format!("data:{kind};base64,")));
                    self.must(url.is_none_or(shown), "an image", part);
                }
            }
            // Some servers are told of further tools by a message of the system.
            _ => self.must(message["role"] == "system" && message["tools"].is_array(), "no content", message),
        }
    }
}

/// Messages. Sources: the API reference ("Create a message"), "Extended thinking", "Tool use", and the API's refusals.
impl Court {
    fn anthropic(&mut self, body: &Value) {
        self.must(body["max_tokens"].as_u64().is_some_and(|limit| limit > 0), "no limit", &body["max_tokens"]);
        let budget = &body["thinking"]["budget_tokens"];
        self.must(budget.is_null() || budget.as_u64().is_some_and(|budget| budget >= 1024), "a small budget", budget);
        for block in items(&body["system"]) {
            self.must(!text(&block["text"]).trim().is_empty(), "empty instructions", block);
        }
        let marks = body.to_string().matches("\"cache_control\":{").count();
        self.must(marks <= 4, "too many marks for the cache", &json!(marks));
        let mut names = HashSet::new();
        for tool in items(&body["tools"]) {
            self.must(names.insert(text(&tool["name"])), "two tools of one name", tool);
        }
        let turns = turns(body);
        let is_user = |turn: &Turn| turn.role == "user";
        self.must(turns.first().is_some_and(is_user), "the first message", &body["messages"]);
        self.must(turns.last().is_some_and(is_user), "the last message", &body["messages"]);
        let mut known = HashSet::new();
        let mut open: Vec<&str> = Vec::new();
        for turn in &turns {
            match turn.role {
                "user" => self.results(turn, &mut open),
                "assistant" => open = self.said(turn, &mut known),
                _ => self.must(false, "a role", &json!(turn.role)),
            }
        }
        self.thinking(body, &turns);
    }

    /// What a user says: one result for each open call first, then what else.
    fn results<'a>(&mut self, turn: &Turn<'a>, open: &mut Vec<&'a str>) {
        let whole = json!(turn.blocks);
        let mut spoke = false;
        for block in &turn.blocks {
            match text(&block["type"]) {
                "tool_result" => {
                    self.must(!spoke, "a result behind something else", &whole);
                    let id = text(&block["tool_use_id"]);
                    self.must(open.contains(&id), "a result without its call", block);
                    open.retain(|known| *known != id);
                    let words = text(&block["content"]);
                    let silent = words.is_empty() && items(&block["content"]).next().is_none();
                    self.must(!(silent && block["is_error"] == true), "an error without words", block);
                    self.must(words.is_empty() || !words.trim().is_empty(), "blank words", block);
                    items(&block["content"]).for_each(|part| self.part(part));
                }
                _ => {
                    spoke = true;
                    self.part(block);
                }
            }
        }
        self.must(open.is_empty(), "calls without a result", &json!(open));
        open.clear();
    }

    /// What the model said; gives the ids of its calls.
    fn said<'a>(&mut self, turn: &Turn<'a>, known: &mut HashSet<&'a str>) -> Vec<&'a str> {
        let whole = json!(turn.blocks);
        let kinds: Vec<&str> = turn.blocks.iter().map(|block| text(&block["type"])).collect();
        let is_thought = |kind: &&str| kind.ends_with("thinking");
        self.must(
            !kinds.iter().any(is_thought) || kinds.first().is_some_and(is_thought),
            "thinking that is not first",
            &whole,
        );
        self.must(!kinds.last().is_some_and(is_thought), "thinking that is last", &whole);
        let mut ids = Vec::new();
        for block in &turn.blocks {
            match text(&block["type"]) {
                "text" => {
                    self.must(ids.is_empty(), "a text behind a call", &whole);
                    self.part(block);
                }
                "thinking" => {
                    self.must(
                        block["thinking"].is_string() && block["signature"].is_string(),
                        "unsigned thinking",
                        block,
                    );
                }
                "redacted_thinking" => self.must(!text(&block["data"]).is_empty(), "empty thinking", block),
                "tool_use" => {
                    let id = text(&block["id"]);
                    self.must(!id.is_empty() && id.bytes().all(is_plain), "an id", block);
                    self.must(known.insert(id), "an id that comes twice", block);
                    self.must(is_name(&block["name"]), "a call's name", block);
                    self.must(block["input"].is_object(), "an input that is no object", block);
                    ids.push(id);
                }
                _ => self.must(false, "a block's type", block),
            }
        }
        ids
    }

    /// A text with words in it, or an image.
    fn part(&mut self, block: &Value) {
        match text(&block["type"]) {
            "text" => self.must(!text(&block["text"]).trim().is_empty(), "an empty text", block),
            "image" => {
                let source = &block["source"];
                let shown = IMAGES.contains(&text(&source["media_type"])) && !text(&source["data"]).is_empty();
                self.must(source["type"] == "base64" && shown, "an image", block);
            }
            _ => self.must(false, "a block's type", block),
        }
    }

    /// The answers to which the next one belongs begin with thinking when it is on, and have none when it is off.
    fn thinking(&mut self, body: &Value, turns: &[Turn]) {
        let brings = |turn: &Turn| turn.blocks.iter().any(|block| block["type"] == "tool_result");
        let begins = turns.iter().rposition(|turn| turn.role == "user" && !brings(turn)).map_or(0, |at| at + 1);
        let going_on: Vec<&Turn> = turns[begins..].iter().filter(|turn| turn.role == "assistant").collect();
        let thinks = |block: &&Value| text(&block["type"]).ends_with("thinking");
        let whole = json!(going_on.iter().map(|turn| &turn.blocks).collect::<Vec<_>>());
        match text(&body["thinking"]["type"]) {
            "enabled" => {
                let first = going_on.first().and_then(|turn| turn.blocks.first()).copied();
                self.must(first.is_none_or(|first| thinks(&first)), "a turn that began without thinking", &whole);
            }
            "disabled" => {
                let none = !going_on.iter().flat_map(|turn| &turn.blocks).any(thinks);
                self.must(none, "a turn with thinking that is off", &whole);
            }
            _ => {}
        }
    }
}

/// Messages of one role in a row, which the API joins.
struct Turn<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

fn turns(body: &Value) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in items(&body["messages"]) {
        let role = text(&message["role"]);
        let blocks = items(&message["content"]);
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { role, blocks: blocks.collect() }),
        }
    }
    turns
}

/// The body with blocks where messages have a text.
fn with_blocks(body: &Value) -> Value {
    let mut body = body.clone();
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        if message["content"].is_string() {
            message["content"] = json!([{"type": "text", "text": message["content"]}]);
        }
    }
    body
}

/// The name of a tool: 1 to 64 plain signs.
fn is_name(name: &Value) -> bool {
    let name = text(name);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Requests that providers have refused, each for one reason.
#[test]
fn a_judge_sees_what_providers_refuse() {
    let user = || json!({"role": "user", "content": "Hi"});
    let check = |api: Api, messages: Value, fault: &str| {
        let faults = judge(api, &json!({"messages": messages, "max_tokens": 9, "thinking": {"type": "enabled"}}));
        assert!(faults.iter().any(|found| found.starts_with(fault)), "{fault}: {faults:#?}");
    };
    let chat = |messages: Value, fault: &str| check(Api::OpenAiCompletions, messages, fault);
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": arguments}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "a"});
    chat(json!([user(), calls(json!([call("c", "{}")])), user()]), "calls without a result");
    chat(json!([user(), calls(json!([call("c", "{}")])), result("c"), result("c")]), "a result without its call");
    chat(json!([user(), calls(json!([call("c", "{}"), call("c", "{}")])), result("c")]), "an id that comes twice");
    chat(json!([user(), calls(json!([call("c", "{\"a\"")])), result("c")]), "arguments that are no object");
    chat(json!([user(), calls(json!([])), user()]), "an empty list of calls");
    chat(json!([user(), {"role": "assistant", "content": ""}, user()]), "empty content");
    chat(json!([user(), {"role": "assistant", "content": "Hello"}]), "the last message");
    chat(json!([user(), calls(json!([call(&"c".repeat(41), "{}")])), result(&"c".repeat(41))]), LONG_ID);

    let messages = |messages: Value, fault: &str| check(Api::AnthropicMessages, messages, fault);
    let said = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let brings = |blocks: Value| json!({"role": "user", "content": blocks});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "ls", "input": {}});
    let found = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "a"});
    let text = json!({"type": "text", "text": "t"});
    let thought = json!({"type": "thinking", "thinking": "", "signature": "s"});
    messages(json!([said(json!([text])), user()]), "the first message");
    messages(json!([user(), said(json!([used("c")])), user()]), "calls without a result");
    messages(json!([user(), said(json!([used("c")])), brings(json!([text, found("c")]))]), "a result behind");
    messages(json!([user(), said(json!([used("c"), text])), brings(json!([found("c")]))]), "a text behind a call");
    messages(json!([user(), said(json!([used("c.1")])), brings(json!([found("c.1")]))]), "an id");
    messages(json!([user(), said(json!([text, thought, text])), user()]), "thinking that is not first");
    messages(json!([user(), said(json!([thought])), user()]), "thinking that is last");
    messages(json!([user(), said(json!([used("c")])), brings(json!([found("c")]))]), "a turn that began without");
    messages(json!([user(), said(json!([{"type": "text", "text": " "}])), user()]), "an empty text");
    let again = json!([
        user(),
        said(json!([used("c")])),
        brings(json!([found("c")])),
        said(json!([used("c")])),
        brings(json!([found("c")]))
    ]);
    messages(again, "an id that comes twice");
}
