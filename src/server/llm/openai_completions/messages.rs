//! Native messages as chat messages.

use std::borrow::Cow;

use serde_json::Value;

use crate::app::native::message::{ImageBlock, KnownBlock, ThinkingBlock};
use crate::app::native::{self, AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use crate::server::llm::catalog::Model;
use crate::server::llm::js;

use super::chat::{Answer, Call, Chat, Content, Part};
use super::details::Details;
use super::quirks::Quirks;

/// Fields in which a server may give and take back readable reasoning.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_text"];
/// Stands between a tool's result and a user's message where a server wants that.
const BRIDGE: &str = "I have processed the tool results.";

/// What a request says, its instructions (`system`) first; `replayed` is what `model` may read of its messages.
pub(super) fn messages<'a>(
    system: &'a str,
    replayed: &'a [Cow<'a, Message>],
    model: &'a Model,
    quirks: &'a Quirks,
) -> Vec<Chat<'a>> {
    let mut writer = Writer { model, quirks, chat: Vec::with_capacity(replayed.len() + 1) };
    if !system.is_empty() {
        let role = if model.reasoning && quirks.developer_role { "developer" } else { "system" };
        writer.chat.push(Chat::Said { role, content: system.into() });
    }
    let mut rest = replayed;
    while let Some((message, after)) = rest.split_first() {
        rest = match &**message {
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
    chat: Vec<Chat<'a>>,
}

impl<'a> Writer<'a> {
    fn user(&mut self, content: &'a native::Content) {
        let content = match content {
            native::Content::Text(text) => Content::from(text.as_str()),
            native::Content::Blocks(blocks) => Content::Parts(blocks.iter().filter_map(part).collect()),
        };
        if content != Content::Parts(Vec::new()) {
            self.bridge();
            self.chat.push(Chat::Said { role: "user", content });
        }
    }

    /// An answer; nothing for one that would be empty.
    fn assistant(&mut self, message: &'a AssistantMessage) {
        let thoughts: Vec<&ThinkingBlock> = thoughts(message).collect();
        let readable: Vec<&str> =
            thoughts.iter().map(|block| block.thinking.as_str()).filter(|text| !text.trim().is_empty()).collect();
        let as_text = self.quirks.thinking_as_text && !readable.is_empty();
        let content = self.answer_content(message, if as_text { &readable } else { &[] });
        let calls: Vec<Call<'_>> = message.tool_calls().map(call).collect();
        if calls.is_empty() && matches!(&content, Content::None | Content::Text(Cow::Borrowed(""))) {
            return;
        }
        let details = details(message, &thoughts);
        let reasoning = field(&thoughts, &readable).filter(|_| details.is_none() && !as_text);
        let empty_reasoning = self.quirks.reasoning_content
            && self.model.reasoning
            && reasoning.as_ref().is_none_or(|(field, _)| *field != "reasoning_content");
        self.chat.push(Chat::Answer(Answer { content, reasoning, calls, details, empty_reasoning }));
    }

    /// The words of an answer, behind its thoughts where these count as words.
    fn answer_content(&self, message: &'a AssistantMessage, thoughts: &[&str]) -> Content<'a> {
        let mut texts = message.content.iter().filter_map(Block::as_text).filter(|text| !text.trim().is_empty());
        if !thoughts.is_empty() {
            let thought = Part::text(thoughts.join("\n\n"));
            return Content::Parts(std::iter::once(thought).chain(texts.map(Part::text)).collect());
        }
        match (texts.next(), texts.next()) {
            (None, _) if self.quirks.assistant_after_tool_result => "".into(),
            (None, _) => Content::None,
            (Some(only), None) => only.into(),
            (Some(first), Some(second)) => {
                Content::Text([first, second].into_iter().chain(texts).collect::<String>().into())
            }
        }
    }

    /// The results that `messages` begin with, and a user's message with their images; returns the messages after them.
    fn results(&mut self, messages: &'a [Cow<'a, Message>]) -> &'a [Cow<'a, Message>] {
        let count = messages.iter().take_while(|message| message.as_tool_result().is_some()).count();
        let (results, rest) = messages.split_at(count);
        let mut images = Vec::new();
        for result in results.iter().filter_map(|message| message.as_tool_result()) {
            self.chat.push(self.result(result));
            images.extend(result.content.iter().filter_map(|block| match block {
                Block::Known(KnownBlock::Image(block)) => Some(image(block)),
                _ => None,
            }));
        }
        if !images.is_empty() {
            self.bridge();
            let mut content = vec![Part::text("Attached image(s) from tool result:")];
            content.append(&mut images);
            self.chat.push(Chat::Said { role: "user", content: Content::Parts(content) });
        }
        rest
    }

    fn result(&self, message: &'a ToolResultMessage) -> Chat<'a> {
        let text = match message.content.as_slice() {
            [only] => Cow::Borrowed(only.as_text().unwrap_or_default()),
            _ => Cow::Owned(message.text()),
        };
        let has_images = message.content.iter().any(|block| matches!(block, Block::Known(KnownBlock::Image(_))));
        let content = match text.trim() {
            "" if has_images => "(see attached image)".into(),
            "" => "(no tool output)".into(),
            _ => Content::Text(text),
        };
        let name = Some(message.tool_name.as_str()).filter(|name| self.quirks.tool_result_name && !name.is_empty());
        Chat::Result { role: "tool", content, tool_call_id: &message.tool_call_id, name }
    }

    /// Puts an answer between a tool's result and what a user says, where a server wants one.
    fn bridge(&mut self) {
        let after_result = matches!(self.chat.last(), Some(Chat::Result { .. }));
        if self.quirks.assistant_after_tool_result && after_result {
            self.chat.push(Chat::Said { role: "assistant", content: BRIDGE.into() });
        }
    }
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Known(KnownBlock::Text(block)) => {
            (!block.text.trim().is_empty()).then(|| Part::text(block.text.as_str()))
        }
        Block::Known(KnownBlock::Image(block)) => Some(image(block)),
        Block::Known(KnownBlock::Thinking(_) | KnownBlock::ToolCall(_)) | Block::Other(_) => None,
    }
}

fn image(block: &ImageBlock) -> Part<'static> {
    Part::image(format!("data:{};base64,{}", block.mime_type, block.data))
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
fn call(call: &ToolCall) -> Call<'_> {
    let arguments = if call.arguments.is_object() { js::json(&call.arguments) } else { "{}".to_owned() };
    Call::new(&call.id, &call.name, arguments)
}
