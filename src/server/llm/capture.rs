//! Captures: one request to a provider and its response, as they went over the wire.
//!
//! A `Tape` runs beside the transport and only holds on to what passes by; once it is dropped, whoever keeps captures
//! (see [`Keep`]) makes an [`Exchange`] of it in its own time, and that has no keys.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::catalog::{Api, Key};
use super::secrets::{Secrets, is_secret};
use super::transport::{Auth, Call};
use crate::server::clock::now_ms;

/// Bytes that are kept of a request's body, and as many of a response's.
pub const LARGEST: usize = 4 * 1024 * 1024;

/// The form that is written; one that is not known is not read.
const VERSION: u32 = 1;

/// Takes what was captured.
pub trait Keep: Send + Sync {
    /// Must neither wait nor fail: it is called in the middle of a run.
    fn keep(&self, captured: Captured);
}

/// What a tape holds at its end; with keys, until it becomes an [`Exchange`].
pub struct Captured {
    call: Call,
    headers: HeaderMap,
    at: i64,
    head: Option<Head>,
    pieces: Vec<(Duration, Bytes)>,
    held: usize,
    cut: usize,
    end: Option<String>,
    took: Duration,
}

struct Head {
    after: Duration,
    status: u16,
    headers: HeaderMap,
}

/// Records one exchange, or nothing when nobody keeps it. It is handed over when it is dropped, whatever led to that.
pub(super) struct Tape(Option<Recording>);

struct Recording {
    keep: Arc<dyn Keep>,
    start: Instant,
    captured: Option<Captured>,
}

impl Tape {
    pub(super) fn begin(keep: Option<&Arc<dyn Keep>>, call: &Call, headers: &HeaderMap) -> Self {
        Self(keep.map(|keep| Recording {
            keep: keep.clone(),
            start: Instant::now(),
            captured: Some(Captured {
                call: call.clone(),
                headers: headers.clone(),
                at: now_ms(),
                head: None,
                pieces: Vec::new(),
                held: 0,
                cut: 0,
                end: None,
                took: Duration::ZERO,
            }),
        }))
    }

    /// The response has begun.
    pub(super) fn head(&mut self, status: u16, headers: &HeaderMap) {
        self.with(|captured, after| captured.head = Some(Head { after, status, headers: headers.clone() }));
    }

    /// A piece of its body has come.
    pub(super) fn piece(&mut self, bytes: &Bytes) {
        self.with(|captured, after| {
            let kept = bytes.slice(..bytes.len().min(LARGEST - captured.held));
            captured.held += kept.len();
            captured.cut += bytes.len() - kept.len();
            if !kept.is_empty() {
                captured.pieces.push((after, kept));
            }
        });
    }

    /// How it ended, in words; what is not told was left by us.
    pub(super) fn end(&mut self, words: &(impl ToString + ?Sized)) {
        self.with(|captured, _| captured.end = Some(words.to_string()));
    }

    fn with(&mut self, note: impl FnOnce(&mut Captured, Duration)) {
        if let Some(Recording { captured: Some(captured), start, .. }) = &mut self.0 {
            note(captured, start.elapsed());
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(mut captured) = self.captured.take() {
            captured.took = self.start.elapsed();
            self.keep.keep(captured);
        }
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tape")
    }
}

/// A capture as it is kept, shown, exported and sent again: without keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    version: u32,
    /// How the provider was spoken to.
    pub api: String,
    pub request: Sent,
    /// None when there was none.
    pub response: Option<Received>,
    /// How it ended, in words.
    pub end: String,
    pub took_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Unix time in ms.
    pub at: i64,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Bytes of the body that are not kept.
    pub cut: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// Since the request.
    pub after_ms: u64,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Piece>,
    /// Bytes of the body that are not kept.
    pub cut: usize,
}

/// Bytes that came at once: as text where they are one, else (a character may be cut) as base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// Since the request.
    pub after_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it is no capture: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has the form {0}, and this version reads the form {VERSION}")]
    Version(u32),
    #[error("it was sent to an API by the name of {0:?}, which is not known")]
    Api(String),
}

impl Captured {
    /// The exchange, without the keys that went with it and those that are given.
    #[must_use]
    pub fn into_exchange(self, keys: &[Key]) -> Exchange {
        let mut secrets = Secrets::default();
        for Key(key) in self.call.key.iter().chain(keys) {
            secrets.add(key);
        }
        let headers = texts(&self.headers);
        for (_, value) in headers.iter().filter(|(name, _)| is_secret(name)) {
            secrets.add(value);
        }
        let body = &self.call.body[..self.call.body.len().min(LARGEST)];
        let mut kept = body.to_vec();
        secrets.blot(&mut kept);
        let pieces = pieces(&self.pieces, &secrets);
        Exchange {
            version: VERSION,
            api: match self.call.auth {
                Auth::Bearer => Api::OpenAiCompletions,
                Auth::ApiKey => Api::AnthropicMessages,
            }
            .name()
            .to_owned(),
            request: Sent {
                at: self.at,
                method: "POST".to_owned(),
                url: secrets.without_in_url(&self.call.url),
                headers: secrets.without_in(&headers),
                body: String::from_utf8_lossy(&kept).into_owned(),
                cut: self.call.body.len() - body.len(),
            },
            response: self.head.map(|head| Received {
                after_ms: ms(head.after),
                status: head.status,
                headers: secrets.without_in(&texts(&head.headers)),
                pieces,
                cut: self.cut,
            }),
            end: secrets.without(self.end.as_deref().unwrap_or("left before its end")),
            took_ms: ms(self.took),
        }
    }
}

impl Exchange {
    /// Reads what was written.
    ///
    /// # Errors
    /// When it is no capture of a form that is known.
    pub fn read(json: &[u8]) -> Result<Self, Unreadable> {
        let value: serde_json::Value = serde_json::from_slice(json)?;
        match value["version"].as_u64().map(u32::try_from) {
            Some(Ok(VERSION)) | None => Ok(serde_json::from_value(value)?),
            Some(other) => Err(Unreadable::Version(other.unwrap_or(u32::MAX))),
        }
    }

    /// # Errors
    /// When its API is none of ours.
    pub fn api(&self) -> Result<Api, Unreadable> {
        let known = Api::ALL.into_iter().find(|api| api.name() == self.api && *api != Api::Lesson);
        known.ok_or_else(|| Unreadable::Api(self.api.clone()))
    }

    /// The body of the response as it came, as far as it was kept.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        self.response.iter().flat_map(|response| &response.pieces).flat_map(Piece::bytes).collect()
    }
}

impl Piece {
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let coded = || STANDARD.decode(self.base64.as_deref()?).ok();
        self.text.clone().map(String::into_bytes).or_else(coded).unwrap_or_default()
    }
}

/// The pieces without keys; one may stand across two of them.
fn pieces(pieces: &[(Duration, Bytes)], secrets: &Secrets) -> Vec<Piece> {
    let mut whole: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes).copied().collect();
    secrets.blot(&mut whole);
    let mut rest = whole.as_slice();
    let pieces = pieces.iter().map(|(after, bytes)| {
        let (piece, others) = rest.split_at(bytes.len());
        rest = others;
        let text = std::str::from_utf8(piece).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(piece));
        Piece { after_ms: ms(*after), text, base64 }
    });
    pieces.collect()
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
