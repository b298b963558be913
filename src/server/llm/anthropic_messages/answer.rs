//! One streamed answer: events in, steps of the growing message out.
//!
//! Blocks begin and end on their own. `model` stays the one that was asked for, so that the answer counts as its own when
//! it is replayed; the name that the provider gives goes into `responseModel`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::app::native::event::ToolCallEntry;
use crate::app::native::message::{KnownBlock, TextBlock, ThinkingBlock, ToolCall};
use crate::app::native::{AssistantEvent, AssistantMessage, Block, StopReason};
use crate::server::llm::StreamEvent;
use crate::server::llm::catalog::Model;
use crate::server::llm::draft::{Draft, finished_call};
use crate::server::llm::error::{Category, ProviderError};
use crate::server::llm::halves::Halves;
use crate::server::llm::listen::{Answer, Flow};
use crate::server::llm::prices::CACHE_WRITE_1H;
use crate::server::llm::sse;

use super::event::{Delta, Event, Head, Opening, RawUsage, Tail, Whole};

/// What a person reads in the place of thinking that the provider has sealed.
const REDACTED: &str = "[Reasoning redacted]";

pub(super) struct Said {
    model: Model,
    draft: Draft,
    open: Vec<OpenBlock>,
    /// Ids of the calls that have ended, and of those that were there before.
    ids: HashSet<String>,
    /// How the provider said that it ended.
    finish: Option<Result<StopReason, ProviderError>>,
    /// The provider said that nothing follows.
    is_over: bool,
}

/// A block that has begun: where it stands in the message, and the provider's number for it.
struct OpenBlock {
    at: usize,
    index: Option<u64>,
    halves: Halves,
}

impl Answer for Said {
    fn message(&self) -> &AssistantMessage {
        self.draft.message()
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn read(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let (event, has_halves) = Event::read(event)?;
        match event {
            Event::MessageStart { message } => self.begin(message),
            Event::ContentBlockStart { index, content_block } => self.open(index, content_block, out),
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta, has_halves, out),
            Event::ContentBlockStop { index } => {
                if let Some(at) = self.find(index) {
                    let block = self.open.remove(at);
                    self.close_block(block, out);
                }
            }
            Event::MessageDelta { delta, usage } => self.finish(delta, usage),
            Event::MessageStop => {
                self.is_over = true;
                return Ok(Flow::Done);
            }
            Event::Message(whole) => self.take(whole, out),
            Event::Ping => return Ok(Flow::Ping),
            Event::Error | Event::Other => {}
        }
        Ok(Flow::More)
    }

    /// Blocks that the provider left open stay open: it did not say that they are whole.
    fn close(&mut self, _: &mut Vec<StreamEvent>) {}

    fn end(mut self) -> StreamEvent {
        match self.finish.take() {
            Some(Ok(reason)) => self.end_with(reason, None),
            Some(Err(error)) => self.fail(&error),
            None if self.is_over && !self.has_open_call() => {
                let calls = self.message().tool_calls().next().is_some();
                self.end_with(if calls { StopReason::ToolUse } else { StopReason::Stop }, None)
            }
            None => self.fail(&ProviderError::new(Category::Unfinished)),
        }
    }

    fn end_with(mut self, reason: StopReason, words: Option<String>) -> StreamEvent {
        let open: Vec<usize> = self.open.iter().map(|block| block.at).collect();
        let mut message = self.draft.into_message();
        message.stop_reason = reason;
        message.error_message = words;
        for at in open {
            if let Some(Block::Known(KnownBlock::ToolCall(call))) = message.content.get_mut(at) {
                // A call without its end is kept as far as it goes; of a finished answer it must be sound to run.
                *call = match reason {
                    StopReason::Error | StopReason::Aborted => ToolCall { partial_args: None, ..call.clone() },
                    _ => finished_call(call, &mut self.ids),
                };
            }
        }
        StreamEvent::End(Box::new(message))
    }
}

impl Said {
    /// `ids` are those of earlier calls; `timestamp` is Unix time in ms.
    pub(super) fn new(model: Model, ids: HashSet<String>, timestamp: i64) -> Self {
        let draft = Draft::new(model.begun(timestamp));
        Self { model, draft, open: Vec::new(), ids, finish: None, is_over: false }
    }

