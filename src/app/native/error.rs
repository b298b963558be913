//! The one shape of an error on the wire: `{error: {kind, message, …}}`.

use serde_json::Value;

use super::message::Seq;
use super::record::{record, words};

record! {
    /// An error as a client sees it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ErrorBody {
        pub error: ErrorDetail = needed "error",
    }
}

record! {
    /// What went wrong, to branch on (`kind`) and to read (`message`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct ErrorDetail {
        pub kind: ErrorKind = needed "kind",
        pub message: String = needed "message",
        /// The run that holds the chat, with `busy`.
        pub run_id: Option<String> = optional "runId",
        /// The details of the answer that was accepted first, with `answered`.
        pub accepted: Option<Value> = optional "accepted",
    }
}

record! {
    /// Where an input landed: the run that it started (none when no run was due) and its last message's position.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Accepted {
        pub run_id: Option<String> = default "runId",
        pub seq: Seq = needed "seq",
    }
}

words! {
    /// The category of an error; each has one HTTP status.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// 400: not the JSON that the route takes.
        Malformed = "malformed",
        /// 401: the access token is missing or wrong.
        Token = "token",
        /// 403: a foreign host or origin.
        Forbidden = "forbidden",
        /// 404: no such chat or page.
        NotFound = "not-found",
        /// 404: the chat was deleted, which can be undone for a while.
        Gone = "gone",
        /// 405: not that method on this route.
        Method = "method",
        /// 409: a run holds the chat.
        Busy = "busy",
        /// 409: the question has another answer already.
        Answered = "answered",
        /// 413: the body is too long.
        TooLarge = "too-large",
        /// 415: not JSON.
        MediaType = "media-type",
        /// 422: well-formed, but not something this chat can take now.
        Invalid = "invalid",
        /// 422: the chosen model has no key.
        NoKey = "no-key",
        /// 500: our fault.
        Internal = "internal",
        /// 507: the input could not be stored.
        Storage = "storage",
        /// The server could not be reached; only ever made by a client.
        Offline = "offline",
    }
}

impl ErrorKind {
    /// The HTTP status that goes with it.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Token => 401,
            Self::Forbidden => 403,
            Self::NotFound | Self::Gone => 404,
            Self::Method => 405,
            Self::Busy | Self::Answered => 409,
            Self::TooLarge => 413,
            Self::MediaType => 415,
            Self::Invalid | Self::NoKey => 422,
            Self::Internal => 500,
            Self::Storage => 507,
            Self::Offline => 503,
        }
    }
}

impl ErrorBody {
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { error: ErrorDetail { kind, message: message.into(), run_id: None, accepted: None } }
    }
}

impl std::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for ErrorBody {}
