//! Runs a case through the dialect of its API and the loop, and keeps all that happens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use learnharness::app::native::{AgentEvent, AssistantMessage, Message, Seq, Stored, fold};
use learnharness::server::agent::{Config, Context, Halted, Sink, Steering, run_loop};
use learnharness::server::llm::Dialect;
use learnharness::server::llm::anthropic_messages::AnthropicMessages;
use learnharness::server::llm::catalog::Api;
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::transport::Transport;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::case::{self, Executions, items};
use crate::support::provider::Provider;
use crate::support::soon;

/// What came of a case, in the form of the reference's record.
pub(super) struct Played {
    pub(super) events: Vec<Value>,
    pub(super) requests: Vec<Value>,
    pub(super) executions: Vec<Value>,
}

/// # Errors
/// What of the case this vocabulary has no words for.
pub(super) async fn play(case: &Value) -> Result<Played, String> {
    let provider = Provider::start(case::replies(case)).await;
    let mut record: Vec<Stored> = Vec::new();
    for message in items(&case["history"]) {
        let message = serde_json::from_value(message.clone()).map_err(|error| format!("history: {error}"))?;
        record.push(Stored { seq: after(&record), message });
    }
    let mut stage = Stage::of(case, &provider);
    stage.watch.steer(&json!("start"));
    for prompt in items(&case["prompts"]) {
        let spoke_last = record.last().is_none_or(|stored| matches!(stored.message, Message::Assistant(_)));
        if prompt["continue"] == true && spoke_last && stage.watch.queue.0.lock().unwrap().is_empty() {
            // Nobody is owed an answer; the reference refuses, and here no run is started.
            continue;
        }
        for message in soon(case["name"].as_str().unwrap(), stage.run(prompt, &record)).await {
            record.push(Stored { seq: after(&record), message });
        }
    }
    let requests = provider.requests().into_iter().map(|request| {
        let headers: BTreeMap<String, String> = request.headers.into_iter().collect();
        json!({"url": request.url, "headers": headers, "body": request.body})
    });
    let executions = std::mem::take(&mut *stage.executions.lock().unwrap());
    Ok(Played { events: stage.watch.log, requests: requests.collect(), executions })
}

/// A case with its provider, its dialect and its loop.
struct Stage<'a> {
    case: &'a Value,
    provider: &'a Provider,
    config: Config,
    watch: Watch,
    executions: Executions,
}

impl<'a> Stage<'a> {
    fn of(case: &'a Value, provider: &'a Provider) -> Self {
        let no_pause = Arc::new(|_| Box::pin(std::future::ready(())) as futures::future::BoxFuture<'static, ()>);
        let transport = Transport::by_way_of(Some(provider.url()), case::limits(case), no_pause).unwrap();
        let model = case::model(case);
        let dialect: Arc<dyn Dialect> = match model.api {
            Api::AnthropicMessages => Arc::new(AnthropicMessages::new(transport, || 0)),
            Api::OpenAiCompletions | Api::Lesson => Arc::new(OpenAiCompletions::new(transport, || 0)),
        };
        let steers = Arc::new(Queue::default());
        let config = Config {
            model,
            dialect,
            steering: steers.clone(),
            max_turns: 20,
            session: case["options"]["sessionId"].as_str().unwrap_or_default().to_owned(),
            options: case::options(case),
        };
        Self { case, provider, config, watch: Watch::over(case, steers), executions: Executions::default() }
    }

    /// One run, from a prompt to its end.
    async fn run(&mut self, prompt: &Value, record: &[Stored]) -> Vec<Message> {
        let cancel = CancellationToken::new();
        self.watch.cancel = cancel.clone();
        self.watch.last = record.last().map(|stored| stored.seq).unwrap_or_default();
        let system = self.case["systemPrompt"].as_str().unwrap_or_default().to_owned();
        let context = Context { system, record: record.to_vec(), tools: case::tools(self.case, &self.executions) };
        let asked = async {
            match self.case["abortAt"]["request"].as_u64() {
                Some(count) => self.provider.asked(count as usize).await,
                None => std::future::pending().await,
            }
        };
        let mut run = std::pin::pin!(run_loop(case::prompts(prompt), context, &self.config, &mut self.watch, &cancel));
        let new = tokio::select! {
            biased;
            new = &mut run => new,
            () = asked => {
                cancel.cancel();
                run.await
            }
        };
        new.unwrap()
    }
}

fn after(record: &[Stored]) -> Seq {
    record.last().map(|stored| stored.seq).unwrap_or_default().next()
}

/// Hands out one waiting message a poll.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Message>>);

#[async_trait]
impl Steering for Queue {
    async fn poll(&self) -> Vec<Message> {
        self.0.lock().unwrap().pop_front().into_iter().collect()
    }
}

/// Keeps the events, as a reader has them, and fires what the case ties to one: a steer, or the stop.
struct Watch {
    steers: Vec<(Value, Message)>,
    queue: Arc<Queue>,
    abort: Value,
    /// Events so far that the stop waits for.
    seen: u64,
    cancel: CancellationToken,
    last: Seq,
    reader: AssistantMessage,
    log: Vec<Value>,
}

impl Watch {
    fn over(case: &Value, queue: Arc<Queue>) -> Self {
        let message = |steer: &Value| serde_json::from_value(steer["message"].clone()).unwrap();
        Self {
            steers: items(&case["queues"]["steer"]).map(|steer| (steer["after"].clone(), message(steer))).collect(),
            queue,
            abort: case["abortAt"].clone(),
            seen: 0,
            cancel: CancellationToken::new(),
            last: Seq::START,
            reader: AssistantMessage::default(),
            log: Vec::new(),
        }
    }

    fn steer(&mut self, now: &Value) {
        let (due, later) = std::mem::take(&mut self.steers)
            .into_iter()
            .partition(|(after, _)| after == now || (now.is_object() && matches(after, now)));
        self.steers = later;
        self.queue.0.lock().unwrap().extend(Vec::into_iter(due).map(|(_, message): (Value, Message)| message));
    }

    fn told(&mut self, event: &AgentEvent) -> Value {
        let mut json = serde_json::to_value(event).unwrap();
        match event {
            AgentEvent::MessageStart { message: Message::Assistant(message) } => self.reader = message.clone(),
            AgentEvent::MessageUpdate { message, assistant_message_event } => {
                match message.as_deref() {
                    Some(Message::Assistant(whole)) => self.reader = whole.clone(),
                    _ => fold(&mut self.reader, assistant_message_event),
                }
                json["message"] = json!(Message::Assistant(self.reader.clone()));
            }
            _ => {}
        }
        json
    }
}

#[async_trait]
impl Sink for Watch {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        if matches!(event, AgentEvent::Activity(_)) {
            // Ours, beside the events of the reference.
            return Ok(None);
        }
        let json = self.told(&event);
        self.steer(&json);
        if self.abort["type"].is_string() && matches(&self.abort, &json) {
            self.seen += 1;
            if self.seen == self.abort["nth"].as_u64().unwrap_or(1) {
                self.cancel.cancel();
            }
        }
        self.log.push(json);
        if !matches!(event, AgentEvent::MessageEnd { .. }) {
            return Ok(None);
        }
        self.last = self.last.next();
        Ok(Some(self.last))
    }
}

fn matches(selector: &Value, event: &Value) -> bool {
    let kind = &selector["eventType"];
    selector["type"] == event["type"] && (kind.is_null() || *kind == event["assistantMessageEvent"]["type"])
}