    /// Where among the open blocks the one of this number is; without a number the last one. Some servers number all of
    /// them 0, and never say that one has ended.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        self.open.iter().rposition(|block| index.is_none() || block.index == index)
    }

    fn has_open_call(&self) -> bool {
        self.open.iter().any(|block| self.draft.call(block.at).is_some())
    }

    fn take(&mut self, whole: Whole, out: &mut Vec<StreamEvent>) {
        self.begin(whole.head);
        for block in whole.content {
            let count = self.open.len();
            self.open(None, block, out);
            if self.open.len() > count
                && let Some(block) = self.open.pop()
            {
                self.close_block(block, out);
            }
        }
        self.finish(whole.tail, None);
        self.is_over = true;
    }

    fn begin(&mut self, head: Head) {
        let own = self.model.id.clone();
        self.draft.change(|message| {
            message.response_id = head.id.filter(|id| !id.is_empty());
            message.response_model = head.model.filter(|model| !model.is_empty() && *model != own);
        });
        let mut usage = head.usage.unwrap_or_default();
        let long = usage.cache_creation.take().and_then(|written| written.ephemeral_1h_input_tokens).unwrap_or(0);
        self.count(&usage);
        let prices = &self.model.prices;
        self.draft.change(|message| {
            message.usage.extra.insert(CACHE_WRITE_1H.to_owned(), long.into());
            prices.apply(&mut message.usage);
        });
    }

    /// Takes over the counts that are there.
    fn count(&mut self, raw: &RawUsage) {
        let prices = &self.model.prices;
        self.draft.change(|message| {
            let usage = &mut message.usage;
            usage.input = raw.input_tokens.unwrap_or(usage.input);
            usage.output = raw.output_tokens.unwrap_or(usage.output);
            usage.cache_read = raw.cache_read_input_tokens.unwrap_or(usage.cache_read);
            usage.cache_write = raw.cache_creation_input_tokens.unwrap_or(usage.cache_write);
            let thinking = raw.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens);
            usage.reasoning = thinking.or(usage.reasoning);
            usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
            prices.apply(usage);
        });
    }

    fn open(&mut self, index: Option<u64>, opening: Opening, out: &mut Vec<StreamEvent>) {
        let at = self.draft.message().content.len();
        let event = match opening {
            Opening::Text { text } => {
                let block = KnownBlock::Text(TextBlock { text, ..TextBlock::default() });
                self.draft.open_with(AssistantEvent::TextStart { content_index: at }, Block::Known(block))
            }
            Opening::Thinking { thinking, signature } => {
                let signature = signature.unwrap_or_default();
                self.think(ThinkingBlock { thinking, ..ThinkingBlock::default() }, signature)
            }
            Opening::RedactedThinking { data } => {
                let thinking = REDACTED.to_owned();
                self.think(ThinkingBlock { thinking, redacted: Some(true), ..ThinkingBlock::default() }, data)
            }
            Opening::ToolUse { id, name, input } => {
                // What is no object is read as if it had been streamed.
                let (arguments, text) = match input {
                    Value::Object(_) => (input, String::new()),
                    Value::Null => (json!({}), String::new()),
                    Value::String(text) => (json!({}), text),
                    other => (json!({}), other.to_string()),
                };
                let call = ToolCall {
                    id: id.unwrap_or_default(),
                    name: name.unwrap_or_default(),
                    arguments,
                    partial_args: Some(text),
                    ..ToolCall::default()
                };
                self.draft.open_with(AssistantEvent::ToolCallStart { content_index: at }, call.into())
            }
            Opening::Other => return,
        };
        out.push(event);
        self.open.push(OpenBlock { at, index, halves: Halves::default() });
    }

    fn think(&mut self, block: ThinkingBlock, signature: String) -> StreamEvent {
        let content_index = self.draft.message().content.len();
        let block = ThinkingBlock { thinking_signature: Some(signature), ..block };
        let block = Block::Known(KnownBlock::Thinking(block));
        self.draft.open_with(AssistantEvent::ThinkingStart { content_index }, block)
    }

    fn delta(&mut self, index: Option<u64>, delta: Delta, has_halves: bool, out: &mut Vec<StreamEvent>) {
        let Some(open) = self.find(index).and_then(|at| self.open.get_mut(at)) else { return };
        let content_index = open.at;
        let Some(Block::Known(block)) = self.draft.message().content.get(content_index) else { return };
        let event = match (block, delta) {
            (KnownBlock::Text(_), Delta::TextDelta { text }) => {
                AssistantEvent::TextDelta { content_index, delta: open.halves.join(text, has_halves) }
            }
            (KnownBlock::Thinking(_), Delta::ThinkingDelta { thinking }) => {
                AssistantEvent::ThinkingDelta { content_index, delta: open.halves.join(thinking, has_halves) }
            }
            (KnownBlock::ToolCall(_), Delta::InputJsonDelta { partial_json }) => {
                AssistantEvent::ToolCallDelta { content_index, delta: open.halves.join(partial_json, has_halves) }
            }
            (KnownBlock::Thinking(_), Delta::SignatureDelta { signature }) => {
                return self.draft.change(|message| {
                    if let Some(Block::Known(KnownBlock::Thinking(block))) = message.content.get_mut(content_index) {
                        block.thinking_signature.get_or_insert_default().push_str(&signature);
                    }
                });
            }
            _ => return,
        };
        out.push(self.draft.step(event));
    }

    fn close_block(&mut self, mut open: OpenBlock, out: &mut Vec<StreamEvent>) {
        let content_index = open.at;
        let Some(Block::Known(block)) = self.draft.message().content.get(content_index) else { return };
        let rest = open.halves.finish().map(String::from);
        let (rest, end) = match block {
            KnownBlock::Text(block) => {
                let content = block.text.clone() + rest.as_deref().unwrap_or_default();
                let rest = rest.map(|delta| AssistantEvent::TextDelta { content_index, delta });
                (rest, AssistantEvent::TextEnd { content_index, content })
            }
            KnownBlock::Thinking(block) => {
                let content = block.thinking.clone() + rest.as_deref().unwrap_or_default();
                let rest = rest.map(|delta| AssistantEvent::ThinkingDelta { content_index, delta });
                (rest, AssistantEvent::ThinkingEnd { content_index, content })
            }
            KnownBlock::ToolCall(call) => {
                let tool_call = Box::new(ToolCallEntry::ToolCall(finished_call(call, &mut self.ids)));
                (None, AssistantEvent::ToolCallEnd { content_index, tool_call })
            }
            KnownBlock::Image(_) => return,
        };
        for event in rest.into_iter().chain([end]) {
            out.push(self.draft.step(event));
        }
    }

    fn finish(&mut self, tail: Tail, usage: Option<RawUsage>) {
        if let Some(word) = tail.stop_reason.filter(|word| !word.is_empty()) {
            let said = tail.stop_details.and_then(|details| details.explanation);
            let finish = reason(&word, said);
            let known = finish.as_ref().copied().unwrap_or(StopReason::Error);
            let words = finish.as_ref().err().map(ToString::to_string);
            self.draft.change(|message| {
                message.stop_reason = known;
                message.error_message = words;
                message.extra.insert("rawStopReason".to_owned(), word.into());
            });
            self.finish = Some(finish);
        }
        if let Some(usage) = usage {
            self.count(&usage);
        }
    }
}

/// What the provider's word for the end means. Servers have words of their own for an ordinary end; the word itself is
/// kept.
fn reason(word: &str, explanation: Option<String>) -> Result<StopReason, ProviderError> {
    let failed = |category| ProviderError { code: Some(word.to_owned()), ..ProviderError::new(category) };
    match word {
        "end_turn" | "stop_sequence" | "pause_turn" => Ok(StopReason::Stop),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        "tool_use" => Ok(StopReason::ToolUse),
        "refusal" | "sensitive" => Err(ProviderError { words: explanation, ..failed(Category::Filtered) }),
        _ => Ok(StopReason::Stop),
    }
}
