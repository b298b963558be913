//! Changes to a captured request, each of which tells what a fault depends on. They know the bodies of both APIs.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::server::llm::catalog::Api;

/// What is changed before a request is sent again.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Leaves out what asks the model to think.
    #[arg(long)]
    pub drop_reasoning: bool,
    /// Leaves out what was thought in earlier answers.
    #[arg(long)]
    pub strip_thinking: bool,
    /// Makes of each answer with several calls as many answers with one.
    #[arg(long)]
    pub split_parallel: bool,
    /// Cuts the results of tools to this length.
    #[arg(long, value_name = "CHARS")]
    pub shorten_results: Option<usize>,
    /// Lengthens the results of tools to at least this length.
    #[arg(long, value_name = "CHARS")]
    pub pad_results: Option<usize>,
    /// Tokens that the answer may have.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Asks another model.
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
}

/// Fields that ask for thinking, in the words of many servers.
const WISHES: [&str; 8] = [
    "reasoning",
    "reasoning_effort",
    "include_reasoning",
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "chat_template_kwargs",
    "output_config",
];
/// Fields of a message that hold what was thought.
const THOUGHTS: [&str; 4] = ["reasoning", "reasoning_content", "reasoning_text", "reasoning_details"];
/// Fields that bound an answer.
const BOUNDS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
/// What results are lengthened with.
const PADDING: &str = " .";

impl Changes {
    pub(super) fn apply(&self, body: &mut Value, api: Api) {
        let Some(fields) = body.as_object_mut() else { return };
        if self.drop_reasoning {
            WISHES.iter().for_each(|wish| drop(fields.shift_remove(*wish)));
        }
        if let Some(tokens) = self.max_tokens {
            let bound = BOUNDS.into_iter().find(|bound| fields.contains_key(*bound)).unwrap_or(BOUNDS[0]);
            fields.insert(bound.to_owned(), tokens.into());
        }
        if let Some(model) = &self.model {
            fields.insert("model".to_owned(), model.as_str().into());
        }
        let Some(messages) = fields.get_mut("messages").and_then(Value::as_array_mut) else { return };
        if self.strip_thinking {
            messages.iter_mut().filter_map(Value::as_object_mut).for_each(strip_thinking);
        }
        if self.split_parallel {
            *messages = match api {
                Api::AnthropicMessages => split_blocks(std::mem::take(messages)),
                Api::OpenAiCompletions | Api::Lesson => split_calls(std::mem::take(messages)),
            };
        }
        for text in messages.iter_mut().flat_map(results) {
            self.resize(text);
        }
    }

    fn resize(&self, text: &mut String) {
        if let Some((end, _)) = self.shorten_results.and_then(|length| text.char_indices().nth(length)) {
            text.truncate(end);
        }
        let missing = self.pad_results.unwrap_or(0).saturating_sub(text.chars().count());
        text.extend(PADDING.chars().cycle().take(missing));
    }
}

fn strip_thinking(message: &mut Map<String, Value>) {
    if message.get("role").is_none_or(|role| role != "assistant") {
        return;
    }
    THOUGHTS.iter().for_each(|thought| drop(message.shift_remove(*thought)));
    match message.get_mut("content") {
        Some(Value::Array(blocks)) => {
            blocks.retain(|block| !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")));
            blocks.iter_mut().filter_map(|block| text_of(block.get_mut("text")?)).for_each(strip_tags);
        }
        Some(Value::String(text)) => strip_tags(text),
        _ => {}
    }
}

/// Takes `<think>…</think>` out of a text.
fn strip_tags(text: &mut String) {
    while let Some(start) = text.find("<think>") {
        let end = text[start..].find("</think>").map_or(text.len(), |end| start + end + "</think>".len());
        text.replace_range(start..end, "");
    }
}

/// `openai-completions`: an answer has `tool_calls`, each result is a message.
fn split_calls(messages: Vec<Value>) -> Vec<Value> {
    let mut split = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).map(std::mem::take);
        let Some(calls) = calls else {
            split.push(message);
            continue;
        };
        let mut results = Vec::new();
        while let Some(result) = rest.next_if(|message| message["role"] == "tool") {
            results.push(result);
        }
        let mut next = message;
        for call in calls {
            let id = call["id"].clone();
            let mut answer = std::mem::replace(&mut next, json!({"role": "assistant", "content": null}));
            answer["tool_calls"] = json!([call]);
            split.push(answer);
            let (own, others) = results.into_iter().partition(|result: &Value| result["tool_call_id"] == id);
            split.extend(Vec::into_iter(own));
            results = others;
        }
        split.extend(results);
    }
    split
}

