//! Anthropic's marks for the cache, on servers that pass them on: the instructions, the last tool, and the last message
//! that has text.

use serde_json::{Value, json};

/// Marks the places up to which a provider may keep `body`.
pub(super) fn mark(body: &mut Value, mark: &Value) {
    let messages = body["messages"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let is = |message: &Value, roles: &[&str]| message["role"].as_str().is_some_and(|role| roles.contains(&role));
    if let Some(instructions) = messages.iter_mut().find(|message| is(message, &["system", "developer"])) {
        mark_text(&mut instructions["content"], mark);
    }
    let mut said = messages.iter_mut().rev().filter(|message| is(message, &["user", "assistant", "tool"]));
    said.any(|message| mark_text(&mut message["content"], mark));
    if let Some(tool) = body["tools"].as_array_mut().and_then(|tools| tools.last_mut()) {
        tool["cache_control"] = mark.clone();
    }
}

/// Marks the last text of a message's content; false when it has none.
fn mark_text(content: &mut Value, mark: &Value) -> bool {
    if let Some(text) = content.as_str().filter(|text| !text.is_empty()) {
        *content = json!([{"type": "text", "text": text}]);
    }
    let text = content.as_array_mut().and_then(|parts| parts.iter_mut().rev().find(|part| part["type"] == "text"));
    text.map(|part| part["cache_control"] = mark.clone()).is_some()
}
