//! One request to a provider over HTTP: its time limits, when it may be sent again, and the events of its answer.
//!
//! Dropping a future of this module closes the connection, so a caller cancels by dropping.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::de::IgnoredAny;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::capture::{Keep, Tape};
use super::catalog::Key;
use super::delay::asked_wait;
use super::error::{Category, ProviderError};
use super::sse::{Decoder, EVENT_LIMIT, Event};
use crate::server::clock::now_ms;

/// The least time between two looks for something new: a quick model sends a piece a word, and a look costs more than a
/// word. Nobody sees so short a wait, and a model with a longer one between its words never waits.
const BREATH: Duration = Duration::from_millis(4);

/// Bytes of an error's body that are read.
const ERROR_BODY: usize = 64 * 1024;
/// How long they may take.
const ERROR_WAIT: Duration = Duration::from_secs(5);

/// How long a provider may take, and how often it is asked again.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// To a connection.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body.
    pub first_byte: Duration,
    /// Between two events with data; comments do not count.
    pub idle: Duration,
    /// From the finish of an answer to the end of its stream (usage may follow the finish).
    pub tail: Duration,
    /// Requests after the first one.
    pub retries: u32,
    /// Before the first retry; doubles with each.
    pub backoff: Duration,
    /// A provider that asks to wait for longer is not asked again.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            tail: Duration::from_secs(5),
            retries: 2,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// How long to wait before the try after `attempt` (0 for the first); none when the error is final.
    #[must_use]
    pub fn wait_after(&self, attempt: u32, error: &ProviderError) -> Option<Duration> {
        if attempt >= self.retries || !error.is_transient() {
            return None;
        }
        // No wait at all would spend all tries on one bad moment.
        let asked = error.retry_after.filter(|wait| !wait.is_zero());
        let wait = asked.unwrap_or_else(|| self.backoff.saturating_mul(1 << attempt.min(4)));
        (wait <= self.longest_wait).then_some(wait)
    }
}

/// Waits between two tries.
pub type Pause = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// A request that is ready to be sent, any number of times.
#[derive(Clone, Debug)]
pub struct Call {
    pub url: String,
    pub key: Option<Key>,
    pub auth: Auth,
    /// A later one of the same name wins; an empty value takes the header away.
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: Bytes,
}

/// Where an API wants its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`
    ApiKey,
}

impl Call {
    /// Takes the key out of the words of `error`.
    #[must_use]
    pub fn scrub(&self, error: ProviderError) -> ProviderError {
        match &self.key {
            Some(Key(key)) => error.without(key),
            None => error,
        }
    }
}

/// Gives the answer to a request in the place of a provider.
pub type Respond = Arc<dyn Fn(&Call) -> reqwest::Response + Send + Sync>;

/// The HTTP client of all dialects. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Transport {
    line: Line,
    limits: Limits,
    pause: Pause,
    keep: Option<Arc<dyn Keep>>,
}

/// Where requests go.
#[derive(Clone)]
enum Line {
    Http(reqwest::Client),
    Nowhere(Respond),
}

impl Transport {
    /// Waits between two tries as `pause` does; tests pass one that does not wait. Fails when the system offers no TLS.
    pub fn new(limits: Limits, pause: Pause) -> Result<Self, reqwest::Error> {
        Self::by_way_of(None, limits, pause)
    }

    /// The same through an HTTP proxy. Fails also when its address is none.
    pub fn by_way_of(proxy: Option<&str>, limits: Limits, pause: Pause) -> Result<Self, reqwest::Error> {
        let builder = reqwest::Client::builder()
            .connect_timeout(limits.connect)
            // A key must not follow a redirect to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("learnharness/", env!("CARGO_PKG_VERSION")));
        let builder = match proxy {
            Some(proxy) => builder.proxy(reqwest::Proxy::http(proxy)?),
            None => builder,
        };
        Ok(Self { line: Line::Http(builder.build()?), limits, pause, keep: None })
    }

    /// One that reaches nobody: `respond` answers every request. For what came over a wire once and is heard again.
    #[must_use]
    pub fn answered_by(respond: Respond, limits: Limits) -> Self {
        let pause: Pause = Arc::new(|_| Box::pin(std::future::ready(())));
        Self { line: Line::Nowhere(respond), limits, pause, keep: None }
    }

