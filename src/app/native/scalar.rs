//! Text fields of tool arguments that also take a number or a boolean.
//!
//! Models write `"options": [3, 4]`; a tool's coercion makes texts of them, and whoever reads the raw arguments has to
//! see the same texts.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a text, or a scalar as JavaScript would print it; `null` is the empty text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    coerced(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Reads a list of such texts.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    values.into_iter().map(coerced).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

fn coerced(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(String::new()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => float.to_string(),
            _ => number.to_string(),
        }),
        Value::Array(_) | Value::Object(_) => Err(format!("expected a text, got {value}")),
    }
}
