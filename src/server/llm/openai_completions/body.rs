//! The request: its body and its headers.

use serde_json::{Value, json};

use crate::app::native::Message;
use crate::server::llm::compat::{MaxTokensField, SessionAffinityFormat};
use crate::server::llm::estimate::answer_limit;
use crate::server::llm::options::{Cache, ToolChoice};
use crate::server::llm::{Request, ToolSpec};

use super::quirks::Quirks;
use super::{cache, messages, reasoning, routing};

/// The longest key of a cache, in characters.
const CACHE_KEY: usize = 64;

/// The JSON body of a streaming request.
pub(super) fn body(request: &Request, quirks: &Quirks) -> Value {
    let mut body = json!({
        "model": request.model.id,
        "messages": messages::messages(request, quirks),
        "stream": true,
    });
    let options = &request.options;
    let long = options.cache == Cache::Long && quirks.long_cache;
    if !request.session.is_empty() && (long || quirks.cache_key && options.cache != Cache::None) {
        body["prompt_cache_key"] = request.session.chars().take(CACHE_KEY).collect::<String>().into();
    }
    if long {
        body["prompt_cache_retention"] = "24h".into();
    }
    if quirks.usage_in_streaming {
        body["stream_options"] = json!({"include_usage": true});
    }
    if quirks.store {
        body["store"] = false.into();
    }
    let limit = answer_limit(request);
    if limit > 0 {
        body[match quirks.max_tokens_field {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }] = limit.into();
    }
    if let Some(temperature) = options.temperature {
        body["temperature"] = temperature.into();
    }
    tools(&mut body, request, quirks);
    if quirks.cache_control.is_some() && options.cache != Cache::None {
        let mark = if long { json!({"type": "ephemeral", "ttl": "1h"}) } else { json!({"type": "ephemeral"}) };
        cache::mark(&mut body, &mark);
    }
    for (name, value) in reasoning::fields(&request.model, options.thinking, quirks) {
        body[name] = value;
    }
    let wanted = request.model.compat.open_router_routing.as_ref();
    let avoided: &[String] = if quirks.routing { &options.avoid } else { &[] };
    if let Some(routing) = routing::routing(wanted, avoided) {
        body["provider"] = routing;
    }
    for (name, value) in &options.fields {
        body[name] = value.clone();
    }
    body
}

/// The headers of a request beside its key, the strongest last.
pub(super) fn headers(request: &Request, quirks: &Quirks) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    headers.extend(request.model.headers.clone());
    if !request.session.is_empty() && request.options.cache != Cache::None {
        let names: &[&str] = match quirks.affinity {
            None => &[],
            Some(SessionAffinityFormat::Openrouter) => &["x-session-id"],
            Some(SessionAffinityFormat::Openai) => &["session_id", "x-client-request-id", "x-session-affinity"],
            Some(SessionAffinityFormat::OpenaiNosession) => &["x-client-request-id", "x-session-affinity"],
        };
        headers.extend(names.iter().map(|name| ((*name).to_owned(), request.session.clone())));
    }
    headers.extend(request.options.headers.clone());
    headers
}

fn tools(body: &mut Value, request: &Request, quirks: &Quirks) {
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|spec| tool(spec, quirks)).collect();
        if quirks.tool_stream {
            body["tool_stream"] = true.into();
        }
    } else if quirks.empty_tools && request.messages.iter().any(has_call) {
        body["tools"] = json!([]);
    }
    if let Some(choice) = request.options.tool_choice.as_ref().map(ToolChoice::to_value) {
        body["tool_choice"] = choice;
    }
}

fn has_call(message: &Message) -> bool {
    match message {
        Message::ToolResult(_) => true,
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        Message::User(_) | Message::Custom(_) => false,
    }
}

fn tool(tool: &ToolSpec, quirks: &Quirks) -> Value {
    let strict = tool.strict_parameters().filter(|_| quirks.strict_mode);
    let mut function = json!({"name": tool.name, "description": tool.description});
    if quirks.strict_mode {
        function["strict"] = strict.is_some().into();
    }
    function["parameters"] = strict.unwrap_or_else(|| tool.parameters.clone());
    json!({"type": "function", "function": function})
}
