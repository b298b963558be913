//! Best-effort reading of tool arguments: while they stream, and once they are complete.
//!
//! What an unfinished text shows follows the reference packages' `parseStreamingJson`, row by row (see the tests).
//! Lone halves of surrogate pairs are read leniently: one that may still be completed is held back, any other is U+FFFD.

use serde_json::{Map, Value};

/// Nesting beyond which a text is not read any further.
const DEPTH: usize = 100;

/// The value of `text` as far as it goes; `{}` while nothing can be read yet. Linear in the text.
#[must_use]
pub fn parse_partial(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let repaired = Walk::over(text, Strings::Repaired);
    if repaired.exact {
        return repaired.value.unwrap_or_default();
    }
    let read = Walk::over(text, Strings::Strict).value.or(repaired.value);
    read.filter(|value| !value.is_null()).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The key among a stored call's unknown fields that says why its arguments cannot be trusted, in words; such a call
/// must not run.
pub const ARGUMENTS_FAULT: &str = "argumentsFault";

/// Why complete arguments cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentsFault {
    /// Not whole JSON: cut off, or broken beyond raw control characters and wrong escapes in strings.
    Unreadable,
    /// A key that stands twice in one object.
    DuplicateKey(String),
}

impl std::fmt::Display for ArgumentsFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable => f.write_str("The arguments are not complete, readable JSON."),
            Self::DuplicateKey(key) => write!(f, "The arguments hold the key \"{key}\" twice."),
        }
    }
}

/// Reads the text of a finished call. Nothing means `{}`; a string that holds an object is read once more. Raw control
/// characters and wrong escapes inside strings are repaired.
pub fn parse_complete(text: &str) -> Result<Value, ArgumentsFault> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let walk = Walk::over(text, Strings::Repaired);
    match (walk.exact, walk.duplicate, walk.value) {
        (true, None, Some(Value::String(inner))) => match parse_complete(&inner) {
            Ok(object @ Value::Object(_)) if !inner.trim().is_empty() => Ok(object),
            _ => Ok(Value::String(inner)),
        },
        (true, None, Some(value)) => Ok(value),
        (true, Some(key), _) => Err(ArgumentsFault::DuplicateKey(key)),
        _ => Err(ArgumentsFault::Unreadable),
    }
}

/// The value of a text that is whole JSON but for raw control characters and wrong escapes inside strings.
#[must_use]
pub fn parse_repaired(text: &str) -> Option<Value> {
    let walk = Walk::over(text, Strings::Repaired);
    walk.value.filter(|_| walk.exact)
}

/// What may stand inside a string.
#[derive(Clone, Copy, PartialEq)]
enum Strings {
    Strict,
    /// Raw control characters, and a backslash before a character that needs none, stand for themselves.
    Repaired,
}

/// What one pass over a text found.
struct Walk {
    value: Option<Value>,
    /// True when the text is one whole JSON value and nothing was tolerated.
    exact: bool,
    duplicate: Option<String>,
}

impl Walk {
    fn over(text: &str, strings: Strings) -> Self {
        let text = text.trim();
        let mut reader = Reader { text, at: 0, strings, exact: true, stopped: false, duplicate: None };
        let value = reader.value(0);
        let exact = reader.exact && value.is_some() && reader.at == text.len();
        Self { value, exact, duplicate: reader.duplicate }
    }
}