/// `anthropic-messages`: calls are blocks of an answer, their results are blocks of the next message.
fn split_blocks(messages: Vec<Value>) -> Vec<Value> {
    let mut split = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        let calls = blocks(&message).iter().filter(|block| block["type"] == "tool_use").count();
        if calls < 2 {
            split.push(message);
            continue;
        }
        let answers = rest.next_if(|next| next["role"] == "user");
        let mut results: Vec<Value> = answers.iter().flat_map(|answers| blocks(answers).to_vec()).collect();
        let mut said = Vec::new();
        for block in blocks(&message) {
            said.push(block.clone());
            if block["type"] != "tool_use" {
                continue;
            }
            split.push(json!({"role": "assistant", "content": std::mem::take(&mut said)}));
            let is_own = |result: &Value| result["tool_use_id"] == block["id"];
            let (own, others): (Vec<_>, Vec<_>) = results.into_iter().partition(is_own);
            split.push(json!({"role": "user", "content": own}));
            results = others;
        }
        // What came with the results stays behind the last of them.
        if let Some(last) = split.last_mut().and_then(|last| last["content"].as_array_mut()) {
            last.extend(results);
        }
    }
    split
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the results in a message of either API.
fn results(message: &mut Value) -> Vec<&mut String> {
    if message["role"] == "tool" {
        return texts(&mut message["content"]);
    }
    let blocks = message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.filter_map(|result| result.get_mut("content")).flat_map(texts).collect()
}

fn texts(content: &mut Value) -> Vec<&mut String> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter_mut().filter_map(|block| text_of(block.get_mut("text")?)).collect(),
        _ => Vec::new(),
    }
}

fn text_of(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(changes: &Changes, api: Api, mut body: Value, expected: &Value) {
        changes.apply(&mut body, api);
        assert_eq!(body, *expected);
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}})
    }

    fn result(id: &str, text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": text})
    }

    fn used(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "ls", "input": {}})
    }

    fn returned(id: &str, text: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn wishes_bounds_and_the_model_are_changed_in_their_places() {
        let changes = Changes {
            drop_reasoning: true,
            max_tokens: Some(9),
            model: Some("other".to_owned()),
            ..Changes::default()
        };
        check(
            &changes,
            Api::OpenAiCompletions,
            json!({"model": "m", "max_completion_tokens": 5, "reasoning": {"effort": "low"}, "stream": true}),
            &json!({"model": "other", "max_completion_tokens": 9, "stream": true}),
        );
        check(
            &changes,
            Api::AnthropicMessages,
            json!({"model": "m", "thinking": {"type": "enabled"}, "output_config": {"effort": "low"}}),
            &json!({"model": "other", "max_tokens": 9}),
        );
    }

    #[test]
    fn what_was_thought_is_taken_out_of_earlier_answers() {
        let changes = Changes { strip_thinking: true, ..Changes::default() };
        let thought =
            json!({"role": "assistant", "content": "<think>hm</think>Hi", "reasoning_details": [1], "reasoning": "hm"});
        check(
            &changes,
            Api::OpenAiCompletions,
            json!({"messages": [{"role": "user", "content": "<think>"}, thought]}),
            &json!({"messages": [{"role": "user", "content": "<think>"}, {"role": "assistant", "content": "Hi"}]}),
        );
        let blocks = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hi"}]);
        check(
            &changes,
            Api::AnthropicMessages,
            json!({"messages": [{"role": "assistant", "content": blocks}]}),
            &json!({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]}),
        );
    }

    #[test]
    fn calls_that_were_made_at_once_are_made_one_by_one() {
        let changes = Changes { split_parallel: true, ..Changes::default() };
        let last = json!({"role": "user", "content": "Go on."});
        let many = json!({"role": "assistant", "content": "Let me.", "tool_calls": [call("a"), call("b")]});
        check(
            &changes,
            Api::OpenAiCompletions,
            json!({"messages": [many, result("b", "B"), result("a", "A"), last]}),
            &json!({"messages": [
                {"role": "assistant", "content": "Let me.", "tool_calls": [call("a")]},
                result("a", "A"),
                {"role": "assistant", "content": null, "tool_calls": [call("b")]},
                result("b", "B"),
                last,
            ]}),
        );
        let text = json!({"type": "text", "text": "Let me."});
        let more = json!({"type": "text", "text": "Go on."});
        check(
            &changes,
            Api::AnthropicMessages,
            json!({"messages": [
                {"role": "assistant", "content": [text, used("a"), used("b")]},
                {"role": "user", "content": [returned("a", "A"), returned("b", "B"), more]},
            ]}),
            &json!({"messages": [
                {"role": "assistant", "content": [text, used("a")]},
                {"role": "user", "content": [returned("a", "A")]},
                {"role": "assistant", "content": [used("b")]},
                {"role": "user", "content": [returned("b", "B"), more]},
            ]}),
        );
    }

    #[test]
    fn results_are_shortened_and_lengthened() {
        let bodies = |text: &str| {
            let chat = json!({"messages": [{"role": "user", "content": "Long enough"}, result("a", text)]});
            let blocks = json!({"messages": [{"role": "user", "content": [returned("a", text)]}]});
            [(Api::OpenAiCompletions, chat), (Api::AnthropicMessages, blocks)]
        };
        let shorter = Changes { shorten_results: Some(3), ..Changes::default() };
        let longer = Changes { pad_results: Some(7), ..Changes::default() };
        for (changes, expected) in [(shorter, "Grö"), (longer, "Größe .")] {
            for ((api, body), (_, expected)) in bodies("Größe").into_iter().zip(bodies(expected)) {
                check(&changes, api, body, &expected);
            }
        }
    }
}
