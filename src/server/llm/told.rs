//! What providers say in words: that a request is too long, that no money is left, or that it may pass.
//!
//! Statuses tell these apart only sometimes, and an error inside a stream has none.

/// What is known from the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The request does not fit into the context window.
    TooLong,
    /// A quota or the money is used up; waiting does not help.
    Spent,
    /// It may pass.
    Passing,
}

/// Reads words of a provider, of any provider. Numbers are `#` in the patterns.
pub(super) fn told(text: &str) -> Option<Told> {
    let text = without_numbers(text);
    let has = |patterns: &[&str]| patterns.iter().any(|pattern| text.contains(pattern));
    if has(SPENT) {
        Some(Told::Spent)
    } else if has(TOO_LONG) && !has(&["rate limit", "too many requests"]) {
        Some(Told::TooLong)
    } else if has(PASSING) {
        Some(Told::Passing)
    } else {
        None
    }
}

const SPENT: &[&str] = &[
    "insufficient_quota",
    "quota exceeded",
    "out of budget",
    "billing",
    "usage limit reached",
    "usagelimiterror",
    "available balance",
];

const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "input is too long",
    "exceeds the context window",
    "context window exceeds",
    "maximum context length",
    "maximum prompt length is #",
    "maximum allowed input length",
    "input token count",
    "reduce the length of the messages",
    "longer than the model's context length",
    "exceeds the available context size",
    "greater than the context length",
    "the configured context size is #",
    "exceeded model token limit",
    "model_context_window_exceeded",
    "range of input length should be",
    "context_length_exceeded",
    "context length exceeded",
    "too many tokens",
    "token limit exceeded",
];

const PASSING: &[&str] = &[
    "overloaded",
    "rate limit",
    "rate_limit",
    "too many requests",
    "service unavailable",
    "service_unavailable",
    "server error",
    "server_error",
    "internal error",
    "internal_error",
    "provider returned error",
    "network error",
    "network_error",
    "connection error",
    "connection refused",
    "connection lost",
    "upstream connect",
    "timed out",
    "timeout",
    "please retry",
    "try your request again",
    "resourceexhausted",
];

/// In lower case, with `#` for every row of digits and their commas.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        let in_number = plain.ends_with('#');
        match sign {
            '0'..='9' if in_number => {}
            '0'..='9' => plain.push('#'),
            ',' if in_number => {}
            _ => plain.extend(sign.to_lowercase()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::error::{Category, ProviderError};
    use serde_json::Value;

    /// Rows made by the reference packages (0.85.1) of their own error texts.
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/classify-errors.json");

    /// Rows that are read otherwise, and why.
    const DIFFERENCES: &[(&str, &str)] = &[
        ("terminated", "a text of the reference's HTTP client; here it is a category of its own"),
        ("fetch failed", "the same"),
        ("socket hang up", "the same"),
        (
            "Stream ended without finish_reason",
            "a text of the reference's own; here `Unfinished`, after the first byte",
        ),
        ("Anthropic stream ended before message_stop", "the same"),
        ("Server requested 120s retry delay (max: 30s). 429 slow", "a text of the reference's own; here `RateLimit`"),
        ("400 status code (no body)", "one provider's way to say too long; of others it says nothing"),
    ];

    /// Whether it may pass and whether the request is too long, by status (when the text begins with one) and words.
    fn read(text: &str) -> (bool, bool) {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let words = |told: Option<Told>| (told == Some(Told::Passing), told == Some(Told::TooLong));
        let Ok(status) = text[..digits].parse() else { return words(told(text)) };
        let error = ProviderError::from_status(status, text[digits..].trim_start_matches([':', ' ']));
        (error.is_transient(), error.category == Category::TooLarge)
    }

    #[test]
    fn errors_are_read_as_the_reference_reads_them() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let text = row["in"].as_str().unwrap();
            let same = read(text) == (row["retryable"] == true, row["overflow"] == true);
            let listed = DIFFERENCES.iter().any(|(known, _)| *known == text);
            assert!(same != listed, "{text:?} is read as {:?}", read(text));
        }
    }
}
