//! Validation of tool arguments against their JSON Schema.

use serde_json::Value;

/// Checks `args` against `schema` and gives them back.
///
/// # Errors
/// One line an error, then the arguments as received: words that let a model mend its call.
pub fn validate(tool: &str, schema: &Value, args: &Value) -> Result<Value, String> {
    let validator =
        jsonschema::validator_for(schema).map_err(|error| format!("The schema of {tool} is broken: {error}"))?;
    let lines: Vec<String> = validator
        .iter_errors(args)
        .map(|error| format!("  - {}: {error}", dotted(&error.instance_path().to_string())))
        .collect();
    if lines.is_empty() {
        return Ok(args.clone());
    }
    let received = serde_json::to_string_pretty(args).unwrap_or_default();
    Err(format!("Validation failed for tool \"{tool}\":\n{}\n\nReceived arguments:\n{received}", lines.join("\n")))
}

/// `/blocks/0/id` as `blocks.0.id`; the whole is `root`.
fn dotted(pointer: &str) -> String {
    match pointer.trim_start_matches('/') {
        "" => "root".to_owned(),
        path => path.replace('/', "."),
    }
}
