//! Records written as text, for tests: one message a line.
//!
//! ```text
//! user TEXT
//! teacher PART | PART                 a PART is text, ~thinking or name#id {json}
//! teacher[stopReason] PART | PART     "stop" when left out; "empty" for an error with nothing in it
//! result name#id TEXT @ {details}     details may be left out
//! result! name#id TEXT                an error
//! marker customType {details}
//! ```
//! A line's timestamp is its seq in seconds. `\n` in a text is a line break.

use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::app::native::message::{Block, Content, CustomMessage, EMPTY_ANSWER, Message, Seq, Stored, ToolCall};

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
    let is_empty = reason == "empty";
    let reason = match reason {
        "" => "stop",
        "empty" => "error",
        reason => reason,
    };
    let content: Vec<Block> = parts.split(" | ").filter(|part| !part.is_empty()).map(block).collect();
    let mut message = json!({"role": "assistant", "content": content, "stopReason": reason, "timestamp": timestamp});
    if reason == "error" {
        message["errorMessage"] = json!("The provider broke off.");
    }
    if is_empty {
        message["diagnostics"] = json!([{"type": EMPTY_ANSWER}]);
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

/// The line of an answer that proposes a plan with these blocks.
pub(crate) fn plan_call(id: &str, blocks: &[&str]) -> String {
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|block| json!({"id": block, "title": format!("Block {block}"), "objective": "Know it.", "concepts": []}))
        .collect();
    format!("teacher[toolUse] plan_init#{id} {}", json!({"title": "Fractions", "goal": "Add them.", "blocks": blocks}))
}

/// Lessons of a few scenes, in the text form.
pub(crate) fn lesson() -> impl Strategy<Value = String> {
    let scenes = proptest::collection::vec(0..SCENES.len(), 0..7);
    scenes.prop_map(|scenes| {
        let mut text = String::new();
        for scene in scenes {
            let seq = text.lines().count() + 1;
            let ids = SCENES[scene].replace("#1", &format!("#c{seq}")).replace("#2", &format!("#d{seq}"));
            let ids = ids.replace("QUIZ", QUIZ).replace("NEXT", &(seq + 1).to_string());
            text.push_str(
                &ids.replace("PLAN", &plan_call(&format!("p{seq}"), &["a", "b"])).replace("#p ", &format!("#p{seq} ")),
            );
            text.push('\n');
        }
        text
    })
}

const QUIZ: &str = r#"{"question":"2 + 2?","kind":"single","options":["3","4"],"correct":["4"],"concept":"sums"}"#;

/// What may happen in a lesson; `#1` and `#2` become ids of their own, NEXT the seq of the scene's second message.
const SCENES: [&str; 14] = [
    "user hi\nteacher Hello.\\n\\nWhat is it?",
    "user look\nteacher[toolUse] ~hm | Let me look. | ls#1 {\"path\":\".\"}\nresult ls#1 notes.md\nteacher There.",
    "teacher[toolUse] ls#1 {} | read#2 {}\nresult ls#1 x\nresult! read#2 No.\nteacher[length] So",
    "teacher[toolUse] Try: | quiz#1 QUIZ\nmarker hint {\"toolCallId\":\"q\"}\nresult quiz#1 4\nteacher Right. | ~fine",
    "teacher[toolUse] ls#1 {} | quiz#2 QUIZ\nresult ls#1 x\nresult quiz#2 4 @ {\"verdict\":\"correct\",\"kind\":\"quiz\"}",
    "teacher[toolUse] quiz#1 {\"question\":7}\nresult! quiz#1 No kind.\nteacher Sorry.",
    "teacher[toolUse] probe_done#1 {}\nresult probe_done#1 Done.\nmarker probe-handoff {\"assessment\":{}}",
    "PLAN\nresult plan_init#p Shown.\nmarker plan-verdict {\"accepted\":true}\nteacher Then.",
    "user go\nteacher[error] Hel\nmarker retry {\"replaces\":NEXT}\nteacher Hello.",
    "user go\nteacher[empty] ~hm\nmarker notice {\"kind\":\"empty-answer\"}\nteacher Hello.",
    "teacher[toolUse] ls#1 {}\nresult ls#1 x\nteacher[empty]\nmarker notice {\"kind\":\"empty-answer\"}\nteacher[empty] ~hm",
    "user go\nteacher[aborted] Hel | ls#1 {}\nmarker interrupted\nteacher lo.",
    "marker steer {\"jobId\":\"j\",\"kind\":\"demo\",\"outcome\":\"done\",\"summary\":\"A slider.\"}\nteacher Look.",
    "teacher[toolUse] plan_progress#1 {\"blockId\":\"a\"}\nresult plan_progress#1 Noted.\n\
     marker plan-block {\"blockId\":\"a\",\"status\":\"done\"}\nmarker notice {\"kind\":\"turn-cap\"}",
];
