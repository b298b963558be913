//! Listening to one answer: from the request to its end, through a stop, a failure or a silence.
//!
//! What differs between the APIs is an [`Answer`]; it makes the message, and this makes sure that there is exactly one end.

use std::time::Duration;

use async_stream::stream;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::StreamEvent;
use super::error::{Category, ProviderError};
use super::sse::Event;
use super::transport::{Call, Reply, Transport};
use crate::app::native::view::Retry;
use crate::app::native::{AssistantMessage, StopReason};

/// Bytes of events that one answer may have: many times more than the longest that a model writes.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Tells the time as Unix time in ms.
pub(super) type Clock = fn() -> i64;

/// One answer while it streams.
pub(super) trait Answer: Send + Sized + 'static {
    fn message(&self) -> &AssistantMessage;

    /// True when the provider has said how the answer ended; only counts may still follow.
    fn is_finished(&self) -> bool;

    /// Reads one event and appends the steps that it makes.
    fn read(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError>;

    /// Appends the steps that are owed when the stream is over or was stopped.
    fn close(&mut self, out: &mut Vec<StreamEvent>);

    /// The message of an answer that the provider ended.
    fn end(self) -> StreamEvent;

    /// The message of an answer that ended for `reason`, with words for a person; it keeps what was said.
    fn end_with(self, reason: StopReason, words: Option<String>) -> StreamEvent;

    /// The message of an answer that failed.
    fn fail(self, error: &ProviderError) -> StreamEvent {
        tracing::warn!(%error, ?error.category, model = %self.message().model, "an answer failed");
        self.end_with(StopReason::Error, Some(error.to_string()))
    }

    /// The message of an answer that was stopped.
    fn abort(self) -> StreamEvent {
        self.end_with(StopReason::Aborted, Some("The answer was stopped.".to_owned()))
    }
}

/// What follows an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    /// A sign of life that says nothing: the provider is as silent as before.
    Ping,
    /// The provider's own end mark: nothing follows.
    Done,
}

/// Sends `call` and tells what `answer` makes of what comes back.
pub(super) fn listen<A: Answer>(
    transport: Transport,
    call: Call,
    answer: A,
    cancel: CancellationToken,
) -> BoxStream<'static, StreamEvent> {
    Box::pin(stream! {
        let limits = transport.limits();
        let mut attempt = 0;
        let reply = loop {
            let error = match cancel.run_until_cancelled(transport.send(&call)).await {
                Some(Ok(reply)) => break reply,
                Some(Err(error)) => error,
                None => return yield answer.abort(),
            };
            let Some(wait) = limits.wait_after(attempt, &error) else { return yield answer.fail(&error) };
            attempt += 1;
            tracing::info!(%error, ?wait, attempt, "the provider is asked again");
            yield StreamEvent::Retry(retry(attempt, wait, &error));
            if cancel.run_until_cancelled(transport.pause(wait)).await.is_none() {
                return yield answer.abort();
            }
        };
        let mut events = follow(&transport, call, reply, answer, cancel);
        while let Some(event) = events.next().await {
            yield event;
        }
    })
}

/// Tells what `answer` makes of a reply that has begun.
pub(super) fn follow<A: Answer>(
    transport: &Transport,
    call: Call,
    mut reply: Reply,
    mut answer: A,
    cancel: CancellationToken,
) -> BoxStream<'static, StreamEvent> {
    let limits = transport.limits().clone();
    Box::pin(stream! {
        yield StreamEvent::Start(Box::new(answer.message().clone()));
        let mut steps = Vec::new();
        let mut length = 0;
        let mut since = Instant::now();
        'reply: loop {
            let limit = if answer.is_finished() { limits.tail } else { limits.idle };
            let came = match cancel.run_until_cancelled(reply.next(since, limit)).await {
                Some(Ok(came)) if !came.is_empty() => came,
                // The answer is whole; only the usage behind it is lost.
                Some(Err(error)) if !answer.is_finished() => return yield answer.fail(&call.scrub(error)),
                Some(Ok(_) | Err(_)) | None => break,
            };
            let mut says_more = false;
            for event in came {
                if cancel.is_cancelled() {
                    break 'reply;
                }
                length += event.data.len();
                let read = if length > LONGEST_ANSWER {
                    Err(ProviderError::with_words(Category::Unreadable, "its answer does not end"))
                } else {
                    answer.read(&event, &mut steps)
                };
                for step in steps.drain(..) {
                    yield step;
                }
                match read {
                    Ok(Flow::More) => says_more = true,
                    Ok(Flow::Ping) => {}
                    Ok(Flow::Done) => {
                        reply.done();
                        break 'reply;
                    }
                    Err(error) => return yield answer.fail(&call.scrub(error)),
                }
            }
            if says_more {
                since = Instant::now();
            }
        }
        drop(reply);
        answer.close(&mut steps);
        for step in steps {
            yield step;
        }
        yield if cancel.is_cancelled() { answer.abort() } else { answer.end() };
    })
}

/// What people are told of a try that waits.
fn retry(attempt: u32, wait: Duration, error: &ProviderError) -> Retry {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Retry { attempt, wait_ms, reason: error.to_string() }
}
