//! A captured request, sent again: what comes back is told as it comes.

use std::io::{self, Write};
use std::sync::Arc;

use futures::StreamExt;
use serde_json::Value;

use super::show::model;
use super::{Changes, Failure};
use crate::app::native::event::ToolCallEntry;
use crate::app::native::{AssistantEvent, AssistantMessage};
use crate::server::config::Config;
use crate::server::llm::capture::Exchange;
use crate::server::llm::catalog::{Api, Model};
use crate::server::llm::secrets::is_secret;
use crate::server::llm::transport::{Auth, Call, Limits, Transport};
use crate::server::llm::{StreamEvent, again, js};

/// Sends the request of `exchange` with these changes.
///
/// # Errors
/// When it cannot be sent at all; a provider's refusal is told like an answer.
pub(super) async fn replay(
    exchange: &Exchange,
    changes: &Changes,
    config: &Config,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let api = exchange.api()?;
    let call = call(exchange, api, changes, config)?;
    let body = String::from_utf8_lossy(&call.body);
    let model = Model::at(api, base_url(&call.url), &model(&body));
    writeln!(out, "POST {} ({}, {} bytes)", call.url, model.id, call.body.len())?;
    if call.key.is_none() {
        writeln!(out, "(without a key: none is configured for this address)")?;
    }
    let transport = Transport::new(Limits::default(), Arc::new(|_| Box::pin(std::future::ready(()))))?;
    let mut events = match again::send(&transport, model, call).await {
        Ok((status, events)) => {
            writeln!(out, "status: {status}")?;
            events
        }
        Err(error) => {
            let status = error.status.map_or("none".to_owned(), |status| status.to_string());
            return Ok(writeln!(out, "status: {status}\nerror: {error}")?);
        }
    };
    let mut teller = Teller { out, said: None };
    while let Some(event) = events.next().await {
        teller.tell(&event)?;
    }
    Ok(())
}

fn call(exchange: &Exchange, api: Api, changes: &Changes, config: &Config) -> Result<Call, Failure> {
    let request = &exchange.request;
    if request.cut > 0 {
        return Err("This request was too long to be kept whole, so it cannot be sent again.".into());
    }
    let mut body: Value =
        serde_json::from_str(&request.body).map_err(|error| format!("The request is no JSON: {error}"))?;
    changes.apply(&mut body, api);
    Ok(Call {
        url: request.url.clone(),
        key: config.key_for(&request.url),
        auth: if api == Api::AnthropicMessages { Auth::ApiKey } else { Auth::Bearer },
        headers: request.headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect(),
        body: js::json(&body).into(),
    })
}

/// The address without the API's own path.
fn base_url(url: &str) -> &str {
    ["/chat/completions", "/v1/messages"].iter().find_map(|path| url.strip_suffix(path)).unwrap_or(url)
}

/// Tells an answer while it comes.
struct Teller<'a> {
    out: &'a mut (dyn Write + Send),
    /// What the line that is being written tells.
    said: Option<&'static str>,
}

impl Teller<'_> {
    fn tell(&mut self, event: &StreamEvent) -> io::Result<()> {
        match event {
            StreamEvent::Upstream(name) => self.line("upstream", name),
            StreamEvent::Update { event, .. } => self.step(event),
            StreamEvent::End(message) => self.end(message),
            StreamEvent::Retry(_) | StreamEvent::Start(_) => Ok(()),
        }
    }

    fn step(&mut self, event: &AssistantEvent) -> io::Result<()> {
        match event {
            AssistantEvent::ThinkingDelta { delta, .. } => self.go_on("thinking", delta),
            AssistantEvent::TextDelta { delta, .. } => self.go_on("text", delta),
            AssistantEvent::ToolCallEnd { tool_call, .. } => {
                let ToolCallEntry::ToolCall(call) = &**tool_call;
                self.line("call", &format!("{} {} {}", call.name, call.id, call.arguments))
            }
            AssistantEvent::TextStart { .. }
            | AssistantEvent::TextEnd { .. }
            | AssistantEvent::ThinkingStart { .. }
            | AssistantEvent::ThinkingEnd { .. }
            | AssistantEvent::ToolCallStart { .. }
            | AssistantEvent::ToolCallDelta { .. } => Ok(()),
        }
    }

    fn end(&mut self, message: &AssistantMessage) -> io::Result<()> {
        let usage = &message.usage;
        let counts = format!(
            "{} in, {} out ({} reasoning), {} from the cache, {} into the cache",
            usage.input,
            usage.output,
            usage.reasoning.unwrap_or(0),
            usage.cache_read,
            usage.cache_write,
        );
        self.line("usage", &counts)?;
        let word = message.extra.get("rawStopReason").and_then(Value::as_str).unwrap_or("none");
        self.line("finish", &format!("{word} ({})", message.stop_reason.word()))?;
        message.error_message.as_ref().map_or(Ok(()), |words| self.line("error", words))
    }

    /// Goes on in the line that tells `what`, or begins one.
    fn go_on(&mut self, what: &'static str, text: &str) -> io::Result<()> {
        if self.said != Some(what) {
            self.break_line()?;
            self.said = Some(what);
            write!(self.out, "{what}: ")?;
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn line(&mut self, what: &str, text: &str) -> io::Result<()> {
        self.break_line()?;
        writeln!(self.out, "{what}: {text}")
    }

    fn break_line(&mut self) -> io::Result<()> {
        if self.said.take().is_some() { writeln!(self.out) } else { Ok(()) }
    }
}
