//! `reasoning_details`: a provider's own record of its reasoning, kept for replay to the same model and never shown.

use serde_json::{Map, Value};

/// The entries of one answer, joined from their pieces.
#[derive(Debug, Default)]
pub(super) struct Details {
    entries: Vec<Map<String, Value>>,
}

impl Details {
    /// Adds a piece: text and summary go on in the last entry if that is theirs, anything encrypted stands alone. False,
    /// and nothing added, for a piece of an unknown shape.
    pub(super) fn add(&mut self, piece: Value) -> bool {
        let (true, Value::Object(piece)) = (is_detail(&piece), piece) else { return false };
        let field = text_field(&piece);
        match (self.entries.last_mut(), field) {
            (Some(last), Some(field)) if goes_on(last, &piece) => join(last, &piece, field),
            _ => self.entries.push(piece),
        }
        true
    }

    /// The entries as the text that a thinking block keeps in its signature; none when there are none.
    pub(super) fn signature(&self) -> Option<String> {
        if self.entries.is_empty() { None } else { serde_json::to_string(&self.entries).ok() }
    }

    /// What a person can read in pieces that came without a reasoning field beside them.
    pub(super) fn readable(pieces: &[Value]) -> Option<String> {
        let text = |piece: &Value| {
            piece.as_object().and_then(|piece| piece.get(text_field(piece)?)?.as_str().map(str::to_owned))
        };
        Some(pieces.iter().filter(|piece| is_detail(piece)).filter_map(text).collect())
            .filter(|text: &String| !text.is_empty())
    }

    /// The one encrypted entry that older records keep in a call's signature.
    pub(super) fn from_call(signature: &str) -> Option<Value> {
        let entry: Value = serde_json::from_str(signature).ok()?;
        let filled = |name: &str| entry[name].as_str().is_some_and(|text| !text.is_empty());
        (is_detail(&entry) && entry["type"] == "reasoning.encrypted" && filled("id") && filled("data")).then_some(entry)
    }

    /// Entries read back from a signature; none when it is something else.
    pub(super) fn from_signature(signature: &str) -> Option<Value> {
        let value: Value = serde_json::from_str(signature).ok()?;
        value.as_array().is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_detail)).then_some(value)
    }
}

/// The field that goes on from piece to piece; none for encrypted entries.
fn text_field(piece: &Map<String, Value>) -> Option<&'static str> {
    match piece.get("type")?.as_str()? {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

fn is_detail(piece: &Value) -> bool {
    let string = |name: &str| piece.get(name).is_some_and(Value::is_string);
    let absent_or = |name: &str, is: fn(&Value) -> bool| piece.get(name).is_none_or(is);
    let common = absent_or("id", |id| id.is_null() || id.is_string())
        && absent_or("format", Value::is_string)
        && absent_or("index", Value::is_number);
    common
        && match piece.get("type").and_then(Value::as_str) {
            Some("reasoning.text") => {
                string("text") && absent_or("signature", |value| value.is_null() || value.is_string())
            }
            Some("reasoning.summary") => string("summary"),
            Some("reasoning.encrypted") => string("data"),
            _ => false,
        }
}

/// True when `piece` belongs to `entry`: it is of the same type, and of the same number and id where both have one.
fn goes_on(entry: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let agree = |name: &str| match (entry.get(name), piece.get(name)) {
        (None | Some(Value::Null), _) | (_, None | Some(Value::Null)) => true,
        (one, other) => one == other,
    };
    entry.get("type") == piece.get("type") && agree("index") && agree("id")
}

/// Adds the text of `piece` to `entry`, and the fields that the entry has not got.
fn join(entry: &mut Map<String, Value>, piece: &Map<String, Value>, field: &str) {
    if let (Some(Value::String(text)), Some(Value::String(more))) = (entry.get_mut(field), piece.get(field)) {
        text.push_str(more);
    }
    for name in ["signature", "id", "format", "index"] {
        let missing = entry.get(name).is_none_or(|value| value.is_null() || value == "");
        if let Some(value) = piece.get(name).filter(|_| missing) {
            entry.insert(name.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(pieces: &[Value], expected: Option<&str>) {
        let mut details = Details::default();
        for piece in pieces {
            details.add(piece.clone());
        }
        assert_eq!(details.signature().as_deref(), expected);
    }

    #[test]
    fn pieces_of_text_join_and_encrypted_ones_stand_alone() {
        check(
            &[
                json!({"type": "reasoning.text", "text": "We ", "index": 0}),
                json!({"type": "reasoning.text", "text": "add.", "signature": "S=="}),
                json!({"type": "reasoning.encrypted", "data": "A"}),
                json!({"type": "reasoning.encrypted", "data": "B"}),
            ],
            Some(
                r#"[{"type":"reasoning.text","text":"We add.","index":0,"signature":"S=="},{"type":"reasoning.encrypted","data":"A"},{"type":"reasoning.encrypted","data":"B"}]"#,
            ),
        );
    }

    #[test]
    fn thoughts_of_different_numbers_keep_their_own_signatures() {
        check(
            &[
                json!({"type": "reasoning.text", "text": "One", "index": 0}),
                json!({"type": "reasoning.text", "text": "", "signature": "S1", "index": 0}),
                json!({"type": "reasoning.text", "text": "Two", "index": 1}),
                json!({"type": "reasoning.text", "text": "", "signature": "S2", "index": 1}),
            ],
            Some(
                r#"[{"type":"reasoning.text","text":"One","index":0,"signature":"S1"},{"type":"reasoning.text","text":"Two","index":1,"signature":"S2"}]"#,
            ),
        );
    }

    #[test]
    fn pieces_of_unknown_shape_are_left_out() {
        check(&[json!({"type": "reasoning.future", "text": "x"}), json!({"type": "reasoning.text"}), json!(3)], None);
        assert_eq!(Details::from_signature("reasoning_content"), None);
        assert_eq!(Details::from_signature("[]"), None);
    }
}
