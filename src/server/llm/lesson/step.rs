//! One answer of the teacher in the making: what it thinks, says and calls.

use serde_json::Value;

use crate::app::native::{Block, ToolCall};

/// An answer: a thought, paragraphs, then calls.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    thought: String,
    paragraphs: Vec<String>,
    calls: Vec<ToolCall>,
}

impl Step {
    /// Begins with what the teacher thinks.
    pub(super) fn thinking(thought: impl Into<String>) -> Self {
        Self { thought: thought.into(), ..Self::default() }
    }

    /// Adds a paragraph (or several); an empty one is left out.
    pub(super) fn say(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.trim().is_empty() {
            self.paragraphs.push(text);
        }
        self
    }

    /// Adds what there is to say, if anything.
    pub(super) fn maybe_say(self, text: Option<String>) -> Self {
        self.say(text.unwrap_or_default())
    }

    /// Says this before everything else; an empty text is left out.
    pub(super) fn say_first(mut self, text: String) -> Self {
        if !text.is_empty() {
            self.paragraphs.insert(0, text);
        }
        self
    }

    /// Adds a paragraph when there is none yet.
    pub(super) fn or_say(self, text: &str) -> Self {
        if self.paragraphs.is_empty() { self.say(text) } else { self }
    }

    /// Adds a call; `key` tells it from the others of this answer.
    pub(super) fn call(mut self, key: &str, name: &str, arguments: Value) -> Self {
        self.calls.push(ToolCall { id: key.to_owned(), name: name.to_owned(), arguments, ..ToolCall::default() });
        self
    }

    /// The blocks, with `made` calls before them in the chat.
    pub(super) fn into_blocks(self, made: usize) -> Vec<Block> {
        let mut blocks = vec![Block::thinking(self.thought), Block::text(self.paragraphs.join("\n\n"))];
        for (index, call) in self.calls.into_iter().enumerate() {
            let id = format!("lesson-{}-{}", made + index, call.id);
            blocks.push(ToolCall { id, ..call }.into());
        }
        blocks
    }
}
