//! The clock: the only place that asks what time it is.

/// Unix time in ms.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock that others are passed or call")]
pub fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
