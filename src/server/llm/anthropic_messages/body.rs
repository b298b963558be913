//! The request: its body and its headers.

use serde_json::{Map, Value, json};

use crate::server::llm::options::{Cache, ToolChoice};
use crate::server::llm::{Request, ToolSpec};

use super::messages;
use super::thinking::{Mode, Thinking};

const VERSION: &str = "2023-06-01";
/// Asks for tool arguments as they are written, on servers that do not take it with the tool.
const STREAMED_ARGUMENTS: &str = "fine-grained-tool-streaming-2025-05-14";
/// Asks for thinking between calls.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// The JSON body of a streaming request.
pub(super) fn body(request: &Request) -> Value {
    let (model, options) = (&request.model, &request.options);
    let mark = mark(request);
    let mut chat = messages::messages(request, mark.as_ref());
    let thinking = Thinking::of(request);
    let refused = thinking.mode == Mode::Budget && !messages::can_think(&chat);
    let thinking = if refused { Thinking::off(request) } else { thinking };
    if refused || thinking.thinking == Some(json!({"type": "disabled"})) {
        messages::forget_thoughts(&mut chat);
    }
    let mut body = json!({
        "model": model.id,
        "messages": chat,
        "max_tokens": thinking.max_tokens,
        "stream": true,
    });
    if !request.system.is_empty() {
        let text = json!({"type": "text", "text": request.system});
        body["system"] = json!([marked(text, mark.as_ref())]);
    }
    if let Some(temperature) = options.temperature
        && thinking.mode == Mode::Off
        && model.compat.supports_temperature.unwrap_or(true)
    {
        body["temperature"] = temperature.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = tools(request, mark.as_ref());
    }
    for (name, value) in [("thinking", thinking.thinking), ("output_config", thinking.output)] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    if let Some(user) = &options.user {
        body["metadata"] = json!({"user_id": user});
    }
    match &options.tool_choice {
        Some(ToolChoice::Word(word)) => body["tool_choice"] = json!({"type": word}),
        Some(ToolChoice::Object(choice)) => body["tool_choice"] = choice.clone(),
        None => {}
    }
    body
}

/// The headers of a request beside its key, the strongest last.
pub(super) fn headers(request: &Request) -> Vec<(String, String)> {
    let (model, options) = (&request.model, &request.options);
    let mut headers = vec![("anthropic-version".to_owned(), VERSION.to_owned())];
    let mut betas = Vec::new();
    if !request.tools.is_empty() && !model.compat.supports_eager_tool_input_streaming.unwrap_or(true) {
        betas.push(STREAMED_ARGUMENTS);
    }
    if Thinking::of(request).mode == Mode::Budget {
        betas.push(INTERLEAVED);
    }
    if !betas.is_empty() {
        headers.push(("anthropic-beta".to_owned(), betas.join(",")));
    }
    let affine = model.compat.send_session_affinity_headers.unwrap_or(false) && options.cache != Cache::None;
    if affine && !request.session.is_empty() {
        headers.push(("x-session-affinity".to_owned(), request.session.clone()));
    }
    headers.extend(model.headers.clone());
    headers.extend(options.headers.clone());
    headers
}

/// The mark up to which the provider may keep a request.
fn mark(request: &Request) -> Option<Value> {
    match request.options.cache {
        Cache::None => None,
        Cache::Long if request.model.compat.supports_long_cache_retention.unwrap_or(true) => {
            Some(json!({"type": "ephemeral", "ttl": "1h"}))
        }
        Cache::Short | Cache::Long => Some(json!({"type": "ephemeral"})),
    }
}

fn marked(mut block: Value, mark: Option<&Value>) -> Value {
    if let Some(mark) = mark {
        block["cache_control"] = mark.clone();
    }
    block
}

fn tools(request: &Request, mark: Option<&Value>) -> Value {
    let compat = &request.model.compat;
    let mut tools: Vec<Value> = request.tools.iter().map(|spec| tool(request, spec)).collect();
    if compat.supports_cache_control_on_tools.unwrap_or(true) {
        let last = tools.pop();
        tools.extend(last.map(|tool| marked(tool, mark)));
    }
    tools.into()
}

fn tool(request: &Request, spec: &ToolSpec) -> Value {
    let compat = &request.model.compat;
    let strict = spec.strict_parameters().filter(|_| compat.supports_strict_tools.unwrap_or(false));
    let mut tool = json!({"name": spec.name, "description": spec.description});
    if compat.supports_eager_tool_input_streaming.unwrap_or(true) {
        tool["eager_input_streaming"] = true.into();
    }
    if strict.is_some() {
        tool["strict"] = true.into();
    }
    tool["input_schema"] = object_schema(strict.unwrap_or_else(|| spec.parameters.clone()));
    tool
}

/// A schema of an object that names its properties, which the API demands.
fn object_schema(schema: Value) -> Value {
    let mut object = match schema {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    object.insert("type".to_owned(), "object".into());
    object.entry("properties").or_insert_with(|| json!({}));
    object.entry("required").or_insert_with(|| json!([]));
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    use crate::app::native::Message;
    use crate::server::llm::catalog::{Api, Model};
    use crate::server::llm::options::Options;

    fn request(model: Model) -> Request<'static> {
        Request {
            model,
            system: String::new(),
            messages: vec![Cow::Owned(Message::user("Hi", 0))],
            tools: vec![ToolSpec { name: "look".into(), parameters: json!({"$defs": {}}), ..ToolSpec::default() }],
            session: "chat".to_owned(),
            options: Options::default(),
        }
    }

    fn plain() -> Model {
        Model::at(Api::AnthropicMessages, "http://proxy", "m")
    }

    fn beta(request: &Request) -> Option<String> {
        headers(request).into_iter().rfind(|(name, _)| name == "anthropic-beta").map(|(_, value)| value)
    }

    #[test]
    fn of_an_unknown_model_nothing_is_assumed_but_the_length_that_the_api_wants() {
        let body = body(&request(plain()));
        assert_eq!(
            (&body["max_tokens"], &body["thinking"], &body["system"]),
            (&json!(8192), &Value::Null, &Value::Null)
        );
        let schema = json!({"$defs": {}, "type": "object", "properties": {}, "required": []});
        assert_eq!(body["tools"][0]["input_schema"], schema);
    }

    #[test]
    fn what_a_server_does_not_take_with_a_tool_is_asked_by_a_header() {
        let mut request = request(plain());
        assert_eq!(beta(&request), None);
        let compat = &mut request.model.compat;
        compat.supports_eager_tool_input_streaming = Some(false);
        compat.supports_cache_control_on_tools = Some(false);
        assert_eq!(beta(&request).as_deref(), Some(STREAMED_ARGUMENTS));
        let tool = &body(&request)["tools"][0];
        assert!(tool.get("eager_input_streaming").is_none() && tool.get("cache_control").is_none(), "{tool}");
        request.model.headers.insert("anthropic-beta".into(), "mine".into());
        assert_eq!(beta(&request).as_deref(), Some("mine"), "what the model's data says wins");
    }
}
