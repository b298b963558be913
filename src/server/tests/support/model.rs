//! A model driven by hand: a test awaits the requests that the loop makes and says, piece by piece, what comes back.
//! Every request is judged: a provider would refuse one that is out of order.

use std::sync::{Arc, Mutex};

use async_stream::stream;
use futures::StreamExt;
use futures::stream::BoxStream;
use learnharness::app::native::event::ToolCallEntry;
use learnharness::app::native::view::Retry;
use learnharness::app::native::{AssistantEvent, AssistantMessage, Block, Message, StopReason, ToolCall, fold};
use learnharness::server::llm::catalog::{Api, Model, Models};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::{Dialect, Request, StreamEvent};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::judge::faults_of;
use super::soon;

/// The hand that drives the model.
pub(crate) struct Hand {
    asked: Mutex<Option<mpsc::UnboundedReceiver<Asked>>>,
}

/// A request that waits for its answer. Dropped without an end, it is a provider that has gone silent.
pub(crate) struct Asked {
    pub(crate) request: Request<'static>,
    pub(crate) cancel: CancellationToken,
    message: AssistantMessage,
    started: bool,
    events: mpsc::UnboundedSender<StreamEvent>,
}

/// A hand and the models that it drives.
pub(crate) fn driven() -> (Hand, Models) {
    let (sender, asked) = mpsc::unbounded_channel();
    let models =
        Models { model: catalog_model(), dialect: Arc::new(Driven { asked: sender }), options: Options::default() };
    (Hand { asked: Mutex::new(Some(asked)) }, models)
}

/// A model of no provider.
pub(crate) fn catalog_model() -> Model {
    Model {
        id: "scripted".to_owned(),
        provider: "tests".to_owned(),
        api: Api::OpenAiCompletions,
        context_window: 100_000,
        max_tokens: 1_000,
        ..Model::default()
    }
}

impl Hand {
    /// The next request, once the loop has made it.
    pub(crate) async fn request(&self) -> Asked {
        let mut asked = self.asked.lock().unwrap().take().expect("one request at a time is awaited");
        let request = soon("a request to the model", asked.recv()).await.expect("the loop is gone");
        *self.asked.lock().unwrap() = Some(asked);
        let faults = faults_of(&request.request).await;
        assert!(faults.is_empty(), "a provider would refuse: {faults:#?}");
        request
    }

    /// Answers the next request with a text and nothing else.
    pub(crate) async fn reply(&self, text: &str) {
        let mut asked = self.request().await;
        asked.say(text);
        asked.end(StopReason::Stop);
    }

    /// Answers the next request with calls: `(id, name, arguments)`.
    pub(crate) async fn call(&self, calls: &[(&str, &str, Value)]) {
        let mut asked = self.request().await;
        for (id, name, args) in calls {
            asked.call(id, name, args);
        }
        asked.end(StopReason::ToolUse);
    }

    /// True when no request waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.lock().unwrap().as_ref().is_some_and(mpsc::UnboundedReceiver::is_empty)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.is_idle(), "a request was made that the test did not expect");
        }
    }
}

