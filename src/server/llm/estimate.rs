//! How many tokens a request has, before anybody has counted them.

use std::borrow::{Borrow, Cow};

use serde_json::json;

use super::{Request, ToolSpec, js};
use crate::app::native::message::KnownBlock;
use crate::app::native::{AssistantMessage, Block, Content, Message, StopReason, Usage};

/// UTF-16 units a token.
const UNITS: usize = 4;
/// Units that an image counts for.
const IMAGE: usize = 4800;
/// Tokens that are kept free, because an estimate is none.
const MARGIN: u64 = 4096;

/// The most tokens that the answer to `request` may have: what was wished for, or all that the model can, but within
/// what the request leaves of the context window. 0 when nothing is known.
#[must_use]
pub fn answer_limit(request: &Request) -> u64 {
    let wanted = request.options.max_tokens.unwrap_or(request.model.max_tokens);
    within_window(request, wanted)
}

/// `tokens`, but within what the request leaves of the context window.
#[must_use]
pub fn within_window(request: &Request, tokens: u64) -> u64 {
    let window = request.model.context_window;
    if window == 0 {
        return tokens;
    }
    let used = context(&request.system, &request.messages, &request.tools);
    tokens.min(window.saturating_sub(used + MARGIN).max(1))
}

/// Tokens of a request: as counted with the last answer, and what came after it by its length.
#[must_use]
pub fn context(system: &str, messages: &[impl Borrow<Message>], tools: &[ToolSpec]) -> u64 {
    match last_counted(messages) {
        Some((at, counted)) => counted + messages[at + 1..].iter().map(message).sum::<u64>(),
        None => {
            let tools = if tools.is_empty() { 0 } else { tokens(units(&listed(tools))) };
            messages.iter().map(message).sum::<u64>() + tokens(units(system)) + tools
        }
    }
}

/// Tokens of a request's texts, by their length alone. Thinking and images are left out: providers count them each in
/// their own way, or not at all.
#[must_use]
pub fn texts(request: &Request) -> u64 {
    let said = |block: &Block| match block {
        Block::Known(KnownBlock::Text(block)) => units(&block.text),
        Block::Known(KnownBlock::ToolCall(call)) => units(&call.name) + units(&js::json(&call.arguments)),
        Block::Known(KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => 0,
    };
    let said = |blocks: &[Block]| blocks.iter().map(said).sum::<usize>();
    let message = |message: &Cow<'_, Message>| match &**message {
        Message::User(message) => units(&message.content.text()),
        Message::Custom(message) => units(&message.content.text()),
        Message::ToolResult(message) => said(&message.content),
        Message::Assistant(message) => said(&message.content),
    };
    let tools = if request.tools.is_empty() { 0 } else { units(&listed(&request.tools)) };
    tokens(units(&request.system) + tools + request.messages.iter().map(message).sum::<usize>())
}

/// The last answer whose count describes the request: it failed not, and no message before it is newer.
fn last_counted(messages: &[impl Borrow<Message>]) -> Option<(usize, u64)> {
    let mut newest = i64::MIN;
    let mut last = None;
    for (at, message) in messages.iter().enumerate() {
        let message = message.borrow();
        if let Message::Assistant(answer) = message
            && answer.timestamp >= newest
            && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
            && total(&answer.usage) > 0
        {
            last = Some((at, total(&answer.usage)));
        }
        newest = newest.max(timestamp(message));
    }
    last
}

fn total(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => usage.input + usage.output + usage.cache_read + usage.cache_write,
        total => total,
    }
}

fn timestamp(message: &Message) -> i64 {
    match message {
        Message::User(message) => message.timestamp,
        Message::Assistant(message) => message.timestamp,
        Message::ToolResult(message) => message.timestamp,
        Message::Custom(message) => message.timestamp,
    }
}

fn message(message: &impl Borrow<Message>) -> u64 {
    tokens(match message.borrow() {
        Message::User(message) => content(&message.content),
        Message::Custom(message) => content(&message.content),
        Message::ToolResult(message) => blocks(&message.content),
        Message::Assistant(message) => answer(message),
    })
}

fn content(content: &Content) -> usize {
    match content {
        Content::Text(text) => units(text),
        Content::Blocks(parts) => blocks(parts),
    }
}

fn blocks(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.as_text().map_or(IMAGE, units)).sum()
}

fn answer(message: &AssistantMessage) -> usize {
    let block = |block: &Block| match block {
        Block::Known(KnownBlock::Text(block)) => units(&block.text),
        Block::Known(KnownBlock::Thinking(block)) => units(&block.thinking),
        Block::Known(KnownBlock::ToolCall(call)) => units(&call.name) + units(&js::json(&call.arguments)),
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => IMAGE,
    };
    message.content.iter().map(block).sum()
}

fn listed(tools: &[ToolSpec]) -> String {
    let tool =
        |tool: &ToolSpec| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    tools.iter().map(tool).collect::<serde_json::Value>().to_string()
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn tokens(units: usize) -> u64 {
    units.div_ceil(UNITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/estimate-context.json");

    #[test]
    fn estimates_are_those_of_the_reference() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let given = &row["in"];
            let messages: Vec<Message> = serde_json::from_value(given["messages"].clone()).unwrap();
            let tools: Vec<ToolSpec> = given["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|tool| ToolSpec {
                    name: tool["name"].as_str().unwrap().to_owned(),
                    description: tool["description"].as_str().unwrap().to_owned(),
                    parameters: tool["parameters"].clone(),
                    ..ToolSpec::default()
                })
                .collect();
            let found = context(given["systemPrompt"].as_str().unwrap_or_default(), &messages, &tools);
            assert_eq!(Some(found), row["out"]["tokens"].as_u64(), "{given}");
        }
    }
}
