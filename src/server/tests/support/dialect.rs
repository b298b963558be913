//! One request to a dialect, played to its end.

use std::sync::Arc;

use futures::StreamExt;
use learnharness::app::native::{AssistantMessage, Message};
use learnharness::server::llm::anthropic_messages::AnthropicMessages;
use learnharness::server::llm::catalog::{Api, Model};
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::options::Options;
use learnharness::server::llm::transport::{Limits, Transport};
use learnharness::server::llm::{Dialect, Request, StreamEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::provider::Provider;

/// A model of the provider that makes no promises.
pub(crate) fn model(api: Api, provider: &Provider) -> Model {
    Model { provider: "acme".into(), ..Model::at(api, provider.url(), "acme/think-1") }
}

/// A request of the shortest kind.
pub(crate) fn ask(provider: &Provider) -> Request {
    Request {
        model: model(Api::OpenAiCompletions, provider),
        system: String::new(),
        messages: vec![Message::user("Hi", 0)],
        tools: Vec::new(),
        session: String::new(),
        options: Options::default(),
    }
}

/// A dialect that waits for nothing between two tries.
pub(crate) fn openai(limits: Limits) -> OpenAiCompletions {
    OpenAiCompletions::new(transport(limits), || 0)
}

/// The dialect of an API, with no waits between two tries.
pub(crate) fn speaker(api: Api, limits: Limits) -> Arc<dyn Dialect> {
    match api {
        Api::AnthropicMessages => Arc::new(AnthropicMessages::new(transport(limits), || 0)),
        Api::OpenAiCompletions | Api::Lesson => Arc::new(openai(limits)),
    }
}

fn transport(limits: Limits) -> Transport {
    Transport::new(limits, Arc::new(|_| Box::pin(std::future::ready(())))).unwrap()
}

/// Runs one request to its end; `abort` is a recorded selector of the moment to cancel.
pub(crate) async fn play(
    dialect: &dyn Dialect,
    request: Request,
    provider: &Provider,
    abort: Option<&Value>,
) -> Vec<StreamEvent> {
    let cancel = CancellationToken::new();
    let mut stream = dialect.stream(request, cancel.clone());
    let mut events = Vec::new();
    let mut left = abort.map_or(0, |abort| abort["nth"].as_u64().unwrap_or(1));
    if let Some(count) = abort.and_then(|abort| abort["request"].as_u64()) {
        tokio::select! {
            biased;
            () = provider.asked(count as usize) => cancel.cancel(),
            event = stream.next() => events.extend(event),
        }
    }
    while let Some(event) = stream.next().await {
        if let (StreamEvent::Update { event, .. }, Some(abort)) = (&event, abort)
            && json!(event)["type"] == abort["eventType"]
        {
            left -= 1;
            if left == 0 {
                cancel.cancel();
            }
        }
        events.push(event);
    }
    events
}

/// The message that a stream ended with.
pub(crate) fn finished(events: &[StreamEvent]) -> AssistantMessage {
    match events.last() {
        Some(StreamEvent::End(message)) => *message.clone(),
        other => panic!("the stream ended with {other:?}"),
    }
}
