//! The growing assistant message: what was said so far, and what a reader needs to follow it.

use std::borrow::Borrow;
use std::collections::HashSet;

use serde_json::Map;

use crate::app::native::message::{KnownBlock, ToolCall};
use crate::app::native::partial::{ARGUMENTS_FAULT, parse_complete, parse_partial};
use crate::app::native::{AssistantEvent, AssistantMessage, Block, Message, fold};

use super::StreamEvent;

/// Applies every step with [`fold()`], and sends the message whole only when folding alone would not give it.
///
/// A plain delta costs what the delta costs: the message is cloned on `toolcall_start` and after a change of metadata.
#[derive(Debug)]
pub struct Draft {
    message: AssistantMessage,
    /// The message differs from what a reader has by now.
    changed: bool,
}

impl Draft {
    #[must_use]
    pub fn new(message: AssistantMessage) -> Self {
        Self { message, changed: false }
    }

    #[must_use]
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The finished message.
    #[must_use]
    pub fn into_message(self) -> AssistantMessage {
        self.message
    }

    /// Changes what no step carries (ids, signatures, usage …); the next step then brings the message whole.
    pub fn change(&mut self, change: impl FnOnce(&mut AssistantMessage)) {
        change(&mut self.message);
        self.changed = true;
    }

    /// Opens a text block after the last block.
    pub fn open_text(&mut self) -> StreamEvent {
        let content_index = self.message.content.len();
        self.step(AssistantEvent::TextStart { content_index })
    }

    /// Opens a thinking block after the last block.
    pub fn open_thinking(&mut self, signature: Option<String>) -> StreamEvent {
        let event = AssistantEvent::ThinkingStart { content_index: self.message.content.len() };
        fold(&mut self.message, &event);
        if let (Some(_), Some(Block::Known(KnownBlock::Thinking(block)))) =
            (&signature, self.message.content.last_mut())
        {
            block.thinking_signature = signature;
            self.changed = true;
        }
        self.emit(event)
    }

    /// Begins the block after the last one with `event`, and with what it holds already.
    pub fn open_with(&mut self, event: AssistantEvent, block: Block) -> StreamEvent {
        fold(&mut self.message, &event);
        if let Some(opened) = self.message.content.last_mut()
            && *opened != block
        {
            *opened = block;
            self.changed = true;
        }
        self.emit(event)
    }

    /// Opens a tool call after the last block.
    pub fn open_call(&mut self, id: String, name: String) -> StreamEvent {
        let event = AssistantEvent::ToolCallStart { content_index: self.message.content.len() };
        fold(&mut self.message, &event);
        if let Some(Block::Known(KnownBlock::ToolCall(call))) = self.message.content.last_mut() {
            call.id = id;
            call.name = name;
        }
        self.changed = true;
        self.emit(event)
    }

    /// Applies a step.
    pub fn step(&mut self, event: AssistantEvent) -> StreamEvent {
        fold(&mut self.message, &event);
        self.emit(event)
    }

    /// The call in the block at `index`.
    #[must_use]
    pub fn call(&self, index: usize) -> Option<&ToolCall> {
        self.message.content.get(index).and_then(Block::as_tool_call)
    }

    fn emit(&mut self, event: AssistantEvent) -> StreamEvent {
        let whole = std::mem::take(&mut self.changed).then(|| Box::new(self.message.clone()));
        StreamEvent::Update { event, whole }
    }
}

/// The ids of the calls of a history.
#[must_use]
pub fn call_ids(history: &[impl Borrow<Message>]) -> HashSet<String> {
    let answers = history.iter().filter_map(|message| message.borrow().as_assistant());
    answers.flat_map(AssistantMessage::tool_calls).map(|call| call.id.clone()).collect()
}