/// A tolerant JSON reader. It stops at the first thing that it cannot read; the containers around keep what they have.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    strings: Strings,
    exact: bool,
    stopped: bool,
    duplicate: Option<String>,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_blank();
        match self.peek()? {
            _ if depth > DEPTH => None,
            b'"' => self.string().map(Value::String),
            b'{' => Some(self.object(depth)),
            b'[' => Some(self.array(depth)),
            _ => self.literal().or_else(|| self.number()),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut object = Map::new();
        self.at += 1;
        loop {
            self.skip_blank();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b'"') => {}
                _ => return self.stop(Value::Object(object)),
            }
            let key = self.string();
            self.skip_blank();
            let colon = self.peek() == Some(b':');
            self.at += usize::from(colon);
            let value = if colon { self.value(depth + 1) } else { None };
            let (Some(key), Some(value)) = (key, value) else { return self.stop(Value::Object(object)) };
            if object.contains_key(&key) {
                self.duplicate.get_or_insert_with(|| key.clone());
            }
            object.insert(key, value);
            if self.stopped {
                break;
            }
            self.comma(b'}');
        }
        Value::Object(object)
    }

    fn array(&mut self, depth: usize) -> Value {
        let mut array = Vec::new();
        self.at += 1;
        loop {
            self.skip_blank();
            if self.peek() == Some(b']') {
                self.at += 1;
                break;
            }
            let Some(value) = self.value(depth + 1) else { return self.stop(Value::Array(array)) };
            array.push(value);
            if self.stopped {
                break;
            }
            self.comma(b']');
        }
        Value::Array(array)
    }

    /// Steps over the comma after a member. A missing one, or one before the closing bracket, is tolerated.
    fn comma(&mut self, closing: u8) {
        self.skip_blank();
        let comma = self.peek() == Some(b',');
        self.at += usize::from(comma);
        self.skip_blank();
        self.exact &= comma != (self.peek() == Some(closing));
    }

    fn stop(&mut self, value: Value) -> Value {
        self.exact = false;
        self.stopped = true;
        value
    }

    /// A word, or the beginning of one at the end of the text. JSON has no form for NaN and the infinities: they are null.
    fn literal(&mut self) -> Option<Value> {
        let words = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("Infinity", Value::Null),
            ("-Infinity", Value::Null),
            ("NaN", Value::Null),
        ];
        let rest = &self.text[self.at..];
        for (word, value) in words {
            let whole = rest.starts_with(word);
            if whole || (rest != "-" && word.starts_with(rest)) {
                self.exact &= whole && matches!(word, "null" | "true" | "false");
                self.at += word.len().min(rest.len());
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let end = if self.at == 0 { None } else { rest.find([',', ']', '}']) };
        let token = &rest[..end.unwrap_or(rest.len())];
        let value = number(token).or_else(|| {
            self.exact = false;
            number(&token[..token.rfind('e')?])
        })?;
        self.at += token.len();
        Some(value)
    }

    /// A string from its opening quote on. An unfinished one is read as far as it is sound.
    fn string(&mut self) -> Option<String> {
        let mut string = Decoded::default();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len());
            string.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                None => {
                    self.exact = false;
                    return string.unfinished();
                }
                Some(b'"') => {
                    self.at += 1;
                    return string.finished();
                }
                Some(b'\\') => self.escape(&mut string),
                Some(control) => {
                    string.sound &= self.strings == Strings::Repaired;
                    string.push(char::from(control));
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, string: &mut Decoded) {
        string.mark();
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 1;
        let Some(escaped) = escaped else { return };
        let plain = match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                match self.text.get(self.at..self.at + 4).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit())) {
                    Some(hex) => {
                        string.push_unit(u32::from_str_radix(hex, 16).unwrap_or_default());
                        self.at += 4;
                    }
                    None => string.sound = false,
                }
                return;
            }
            _ => {
                string.sound &= self.strings == Strings::Repaired;
                string.push('\\');
                return;
            }
        };
        string.push(plain);
        self.at += 1;
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// A JSON number, blanks around it allowed; one too large for a double is null.
fn number(token: &str) -> Option<Value> {
    let token = token.trim_matches([' ', '\n', '\r', '\t']);
    match serde_json::from_str(token) {
        Ok(Value::Number(number)) => Some(Value::Number(number)),
        Err(_) if token.ends_with(|c: char| c.is_ascii_digit()) && !token.starts_with('+') => {
            token.parse::<f64>().is_ok_and(f64::is_infinite).then_some(Value::Null)
        }
        _ => None,
    }
}

/// A string while its escapes are decoded.
struct Decoded {
    text: String,
    /// The first half of a surrogate pair, while the second may still come.
    high: Option<u32>,
    sound: bool,
    /// Length at the last backslash, if the string was sound up to there.
    mark: Option<usize>,
}

impl Default for Decoded {
    fn default() -> Self {
        Self { text: String::new(), high: None, sound: true, mark: None }
    }
}

impl Decoded {
    fn push_str(&mut self, text: &str) {
        if !text.is_empty() {
            self.settle();
            self.text.push_str(text);
        }
    }

    fn push(&mut self, c: char) {
        self.settle();
        self.text.push(c);
    }