    /// The same with all exchanges captured, when there is somebody who keeps them.
    #[must_use]
    pub fn captured_by(self, keep: Option<Arc<dyn Keep>>) -> Self {
        Self { keep, ..self }
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Waits before the next try.
    pub async fn pause(&self, wait: Duration) {
        (self.pause)(wait).await;
    }

    /// Sends `call` once; its answer has begun when this returns.
    pub async fn send(&self, call: &Call) -> Result<Reply, ProviderError> {
        self.attempt(call).await.map_err(|error| call.scrub(error))
    }

    async fn attempt(&self, call: &Call) -> Result<Reply, ProviderError> {
        let deadline = Instant::now() + self.limits.first_byte;
        let late = || silent(self.limits.first_byte);
        let headers = headers(call)?;
        let mut tape = Tape::begin(self.keep.as_ref(), call, &headers);
        let sent = match &self.line {
            Line::Http(client) => {
                let request = client.post(&call.url).headers(headers).body(call.body.clone());
                let sent = timeout_at(deadline, request.send()).await.map_err(|_| late());
                sent.and_then(|sent| sent.map_err(|error| unreachable_words(&error)))
            }
            Line::Nowhere(respond) => Ok(respond(call)),
        };
        let mut body = Body::begin(sent.inspect_err(|error| tape.end(error))?, tape);
        if !body.response.status().is_success() {
            return Err(refusal(body).await);
        }
        let first = timeout_at(deadline, body.beginning()).await.map_err(|_| late());
        let first = first.inspect_err(|error| body.tape.end(error))?;
        let first = first.map_err(|_| ProviderError::with_words(Category::Unreachable, "it closed the connection"))?;
        Reply::begin(body, first, self.limits.idle).await
    }
}

/// The body of a response, with the tape that runs beside it.
#[derive(Debug)]
struct Body {
    response: reqwest::Response,
    tape: Tape,
    /// When the last piece came.
    came: Instant,
}

impl Body {
    fn begin(response: reqwest::Response, mut tape: Tape) -> Self {
        tape.head(response.status().as_u16(), response.headers());
        Self { response, tape, came: Instant::now() }
    }

    /// The next piece; none at the end. When none is there yet, what comes within a [`BREATH`] comes as one.
    async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        let chunk = {
            let mut next = pin!(self.response.chunk());
            let mut found = futures::poll!(next.as_mut());
            if found.is_pending() {
                // The connection reads in a task of its own, and no further than it is asked for.
                tokio::task::yield_now().await;
                found = futures::poll!(next.as_mut());
            }
            match found {
                Poll::Ready(chunk) => chunk,
                Poll::Pending => {
                    sleep_until(self.came + BREATH).await;
                    next.await
                }
            }
        };
        self.came = Instant::now();
        match &chunk {
            Ok(Some(bytes)) => self.tape.piece(bytes),
            Ok(None) => self.tape.end("whole"),
            Err(_) => self.tape.end("the connection broke"),
        }
        chunk
    }

    /// As much as tells what it is: up to its first sign that is no white space.
    async fn beginning(&mut self) -> Result<Bytes, reqwest::Error> {
        let mut blank = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
            if !is_blank && blank.is_empty() {
                return Ok(bytes);
            }
            blank.extend_from_slice(&bytes);
            if !is_blank {
                break;
            }
        }
        Ok(blank.into())
    }

    /// Appends the rest to `bytes`, up to `limit` bytes in all or to where it breaks.
    async fn read(&mut self, bytes: &mut Vec<u8>, limit: usize) {
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = limit.saturating_sub(bytes.len());
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() >= room {
                break;
            }
        }
    }
}

/// An answer that has begun.
#[derive(Debug)]
pub struct Reply {
    body: Body,
    /// None after the end of the body.
    decoder: Option<Decoder>,
    /// Decoded and not yet told.
    ready: Vec<Event>,
}

