//! Native messages as chat messages.

use serde_json::{Map, Value, json};

use crate::app::native::message::{ImageBlock, KnownBlock, ThinkingBlock};
use crate::app::native::{AssistantMessage, Block, Content, Message, ToolCall, ToolResultMessage};
use crate::server::llm::Request;
use crate::server::llm::catalog::Model;
use crate::server::llm::{js, replay};

use super::details::Details;
use super::quirks::Quirks;

/// Fields in which a server may give and take back readable reasoning.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_text"];
/// Stands between a tool's result and a user's message where a server wants that.
const BRIDGE: &str = "I have processed the tool results.";

/// The messages of a request, its instructions first.
pub(super) fn messages(request: &Request, quirks: &Quirks) -> Vec<Value> {
    let mut writer = Writer { model: &request.model, quirks, chat: Vec::with_capacity(request.messages.len() + 1) };
    if !request.system.is_empty() {
        let role = if request.model.reasoning && quirks.developer_role { "developer" } else { "system" };
        writer.chat.push(json!({"role": role, "content": request.system}));
    }
    let replayed = replay::for_model(&request.messages, &request.model, quirks.ids);
    let mut rest = replayed.as_slice();
    while let Some((message, after)) = rest.split_first() {
        rest = match message {
            Message::User(user) => {
                writer.user(&user.content);
                after
            }
            Message::Assistant(answer) => {
                writer.assistant(answer);
                after
            }
            Message::ToolResult(_) => writer.results(rest),
            // A request holds none; a custom message speaks to a model only through the text that replaces it.
            Message::Custom(_) => after,
        };
    }
    writer.chat
}

struct Writer<'a> {
    model: &'a Model,
    quirks: &'a Quirks,
    chat: Vec<Value>,
}

