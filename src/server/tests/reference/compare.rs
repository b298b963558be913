//! What is compared of a case: events, requests and executions, without what may differ by nature.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::case::items;
use super::play::Played;

const WORDS: &str = "<words>";

/// Headers by which a request means something.
const HEADERS: [&str; 9] = [
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "content-type",
    "session_id",
    "x-api-key",
    "x-client-request-id",
    "x-session-affinity",
    "x-session-id",
];

/// Where `found` differs from the reference's record first.
pub(super) fn first_difference(found: &Played, golden: &Value) -> Option<String> {
    let list = |name: &str| golden[name].as_array().cloned().unwrap_or_default();
    let wanted = Played { events: list("events"), requests: list("requests"), executions: list("executions") };
    let (found, wanted) = (comparable(found), comparable(&wanted));
    ["events", "requests", "executions"].into_iter().zip(found).zip(wanted).find_map(|((name, found), wanted)| {
        let at = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        let at = at.or((found.len() != wanted.len()).then(|| found.len().min(wanted.len())))?;
        let show = |items: &[Value]| items.get(at).map_or("nothing".to_owned(), Value::to_string);
        Some(format!("{name} at {at}\n  found  {}\n  wanted {}", show(&found), show(&wanted)))
    })
}

fn comparable(played: &Played) -> [Vec<Value>; 3] {
    let errors = error_texts(&played.events);
    [
        played.events.iter().map(event).collect(),
        played.requests.iter().map(|request| self::request(request, &errors)).collect(),
        played.executions.iter().map(numbers).collect(),
    ]
}

/// Stand for the result of a call that never got one: the reference's words and ours.
const DANGLING: [&str; 2] = ["No result provided", "Interrupted; effects unknown."];

/// The texts of errors: they go into requests as well.
fn error_texts(events: &[Value]) -> BTreeSet<String> {
    let results = events.iter().map(|event| &event["message"]).filter(|message| message["isError"] == true);
    let texts = results.flat_map(|result| items(&result["content"])).filter_map(|block| block["text"].as_str());
    texts.chain(DANGLING).map(str::to_owned).collect()
}

/// An event without scratch fields, times and the letters of errors.
fn event(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let has = |name: &str, wanted: &Value| fields.get(name) == Some(wanted);
            let is_error = has("isError", &true.into());
            let is_block = ["text", "thinking", "toolCall"].iter().any(|kind| has("type", &(*kind).into()));
            // The reference puts the name of the model that answered in the place of the one that was asked; here the
            // answer keeps both, so that an alias does not lose its thinking.
            let answered = fields.get("responseModel").filter(|_| has("api", &"anthropic-messages".into()));
            let field = |(name, value): (&String, &Value)| {
                let value = match name.as_str() {
                    "partialArgs" | "partialJson" | "streamIndex" => return None,
                    "index" if is_block => return None,
                    "responseModel" if answered.is_some() => return None,
                    "model" => answered.unwrap_or(value).clone(),
                    "timestamp" => json!(0),
                    "errorMessage" => json!(WORDS),
                    "content" | "result" if is_error => json!(WORDS),
                    "result" => result(value),
                    _ => event(value),
                };
                Some((name.clone(), value))
            };
            fields.iter().filter_map(field).collect()
        }
        Value::Array(list) => list.iter().map(event).collect(),
        other => numbers(other),
    }
}

/// What a tool returned. That it ends the run is said by the tool here, not by its result; and there is always content.
fn result(value: &Value) -> Value {
    let mut result = event(value);
    if let Some(fields) = result.as_object_mut() {
        fields.shift_remove("terminate");
        fields.entry("content").or_insert_with(|| json!([]));
    }
    result
}

fn request(request: &Value, errors: &BTreeSet<String>) -> Value {
    let url = match request["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("{}{}", request["origin"].as_str().unwrap(), request["path"].as_str().unwrap()),
    };
    // The query is a mark of the reference's HTTP library.
    let url = url.trim_start_matches("https:").trim_start_matches("http:").split('?').next().unwrap().to_owned();
    let named = |name: &&str| Some(((*name).to_owned(), request["headers"].get(*name)?.clone()));
    let headers: Map<String, Value> = HEADERS.iter().filter_map(named).collect();
    json!({"url": url, "headers": headers, "body": without(&request["body"], errors)})
}

/// `value` with its numbers as doubles, and by class where it is one of `errors`.
fn without(value: &Value, errors: &BTreeSet<String>) -> Value {
    match value {
        Value::String(text) if errors.contains(text) => json!(WORDS),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), without(value, errors))).collect(),
        Value::Array(list) => list.iter().map(|value| without(value, errors)).collect(),
        other => numbers(other),
    }
}

fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), numbers(value))).collect(),
        Value::Array(list) => list.iter().map(numbers).collect(),
        other => other.clone(),
    }
}
