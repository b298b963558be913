//! Anthropic's marks for the cache, on servers that pass them on: in the instructions, and in the last message that has
//! text (the last tool has one as well).

use serde_json::Value;

use super::chat::{Chat, Content, Part};

/// Marks the messages of a request up to which a provider may keep it.
pub(super) fn mark_messages(chat: &mut [Chat<'_>], mark: &Value) {
    let instructions = |message: &&mut Chat<'_>| matches!(message, Chat::Said { role: "system" | "developer", .. });
    if let Some(message) = chat.iter_mut().find(instructions) {
        mark_text(message.content_mut(), mark);
    }
    let mut said = chat.iter_mut().rev().filter(|message| !instructions(message));
    said.any(|message| mark_text(message.content_mut(), mark));
}

/// Marks the last text of a message's content; false when it has none.
fn mark_text(content: &mut Content<'_>, mark: &Value) -> bool {
    if let Content::Text(text) = content
        && !text.is_empty()
    {
        *content = Content::Parts(vec![Part::text(std::mem::take(text))]);
    }
    let Content::Parts(parts) = content else { return false };
    let last = parts.iter_mut().rev().find_map(|part| match part {
        Part::Text { cache_control, .. } => Some(cache_control),
        Part::ImageUrl { .. } => None,
    });
    last.map(|cache_control| *cache_control = Some(mark.clone())).is_some()
}