impl Reply {
    /// Looks at the body's first byte: an event stream, whatever its content type says; one JSON object, as some local
    /// servers answer; or a page of something else.
    async fn begin(body: Body, first: Bytes, idle: Duration) -> Result<Self, ProviderError> {
        let mut reply = Self { body, decoder: Some(Decoder::default()), ready: Vec::new() };
        match first.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'<') => return Err(ProviderError::with_words(Category::Unreadable, "it sent a web page")),
            Some(b'{' | b'[') => {
                let mut bytes = first.into();
                let rest = timeout(idle, reply.body.read(&mut bytes, EVENT_LIMIT)).await.map_err(|_| silent(idle));
                rest.inspect_err(|error| reply.body.tape.end(error))?;
                let data = String::from_utf8_lossy(&bytes).into_owned();
                reply.ready.push(Event { name: String::new(), data });
                reply.decoder = None;
            }
            _ => reply.take(&first)?,
        }
        Ok(reply)
    }

    /// The status that it came with.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.body.response.status().as_u16()
    }

    /// The provider's own end mark has come: nothing that follows it is of use.
    pub fn done(&mut self) {
        self.body.tape.end("whole");
    }

    /// The events that came next, all that are there; none at the end of the body. Waits until `limit` after `since`.
    pub async fn next(&mut self, since: Instant, limit: Duration) -> Result<Vec<Event>, ProviderError> {
        let deadline = since + limit;
        while self.ready.is_empty() && self.decoder.is_some() {
            let chunk = timeout_at(deadline, self.body.chunk()).await.map_err(|_| silent(limit));
            match chunk.inspect_err(|error| self.body.tape.end(error))? {
                Ok(Some(bytes)) => self.take(&bytes)?,
                Ok(None) => {
                    // The standard drops an event without its blank line; providers do end like that, so it counts
                    // when nothing of it can be missing.
                    let last = self.decoder.take().and_then(Decoder::finish);
                    self.ready.extend(last.filter(|Event { data, .. }| {
                        data == "[DONE]" || serde_json::from_str::<IgnoredAny>(data).is_ok()
                    }));
                }
                Err(_) => return Err(ProviderError::new(Category::Cut)),
            }
        }
        Ok(std::mem::take(&mut self.ready))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        decoder.push(bytes, &mut self.ready).map_err(|_| {
            ProviderError::with_words(Category::Unreadable, format!("one event is longer than {EVENT_LIMIT} bytes"))
        })
    }
}

fn headers(call: &Call) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(Key(key)) = &call.key {
        let (name, text) = match call.auth {
            Auth::Bearer => ("authorization", format!("Bearer {key}")),
            Auth::ApiKey => ("x-api-key", key.clone()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            ProviderError::with_words(Category::Key, "it holds characters that no key has; it was not sent")
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &call.headers {
        let broken = || ProviderError::with_words(Category::Rejected, format!("the header {name:?} cannot be sent"));
        let name = HeaderName::try_from(name).map_err(|_| broken())?;
        if value.is_empty() {
            headers.remove(name);
        } else {
            headers.insert(name.clone(), HeaderValue::from_str(value).map_err(|_| broken())?);
        }
    }
    Ok(headers)
}

/// The error of an answer whose status is not a success.
async fn refusal(mut body: Body) -> ProviderError {
    let status = body.response.status().as_u16();
    let headers = std::mem::take(body.response.headers_mut());
    let mut text = Vec::new();
    // What has come by then may say enough.
    let _ = timeout(ERROR_WAIT, body.read(&mut text, ERROR_BODY)).await;
    let text = String::from_utf8_lossy(&text);
    let retry_after = asked_wait(status, &headers, &text, now_ms());
    let should_retry = headers.get("x-should-retry").and_then(|value| value.to_str().ok()?.parse().ok());
    ProviderError { retry_after, should_retry, ..ProviderError::from_status(status, &text) }
}

fn silent(limit: Duration) -> ProviderError {
    ProviderError::with_words(Category::Timeout, format!("it sent nothing for {} s", limit.as_secs_f64()))
}

/// What kept a request from its answer, without the address (it may hold a secret).
fn unreachable_words(error: &reqwest::Error) -> ProviderError {
    if error.is_builder() {
        return ProviderError::with_words(Category::Rejected, "its address is not a web address");
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let words = if error.is_connect() { cause.to_string() } else { "it closed the connection".to_owned() };
    ProviderError::with_words(Category::Unreachable, words)
}
