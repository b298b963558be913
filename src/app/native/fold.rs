//! The one assembler of partial assistant messages; server and browser both use it.

use super::event::{AssistantEvent, ToolCallEntry};
use super::message::{AssistantMessage, Block, KnownBlock, ToolCall};
use super::partial::parse_partial;

/// Applies one step to an open message. A step that fits no block is left out: a reader that lost its place gets the
/// whole message with the next update.
pub fn fold(message: &mut AssistantMessage, event: &AssistantEvent) {
    match event {
        AssistantEvent::TextStart { content_index } => open(message, *content_index, Block::text("")),
        AssistantEvent::ThinkingStart { content_index } => open(message, *content_index, Block::thinking("")),
        AssistantEvent::ToolCallStart { content_index } => {
            let call =
                ToolCall { arguments: serde_json::json!({}), partial_args: Some(String::new()), ..ToolCall::default() };
            open(message, *content_index, call.into());
        }
        AssistantEvent::TextDelta { content_index, delta } => {
            if let Some(KnownBlock::Text(block)) = known(message, *content_index) {
                block.text.push_str(delta);
            }
        }
        AssistantEvent::ThinkingDelta { content_index, delta } => {
            if let Some(KnownBlock::Thinking(block)) = known(message, *content_index) {
                block.thinking.push_str(delta);
            }
        }
        AssistantEvent::ToolCallDelta { content_index, delta } => {
            if let Some(KnownBlock::ToolCall(call)) = known(message, *content_index) {
                let text = call.partial_args.get_or_insert_default();
                text.push_str(delta);
                call.arguments = parse_partial(text);
            }
        }
        AssistantEvent::TextEnd { content_index, content } => {
            if let Some(KnownBlock::Text(block)) = known(message, *content_index) {
                block.text.clone_from(content);
            }
        }
        AssistantEvent::ThinkingEnd { content_index, content } => {
            if let Some(KnownBlock::Thinking(block)) = known(message, *content_index) {
                block.thinking.clone_from(content);
            }
        }
        AssistantEvent::ToolCallEnd { content_index, tool_call: ToolCallEntry::ToolCall(done) } => {
            if let Some(KnownBlock::ToolCall(call)) = known(message, *content_index) {
                *call = done.clone();
            }
        }
    }
}

fn open(message: &mut AssistantMessage, index: usize, block: Block) {
    match message.content.len() {
        length if index == length => message.content.push(block),
        length if index < length => message.content[index] = block,
        _ => {}
    }
}

fn known(message: &mut AssistantMessage, index: usize) -> Option<&mut KnownBlock> {
    match message.content.get_mut(index) {
        Some(Block::Known(block)) => Some(block),
        _ => None,
    }
}
