//! A model that goes in circles: the same calls with the same results, over and over.

use serde_json::{Value, json};

use crate::app::native::Message;

/// Turns of the longest circle that is seen.
const LONGEST: usize = 4;
/// How often it goes round before it is one.
const TIMES: usize = 3;

/// True when the last turns among `messages` were the same circle of calls and results.
pub(super) fn goes_in_circles(messages: &[Message]) -> bool {
    let turns = turns(last_turns(messages));
    (1..=LONGEST).any(|length| {
        let Some(start) = turns.len().checked_sub(length * TIMES) else { return false };
        let (first, rest) = turns[start..].split_at(length);
        rest.chunks(length).all(|round| round == first)
    })
}

/// As many of the last turns as the longest circle needs: looking costs the same however long a run has been.
fn last_turns(messages: &[Message]) -> &[Message] {
    let answers = messages.iter().enumerate().rev().filter(|(_, message)| message.as_assistant().is_some());
    let first = answers.map(|(at, _)| at).nth(LONGEST * TIMES - 1);
    &messages[first.unwrap_or(0)..]
}

/// What was called and what came of it, a turn each, since somebody else last spoke.
fn turns(messages: &[Message]) -> Vec<Vec<Value>> {
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(answer) => {
                turns.push(answer.tool_calls().map(|call| sorted(json!([call.name, call.arguments]))).collect());
            }
            Message::ToolResult(result) => {
                if let Some(turn) = turns.last_mut() {
                    turn.push(json!([result.is_error, result.content]));
                }
            }
            Message::Custom(custom) if custom.content.text().is_empty() => {}
            Message::User(_) | Message::Custom(_) => turns.clear(),
        }
    }
    turns
}

/// The order of an object's keys means nothing.
fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}
