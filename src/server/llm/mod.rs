//! Models: what a request is, and the dialects that answer it.

pub mod again;
pub mod anthropic_messages;
pub mod capture;
pub mod catalog;
pub mod compat;
mod delay;
pub mod draft;
pub mod error;
pub mod estimate;
pub mod get;
mod halves;
pub mod ids;
pub mod js;
pub mod known;
pub mod lesson;
mod listen;
pub mod local;
pub mod openai_completions;
pub mod options;
pub mod overflow;
pub mod prices;
pub mod replay;
pub mod secrets;
pub mod sse;
pub mod strict;
pub mod thinking;
mod told;
pub mod transport;
pub mod update;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::app::native::view::Retry;
use crate::app::native::{AssistantEvent, AssistantMessage, Message};

use crate::server::clock::now_ms;

use anthropic_messages::AnthropicMessages;
use capture::Keep;
use catalog::{Api, Model, Models};
use lesson::{Lesson, Packs};
use openai_completions::OpenAiCompletions;
use options::Options;
use thinking::ThinkingLevel;
use transport::{Limits, Transport};

/// One request to a model. `messages` hold only `user`, `assistant` and `toolResult`, in an order that providers accept.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub model: Model,
    /// Empty for none.
    pub system: String,
    pub messages: Vec<Cow<'a, Message>>,
    pub tools: Vec<ToolSpec>,
    /// The chat, for provider-side caching.
    pub session: String,
    pub options: Options,
}

impl Request<'_> {
    /// The same with messages of its own.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        let Self { model, system, messages, tools, session, options } = self;
        let messages = messages.into_iter().map(|message| Cow::Owned(message.into_owned())).collect();
        Request { model, system, messages, tools, session, options }
    }
}

/// A tool as a model sees it; `parameters` is a JSON Schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    pub sampling: Sampling,
}

/// How closely the provider is asked to hold the model to a tool's schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    #[default]
    Free,
    /// To the strict form of the schema, where the provider can and the schema has one.
    Strict,
}

impl ToolSpec {
    /// The strict form of the parameters, when it is wanted and there is one.
    #[must_use]
    pub fn strict_parameters(&self) -> Option<Value> {
        match self.sampling {
            Sampling::Free => None,
            Sampling::Strict => strict::strict(&self.parameters).ok(),
        }
    }
}

/// What a dialect says while a model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The request failed and will be sent again after a wait; only ever before `Start`.
    Retry(Retry),
    /// Who answers behind the provider, as it names them.
    Upstream(String),
    /// The answer has begun; missing when the request failed before its stream.
    Start(Box<AssistantMessage>),
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

/// How hard a model thinks in a lesson: questions and plans profit from it, and the learner waits for the first word.
const LESSON_THINKING: ThinkingLevel = ThinkingLevel::Low;
/// Tokens that one answer of a lesson may have, thinking included. Some providers ask for the money for all of them
/// beforehand, and models can do more than a lesson ever needs.
const LESSON_TOKENS: u64 = 16_384;

/// The model in use with its dialect. It thinks as hard as `thinking` says, or a little, as far as it can. The scripted
/// teacher finds further packs in `lessons` and waits `pace` a delta; what goes to other models over the wire is captured
/// for `keep`.
///
/// # Errors
/// When the system offers no TLS.
pub fn models(
    model: Model,
    thinking: Option<ThinkingLevel>,
    lessons: &Path,
    pace: Duration,
    keep: Option<Arc<dyn Keep>>,
) -> Result<Models, reqwest::Error> {
    let pause: transport::Pause = Arc::new(|wait| Box::pin(tokio::time::sleep(wait)));
    let transport = || Ok(Transport::new(Limits::default(), pause)?.captured_by(keep));
    let dialect: Arc<dyn Dialect> = match model.api {
        Api::Lesson => {
            let (packs, errors) = Packs::load(lessons);
            for error in errors {
                tracing::warn!(%error, "a lesson pack is left out");
            }
            Arc::new(Lesson::new(Arc::new(packs), pace, Arc::new(now_ms)))
        }
        Api::OpenAiCompletions => Arc::new(OpenAiCompletions::new(transport()?, now_ms)),
        Api::AnthropicMessages => Arc::new(AnthropicMessages::new(transport()?, now_ms)),
    };
    let options = options(&model, thinking.unwrap_or(LESSON_THINKING));
    if let Some(wanted) = thinking.filter(|wanted| *wanted != options.thinking) {
        let (wanted, level) = (wanted.name(), options.thinking.name());
        tracing::info!(wanted, level, model = %model.id, "the model has not got that thinking level; it thinks at the next one");
    }
    Ok(Models { model, dialect, options })
}

/// What a lesson asks of `model`. Who wants more thinking than usual gets room for it beside the answer.
fn options(model: &Model, wanted: ThinkingLevel) -> Options {
    let thinking = model.clamp(wanted);
    let room = LESSON_TOKENS + thinking.budget().saturating_sub(LESSON_THINKING.budget());
    Options { thinking, max_tokens: (model.max_tokens > 0).then(|| model.max_tokens.min(room)), ..Options::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_asks_for_a_little_thinking_and_for_no_more_than_a_model_can() {
        let asked = |max_tokens, thinking| {
            let model = Model { max_tokens, reasoning: true, ..Model::default() };
            let options = models(model, thinking, Path::new("none"), Duration::ZERO, None).unwrap().options;
            (options.thinking, options.max_tokens)
        };
        assert_eq!(asked(0, None), (ThinkingLevel::Low, None));
        assert_eq!(asked(8_000, None).1, Some(8_000));
        assert_eq!(asked(128_000, None).1, Some(LESSON_TOKENS));
        assert_eq!(asked(128_000, Some(ThinkingLevel::Off)), (ThinkingLevel::Off, Some(LESSON_TOKENS)));
        assert_eq!(asked(128_000, Some(ThinkingLevel::Max)), (ThinkingLevel::High, Some(30_720)));
        assert_eq!(
            models(Model::default(), None, Path::new("none"), Duration::ZERO, None).unwrap().options.thinking,
            ThinkingLevel::Off
        );
    }
}
