//! Records written as text, for tests: one message a line.
//!
//! ```text
//! user TEXT
//! teacher PART | PART                 a PART is text, ~thinking or name#id {json}
//! teacher[stopReason] PART | PART     "stop" when left out
//! result name#id TEXT @ {details}     details may be left out
//! result! name#id TEXT                an error
//! marker customType {details}
//! ```
//! A line's timestamp is its seq in seconds. `\n` in a text is a line break.

use serde_json::{Map, Value, json};

use crate::app::native::message::{Block, Content, CustomMessage, Message, Seq, Stored, ToolCall};

/// The record that `text` describes.
pub(crate) fn record(text: &str) -> Vec<Stored> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.zip(1..).map(|(line, seq)| Stored { seq: Seq(seq), message: message(line, i64::from(seq) * 1000) }).collect()
}

/// The message that one line describes.
pub(crate) fn message(line: &str, timestamp: i64) -> Message {
    let (role, rest) = line.split_once(' ').unwrap_or((line, ""));
    match role {
        "user" => Message::user(unescaped(rest), timestamp),
        "result" | "result!" => result(rest, role == "result!", timestamp),
        "marker" => marker(rest, timestamp),
        role => teacher(role.strip_prefix("teacher").unwrap_or_else(|| panic!("{line}")), rest, timestamp),
    }
}

fn teacher(reason: &str, parts: &str, timestamp: i64) -> Message {
    let reason = reason.trim_start_matches('[').trim_end_matches(']');
    let reason = if reason.is_empty() { "stop" } else { reason };
    let content: Vec<Block> = parts.split(" | ").filter(|part| !part.is_empty()).map(block).collect();
    let mut message = json!({"role": "assistant", "content": content, "stopReason": reason, "timestamp": timestamp});
    if reason == "error" {
        message["errorMessage"] = json!("The provider broke off.");
    }
    serde_json::from_value(message).unwrap()
}

fn block(part: &str) -> Block {
    if let Some(thinking) = part.strip_prefix('~') {
        return Block::thinking(unescaped(thinking));
    }
    let Some((name, id)) = part.split(' ').next().and_then(|word| word.split_once('#')) else {
        return Block::text(unescaped(part));
    };
    let arguments = part.split_once(' ').map_or_else(|| json!({}), |(_, args)| value(args));
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, ..ToolCall::default() }.into()
}

fn result(rest: &str, is_error: bool, timestamp: i64) -> Message {
    let (rest, details) = rest.split_once(" @ ").map_or((rest, None), |(rest, details)| (rest, Some(value(details))));
    let (call, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let (name, id) = call.split_once('#').unwrap();
    let mut message = json!({
        "role": "toolResult", "toolCallId": id, "toolName": name, "content": [Block::text(unescaped(text))],
        "isError": is_error, "timestamp": timestamp,
    });
    if let Some(details) = details {
        message["details"] = details;
    }
    serde_json::from_value(message).unwrap()
}

fn marker(rest: &str, timestamp: i64) -> Message {
    let (custom_type, details) = rest.split_once(' ').map_or((rest, Value::Null), |(name, json)| (name, value(json)));
    Message::Custom(CustomMessage {
        custom_type: custom_type.to_owned(),
        content: Content::default(),
        display: true,
        details,
        id: format!("m{timestamp}"),
        timestamp,
        extra: Map::new(),
    })
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
}
