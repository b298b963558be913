//! Native messages as Anthropic's: blocks everywhere, and tool results inside a user's message.

use serde_json::{Value, json};

use crate::app::native::message::{ImageBlock, KnownBlock, ThinkingBlock};
use crate::app::native::{AssistantMessage, Block, Content, Message, ToolResultMessage};
use crate::server::llm::ids::IdRule;
use crate::server::llm::{Request, replay};

/// The messages of a request; the last one carries `mark`, up to which the provider may keep it.
pub(super) fn messages(request: &Request, mark: Option<&Value>) -> Vec<Value> {
    let replayed = replay::for_model(&request.messages, &request.model, IdRule::Plain);
    let empty_signature = request.model.compat.allow_empty_signature.unwrap_or(false);
    let mut chat: Vec<Value> = Vec::with_capacity(replayed.len());
    let mut results: Vec<Value> = Vec::new();
    for message in &replayed {
        if message.as_tool_result().is_none() && !results.is_empty() {
            chat.push(json!({"role": "user", "content": std::mem::take(&mut results)}));
        }
        let (role, content) = match &**message {
            Message::User(user) => ("user", user_content(&user.content)),
            Message::Assistant(answer) => ("assistant", answer_content(answer, empty_signature)),
            Message::ToolResult(message) => {
                results.push(result(message));
                continue;
            }
            // A request holds none; a custom message speaks to a model only through the text that replaces it.
            Message::Custom(_) => continue,
        };
        chat.extend(content.map(|content| json!({"role": role, "content": content})));
    }
    if !results.is_empty() {
        chat.push(json!({"role": "user", "content": results}));
    }
    if let (Some(mark), Some(last)) = (mark, chat.last_mut()) {
        mark_last(last, mark);
    }
    chat
}

/// Marks the last block of a user's message.
fn mark_last(message: &mut Value, mark: &Value) {
    if message["role"] != "user" {
        return;
    }
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = mark.clone();
    }
}

/// None for a message that says nothing.
fn user_content(content: &Content) -> Option<Value> {
    let blocks: Vec<Value> = match content {
        Content::Text(text) => return (!text.trim().is_empty()).then(|| text.as_str().into()),
        Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
    };
    (!blocks.is_empty()).then(|| blocks.into())
}

/// Text that is not blank, or an image.
fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Known(KnownBlock::Text(block)) if !block.text.trim().is_empty() => Some(text(&block.text)),
        Block::Known(KnownBlock::Image(block)) => Some(image(block)),
        Block::Known(_) | Block::Other(_) => None,
    }
}

fn answer_content(message: &AssistantMessage, empty_signature: bool) -> Option<Value> {
    let block = |block: &Block| match block {
        Block::Known(KnownBlock::Thinking(block)) => thinking(block, empty_signature),
        Block::Known(KnownBlock::ToolCall(call)) => {
            let input = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
        }
        Block::Known(KnownBlock::Text(_)) => part(block),
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => None,
    };
    let blocks = in_order(message.content.iter().filter_map(block).collect());
    (!blocks.is_empty()).then(|| blocks.into())
}

/// The blocks of an answer in an order that the API takes: no text behind a call, thinking first if at all, and never
/// last. The model's own thinking keeps its places.
fn in_order(mut blocks: Vec<Value>) -> Vec<Value> {
    if let Some(call) = blocks.iter().position(|block| block["type"] == "tool_use") {
        let calls = blocks.split_off(call);
        let (texts, rest): (Vec<Value>, Vec<Value>) = calls.into_iter().partition(|block| block["type"] == "text");
        blocks.extend(texts.into_iter().chain(rest));
    }
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    if blocks.first().is_some_and(|block| !is_thought(block)) {
        blocks.retain(|block| !is_thought(block));
    }
    blocks
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// True when a model that thinks can go on: either a new turn begins, or the turn that waits for its next answer began
/// with thinking. One that another model began did not.
pub(super) fn can_think(chat: &[Value]) -> bool {
    let first = turn(chat).find_map(|at| chat[at]["content"].as_array().filter(|_| chat[at]["role"] == "assistant"));
    first.and_then(|blocks| blocks.first()).is_none_or(is_thought)
}

/// Takes the thinking out of the turn that waits for its next answer: a model that may not think is not shown it.
pub(super) fn forget_thoughts(chat: &mut [Value]) {
    for at in turn(chat) {
        if let Some(blocks) = chat[at]["content"].as_array_mut() {
            blocks.retain(|block| !is_thought(block));
        }
    }
}

/// The messages since a user last spoke without bringing results; none when the user has just done so.
fn turn(chat: &[Value]) -> std::ops::Range<usize> {
    let has_results = |message: &Value| {
        let mut blocks = message["content"].as_array().into_iter().flatten();
        blocks.any(|block| block["type"] == "tool_result")
    };
    let (mut start, mut end) = (0, 0);
    // The API joins what one says in a row, so words behind results belong to them.
    for row in chat.chunk_by(|one, next| one["role"] == next["role"]) {
        end += row.len();
        if row[0]["role"] == "user" && !row.iter().any(has_results) {
            start = end;
        }
    }
    start..chat.len()
}

/// Thinking goes back with its signature; without one only where a server accepts that.
fn thinking(block: &ThinkingBlock, empty_signature: bool) -> Option<Value> {
    let signature = block.thinking_signature.as_deref().filter(|signature| !signature.trim().is_empty());
    match signature {
        Some(data) if block.redacted == Some(true) => Some(json!({"type": "redacted_thinking", "data": data})),
        Some(signature) => Some(json!({"type": "thinking", "thinking": block.thinking, "signature": signature})),
        None if empty_signature && !block.thinking.trim().is_empty() => {
            Some(json!({"type": "thinking", "thinking": block.thinking, "signature": ""}))
        }
        None => None,
    }
}

fn result(message: &ToolResultMessage) -> Value {
    let images = message.content.iter().any(|block| matches!(block, Block::Known(KnownBlock::Image(_))));
    let content = if images {
        let mut blocks: Vec<Value> = message.content.iter().filter_map(part).collect();
        if !blocks.iter().any(|block| block["type"] == "text") {
            blocks.insert(0, text("(see attached image)"));
        }
        Value::from(blocks)
    } else {
        match message.text() {
            // The API refuses an error without words, and blank words always.
            text if text.trim().is_empty() && message.is_error => "(no tool output)".into(),
            text if text.trim().is_empty() => "".into(),
            text => text.into(),
        }
    };
    json!({
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": content,
        "is_error": message.is_error,
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(block: &ImageBlock) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}})
}
