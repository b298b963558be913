//! What goes wrong with a provider: a category to branch on, and the provider's own status, code and words beside it.
//! Statuses are not enough: providers say in words alone that a conversation is too long, or that no money is left.
//!
//! [`ProviderError`] stays inside `llm`. It becomes words for a person in its `Display` and nowhere else; a dialect puts
//! them into the answer's `errorMessage`.

use std::time::Duration;

use serde_json::Value;

use super::told::{Told, told};

/// Characters of a provider's own words that are shown.
const WORDS: usize = 200;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// 401, 403.
    Key,
    /// 402.
    Payment,
    /// 404.
    NotFound,
    /// 413.
    TooLarge,
    /// Any other 3xx or 4xx: the request as it is will never do.
    Rejected,
    /// 429.
    RateLimit,
    /// 503, 529.
    Overloaded,
    /// 408, 409, any other 5xx.
    Server,
    /// No connection, or one that closed before any answer.
    Unreachable,
    /// Silence for longer than a limit.
    Timeout,
    /// The connection broke in mid-answer.
    Cut,
    /// The body ended cleanly, but in mid-answer.
    Unfinished,
    /// The answer is not what the API promises.
    Unreadable,
    /// The provider's filter withheld the answer.
    Filtered,
    /// The provider said inside its stream that it failed.
    Reported,
}

/// A failure of a provider, with what it said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderError {
    pub category: Category,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// The provider's own code or type.
    pub code: Option<String>,
    /// The provider's own words (or the network's), in one line, without markup.
    pub words: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The provider's own word on whether to try again (`x-should-retry`).
    pub should_retry: Option<bool>,
}

impl ProviderError {
    #[must_use]
    pub fn new(category: Category) -> Self {
        Self { category, status: None, code: None, words: None, retry_after: None, should_retry: None }
    }

    #[must_use]
    pub fn with_words(category: Category, words: impl AsRef<str>) -> Self {
        Self { words: one_line(words.as_ref()), ..Self::new(category) }
    }

    /// The error of an HTTP answer that is not a success; `body` as far as it was read.
    #[must_use]
    pub fn from_status(status: u16, body: &str) -> Self {
        let (words, code) = match serde_json::from_str::<Value>(body) {
            Ok(value) => said(&value),
            Err(_) => (one_line(body), None),
        };
        let told = [&words, &code].into_iter().flatten().find_map(|text| told(text));
        let category = match (status, told) {
            (400..=499, Some(Told::TooLong)) => Category::TooLarge,
            (400..=499, Some(Told::Spent)) => Category::Payment,
            _ => by_status(status),
        };
        Self { status: Some(status), words, code, ..Self::new(category) }
    }

    /// The error that a provider reports as an object inside a stream.
    #[must_use]
    pub fn reported(error: &Value) -> Self {
        let (words, code) = said(error);
        let told = [&words, &code].into_iter().flatten().find_map(|text| told(text));
        let category = match told {
            Some(Told::TooLong) => Category::TooLarge,
            Some(Told::Spent) => Category::Payment,
            Some(Told::Passing) | None => Category::Reported,
        };
        Self { words, code, ..Self::new(category) }
    }

    /// Takes `secret` out of the provider's words: some repeat the key that they refuse.
    #[must_use]
    pub fn without(mut self, secret: &str) -> Self {
        for text in [&mut self.words, &mut self.code].into_iter().flatten() {
            if !secret.is_empty() && text.contains(secret) {
                *text = text.replace(secret, "…");
            }
        }
        self
    }