impl Asked {
    /// Begins the answer; the first piece does so by itself.
    pub(crate) fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.send(StreamEvent::Start(Box::new(self.message.clone())));
        }
    }

    /// One more piece of text.
    pub(crate) fn say(&mut self, delta: &str) {
        self.start();
        if self.message.content.last().and_then(Block::as_text).is_none() {
            self.step(AssistantEvent::TextStart { content_index: self.message.content.len() }, false);
        }
        let content_index = self.message.content.len() - 1;
        self.step(AssistantEvent::TextDelta { content_index, delta: delta.to_owned() }, false);
    }

    /// A whole call.
    pub(crate) fn call(&mut self, id: &str, name: &str, args: &Value) {
        self.start();
        let content_index = self.message.content.len();
        let (begun, delta) = (AssistantEvent::ToolCallStart { content_index }, args.to_string());
        fold(&mut self.message, &begun);
        let mut call = ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: serde_json::json!({}),
            partial_args: Some(String::new()),
            ..ToolCall::default()
        };
        self.message.content[content_index] = call.clone().into();
        self.send(StreamEvent::Update { event: begun, whole: Some(Box::new(self.message.clone())) });
        self.step(AssistantEvent::ToolCallDelta { content_index, delta }, false);
        call.arguments = args.clone();
        call.partial_args = None;
        self.step(
            AssistantEvent::ToolCallEnd { content_index, tool_call: Box::new(ToolCallEntry::ToolCall(call)) },
            false,
        );
    }

    /// The request has failed, and is made again after a wait.
    pub(crate) fn retry(&self, attempt: u32, wait_ms: u64) {
        self.send(StreamEvent::Retry(Retry { attempt, wait_ms, reason: "Busy.".to_owned() }));
    }

    /// Who answers behind the provider.
    pub(crate) fn upstream(&self, name: &str) {
        self.send(StreamEvent::Upstream(name.to_owned()));
    }

    /// A thought.
    pub(crate) fn think(&mut self, thought: &str) {
        self.start();
        let content_index = self.message.content.len();
        self.step(AssistantEvent::ThinkingStart { content_index }, false);
        self.step(AssistantEvent::ThinkingDelta { content_index, delta: thought.to_owned() }, false);
    }

    /// The end of the answer; a stop with nothing said before it is an answer of few words.
    pub(crate) fn end(mut self, reason: StopReason) {
        if reason == StopReason::Stop && self.message.content.is_empty() {
            self.say("Well.");
        }
        self.end_as_it_is(reason);
    }

    /// The end of an answer in which there may be nothing.
    pub(crate) fn end_as_it_is(mut self, reason: StopReason) {
        self.start();
        self.message.stop_reason = reason;
        self.send(StreamEvent::End(Box::new(self.message.clone())));
    }

    /// The end of an answer that failed.
    pub(crate) fn fail(mut self, words: &str) {
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(words.to_owned());
        self.send(StreamEvent::End(Box::new(self.message.clone())));
    }

    /// The texts of the request's messages, each with its role.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.request.messages.iter().map(|message| line(message)).collect()
    }

    fn step(&mut self, event: AssistantEvent, whole: bool) {
        fold(&mut self.message, &event);
        let whole = whole.then(|| Box::new(self.message.clone()));
        self.send(StreamEvent::Update { event, whole });
    }

    fn send(&self, event: StreamEvent) {
        // A run that was stopped listens no more.
        let _ = self.events.send(event);
    }
}

/// A message in one line.
pub(crate) fn line(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user {}", user.content.text()),
        Message::Assistant(answer) => {
            let calls: String = answer.tool_calls().map(|call| format!(" {}#{}", call.name, call.id)).collect();
            format!("assistant[{:?}] {}{calls}", answer.stop_reason, answer.text())
        }
        Message::ToolResult(result) => {
            let mark = if result.is_error { "!" } else { "" };
            format!("result{mark} {}#{} {}", result.tool_name, result.tool_call_id, result.text())
        }
        Message::Custom(custom) => format!("marker {}", custom.custom_type),
    }
}

struct Driven {
    asked: mpsc::UnboundedSender<Asked>,
}

impl Dialect for Driven {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let message = AssistantMessage {
            api: request.model.api.name().to_owned(),
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
            ..AssistantMessage::default()
        };
        let (events, mut pieces) = mpsc::unbounded_channel();
        // Kept, so that a silent provider does not look like one that has hung up.
        let held = events.clone();
        if !cancel.is_cancelled() {
            let request = request.into_owned();
            let asked = Asked { request, cancel: cancel.clone(), message: message.clone(), started: false, events };
            let _ = self.asked.send(asked);
        }
        stream! {
            let _held = held;
            let mut message = message;
            loop {
                let event = tokio::select! {
                    biased;
                    Some(event) = pieces.recv() => event,
                    () = cancel.cancelled() => {
                        message.stop_reason = StopReason::Aborted;
                        message.error_message = Some("Stopped.".to_owned());
                        yield StreamEvent::End(Box::new(message));
                        return;
                    }
                };
                match &event {
                    StreamEvent::Retry(_) | StreamEvent::Upstream(_) => {}
                    StreamEvent::Start(whole) => message = (**whole).clone(),
                    StreamEvent::Update { whole: Some(whole), .. } => message.clone_from(whole),
                    StreamEvent::Update { event, whole: None } => fold(&mut message, event),
                    StreamEvent::End(_) => {
                        yield event;
                        return;
                    }
                }
                yield event;
            }
        }
        .boxed()
    }
}
