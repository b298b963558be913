//! How long a provider asks to wait before the next try. It says so in a header of its own, in a field of its error, in
//! words, or by the time at which its limits are reset.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Levels of an error that are looked into; upstream errors come wrapped as texts.
const DEPTH: usize = 16;

/// What a refusal with these headers and this body asks for; none when it says nothing. `now` is Unix time in ms.
pub(super) fn asked_wait(status: u16, headers: &HeaderMap, body: &str, now: i64) -> Option<Duration> {
    let headers: Vec<(&str, &str)> =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?.trim()))).collect();
    let error = serde_json::from_str::<Value>(body).unwrap_or_else(|_| body.into());
    let resets = || {
        let inside = forwarded(&error);
        reset(&headers, now).or_else(|| reset(&inside, now)).filter(|_| status == 429)
    };
    by_header(&headers, now).or_else(|| by_field(&error, DEPTH)).or_else(|| by_words(&error, DEPTH)).or_else(resets)
}

/// `retry-after-ms`, and `retry-after` with seconds or with a date.
fn by_header(headers: &[(&str, &str)], now: i64) -> Option<Duration> {
    let header = |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let number = |name, unit: f64| Duration::try_from_secs_f64(header(name)?.parse::<f64>().ok()? * unit).ok();
    let date = || {
        let date = httpdate::parse_http_date(header("retry-after")?).ok()?;
        Some(until(date.duration_since(std::time::UNIX_EPOCH).ok()?, now))
    };
    number("retry-after-ms", 0.001).or_else(|| number("retry-after", 1.0)).or_else(date)
}

/// A field that is named after what it is, such as the `retryDelay` of Google's `RetryInfo`.
fn by_field(error: &Value, depth: usize) -> Option<Duration> {
    within(error, depth, &mut |name, value| {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let unit = match name.as_str() {
            "retrydelay" | "retryafter" | "retryafterseconds" => 1.0,
            "retryafterms" | "retryaftermilliseconds" => 0.001,
            _ => return None,
        };
        match value {
            Value::Number(number) => Duration::try_from_secs_f64(number.as_f64()? * unit).ok(),
            Value::String(text) => span(&text.to_ascii_lowercase(), unit),
            _ => None,
        }
    })
}

/// "Please try again in 2.5s."
fn by_words(error: &Value, depth: usize) -> Option<Duration> {
    within(error, depth, &mut |_, value| {
        let text = value.as_str()?.to_ascii_lowercase();
        let phrases = ["try again in ", "try again after ", "retry in ", "retry after "];
        phrases.iter().find_map(|phrase| span(text.split_once(phrase)?.1, 1.0))
    })
}

