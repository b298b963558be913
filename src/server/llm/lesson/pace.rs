//! Cutting blocks into the small steps in which a model would stream them.

use crate::app::native::event::ToolCallEntry;
use crate::app::native::message::KnownBlock;
use crate::app::native::{AssistantEvent, Block, ToolCall};

/// Characters of one piece of a call's arguments.
const PIECE: usize = 16;

/// The events that build `block` as number `content_index` of its message. Their fold is the block.
pub(super) fn events(content_index: usize, block: &Block) -> Vec<AssistantEvent> {
    let mut events = Vec::new();
    match block {
        Block::Known(KnownBlock::Text(text)) => {
            events.push(AssistantEvent::TextStart { content_index });
            events.extend(in_words(&text.text).map(|delta| AssistantEvent::TextDelta { content_index, delta }));
            events.push(AssistantEvent::TextEnd { content_index, content: text.text.clone() });
        }
        Block::Known(KnownBlock::Thinking(thought)) => {
            events.push(AssistantEvent::ThinkingStart { content_index });
            events.extend(
                in_words(&thought.thinking).map(|delta| AssistantEvent::ThinkingDelta { content_index, delta }),
            );
            events.push(AssistantEvent::ThinkingEnd { content_index, content: thought.thinking.clone() });
        }
        Block::Known(KnownBlock::ToolCall(call)) => {
            events.push(AssistantEvent::ToolCallStart { content_index });
            let pieces = in_pieces(&call.arguments.to_string());
            events.extend(pieces.into_iter().map(|delta| AssistantEvent::ToolCallDelta { content_index, delta }));
            events.push(AssistantEvent::ToolCallEnd {
                content_index,
                tool_call: Box::new(ToolCallEntry::ToolCall(call.clone())),
            });
        }
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => {}
    }
    events
}

/// A call as it stands in the message when it begins: its id and name are there, its arguments are not.
pub(super) fn begun(call: &ToolCall) -> ToolCall {
    ToolCall { arguments: serde_json::json!({}), partial_args: Some(String::new()), ..call.clone() }
}

/// The words of `text`, each with the space after it.
fn in_words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|character: char| !character.is_whitespace())?;
        let space = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
        let end = rest[space..].find(|character: char| !character.is_whitespace()).map_or(rest.len(), |at| space + at);
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece.to_owned())
    })
}

fn in_pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::app::native::{AssistantMessage, fold};

    use super::*;

    fn folded(block: &Block) -> Block {
        let mut message = AssistantMessage::default();
        for event in events(0, block) {
            fold(&mut message, &event);
        }
        message.content.remove(0)
    }

    proptest! {
        #[test]
        fn the_fold_of_its_events_is_the_block(text in "[ \\n]?(\\PC{0,9}[ \\n]){0,9}", value in "\\PC{0,40}") {
            prop_assert_eq!(&folded(&Block::text(text.as_str())), &Block::text(text.as_str()));
            prop_assert_eq!(&folded(&Block::thinking(text.as_str())), &Block::thinking(text.as_str()));
            let call = ToolCall {
                id: "c".to_owned(),
                name: "quiz".to_owned(),
                arguments: serde_json::json!({ "question": value }),
                ..ToolCall::default()
            };
            let mut whole = String::new();
            for event in events(0, &call.clone().into()) {
                if let AssistantEvent::ToolCallDelta { delta, .. } = event {
                    whole.push_str(&delta);
                }
            }
            prop_assert_eq!(&whole, &call.arguments.to_string());
            prop_assert_eq!(folded(&call.clone().into()), call.into());
        }
    }

    #[test]
    fn a_text_comes_word_by_word() {
        let words: Vec<String> = in_words(" Two thirds.\n\n- of it ").collect();
        assert_eq!(words, [" Two ", "thirds.\n\n", "- ", "of ", "it "]);
        assert_eq!(in_words("").count(), 0);
    }
}