    fn push_unit(&mut self, unit: u32) {
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let joined = 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                self.text.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (high, 0xD800..=0xDBFF) => {
                self.high = high;
                self.settle();
                self.high = Some(unit);
            }
            (high, _) => {
                self.high = high;
                self.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    fn settle(&mut self) {
        if self.high.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn mark(&mut self) {
        self.mark = self.sound.then_some(self.text.len());
    }

    fn finished(mut self) -> Option<String> {
        self.settle();
        self.sound.then_some(self.text)
    }

    fn unfinished(mut self) -> Option<String> {
        if !self.sound {
            self.text.truncate(self.mark?);
        }
        Some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../../server/tests/fixtures/pi/tables/parse-streaming-json.json");

    /// Texts (a beginning, and ends that follow it) whose value differs from the reference's on purpose, and why.
    const DIFFERENCES: &[(&str, &[&str], &str)] = &[
        (
            r#"{"path":"C:\\tmp","n":-12.5e+3,"u":"\u00e9\ud83d"#,
            &["", r"\", r"\u", r"\ud", r"\ude", r"\ude0"],
            "a first half that may still be completed is held back: no text of ours holds a lone half",
        ),
        (
            r#"{"__proto__":{"#,
            &["", "\"", "\"x", "\"x\"", "\"x\":", "\"x\":1", "\"x\":1}", "\"x\":1},", "\"x\":1},\"", "\"x\":1},\"b"],
            "`__proto__` is a key like any other; the reference loses it while the text is unfinished",
        ),
        (r#"{"__proto__":{"x":1},"b""#, &["", ":", ":2"], "the same"),
    ];

    fn is_listed(text: &str) -> bool {
        DIFFERENCES.iter().any(|(start, ends, _)| text.strip_prefix(start).is_some_and(|end| ends.contains(&end)))
    }

    /// NaN and the infinities are null, as they are when the reference writes them to the wire; numbers are doubles.
    fn comparable(value: &Value) -> Value {
        match value {
            Value::Number(number) => json!(number.as_f64()),
            Value::String(text) if matches!(text.as_str(), "<NaN>" | "<Infinity>" | "<-Infinity>") => Value::Null,
            Value::Array(items) => items.iter().map(comparable).collect(),
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), comparable(value))).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn unfinished_arguments_read_as_the_reference_reads_them() {
        let table: Value = serde_json::from_str(TABLE).unwrap();
        let rows = table.get("rows").unwrap_or(&table).as_array().unwrap();
        let mut wrong = Vec::new();
        for row in rows {
            let text = row["in"].as_str().unwrap();
            if text.contains("<lone:") {
                continue; // No text of ours can hold a lone half.
            }
            let same = comparable(&parse_partial(text)) == comparable(&row["out"]);
            if same == is_listed(text) {
                wrong.push(format!("{text:?} gives {} not {}", parse_partial(text), row["out"]));
            }
        }
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn whole_json_is_repaired_where_the_reference_repairs_it() {
        const TABLE: &str = include_str!("../../server/tests/fixtures/pi/tables/parse-json-with-repair.json");
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let found = parse_repaired(row["in"].as_str().unwrap());
            assert_eq!(found.as_ref().map(comparable), row["out"].get("ok").map(comparable), "{}", row["in"]);
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a table reads better with plain values")]
    fn complete(text: &str, expected: Result<Value, ArgumentsFault>) {
        assert_eq!(parse_complete(text), expected, "{text:?}");
    }

    #[test]
    fn complete_arguments_are_repaired_but_never_completed() {
        complete("", Ok(json!({})));
        complete(" {\"a\": [1, null, true]} ", Ok(json!({"a": [1, null, true]})));
        complete("{\"a\":\"x\ny \\d\"}", Ok(json!({"a": "x\ny \\d"})));
        complete("{\"a\":\"\\ud800x\"}", Ok(json!({"a": "\u{fffd}x"})));
        complete("[\"a\"]", Ok(json!(["a"])));
        for text in
            ["{\"a\":\"x", "{\"a\":1", "{\"a\":tru}", "{\"a\":1,}", "{\"a\":1}{}", "{\"a\" 1}", "x", "{\"a\":NaN}"]
        {
            complete(text, Err(ArgumentsFault::Unreadable));
        }
    }

    #[test]
    fn a_string_that_holds_an_object_is_read_once_more() {
        complete(r#""{\"path\":\"a\"}""#, Ok(json!({"path": "a"})));
        complete(r#""just text""#, Ok(json!("just text")));
        complete(r#""""#, Ok(json!("")));
    }

    #[test]
    fn a_key_that_stands_twice_is_noticed() {
        complete(r#"{"a":1,"b":{"c":1,"c":2}}"#, Err(ArgumentsFault::DuplicateKey("c".into())));
    }

    #[test]
    fn deep_nesting_neither_overflows_nor_counts_as_complete() {
        let deep = "[".repeat(100_000);
        assert!(parse_partial(&deep).is_array());
        complete(&deep, Err(ArgumentsFault::Unreadable));
    }

    #[test]
    fn reading_is_linear_in_the_text() {
        let text = format!("{{\"a\":\"{}", "x\\n".repeat(1_000_000));
        assert_eq!(parse_partial(&text)["a"].as_str().map(str::len), Some(2_000_000));
    }

    fn json_values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,3}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whole_json_reads_as_itself(value in json_values()) {
            let text = value.to_string();
            prop_assert_eq!(&parse_partial(&text), &value);
            if !value.is_string() {
                prop_assert_eq!(parse_complete(&text), Ok(value));
            }
        }

        #[test]
        fn no_cut_of_an_object_reads_as_complete(value in json_values(), cut in any::<prop::sample::Index>()) {
            let text = json!({"a": value}).to_string();
            let cut = (0..=cut.index(text.len() - 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let head = &text[..cut];
            prop_assert!(parse_partial(head).is_object());
            prop_assert_eq!(parse_complete(head).is_ok(), head.is_empty());
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (parse_partial(&text), parse_complete(&text));
        }
    }
}
