//! Validation of tool arguments against their JSON Schema.

use jsonschema::{Draft, Validator};
use serde_json::Value;

use super::coerce::coerce;

/// Checks `args` against `schema` and gives them back, in the form that the schema asks for.
///
/// # Errors
/// One line an error, then the arguments as received: words that let a model mend its call.
pub fn validate(tool: &str, schema: &Value, args: &Value) -> Result<Value, String> {
    let Some(validator) = compile(schema) else { return Err(format!("The schema of {tool} is broken.")) };
    let coerced = coerce(args.clone(), schema);
    let lines: Vec<String> = validator
        .iter_errors(&coerced)
        .map(|error| format!("  - {}: {error}", dotted(&error.instance_path().to_string())))
        .collect();
    if lines.is_empty() {
        return Ok(coerced);
    }
    let received = serde_json::to_string_pretty(args).unwrap_or_default();
    Err(format!("Validation failed for tool \"{tool}\":\n{}\n\nReceived arguments:\n{received}", lines.join("\n")))
}

/// The validator of a schema; formats are checked. Schemas with tuples in `items` are of an older draft. None for a schema
/// that is of no draft.
pub(super) fn compile(schema: &Value) -> Option<Validator> {
    let of = |draft| jsonschema::options().with_draft(draft).should_validate_formats(true).build(schema).ok();
    of(Draft::Draft202012).or_else(|| of(Draft::Draft201909))
}

/// `/blocks/0/id` as `blocks.0.id`; the whole is `root`.
fn dotted(pointer: &str) -> String {
    match pointer.trim_start_matches('/') {
        "" => "root".to_owned(),
        path => path.replace('/', "."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/validate-tool-arguments.json");

    fn doubles(value: &Value) -> Value {
        match value {
            Value::Number(number) => json!(number.as_f64()),
            Value::Array(items) => items.iter().map(doubles).collect(),
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), doubles(value))).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn arguments_are_taken_refused_and_coerced_as_by_the_reference() {
        let mut wrong = Vec::new();
        let rows: Vec<Value> = serde_json::from_str(TABLE).unwrap();
        for row in &rows {
            let (schema, args) = (&row["in"]["parameters"], &row["in"]["arguments"]);
            let found = validate("t", schema, args).ok();
            let same = found.as_ref().map(doubles) == row["out"].get("ok").map(doubles);
            if !same {
                wrong.push(format!("{schema} {args}: {found:?}, not {}", row["out"]));
            }
        }
        assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    }

    #[test]
    fn an_error_names_the_place_and_shows_what_was_received() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
        let words = validate("look", &schema, &json!({"a": [1, "x"]})).unwrap_err();
        let start =
            "Validation failed for tool \"look\":\n  - a.1: \"x\" is not of type \"integer\"\n\nReceived arguments:\n{";
        assert!(words.starts_with(start), "{words}");
    }
}