/// The first value in `error` that `read` makes something of; a text that is JSON is looked into as well.
fn within(error: &Value, depth: usize, read: &mut dyn FnMut(&str, &Value) -> Option<Duration>) -> Option<Duration> {
    let depth = depth.checked_sub(1)?;
    let mut each = |name: &str, value: &Value| read(name, value).or_else(|| within(value, depth, read));
    match error {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| each(name, value)),
        Value::Array(items) => items.iter().find_map(|value| each("", value)),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => within(&inner, depth, read),
            _ => read("", error),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The headers that OpenRouter passes on inside of its error.
fn forwarded(error: &Value) -> Vec<(&str, &str)> {
    let headers = error.pointer("/error/metadata/headers").and_then(Value::as_object);
    headers.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
}

/// When the limit that was met is free again: the longest of those of which nothing remains, or else the shortest.
fn reset(headers: &[(&str, &str)], now: i64) -> Option<Duration> {
    let headers: Vec<(String, &str)> =
        headers.iter().map(|(name, value)| (name.to_ascii_lowercase().replace("x-", ""), *value)).collect();
    let resets = headers.iter().filter_map(|(name, value)| {
        let of = name.strip_prefix("ratelimit-reset")?;
        let left = headers.iter().find(|(name, _)| name.strip_prefix("ratelimit-remaining") == Some(of));
        Some((left.is_some_and(|(_, left)| *left == "0"), reset_at(value, now)?))
    });
    let (met, open): (Vec<_>, Vec<_>) = resets.partition(|(met, _)| *met);
    let longest = met.into_iter().map(|(_, wait)| wait).max();
    longest.or_else(|| open.into_iter().map(|(_, wait)| wait).min()).filter(|wait| !wait.is_zero())
}

/// A span, a number of seconds, or a time as Unix seconds or milliseconds.
fn reset_at(value: &str, now: i64) -> Option<Duration> {
    match value.parse::<f64>() {
        Ok(number) if number > 1e11 => Some(until(Duration::try_from_secs_f64(number / 1000.0).ok()?, now)),
        Ok(number) if number > 1e9 => Some(until(Duration::try_from_secs_f64(number).ok()?, now)),
        _ => span(&value.to_ascii_lowercase(), 1.0),
    }
}

/// How long it is from now to a time since the epoch; nothing when it is past.
fn until(time: Duration, now: i64) -> Duration {
    time.saturating_sub(Duration::from_millis(u64::try_from(now).unwrap_or_default()))
}

/// The span that `text` begins with, such as `2.5s`, `6m0s`, `250ms` or `20 seconds`. A bare number counts `unit` seconds.
fn span(text: &str, unit: f64) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut seconds = None;
    while let Some((number, after)) = number(rest) {
        let word: &str = after.trim_start().split(|sign: char| !sign.is_ascii_alphabetic()).next().unwrap_or_default();
        let factor = match word {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if seconds.is_none() => return Duration::try_from_secs_f64(number * unit).ok(),
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * factor);
        rest = &after.trim_start()[word.len()..];
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

/// The number that `text` begins with, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    // A sentence may end right behind it.
    let end = text[..digits].trim_end_matches('.').len();
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    const NOW: i64 = 1_741_305_600_000;

    fn check(status: u16, headers: &[(&'static str, &'static str)], body: &str, expected: Option<u64>) {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let wait = asked_wait(status, &pairs.collect(), body, NOW);
        assert_eq!(wait, expected.map(Duration::from_millis), "{headers:?} {body}");
    }

    #[test]
    fn a_header_says_how_long_in_seconds_in_milliseconds_or_until_when() {
        check(429, &[("retry-after", "7")], "", Some(7_000));
        check(503, &[("retry-after", "0.5")], "", Some(500));
        check(503, &[("retry-after-ms", "250"), ("retry-after", "1")], "", Some(250));
        check(503, &[("retry-after", "Fri, 07 Mar 2025 00:00:30 GMT")], "", Some(30_000));
        check(503, &[("retry-after", "Thu, 06 Mar 2025 00:00:00 GMT")], "", Some(0));
        check(503, &[("retry-after", "-1")], "", None);
        check(503, &[("retry-after", "soon")], "", None);
    }

    #[test]
    fn limits_say_when_they_are_reset_as_a_span_or_as_a_time() {
        check(429, &[("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "6m0s")], "", Some(1_000));
        let met = ("x-ratelimit-remaining-tokens", "0");
        check(
            429,
            &[("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "6m0s"), met],
            "",
            Some(360_000),
        );
        check(429, &[("x-ratelimit-reset", "1741305612000")], "", Some(12_000));
        check(429, &[("x-ratelimit-reset", "1741305612")], "", Some(12_000));
        check(429, &[("ratelimit-reset", "3")], "", Some(3_000));
        check(429, &[("x-ratelimit-reset-tokens", "7.66s")], "", Some(7_660));
        check(429, &[("x-ratelimit-reset", "1741305500")], "", None);
        check(500, &[("x-ratelimit-reset", "3")], "", None);
        let inside = r#"{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1741305603000"}}}}"#;
        check(429, &[], inside, Some(3_000));
    }

    #[test]
    fn an_error_says_how_long_in_a_field_or_in_words() {
        let google = r#"[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}]"#;
        check(429, &[], google, Some(3_000));
        let raw = serde_json::json!({"error": {"message": "Provider returned error", "metadata": {"raw": google}}});
        check(429, &[], &raw.to_string(), Some(3_000));
        check(429, &[], r#"{"error":{"metadata":{"retry_after_seconds":12}}}"#, Some(12_000));
        check(429, &[], r#"{"error":{"message":"Limit reached. Please try again in 2.5s."}}"#, Some(2_500));
        check(429, &[], r#"{"error":{"message":"Please try again in 1m2.5s. Visit us."}}"#, Some(62_500));
        check(429, &[], r#"{"error":{"message":"try again in 350ms"}}"#, Some(350));
        check(503, &[], "Busy; please retry after 20 seconds.", Some(20_000));
        check(503, &[], "Please retry in 9.", Some(9_000));
        check(429, &[("x-ratelimit-reset", "60")], r#"{"message":"Please try again in 2s"}"#, Some(2_000));
        check(429, &[], r#"{"error":{"message":"Please try again in a while."}}"#, None);
        check(429, &[("retry-after", "1")], r#"{"message":"Please try again in 2s"}"#, Some(1_000));
    }

    #[test]
    fn an_error_that_nests_without_end_is_left_alone() {
        let deep = "[".repeat(100) + r#"{"retryDelay":"3s"}"# + &"]".repeat(100);
        check(429, &[], &deep, None);
    }
}
