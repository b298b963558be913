//! Models: what a request is, and the dialects that answer it.

pub mod catalog;
pub mod draft;
pub mod error;
pub mod lesson;
pub mod openai_completions;
pub mod sse;
pub mod transport;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::app::native::{AssistantEvent, AssistantMessage, Message};

use crate::server::clock::now_ms;

use catalog::{Api, Model, Models};
use lesson::{Lesson, Packs};
use openai_completions::OpenAiCompletions;
use transport::{Limits, Transport};

/// One request to a model. `messages` hold only `user`, `assistant` and `toolResult`, in an order that providers accept.
#[derive(Clone, Debug)]
pub struct Request {
    pub model: Model,
    /// Empty for none.
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// The chat, for provider-side caching.
    pub session: String,
}

/// A tool as a model sees it; `parameters` is a JSON Schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

/// What a dialect says while a model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The answer has begun; missing when the request failed before its stream.
    Start(AssistantMessage),
    /// One step. `whole` is there when folding `event` into the message so far does not give the message exactly.
    Update { event: AssistantEvent, whole: Option<Box<AssistantMessage>> },
    /// The finished answer; exactly one, and last.
    End(Box<AssistantMessage>),
}

/// Speaks one provider API.
///
/// A dialect never fails: what goes wrong is an `End` whose message has `stopReason: "error"` and words for a person.
/// After `cancel` it ends soon with `stopReason: "aborted"` and what it had.
pub trait Dialect: Send + Sync {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent>;
}

/// The model in use with its dialect. The scripted teacher finds further packs in `lessons` and waits `pace` a delta.
///
/// # Errors
/// When the system offers no TLS.
pub fn models(model: Model, lessons: &Path, pace: Duration) -> Result<Models, reqwest::Error> {
    let dialect: Arc<dyn Dialect> = match model.api {
        Api::Lesson => {
            let (packs, errors) = Packs::load(lessons);
            for error in errors {
                tracing::warn!(%error, "a lesson pack is left out");
            }
            Arc::new(Lesson::new(Arc::new(packs), pace, Arc::new(now_ms)))
        }
        Api::OpenAiCompletions => {
            let transport = Transport::new(Limits::default(), Arc::new(|wait| Box::pin(tokio::time::sleep(wait))))?;
            Arc::new(OpenAiCompletions::new(transport, now_ms))
        }
    };
    Ok(Models { model, dialect })
}
