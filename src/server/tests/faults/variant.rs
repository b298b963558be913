//! One scripted answer of a reported fault: what comes over the wire, and how it is asked for.

use std::path::Path;

use learnharness::app::native::AssistantMessage;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::Api;
use learnharness::server::llm::transport::Limits;
use serde_json::{Value, json};

use crate::support::dialect::{ask_of, finished, hear, model, model_at, offline, play, response, speaker};
use crate::support::provider::{End, Provider, Reply};

pub(crate) struct Variant {
    /// The fault's id and the variant's number.
    pub(crate) name: String,
    pub(crate) api: Api,
    pub(crate) status: u16,
    content_type: String,
    pub(crate) chunks: Vec<Vec<u8>>,
    end: End,
    /// The learner stops it when the first thought has come.
    is_stopped: bool,
    /// What must come of it, as the fault says.
    pub(crate) wanted: Value,
}

impl Variant {
    /// The scripted answers of a fault's file that say what must come of them; none for faults of other kinds.
    pub(crate) fn of(path: &Path) -> Vec<Self> {
        let fault: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let stimulus = &fault["stimulus"];
        let id = fault["id"].as_str().unwrap_or_else(|| path.file_stem().unwrap().to_str().unwrap());
        let single = Some(stimulus).filter(|stimulus| stimulus["kind"] == "provider_response");
        let variants = stimulus["variants"].as_array().into_iter().flatten().chain(single);
        let numbered = variants.zip(1..).map(|(variant, number)| (format!("{id}/{number}"), variant));
        numbered.filter_map(|(name, variant)| Self::read(name, variant)).collect()
    }

    fn read(name: String, variant: &Value) -> Option<Self> {
        let api = match variant["api"].as_str()? {
            "openai-chat" => Api::OpenAiCompletions,
            "anthropic-messages" => Api::AnthropicMessages,
            _ => return None,
        };
        Some(Self {
            name,
            api,
            status: variant["status"].as_u64().unwrap_or(200) as u16,
            content_type: variant["content_type"].as_str().unwrap_or("text/event-stream").to_owned(),
            chunks: variant["chunks"].as_array()?.iter().map(bytes).collect::<Option<_>>()?,
            end: match variant["end"].as_str() {
                Some("hang" | "abort") => End::Hang,
                Some("reset") => End::Reset,
                _ => End::Close,
            },
            is_stopped: variant["end"] == "abort",
            wanted: Some(&variant["expect_final"]).filter(|wanted| wanted.is_object())?.clone(),
        })
    }

    fn stop(&self) -> Option<Value> {
        self.is_stopped.then(|| json!({"eventType": "thinking_delta"}))
    }

    /// What comes of it over a socket, and how many requests that took when one more was allowed.
    pub(crate) async fn over_http(&self) -> (AssistantMessage, usize) {
        let mut reply = Reply::events(&self.chunks).header("content-type", &self.content_type).end(self.end);
        reply.status = self.status;
        let provider = Provider::start([reply.clone(), reply]).await;
        let request = Request { model: model(self.api, &provider), ..ask_of(model(self.api, &provider)) };
        let dialect = speaker(self.api, Limits { retries: 1, ..Limits::default() });
        let events = play(&*dialect, request, &provider, self.stop().as_ref()).await;
        (finished(&events), provider.requests().len())
    }

    /// What comes of it, without a socket, when its bytes come in these pieces.
    pub(crate) async fn in_pieces(&self, pieces: Vec<Vec<u8>>) -> AssistantMessage {
        let (status, content_type, end) = (self.status, self.content_type.clone(), self.end);
        let respond = move |_: &_| response(status, &content_type, pieces.clone(), end);
        let dialect = offline(self.api, Limits { retries: 0, ..Limits::default() }, respond);
        let request = ask_of(model_at(self.api, "http://nowhere"));
        finished(&hear(&*dialect, request, self.stop().as_ref()).await)
    }
}

/// A chunk's bytes; none for one that is played over time.
pub(super) fn bytes(chunk: &Value) -> Option<Vec<u8>> {
    if let Some(text) = chunk["text"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(repeat) = chunk["repeat"].as_object() {
        return Some(repeat["unit"].as_str()?.repeat(repeat["times"].as_u64()? as usize).into_bytes());
    }
    let hex = chunk["hex"].as_str()?;
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}
