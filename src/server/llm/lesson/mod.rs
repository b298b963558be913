//! The dialect `lesson`: a scripted teacher that plays authored lesson packs and behaves as a model does.
//!
//! It is no model and says so. It gets a request, derives from the messages alone where the lesson is ([`play()`]), and
//! streams what comes next in small steps. It keeps no state, so a restart, a retry or an interruption at any point
//! goes on properly.
//!
//! In reading order: [`pack`] (a lesson as data; `section` and `check` read it), [`shelf`] (all of them), `history` (what
//! has happened; `heard` says what a text is), `probe`, `plan`, `teach` and `closing` (what comes next in each phase),
//! `step` (an answer in the making), `pace` (cutting it into steps). What serves them: `note`, `name`, `act` and `request`
//! read what is asked of a plan and `change` carries it out; `reply` answers free words, with what `quote` finds; `judge`
//! looks at short answers.

mod act;
mod change;
mod check;
mod closing;
mod heard;
mod history;
mod judge;
mod name;
mod note;
mod pace;
pub mod pack;
mod plan;
pub mod play;
mod probe;
mod quote;
mod reply;
mod request;
mod section;
pub mod shelf;
mod step;
mod teach;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::app::native::{AssistantEvent, AssistantMessage, Block, StopReason, Usage, fold};

use super::catalog::{Api, Model};
use super::{Dialect, Request, StreamEvent};

pub use pack::{Pack, PackError};
pub use play::play;
pub use shelf::Packs;

/// The provider that messages of this dialect name.
pub const PROVIDER: &str = "learnharness";
/// The one model of this dialect.
pub const MODEL: &str = "lesson";

/// Tells the time in Unix ms.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The scripted teacher. Cheap to clone; it keeps no state.
#[derive(Clone)]
pub struct Lesson {
    packs: Arc<Packs>,
    pace: Duration,
    clock: Clock,
}

impl Lesson {
    /// A teacher that plays `packs` and waits `pace` before each step of a stream; zero is as fast as can be.
    #[must_use]
    pub fn new(packs: Arc<Packs>, pace: Duration, clock: Clock) -> Self {
        Self { packs, pace, clock }
    }

    /// The scripted teacher as a model of the catalogue: it costs nothing and needs no key.
    #[must_use]
    pub fn model() -> Model {
        Model {
            id: MODEL.to_owned(),
            provider: PROVIDER.to_owned(),
            api: Api::Lesson,
            context_window: 1_000_000,
            max_tokens: 32_000,
            ..Model::default()
        }
    }
}

impl Dialect for Lesson {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let Self { packs, pace, clock } = self.clone();
        let request = request.into_owned();
        let stream = async_stream::stream! {
            let now = clock();
            let blocks = with_unique_ids(play(&packs, &request.messages, &request.tools), now);
            let mut message = AssistantMessage {
                api: Api::Lesson.name().to_owned(),
                provider: PROVIDER.to_owned(),
                model: MODEL.to_owned(),
                usage: Usage { input: tokens_in(&request), ..Usage::default() },
                timestamp: now,
                ..AssistantMessage::default()
            };
            yield StreamEvent::Start(Box::new(message.clone()));
            for (index, block) in blocks.iter().enumerate() {
                for event in pace::events(index, block) {
                    if cancelled_while_waiting(&cancel, pace).await {
                        yield StreamEvent::End(Box::new(aborted(message)));
                        return;
                    }
                    yield update(&mut message, event, block);
                }
            }
            let has_calls = message.tool_calls().next().is_some();
            message.stop_reason = if has_calls { StopReason::ToolUse } else { StopReason::Stop };
            yield StreamEvent::End(Box::new(counted(message)));
        };
        stream.boxed()
    }
}

/// Applies one step. A call's start does not say which call it is, so the whole message goes with it.
fn update(message: &mut AssistantMessage, event: AssistantEvent, block: &Block) -> StreamEvent {
    fold(message, &event);
    let whole = match (&event, block.as_tool_call()) {
        (AssistantEvent::ToolCallStart { content_index }, Some(call)) => {
            if let Some(open) = message.content.get_mut(*content_index) {
                *open = pace::begun(call).into();
            }
            Some(Box::new(message.clone()))
        }
        _ => None,
    };
    StreamEvent::Update { event, whole }
}

/// Waits `pace`; true when the request was cancelled before or meanwhile.
async fn cancelled_while_waiting(cancel: &CancellationToken, pace: Duration) -> bool {
    if pace.is_zero() {
        tokio::task::yield_now().await;
        return cancel.is_cancelled();
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => true,
        () = tokio::time::sleep(pace) => false,
    }
}

/// The time makes a call's id unique in the chat: answers that the messages of a request no longer show (cut off and
/// asked for again) may have used the same number.
fn with_unique_ids(blocks: Vec<Block>, now: i64) -> Vec<Block> {
    let stamp = base36(now.unsigned_abs());
    let unique = |block: Block| match block.as_tool_call() {
        Some(call) => {
            let mut call = call.clone();
            call.id = format!("{}-{stamp}", call.id);
            call.into()
        }
        None => block,
    };
    blocks.into_iter().map(unique).collect()
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// What was said before the request was cancelled.
fn aborted(mut message: AssistantMessage) -> AssistantMessage {
    for block in &mut message.content {
        if let Some(call) = block.as_tool_call().filter(|call| call.partial_args.is_some()) {
            let call = call.clone();
            *block = crate::app::native::ToolCall { partial_args: None, ..call }.into();
        }
    }
    message.stop_reason = StopReason::Aborted;
    message.error_message = Some("Request was aborted".to_owned());
    counted(message)
}

/// Fills in the estimated tokens of what was said; there is nothing to pay.
fn counted(mut message: AssistantMessage) -> AssistantMessage {
    let said = message.content.iter().map(characters).sum();
    message.usage = Usage {
        output: tokens(said),
        total_tokens: message.usage.input + tokens(said),
        extra: Map::new(),
        ..message.usage
    };
    message
}

/// Estimated tokens: four characters each.
fn tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

fn tokens_in(request: &Request) -> u64 {
    let messages: usize = request.messages.iter().map(length).sum();
    let tools: usize = request.tools.iter().map(|tool| tool.description.len() + length(&tool.parameters)).sum();
    tokens(request.system.chars().count() + messages + tools)
}

fn characters(block: &Block) -> usize {
    match block.as_text() {
        Some(text) => text.chars().count(),
        None => length(block),
    }
}

fn length<T: serde::Serialize>(value: &T) -> usize {
    serde_json::to_string(value).map_or(0, |json| json.chars().count())
}
