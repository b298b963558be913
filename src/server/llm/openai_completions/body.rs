//! The request body: native messages become chat messages.

use serde_json::{Map, Value, json};

use crate::app::native::message::KnownBlock;
use crate::app::native::{AssistantMessage, Block, Content, Message, ToolCall, ToolResultMessage};
use crate::server::llm::catalog::Model;
use crate::server::llm::{Request, ToolSpec};

use super::details::Details;

/// Fields in which a server may give and take back readable reasoning.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_text"];

/// The JSON body of a streaming request.
pub(super) fn body(request: &Request) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(request.messages.iter().filter_map(|message| chat_message(message, &request.model)));
    let mut body = json!({
        "model": request.model.id,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

/// None for a message that would be empty.
fn chat_message(message: &Message, model: &Model) -> Option<Value> {
    match message {
        Message::User(message) => user(&message.content),
        Message::Assistant(message) => assistant(message, model),
        Message::ToolResult(message) => Some(tool_result(message)),
        // A request holds none; a custom message speaks to a model only through the text that replaces it.
        Message::Custom(_) => None,
    }
}

fn user(content: &Content) -> Option<Value> {
    let content = match content {
        Content::Text(text) => Value::from(text.as_str()),
        Content::Blocks(blocks) => {
            let parts: Vec<Value> =
                blocks.iter().filter_map(Block::as_text).map(|text| json!({"type": "text", "text": text})).collect();
            if parts.is_empty() {
                return None;
            }
            parts.into()
        }
    };
    Some(json!({"role": "user", "content": content}))
}

/// Reasoning goes back only to the model that it came from; any other gets the text alone.
fn assistant(message: &AssistantMessage, model: &Model) -> Option<Value> {
    let text: String =
        message.content.iter().filter_map(Block::as_text).filter(|text| !text.trim().is_empty()).collect();
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut chat = Map::new();
    chat.insert("role".to_owned(), "assistant".into());
    chat.insert("content".to_owned(), if text.is_empty() { Value::Null } else { text.into() });
    let own = message.api == model.api.name() && message.provider == model.provider && message.model == model.id;
    chat.extend(own.then(|| reasoning(message)).flatten());
    if !calls.is_empty() {
        chat.insert("tool_calls".to_owned(), calls.into());
    }
    Some(chat.into())
}

/// The field that gives a model its own reasoning back: its details, or the field that the reasoning came in.
fn reasoning(message: &AssistantMessage) -> Option<(String, Value)> {
    let thoughts = || {
        message.content.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::Thinking(block)) => Some(block),
            _ => None,
        })
    };
    if let Some(details) = thoughts().find_map(|block| Details::from_signature(block.thinking_signature.as_deref()?)) {
        return Some(("reasoning_details".to_owned(), details));
    }
    let readable: Vec<_> = thoughts().filter(|block| !block.thinking.trim().is_empty()).collect();
    let field = readable.first()?.thinking_signature.as_deref().filter(|field| REASONING_FIELDS.contains(field))?;
    let text = readable.iter().map(|block| block.thinking.as_str()).collect::<Vec<_>>().join("\n");
    Some((field.to_owned(), text.into()))
}

/// Providers refuse arguments that are no object, so those that are none go back empty.
fn call(call: &ToolCall) -> Value {
    let arguments = if call.arguments.is_object() { call.arguments.to_string() } else { "{}".to_owned() };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool_result(message: &ToolResultMessage) -> Value {
    let text = message.text();
    let content = if text.is_empty() { "(no tool output)" } else { &text };
    json!({"role": "tool", "content": content, "tool_call_id": message.tool_call_id})
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    })
}
