//! Numbers and JSON as JavaScript writes them, so that what a model once wrote goes back to it in the same form.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// A number: whole ones without a fraction, very large and very small ones with an exponent.
#[must_use]
pub fn number(double: f64) -> String {
    let size = double.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{double:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    // A zero has no sign.
    if size == 0.0 { "0".to_owned() } else { double.to_string() }
}

/// A value as JSON.
#[must_use]
pub fn json(value: &Value) -> String {
    String::from_utf8(bytes(value)).unwrap_or_default()
}

/// What `value` writes of itself as JSON; nothing when it refuses.
#[must_use]
pub fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    match value.serialize(&mut Serializer::with_formatter(&mut bytes, Js)) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

struct Js;

impl Formatter for Js {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(number(value).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        let cases = [
            ("-1.5e3", "-1500"),
            ("0.1", "0.1"),
            ("-0.0", "0"),
            ("1e21", "1e+21"),
            ("123456789012345680000.0", "123456789012345680000"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("7", "7"),
        ];
        for (text, expected) in cases {
            assert_eq!(json(&serde_json::from_str(text).unwrap()), expected);
        }
        assert_eq!(json(&serde_json::json!({"a": [1.0, "x\n"], "b": null})), r#"{"a":[1,"x\n"],"b":null}"#);
    }
}
