//! The request: its body and its headers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::app::native::Message;
use crate::server::llm::compat::{MaxTokensField, SessionAffinityFormat};
use crate::server::llm::estimate::answer_limit;
use crate::server::llm::options::{Cache, ToolChoice};
use crate::server::llm::{Request, ToolSpec, js, replay};

use super::chat::Chat;
use super::quirks::Quirks;
use super::{cache, messages, reasoning, routing};

/// The longest key of a cache, in characters.
const CACHE_KEY: usize = 64;

/// The JSON body of a streaming request.
pub(super) fn body(request: &Request, quirks: &Quirks) -> Vec<u8> {
    let replayed = replay::for_model(&request.messages, &request.model, quirks.ids);
    let mut chat = messages::messages(&request.system, &replayed, &request.model, quirks);
    if let Some(mark) = mark(request, quirks) {
        cache::mark_messages(&mut chat, &mark);
    }
    js::bytes(&Body { fields: fields(request, quirks), chat })
}

/// A request as it is written.
struct Body<'a> {
    /// `messages` is null: it keeps their place.
    fields: Value,
    chat: Vec<Chat<'a>>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields.as_object().into_iter().flatten() {
            match name.as_str() {
                "messages" if value.is_null() => map.serialize_entry(name, &self.chat)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// The fields of a request, without what its messages say.
fn fields(request: &Request, quirks: &Quirks) -> Value {
    let mut body = json!({"model": request.model.id, "messages": null, "stream": true});
    let options = &request.options;
    let long = is_long(request, quirks);
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

/// True when the provider is asked to keep the request for long.
fn is_long(request: &Request, quirks: &Quirks) -> bool {
    request.options.cache == Cache::Long && quirks.long_cache
}

/// Anthropic's mark of how far the provider may keep a request, where servers want it.
fn mark(request: &Request, quirks: &Quirks) -> Option<Value> {
    let mark =
        if is_long(request, quirks) { json!({"type": "ephemeral", "ttl": "1h"}) } else { json!({"type": "ephemeral"}) };
    (quirks.cache_control.is_some() && request.options.cache != Cache::None).then_some(mark)
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
        if let (Some(mark), Some(last)) = (mark(request, quirks), request.tools.len().checked_sub(1)) {
            body["tools"][last]["cache_control"] = mark;
        }
        if quirks.tool_stream {
            body["tool_stream"] = true.into();
        }
    } else if quirks.empty_tools && request.messages.iter().any(|message| has_call(message)) {
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::server::llm::catalog::{Api, Model};
    use crate::server::llm::options::Options;

    #[test]
    fn marks_for_the_cache_stand_on_what_there_is() {
        let mut model = Model::at(Api::OpenAiCompletions, "http://proxy", "m");
        model.compat = serde_json::from_value(json!({"cacheControlFormat": "anthropic"})).unwrap();
        let messages = vec![Cow::Owned(Message::user("Hi", 0))];
        let (tools, options) = (Vec::new(), Options::default());
        let mut request =
            Request { model, system: "Teach.".to_owned(), messages, tools, session: String::new(), options };
        let body = |request: &Request| -> Value {
            serde_json::from_slice(&body(request, &Quirks::of(&request.model))).unwrap()
        };
        let said = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        let sent = body(&request);
        assert_eq!(sent["messages"][0]["content"], said("Teach."));
        assert_eq!(sent["messages"][1]["content"], said("Hi"));
        assert_eq!(sent.get("tools"), None);
        request.tools = vec![ToolSpec { name: "look".into(), parameters: json!({}), ..ToolSpec::default() }; 2];
        let marks = body(&request)["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool.get("cache_control").is_some())
            .collect::<Vec<_>>();
        assert_eq!(marks, [false, true]);
    }
}
