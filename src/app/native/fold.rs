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
                let known = text.len();
                text.push_str(delta);
                if is_due(known, text.len()) {
                    call.arguments = parse_partial(text);
                }
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
        AssistantEvent::ToolCallEnd { content_index, tool_call } => {
            let ToolCallEntry::ToolCall(done) = &**tool_call;
            if let Some(KnownBlock::ToolCall(call)) = known(message, *content_index) {
                *call = done.clone();
            }
        }
    }
}

/// Whether arguments that grew from `known` to `length` bytes are read again. Reading costs the whole text, so long ones
/// wait until they have grown by a good part; all their deltas together then cost linear time. The end of a call brings
/// the complete arguments in any case.
fn is_due(known: usize, length: usize) -> bool {
    let step = (known / 16).next_power_of_two();
    length < 4096 || known / step != length / step
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_stay_close_to_their_text_without_being_read_at_every_delta() {
        let mut message = AssistantMessage::default();
        fold(&mut message, &AssistantEvent::ToolCallStart { content_index: 0 });
        let (mut read, mut shown, mut sent) = (0, 0, 0);
        for delta in std::iter::once("{\"a\":\"").chain(std::iter::repeat_n("abcd", 50_000)) {
            fold(&mut message, &AssistantEvent::ToolCallDelta { content_index: 0, delta: delta.into() });
            sent += delta.len();
            let now = message.content[0].as_tool_call().unwrap().arguments["a"].as_str().unwrap().len();
            read += if now == shown { 0 } else { sent };
            shown = now;
            assert!(shown + 6 >= sent - sent / 8, "{shown} of {sent} bytes");
        }
        assert!(read < 40 * sent, "{read} bytes were read for {sent}");
    }
}
