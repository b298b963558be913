//! The strict form of a tool's schema, to which providers can hold a model while it writes.
//!
//! Every property is required, what was optional may be null, and nothing else may be there. Much of JSON Schema has no
//! strict form.

use serde_json::{Map, Value, json};

/// Why a schema has no strict form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStrict {
    #[error("boolean schemas are unsupported")]
    Boolean,
    #[error("{0} schemas are unsupported")]
    Keyword(&'static str),
    #[error("anyOf must contain at least one schema")]
    EmptyUnion,
    #[error("object and array unions are unsupported")]
    StructuredUnion,
    #[error("tuple schemas are unsupported")]
    Tuple,
    #[error("properties require type object")]
    UntypedProperties,
    #[error("schema-valued or true additionalProperties is unsupported")]
    OpenObject,
    #[error("object properties must be a schema map")]
    Properties,
    #[error("object required must be a string array")]
    Required,
    #[error("required contains an unknown property")]
    UnknownRequired,
    #[error("root schema must have type object")]
    Root,
}

const UNSUPPORTED: [&str; 17] = [
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
];

/// `schema` in its strict form.
///
/// # Errors
/// What it holds that has none.
pub fn strict(schema: &Value) -> Result<Value, NotStrict> {
    if !schema.is_object() {
        return Err(NotStrict::Root);
    }
    let mut strict = schema.clone();
    tighten(&mut strict)?;
    if strict["type"] == "object" { Ok(strict) } else { Err(NotStrict::Root) }
}

fn tighten(schema: &mut Value) -> Result<(), NotStrict> {
    let Value::Object(schema) = schema else { return Err(NotStrict::Boolean) };
    if let Some(keyword) = UNSUPPORTED.into_iter().find(|keyword| schema.contains_key(*keyword)) {
        return Err(NotStrict::Keyword(keyword));
    }
    if let Some(union) = schema.get_mut("anyOf") {
        let variants = union.as_array_mut().filter(|variants| !variants.is_empty()).ok_or(NotStrict::EmptyUnion)?;
        for variant in variants {
            if is_structured(variant) {
                return Err(NotStrict::StructuredUnion);
            }
            tighten(variant)?;
        }
    }
    match schema.get_mut("items") {
        Some(Value::Array(_)) => return Err(NotStrict::Tuple),
        Some(items) => tighten(items)?,
        None => {}
    }
    match schema.get("type") {
        Some(kind) if kind == "object" => close(schema),
        _ if schema.contains_key("properties") => Err(NotStrict::UntypedProperties),
        _ => Ok(()),
    }
}

/// Makes an object require all its properties and allow no others.
fn close(schema: &mut Map<String, Value>) -> Result<(), NotStrict> {
    if schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return Err(NotStrict::OpenObject);
    }
    let required: Vec<String> = match schema.get("required") {
        Some(names) => serde_json::from_value(names.clone()).map_err(|_| NotStrict::Required)?,
        None => Vec::new(),
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let properties = properties.as_object_mut().ok_or(NotStrict::Properties)?;
    if required.iter().any(|name| !properties.contains_key(name)) {
        return Err(NotStrict::UnknownRequired);
    }
    for (name, property) in properties.iter_mut() {
        tighten(property)?;
        if !required.contains(name) && !allows_null(property) {
            *property = json!({"anyOf": [property.take(), {"type": "null"}]});
        }
    }
    let names: Value = properties.keys().map(String::as_str).collect();
    schema.insert("required".to_owned(), names);
    schema.insert("additionalProperties".to_owned(), false.into());
    Ok(())
}

fn is_structured(schema: &Value) -> bool {
    let typed = |name: &str| match &schema["type"] {
        Value::String(kind) => kind == name,
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        _ => false,
    };
    typed("object") || typed("array") || schema.get("properties").is_some() || schema.get("items").is_some()
}

fn allows_null(schema: &Value) -> bool {
    let has_null = |list: &Value, null: &Value| list.as_array().is_some_and(|list| list.contains(null));
    schema["type"] == "null"
        || has_null(&schema["type"], &"null".into())
        || schema.get("const") == Some(&Value::Null)
        || has_null(&schema["enum"], &Value::Null)
        || schema["anyOf"].as_array().is_some_and(|variants| variants.iter().any(allows_null))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/make-strict-schema.json");

    #[test]
    fn strict_forms_are_those_of_the_reference() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let found = match strict(&row["in"]) {
                Ok(schema) => json!({"ok": schema}),
                Err(error) => json!({"error": error.to_string()}),
            };
            assert_eq!(found, row["out"], "{}", row["in"]);
        }
    }
}