/// A streamed call as the record keeps it: with its arguments read, and with an id that no call before it has (`ids`
/// holds theirs): some servers count their calls anew in every answer, and an answer to one must not be taken for
/// another's. Arguments that are broken or cut off are marked (see [`ARGUMENTS_FAULT`]).
#[must_use]
pub fn finished_call(open: &ToolCall, ids: &mut HashSet<String>) -> ToolCall {
    let text = open.partial_args.as_deref().unwrap_or_default();
    let mut extra = Map::new();
    let arguments = if text.is_empty() && open.arguments.is_object() {
        // They came whole, when the call began.
        open.arguments.clone()
    } else {
        parse_complete(text).unwrap_or_else(|fault| {
            extra.insert(ARGUMENTS_FAULT.to_owned(), fault.to_string().into());
            parse_partial(text)
        })
    };
    let usable = !open.id.is_empty() && !ids.contains(&open.id);
    let id = if usable { open.id.clone() } else { format!("call_{}", uuid::Uuid::now_v7().simple()) };
    ids.insert(id.clone());
    ToolCall { id, name: open.name.clone(), arguments, extra, ..ToolCall::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_whole(event: &StreamEvent) -> bool {
        matches!(event, StreamEvent::Update { whole: Some(_), .. })
    }

    #[test]
    fn a_call_whose_id_was_used_before_gets_another() {
        let call = |id: &str| ToolCall { id: id.to_owned(), ..ToolCall::default() };
        let said =
            AssistantMessage { content: vec![Block::Known(KnownBlock::ToolCall(call("a")))], ..Default::default() };
        let mut ids = call_ids(&[Message::user("hi", 0), Message::Assistant(said)]);
        assert_eq!(finished_call(&call("b"), &mut ids).id, "b");
        let found = [finished_call(&call("a"), &mut ids).id, finished_call(&call("b"), &mut ids).id];
        assert!(found.iter().all(|id| id.starts_with("call_")) && found[0] != found[1], "{found:?}");
    }

    #[test]
    fn a_plain_delta_carries_no_message() {
        let mut draft = Draft::new(AssistantMessage::default());
        assert!(!is_whole(&draft.open_text()));
        assert!(!is_whole(&draft.step(AssistantEvent::TextDelta { content_index: 0, delta: "a".into() })));
    }

    #[test]
    fn a_call_and_a_change_of_metadata_bring_the_message_once() {
        let mut draft = Draft::new(AssistantMessage::default());
        assert!(is_whole(&draft.open_call("c1".into(), "look".into())));
        let delta = || AssistantEvent::ToolCallDelta { content_index: 0, delta: "{".into() };
        assert!(!is_whole(&draft.step(delta())));
        draft.change(|message| message.response_id = Some("gen-1".into()));
        assert!(is_whole(&draft.step(delta())));
        assert!(!is_whole(&draft.step(delta())));
        assert!(is_whole(&draft.open_thinking(Some("reasoning".into()))));
        assert!(!is_whole(&draft.open_thinking(None)));
    }

    proptest! {
        #[test]
        fn a_reader_that_folds_has_the_message_after_every_step(steps in prop::collection::vec((0..6u8, ".{0,4}"), 0..40)) {
            let mut draft = Draft::new(AssistantMessage::default());
            let mut reader = AssistantMessage::default();
            for (kind, delta) in steps {
                let last = draft.message().content.len().saturating_sub(1);
                let step = match kind {
                    0 => draft.open_text(),
                    1 => draft.open_thinking((!delta.is_empty()).then_some(delta)),
                    2 => draft.open_call(delta, "look".into()),
                    3 => draft.step(AssistantEvent::TextDelta { content_index: last, delta }),
                    4 => draft.step(AssistantEvent::ToolCallDelta { content_index: last, delta }),
                    _ => {
                        draft.change(|message| message.usage.output += 1);
                        draft.step(AssistantEvent::ThinkingDelta { content_index: last, delta })
                    }
                };
                let StreamEvent::Update { event, whole } = step else { unreachable!() };
                match whole {
                    Some(whole) => reader = *whole,
                    None => fold(&mut reader, &event),
                }
                prop_assert_eq!(&reader, draft.message());
            }
        }
    }
}
