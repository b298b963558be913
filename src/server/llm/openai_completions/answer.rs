//! One streamed answer: chunks in, steps of the growing message out.
//!
//! As in the reference packages there is one text block and one thinking block, in the order of their first appearance,
//! and every block ends when the stream does. Differences are listed in `tests/reference`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::app::native::event::ToolCallEntry;
use crate::app::native::message::KnownBlock;
use crate::app::native::{AssistantEvent, AssistantMessage, Block, StopReason, Usage};
use crate::server::llm::StreamEvent;
use crate::server::llm::catalog::Model;
use crate::server::llm::draft::{Draft, finished_call};
use crate::server::llm::error::{Category, ProviderError};
use crate::server::llm::listen::{Answer, Flow};
use crate::server::llm::sse::Event;

use super::chunk::{CallPiece, Choice, Chunk, Delta, RawUsage};
use super::details::Details;
use super::think::{Piece, ThinkTags};
use crate::server::llm::halves::{self, Halves};

/// The share of a cost by which ours may be off before the provider's own is kept beside it.
const COST_TOLERANCE: f64 = 0.01;

pub(super) struct Chat {
    model: Model,
    draft: Draft,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    /// Ids of earlier calls.
    ids: HashSet<String>,
    details: Details,
    tags: ThinkTags,
    text_halves: Halves,
    thinking_halves: Halves,
    /// Who answers behind the provider has been told.
    named: bool,
    /// The server says how an answer ended; else its end is the end of the stream.
    says_finish: bool,
    /// How the provider said that it ended.
    finish: Option<Result<StopReason, ProviderError>>,
    /// The provider said that nothing follows.
    is_over: bool,
    /// Usage that came before the finish. Some servers send it with every chunk; it is applied once, at the end, so
    /// that it does not make every update carry the message.
    early_usage: Option<Usage>,
    /// USD that the answer cost by the provider's own word.
    reported_cost: Option<f64>,
}

struct OpenCall {
    block: usize,
    index: Option<i64>,
    halves: Halves,
}

impl Answer for Chat {
    fn message(&self) -> &AssistantMessage {
        self.draft.message()
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn read(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        if event.data.trim() == "[DONE]" {
            self.is_over = true;
            return Ok(Flow::Done);
        }
        if event.name == "error" {
            return Err(match serde_json::from_str(&event.data) {
                Ok(error) => ProviderError::reported(&error),
                Err(_) => ProviderError::with_words(Category::Reported, &event.data),
            });
        }
        // Lone halves of surrogate pairs stand in mended data as private characters.
        let mended = event.data.contains("\\u").then(|| halves::hide(&event.data)).flatten();
        let data = mended.as_deref().unwrap_or(&event.data);
        let mut spare = String::new();
        let Some(chunk) = Chunk::read(data, &mut spare)? else { return Ok(Flow::More) };
        if let Some(error) = &chunk.error {
            return Err(ProviderError::reported(error));
        }
        self.read_names(&chunk, out);
        let choice = chunk.choice;
        let last = choice.as_ref().is_none_or(|choice| finish_word(choice).is_some());
        let usage = chunk.usage.or_else(|| choice.as_ref()?.usage.clone());
        self.read_usage(usage.as_deref(), last);
        let Some(mut choice) = choice else { return Ok(Flow::More) };
        if let Some(word) = finish_word(&choice) {
            self.read_finish(word);
        }
        if let Some(delta) = choice.delta.take().or(choice.message.take()) {
            self.read_delta(delta, mended.is_some(), out);
        }
        Ok(Flow::More)
    }

    /// Ends every block, in order, when nothing more will come.
    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(piece) = self.tags.finish() {
            self.piece(piece, false, out);
        }
        if let Some(rest) = self.thinking_halves.finish() {
            self.thinking_delta(rest.to_string(), None, out);
        }
        if let Some(rest) = self.text_halves.finish() {
            self.text_delta(rest.to_string(), out);
        }
        if let Some(usage) = self.early_usage.take() {
            self.set_usage(usage);
        }
        let mut ids = std::mem::take(&mut self.ids);
        for content_index in 0..self.message().content.len() {
            let event = match &self.message().content[content_index] {
                Block::Known(KnownBlock::Text(block)) => {
                    AssistantEvent::TextEnd { content_index, content: block.text.clone() }
                }
                Block::Known(KnownBlock::Thinking(block)) => {
                    let content = block.thinking.clone();
                    self.sign_thinking();
                    AssistantEvent::ThinkingEnd { content_index, content }
                }
                Block::Known(KnownBlock::ToolCall(call)) => {
                    let tool_call = Box::new(ToolCallEntry::ToolCall(finished_call(call, &mut ids)));
                    AssistantEvent::ToolCallEnd { content_index, tool_call }
                }
                Block::Known(KnownBlock::Image(_)) | Block::Other(_) => continue,
            };
            out.push(self.draft.step(event));
        }
    }

