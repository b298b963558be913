//! One request to a dialect, played to its end: over a socket, or without one.

use std::borrow::Cow;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use learnharness::app::native::{AssistantMessage, Message};
use learnharness::server::llm::anthropic_messages::AnthropicMessages;
use learnharness::server::llm::catalog::{Api, Model};
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::options::Options;
use learnharness::server::llm::transport::{Call, Limits, Transport};
use learnharness::server::llm::{Dialect, Request, StreamEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::provider::{BEAT, End, Provider};

/// A model of the provider that makes no promises.
pub(crate) fn model(api: Api, provider: &Provider) -> Model {
    model_at(api, provider.url())
}

pub(crate) fn model_at(api: Api, url: &str) -> Model {
    Model { provider: "acme".into(), ..Model::at(api, url, "acme/think-1") }
}

/// A request of the shortest kind.
pub(crate) fn ask(provider: &Provider) -> Request<'static> {
    ask_of(model(Api::OpenAiCompletions, provider))
}

pub(crate) fn ask_of(model: Model) -> Request<'static> {
    Request {
        model,
        system: String::new(),
        messages: vec![Cow::Owned(Message::user("Hi", 0))],
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
    by_way_of(api, transport(limits))
}

/// The dialect of an API, without a socket: `respond` answers.
pub(crate) fn offline(
    api: Api,
    limits: Limits,
    respond: impl Fn(&Call) -> reqwest::Response + Send + Sync + 'static,
) -> Arc<dyn Dialect> {
    by_way_of(api, Transport::answered_by(Arc::new(respond), limits))
}

fn by_way_of(api: Api, transport: Transport) -> Arc<dyn Dialect> {
    match api {
        Api::AnthropicMessages => Arc::new(AnthropicMessages::new(transport, || 0)),
        Api::OpenAiCompletions | Api::Lesson => Arc::new(OpenAiCompletions::new(transport, || 0)),
    }
}

fn transport(limits: Limits) -> Transport {
    Transport::new(limits, Arc::new(|_| Box::pin(std::future::ready(())))).unwrap()
}

/// An answer whose body comes in `pieces`, as it would from a socket.
pub(crate) fn response(status: u16, content_type: &str, pieces: Vec<Vec<u8>>, end: End) -> reqwest::Response {
    let pieces = stream::iter(pieces).map(Ok::<_, std::io::Error>);
    let tail = match end {
        End::Close => stream::empty().boxed(),
        End::Hang => stream::pending().boxed(),
        End::Beat(bytes) => stream::repeat(bytes).then(beat).boxed(),
        End::Reset | End::Refuse => stream::once(async { Err(std::io::ErrorKind::ConnectionReset.into()) }).boxed(),
    };
    let body = reqwest::Body::wrap_stream(pieces.chain(tail).into_stream());
    http::Response::builder().status(status).header("content-type", content_type).body(body).unwrap().into()
}

async fn beat(bytes: &'static str) -> std::io::Result<Vec<u8>> {
    tokio::time::sleep(BEAT).await;
    Ok(bytes.as_bytes().to_vec())
}

/// Runs one request to its end; `abort` is a recorded selector of the moment to cancel.
pub(crate) async fn play(
    dialect: &dyn Dialect,
    request: Request<'_>,
    provider: &Provider,
    abort: Option<&Value>,
) -> Vec<StreamEvent> {
    let cancel = CancellationToken::new();
    let mut stream = dialect.stream(request, cancel.clone());
    let mut first = None;
    if let Some(count) = abort.and_then(|abort| abort["request"].as_u64()) {
        tokio::select! {
            biased;
            () = provider.asked(count as usize) => cancel.cancel(),
            event = stream.next() => first = event,
        }
    }
    let rest = follow(stream, &cancel, abort).await;
    first.into_iter().chain(rest).collect()
}

/// Runs one request to its end without a socket; `abort` is a recorded selector of the moment to cancel.
pub(crate) async fn hear(dialect: &dyn Dialect, request: Request<'_>, abort: Option<&Value>) -> Vec<StreamEvent> {
    let cancel = CancellationToken::new();
    follow(dialect.stream(request, cancel.clone()), &cancel, abort).await
}

async fn follow(
    mut stream: BoxStream<'static, StreamEvent>,
    cancel: &CancellationToken,
    abort: Option<&Value>,
) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let mut left = abort.map_or(0, |abort| abort["nth"].as_u64().unwrap_or(1));
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