    /// True when the same request may do better later. Only ever asked before the first byte of an answer.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.should_retry.unwrap_or(match self.category {
            Category::RateLimit | Category::Overloaded | Category::Server | Category::Unreachable => true,
            Category::Key
            | Category::Payment
            | Category::NotFound
            | Category::TooLarge
            | Category::Rejected
            | Category::Timeout
            | Category::Cut
            | Category::Unfinished
            | Category::Unreadable
            | Category::Filtered
            | Category::Reported => false,
        })
    }
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.category {
            Category::Key => "The provider refused the key",
            Category::Payment => "The provider asks for payment",
            Category::NotFound => "The provider does not know this model or address",
            Category::TooLarge => "The request is too long for the provider",
            Category::Rejected => "The provider rejected the request",
            Category::RateLimit => "The provider asks to slow down",
            Category::Overloaded => "The provider is overloaded",
            Category::Server => "The provider failed",
            Category::Unreachable => "The provider could not be reached",
            Category::Timeout => "The provider fell silent",
            Category::Cut => "The connection broke before the answer was finished",
            Category::Unfinished => "The answer stopped before it was finished",
            Category::Unreadable => "The provider sent something that is not an answer",
            Category::Filtered => "The provider's filter withheld the answer",
            Category::Reported => "The provider reported an error",
        })?;
        match (self.status, &self.code) {
            (Some(status), _) => write!(f, " ({status})")?,
            (None, Some(code)) => write!(f, " ({code})")?,
            (None, None) => {}
        }
        if let Some(words) = &self.words {
            write!(f, ": {words}")?;
        }
        let ended = self.words.as_ref().is_some_and(|words| words.ends_with(['.', '!', '?', '…']));
        f.write_str(if ended { "" } else { "." })?;
        match self.retry_after {
            Some(wait) if wait.is_zero() => Ok(()),
            Some(wait) => write!(f, " It asks to wait {} s.", wait.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ProviderError {}

fn by_status(status: u16) -> Category {
    match status {
        401 | 403 => Category::Key,
        402 => Category::Payment,
        404 => Category::NotFound,
        413 => Category::TooLarge,
        429 => Category::RateLimit,
        503 | 529 => Category::Overloaded,
        408 | 409 | 500.. => Category::Server,
        _ => Category::Rejected,
    }
}

/// The words and the code in the shapes that providers use: `{error: {message, code}}`, the same in an array, or bare.
fn said(value: &Value) -> (Option<String>, Option<String>) {
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let text = |value: &Value| match value {
        Value::String(text) => one_line(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let field =
        |names: &[&str]| names.iter().find_map(|name| error.get(name).or_else(|| value.get(name)).and_then(text));
    let words = text(error).or_else(|| field(&["message", "detail", "error_description"]));
    let upstream = error.pointer("/metadata/raw").and_then(text);
    let words = match (words, upstream) {
        (Some(words), Some(upstream)) if !words.contains(&upstream) => one_line(&format!("{words} ({upstream})")),
        (words, upstream) => words.or(upstream),
    };
    (words, field(&["code", "type"]))
}

/// Text in one line and at most `WORDS` characters; nothing when there is none, or when it is a page of markup.
fn one_line(text: &str) -> Option<String> {
    // Enough for the blanks between the words that are shown; a body can be long.
    let head: String = text.chars().take(WORDS * 8).collect();
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() || line.starts_with('<') || line.contains("</") {
        return None;
    }
    Some(match line.char_indices().nth(WORDS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: &str) {
        assert_eq!(ProviderError::from_status(status, body).to_string(), expected);
    }

    #[test]
    fn an_error_is_words_for_a_person_with_the_providers_own() {
        check(401, r#"{"error":{"message":"No such key"}}"#, "The provider refused the key (401): No such key.");
        check(429, r#"{"message":"Too many"}"#, "The provider asks to slow down (429): Too many.");
        check(
            400,
            r#"[{"error":{"code":400,"message":"bad model"}}]"#,
            "The provider rejected the request (400): bad model.",
        );
        check(
            404,
            r#"{"error":"model not found"}"#,
            "The provider does not know this model or address (404): model not found.",
        );
        check(500, "", "The provider failed (500).");
        check(
            402,
            r#"{"error":{"message":"Provider error","metadata":{"raw":"no\n credit"}}}"#,
            "The provider asks for payment (402): Provider error (no credit).",
        );
    }

    #[test]
    fn pages_of_markup_and_long_texts_are_not_shown() {
        check(520, "<!doctype html><p>Your IP: 203.0.113.9", "The provider failed (520).");
        check(400, "n < 1", "The provider rejected the request (400): n < 1.");
        let long = ProviderError::from_status(400, &"word ".repeat(10_000)).to_string();
        assert!(long.chars().count() <= 300, "{long}");
    }

    #[test]
    fn a_key_that_the_provider_repeats_is_taken_out() {
        let error = ProviderError::from_status(401, r#"{"error":{"message":"Wrong key: sk-secret"}}"#);
        assert_eq!(error.without("sk-secret").to_string(), "The provider refused the key (401): Wrong key: …");
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let transient = |status| ProviderError::from_status(status, "").is_transient();
        assert!([429, 500, 502, 503, 520, 529, 408].into_iter().all(transient));
        assert!(![400, 401, 402, 403, 404, 413, 422].into_iter().any(transient));
        let told = ProviderError { should_retry: Some(true), ..ProviderError::from_status(400, "") };
        assert!(told.is_transient());
    }

    #[test]
    fn an_error_inside_a_stream_keeps_its_code() {
        let error = serde_json::json!({"code": "server_error", "message": "worker lost"});
        assert_eq!(
            ProviderError::reported(&error).to_string(),
            "The provider reported an error (server_error): worker lost."
        );
    }
}