    fn end(mut self) -> StreamEvent {
        match self.finish.take() {
            Some(Ok(reason)) => self.end_with(reason, None),
            Some(Err(error)) => self.fail(&error),
            // A call that nobody said is whole may be cut off; a text is there to be read.
            None if self.says_finish && !(self.is_over && self.calls.is_empty()) => {
                self.fail(&ProviderError::new(Category::Unfinished))
            }
            None if self.calls.is_empty() => self.end_with(StopReason::Stop, None),
            None => self.end_with(StopReason::ToolUse, None),
        }
    }

    fn end_with(mut self, reason: StopReason, words: Option<String>) -> StreamEvent {
        if let Some(usage) = self.early_usage.take() {
            self.set_usage(usage);
        }
        self.sign_thinking();
        let mut message = self.draft.into_message();
        message.stop_reason = reason;
        message.error_message = words;
        if let Some(reported) = self.reported_cost {
            note_cost(&mut message, reported);
        }
        for block in &mut message.content {
            if let Block::Known(KnownBlock::ToolCall(call)) = block {
                call.partial_args = None;
            }
        }
        StreamEvent::End(Box::new(message))
    }
}

impl Chat {
    /// `says_finish` and `ids` as the fields of that name; `timestamp` is Unix time in ms.
    pub(super) fn new(model: Model, says_finish: bool, ids: HashSet<String>, timestamp: i64) -> Self {
        let draft = Draft::new(model.begun(timestamp));
        Self {
            model,
            draft,
            text: None,
            thinking: None,
            calls: Vec::new(),
            ids,
            details: Details::default(),
            tags: ThinkTags::default(),
            text_halves: Halves::default(),
            thinking_halves: Halves::default(),
            named: false,
            says_finish,
            finish: None,
            is_over: false,
            early_usage: None,
            reported_cost: None,
        }
    }

    fn read_names(&mut self, chunk: &Chunk<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(upstream) = chunk.provider.as_ref().filter(|upstream| !upstream.is_empty() && !self.named) {
            self.named = true;
            out.push(StreamEvent::Upstream(upstream.to_string()));
        }
        let message = self.draft.message();
        if let Some(id) = chunk.id.as_ref().filter(|id| !id.is_empty() && message.response_id.is_none()) {
            self.draft.change(|message| message.response_id = Some(id.to_string()));
        }
        let (own, known) = (&self.model.id, self.draft.message().response_model.is_some());
        if let Some(model) = chunk.model.as_ref().filter(|model| !model.is_empty() && **model != *own && !known) {
            self.draft.change(|message| message.response_model = Some(model.to_string()));
        }
    }

    fn read_usage(&mut self, usage: Option<&RawUsage>, last: bool) {
        let Some(usage) = usage.filter(|usage| !usage.is_empty()) else { return };
        self.reported_cost = usage.reported_cost().or(self.reported_cost);
        let usage = usage.count(&self.model.prices);
        if last {
            self.early_usage = None;
            self.set_usage(usage);
        } else {
            self.early_usage = Some(usage);
        }
    }

    fn set_usage(&mut self, usage: Usage) {
        if self.draft.message().usage != usage {
            self.draft.change(|message| message.usage = usage);
        }
    }

