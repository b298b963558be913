//! The `openai-completions` dialect: streamed chat completions, as OpenAI defined them and many servers speak them.

mod answer;
mod body;
mod chunk;
mod details;
mod halves;
mod think;

use async_stream::stream;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::error::ProviderError;
use super::transport::{Call, Transport};
use super::{Dialect, Request, StreamEvent};

use answer::{Answer, Flow};

/// Tells the time as Unix time in ms.
pub type Clock = fn() -> i64;

/// Speaks with any server that offers `/chat/completions`.
#[derive(Clone)]
pub struct OpenAiCompletions {
    transport: Transport,
    clock: Clock,
}

impl OpenAiCompletions {
    #[must_use]
    pub fn new(transport: Transport, clock: Clock) -> Self {
        Self { transport, clock }
    }
}

impl Dialect for OpenAiCompletions {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let transport = self.transport.clone();
        let mut answer = Answer::new(request.model.clone(), (self.clock)());
        let call = call(&request);
        Box::pin(stream! {
            let mut reply = match cancel.run_until_cancelled(transport.open(&call)).await {
                Some(Ok(reply)) => reply,
                Some(Err(error)) => return yield answer.fail(&error),
                None => return yield answer.abort(),
            };
            yield StreamEvent::Start(answer.message().clone());
            let mut events = Vec::new();
            loop {
                let limits = transport.limits();
                let limit = if answer.is_finished() { limits.tail } else { limits.idle };
                let read = match cancel.run_until_cancelled(reply.next(limit)).await {
                    Some(Ok(Some(data))) => answer.read(&data, &mut events),
                    Some(Ok(None)) => Ok(Flow::Done),
                    // The answer is whole; only the usage behind it is lost.
                    Some(Err(_)) if answer.is_finished() => Ok(Flow::Done),
                    Some(Err(error)) => Err(error),
                    None => break,
                };
                for event in events.drain(..) {
                    yield event;
                }
                match read {
                    Ok(Flow::More) => {}
                    Ok(Flow::Done) => break,
                    Err(error) => return yield answer.fail(&scrubbed(error, &call)),
                }
            }
            drop(reply);
            answer.close(&mut events);
            for event in events.drain(..) {
                yield event;
            }
            yield if cancel.is_cancelled() { answer.abort() } else { answer.end() };
        })
    }
}

fn call(request: &Request) -> Call {
    Call {
        url: format!("{}/chat/completions", request.model.base_url.trim_end_matches('/')),
        key: request.model.key.clone(),
        body: body::body(request).to_string().into(),
    }
}

fn scrubbed(error: ProviderError, call: &Call) -> ProviderError {
    match &call.key {
        Some(key) => error.without(&key.0),
        None => error,
    }
}