impl Writer<'_> {
    fn user(&mut self, content: &Content) {
        let content = match content {
            Content::Text(text) => Value::from(text.as_str()),
            Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
        };
        if content.as_array().is_none_or(|parts| !parts.is_empty()) {
            self.bridge();
            self.chat.push(json!({"role": "user", "content": content}));
        }
    }

    /// An answer; nothing for one that would be empty.
    fn assistant(&mut self, message: &AssistantMessage) {
        let texts = message.content.iter().filter_map(Block::as_text).filter(|text| !text.trim().is_empty());
        let thoughts: Vec<&ThinkingBlock> = thoughts(message).collect();
        let calls: Vec<Value> = message.tool_calls().map(call).collect();
        let details = details(message, &thoughts);
        let readable: Vec<&str> =
            thoughts.iter().map(|block| block.thinking.as_str()).filter(|text| !text.trim().is_empty()).collect();
        let as_text = self.quirks.thinking_as_text && !readable.is_empty();
        let content = if as_text {
            let thought = readable.join("\n\n");
            std::iter::once(thought.as_str()).chain(texts).map(|text| json!({"type": "text", "text": text})).collect()
        } else {
            match texts.collect::<String>() {
                text if text.is_empty() && self.quirks.assistant_after_tool_result => Value::from(""),
                text if text.is_empty() => Value::Null,
                text => text.into(),
            }
        };
        if calls.is_empty() && matches!(content.as_str(), Some("")) || calls.is_empty() && content.is_null() {
            return;
        }
        let mut chat = Map::new();
        chat.insert("role".to_owned(), "assistant".into());
        chat.insert("content".to_owned(), content);
        if let Some((field, text)) = field(&thoughts, &readable).filter(|_| details.is_none() && !as_text) {
            chat.insert(field.to_owned(), text.into());
        }
        if !calls.is_empty() {
            chat.insert("tool_calls".to_owned(), calls.into());
        }
        chat.extend(details.map(|details| ("reasoning_details".to_owned(), details)));
        if self.quirks.reasoning_content && self.model.reasoning {
            chat.entry("reasoning_content").or_insert_with(|| "".into());
        }
        self.chat.push(chat.into());
    }

    /// The results that `messages` begin with, and a user's message with their images; returns the messages after them.
    fn results<'m>(&mut self, messages: &'m [Message]) -> &'m [Message] {
        let count = messages.iter().take_while(|message| matches!(message, Message::ToolResult(_))).count();
        let (results, rest) = messages.split_at(count);
        let mut images = Vec::new();
        for result in results.iter().filter_map(Message::as_tool_result) {
            self.chat.push(self.result(result));
            images.extend(result.content.iter().filter_map(|block| match block {
                Block::Known(KnownBlock::Image(block)) => Some(image(block)),
                _ => None,
            }));
        }
        if !images.is_empty() {
            self.bridge();
            let mut content = vec![json!({"type": "text", "text": "Attached image(s) from tool result:"})];
            content.append(&mut images);
            self.chat.push(json!({"role": "user", "content": content}));
        }
        rest
    }

    fn result(&self, message: &ToolResultMessage) -> Value {
        let text = message.text();
        let has_images = message.content.iter().any(|block| matches!(block, Block::Known(KnownBlock::Image(_))));
        let content = match text.trim() {
            "" if has_images => "(see attached image)",
            "" => "(no tool output)",
            _ => &text,
        };
        let mut chat = json!({"role": "tool", "content": content, "tool_call_id": message.tool_call_id});
        if self.quirks.tool_result_name && !message.tool_name.is_empty() {
            chat["name"] = message.tool_name.as_str().into();
        }
        chat
    }

    /// Puts an answer between a tool's result and what a user says, where a server wants one.
    fn bridge(&mut self) {
        let after_result = self.chat.last().is_some_and(|message| message["role"] == "tool");
        if self.quirks.assistant_after_tool_result && after_result {
            self.chat.push(json!({"role": "assistant", "content": BRIDGE}));
        }
    }
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Known(KnownBlock::Text(block)) => {
            (!block.text.trim().is_empty()).then(|| json!({"type": "text", "text": block.text}))
        }
        Block::Known(KnownBlock::Image(block)) => Some(image(block)),
        Block::Known(KnownBlock::Thinking(_) | KnownBlock::ToolCall(_)) | Block::Other(_) => None,
    }
}

fn image(block: &ImageBlock) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{};base64,{}", block.mime_type, block.data)}})
}

fn thoughts(message: &AssistantMessage) -> impl Iterator<Item = &ThinkingBlock> {
    message.content.iter().filter_map(|block| match block {
        // What is redacted is sealed in another API's form.
        Block::Known(KnownBlock::Thinking(block)) if block.redacted != Some(true) => Some(block),
        _ => None,
    })
}

/// The provider's own record of its reasoning: from a thinking block, else (in older records) from its calls.
fn details(message: &AssistantMessage, thoughts: &[&ThinkingBlock]) -> Option<Value> {
    let signed = thoughts.iter().find_map(|block| Details::from_signature(block.thinking_signature.as_deref()?));
    signed.or_else(|| {
        let old: Vec<Value> =
            message.tool_calls().filter_map(|call| Details::from_call(call.thought_signature.as_deref()?)).collect();
        (!old.is_empty()).then(|| old.into())
    })
}

/// The field that readable reasoning came in, and all of it.
fn field(thoughts: &[&ThinkingBlock], readable: &[&str]) -> Option<(&'static str, String)> {
    let first = thoughts.iter().find(|block| !block.thinking.trim().is_empty())?;
    let signature = first.thinking_signature.as_deref()?;
    let field = REASONING_FIELDS.into_iter().find(|field| *field == signature)?;
    Some((field, readable.join("\n")))
}

/// Providers refuse arguments that are no object, so those that are none go back empty.
fn call(call: &ToolCall) -> Value {
    let arguments = if call.arguments.is_object() { js::json(&call.arguments) } else { "{}".to_owned() };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}