    fn read_finish(&mut self, word: &str) {
        let finish = match word {
            "length" | "max_tokens" => Ok(StopReason::Length),
            "tool_calls" | "function_call" => Ok(StopReason::ToolUse),
            "content_filter" => {
                Err(ProviderError { code: Some(word.to_owned()), ..ProviderError::new(Category::Filtered) })
            }
            "error" | "network_error" => {
                Err(ProviderError { code: Some(word.to_owned()), ..ProviderError::new(Category::Reported) })
            }
            // Servers have words of their own for an ordinary end; the word itself is kept.
            _ => Ok(StopReason::Stop),
        };
        let word = Value::from(word);
        let reason = finish.as_ref().copied().unwrap_or(StopReason::Error);
        let words = finish.as_ref().err().map(ToString::to_string);
        let message = self.draft.message();
        if message.stop_reason != reason || message.extra.get("rawStopReason") != Some(&word) {
            self.draft.change(|message| {
                message.stop_reason = reason;
                message.error_message = words;
                message.extra.insert("rawStopReason".to_owned(), word);
            });
        }
        self.finish = Some(finish);
    }

    fn read_delta(&mut self, mut delta: Delta<'_>, has_halves: bool, out: &mut Vec<StreamEvent>) {
        let reasoning = delta.reasoning();
        for text in [delta.text(), delta.refusal.take().unwrap_or_default().into_owned()] {
            if !text.is_empty() {
                let reasoned = self.thinking.is_some() || reasoning.is_some();
                self.said(text, reasoned, has_halves, out);
            }
        }
        let details = delta.reasoning_details.take().unwrap_or_default();
        let readable = reasoning.map(|(field, text)| (Some(field), text));
        let readable = readable.or_else(|| Some((Some(""), Details::readable(&details)?)));
        if let Some((field, text)) = readable {
            let text = self.thinking_halves.join(text, has_halves);
            self.thinking_delta(text, field, out);
        }
        for piece in delta.tool_calls.take().unwrap_or_default() {
            self.read_call(piece, has_halves, out);
        }
        for detail in details {
            if self.details.add(detail) && self.thinking.is_none() {
                self.open_thinking(Some(""), out);
            }
        }
    }

    /// Reads a piece of text, which may hold thinking at its very start.
    fn said(&mut self, text: String, reasoned: bool, has_halves: bool, out: &mut Vec<StreamEvent>) {
        if self.tags.are_over() {
            return self.piece(Piece::Text(text), has_halves, out);
        }
        for piece in self.tags.push(&text, reasoned) {
            self.piece(piece, has_halves, out);
        }
    }

    fn piece(&mut self, piece: Piece, has_halves: bool, out: &mut Vec<StreamEvent>) {
        match piece {
            Piece::Thinking(text) => {
                let text = self.thinking_halves.join(text, has_halves);
                self.thinking_delta(text, None, out);
            }
            Piece::Text(text) => {
                let text = self.text_halves.join(text, has_halves);
                self.text_delta(text, out);
            }
        }
    }

    fn text_delta(&mut self, delta: String, out: &mut Vec<StreamEvent>) {
        if delta.is_empty() {
            return;
        }
        let content_index = *self.text.get_or_insert_with(|| {
            out.push(self.draft.open_text());
            self.draft.message().content.len() - 1
        });
        out.push(self.draft.step(AssistantEvent::TextDelta { content_index, delta }));
    }

    fn thinking_delta(&mut self, delta: String, field: Option<&str>, out: &mut Vec<StreamEvent>) {
        if !delta.is_empty() {
            let content_index = self.open_thinking(field, out);
            out.push(self.draft.step(AssistantEvent::ThinkingDelta { content_index, delta }));
        }
    }

    /// The thinking block, opened if need be. Its signature is the field that it came in, for replay in the same one.
    fn open_thinking(&mut self, field: Option<&str>, out: &mut Vec<StreamEvent>) -> usize {
        *self.thinking.get_or_insert_with(|| {
            out.push(self.draft.open_thinking(field.map(str::to_owned)));
            self.draft.message().content.len() - 1
        })
    }

