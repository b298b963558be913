//! Arguments that are right but for their form: models write `"5"` for 5, and null for what they leave out.
//!
//! What a schema asks for decides; a value that fits stays as it is, and one that cannot be helped stays wrong.

use jsonschema::Validator;
use serde_json::{Map, Number, Value};

use super::schema::compile;
use crate::server::llm::js;

/// `args` in the form that `schema` asks for, as far as that can be had.
#[must_use]
pub(super) fn coerce(mut args: Value, schema: &Value) -> Value {
    drop_nulls(&mut args, schema);
    coerced(args, schema)
}

/// Takes away what is null, optional, and may not be null.
fn drop_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_nulls(item, item_schema(schema, index));
            }
        }
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let optional =
                    !schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
                match fields.get_mut(name) {
                    Some(Value::Null) if optional && property.get("$ref").is_none() && refuses_null(property) => {
                        fields.shift_remove(name);
                    }
                    Some(value) => drop_nulls(value, property),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

fn refuses_null(schema: &Value) -> bool {
    compile(schema).is_some_and(|validator| !validator.is_valid(&Value::Null))
}

/// The schema of the item at `index`; null where there is none.
fn item_schema(schema: &Value, index: usize) -> &Value {
    match &schema["items"] {
        Value::Array(tuple) => tuple.get(index).unwrap_or(&Value::Null),
        items => items,
    }
}

fn coerced(mut value: Value, schema: &Value) -> Value {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        value = coerced(value, part);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(members) = schema[union].as_array() {
            value = as_member(value, members);
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.iter().any(|kind| is_a(&value, kind)) {
        value = kinds.iter().find_map(|kind| as_a(&value, kind)).unwrap_or(value);
    }
    match &mut value {
        Value::Object(fields) if kinds.contains(&"object") => coerce_fields(fields, schema),
        Value::Array(items) if kinds.contains(&"array") => {
            for (index, item) in items.iter_mut().enumerate() {
                *item = coerced(item.take(), item_schema(schema, index));
            }
        }
        _ => {}
    }
    value
}

/// The value as the first member of a union that takes it as it is, else as the first that takes it in another form.
fn as_member(value: Value, members: &[Value]) -> Value {
    let validators: Vec<Option<Validator>> = members.iter().map(compile).collect();
    if validators.iter().flatten().any(|validator| validator.is_valid(&value)) {
        return value;
    }
    let mut forms = members.iter().zip(&validators).filter_map(|(member, validator)| {
        let form = coerced(value.clone(), member);
        validator.as_ref()?.is_valid(&form).then_some(form)
    });
    forms.next().unwrap_or(value)
}

fn coerce_fields(fields: &mut Map<String, Value>, schema: &Value) {
    let others = Some(&schema["additionalProperties"]).filter(|schema| schema.is_object());
    for (name, value) in fields.iter_mut() {
        if let Some(property) = schema["properties"].get(name).or(others) {
            *value = coerced(value.take(), property);
        }
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// The value in the form of another kind; none when it has no such form.
fn as_a(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("number" | "integer", Value::Null) => Some(0.into()),
        ("number" | "integer", Value::Bool(flag)) => Some(u8::from(*flag).into()),
        ("number", Value::String(text)) => number(text).and_then(numeral),
        ("integer", Value::String(text)) => number(text).filter(|number| number.fract() == 0.0).and_then(numeral),
        ("boolean", Value::Null) => Some(false.into()),
        ("boolean", Value::String(text)) => text.parse::<bool>().ok().map(Value::Bool),
        ("boolean", Value::Number(number)) if number.as_f64() == Some(1.0) => Some(true.into()),
        ("boolean", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(false.into()),
        ("string", Value::Null) => Some("".into()),
        ("string", Value::Bool(flag)) => Some(flag.to_string().into()),
        ("string", Value::Number(_)) => Some(js::json(value).into()),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        _ => None,
    }
}

/// A number that a text is, as JavaScript reads it: decimal, or with the mark of another base.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let based = |digits: &str, base| u64::from_str_radix(digits, base).ok().map(|number| number as f64);
    let number = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => based(&text[2..], 16)?,
        Some("0o") => based(&text[2..], 8)?,
        Some("0b") => based(&text[2..], 2)?,
        // Rust would also read "inf" and "nan".
        _ if text.ends_with(|sign: char| sign.is_ascii_digit() || sign == '.') => text.parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// A whole number without a fraction, so that tools can read it as one.
fn numeral(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Some((number as i64).into());
    }
    Number::from_f64(number).map(Value::Number)
}