    /// Puts the reasoning details into the thinking block's signature, where the next request finds them.
    fn sign_thinking(&mut self) {
        let (Some(index), Some(signature)) = (self.thinking, self.details.signature()) else { return };
        self.draft.change(|message| {
            if let Some(Block::Known(KnownBlock::Thinking(block))) = message.content.get_mut(index) {
                block.thinking_signature = Some(signature);
            }
        });
    }

    fn read_call(&mut self, piece: CallPiece, has_halves: bool, out: &mut Vec<StreamEvent>) {
        let id = piece.id.unwrap_or_default();
        let mut function = piece.function.unwrap_or_default();
        let name = function.name.take().unwrap_or_default();
        let at = self.find_call(piece.index, &id, &name).unwrap_or_else(|| {
            out.push(self.draft.open_call(id.clone(), name.clone()));
            let block = self.draft.message().content.len() - 1;
            self.calls.push(OpenCall { block, index: piece.index, halves: Halves::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.index = call.index.or(piece.index);
        let content_index = call.block;
        let delta = call.halves.join(function.arguments(), has_halves);
        let (late_id, late_name) = match self.draft.call(content_index) {
            Some(call) => (call.id.is_empty() && !id.is_empty(), call.name.is_empty() && !name.is_empty()),
            None => (false, false),
        };
        if late_id || late_name {
            self.draft.change(|message| {
                if let Some(Block::Known(KnownBlock::ToolCall(call))) = message.content.get_mut(content_index) {
                    call.id = if late_id { id } else { std::mem::take(&mut call.id) };
                    call.name = if late_name { name } else { std::mem::take(&mut call.name) };
                }
            });
        }
        out.push(self.draft.step(AssistantEvent::ToolCallDelta { content_index, delta }));
    }

    /// The open call that a piece belongs to: by its index, else by its id, else (with neither) the last one. A piece
    /// with a name and an id of its own begins a new call even on a used index: some servers number all of them 0.
    fn find_call(&self, index: Option<i64>, id: &str, name: &str) -> Option<usize> {
        let known = |at: usize| self.draft.call(self.calls[at].block);
        let has_id = |at: usize| known(at).is_some_and(|call| call.id == id);
        let by_index = index.and_then(|index| self.calls.iter().rposition(|call| call.index == Some(index)));
        match (by_index, index) {
            (Some(at), _) => {
                let other = !id.is_empty() && !has_id(at) && known(at).is_some_and(|call| !call.id.is_empty());
                let again = (0..self.calls.len()).rev().find(|at| has_id(*at)).filter(|_| other);
                again.or(if other && !name.is_empty() { None } else { Some(at) })
            }
            (None, _) if !id.is_empty() => (0..self.calls.len()).rev().find(|at| {
                // The same id on two numbers is two calls, whatever the server meant by it.
                has_id(*at) && (index.is_none() || self.calls[*at].index.is_none())
            }),
            (None, Some(_)) => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
}

/// Keeps the provider's own cost as a diagnostic when ours is another one: the prices that we know are not those of the day.
fn note_cost(message: &mut AssistantMessage, reported: f64) {
    let computed = message.usage.cost.total;
    if (computed - reported).abs() <= COST_TOLERANCE * reported.abs() {
        return;
    }
    let details = json!({"reported": reported, "computed": computed});
    let diagnostic = json!({"type": "provider-cost", "timestamp": message.timestamp, "details": details});
    match message.extra.get_mut("diagnostics").and_then(Value::as_array_mut) {
        Some(known) => known.push(diagnostic),
        None => {
            message.extra.insert("diagnostics".to_owned(), json!([diagnostic]));
        }
    }
}

/// The provider's word for the end; an empty one means that there is more.
fn finish_word<'a>(choice: &'a Choice<'_>) -> Option<&'a str> {
    choice.finish_reason.as_deref().filter(|word| !word.is_empty())
}
