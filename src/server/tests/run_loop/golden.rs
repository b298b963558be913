//! The loop against the reference: recorded cases of pi's agent loop (`fixtures/pi`), each with the events that pi made of
//! it. The model says what it said there, tools do what they did there; our events must be the same, but for the
//! differences that stand in one list with their reasons.

use std::collections::VecDeque;
use std::path::PathBuf;

use futures::stream::BoxStream;
use learnharness::app::native::AssistantMessage;
use learnharness::server::llm::{Dialect, Request, StreamEvent};

use super::*;
use crate::support::model::catalog_model;

/// The cases that are about the loop.
const CASES: [&str; 19] = [
    "abort-keeps-queues",
    "abort-mid-text",
    "abort-tool-honours",
    "abort-tool-ignores",
    "finish-length-tool",
    "finish-tool-calls-but-none",
    "steer-at-start",
    "steer-during-text",
    "stop-after-turn",
    "three-tool-turns",
    "tool-duplicate-ids",
    "tool-finish-reason-stop",
    "tool-single",
    "tool-throws",
    "tool-unknown",
    "tool-updates",
    "tools-one-sequential-in-batch",
    "tools-parallel",
    "tools-parallel-mixed-failures",
];

/// Cases that differ from the reference on purpose, and why. A case that differs and is not here fails; so does one that
/// is here and differs no more.
const DIFFERENCES: &[(&str, &str)] = &[];

#[tokio::test]
async fn the_order_of_events_is_that_of_the_reference() {
    for name in CASES {
        let case = read("cases", name);
        let golden = read("golden", name);
        let expected: Vec<String> = golden["events"].as_array().unwrap().iter().map(told).collect();
        let found = play(&case, &golden).await;
        let listed = DIFFERENCES.iter().any(|(other, _)| *other == name);
        assert!(found == expected || listed, "{name}: found {found:#?}, expected {expected:#?}");
        assert!(found != expected || !listed, "{name} is listed but no longer differs");
    }
}

fn read(folder: &str, name: &str) -> Value {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/server/tests/fixtures/pi");
    let path = fixtures.join(folder).join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What is compared of an event: its type, ids, names, order, stop reasons, error flags and texts; error texts by class.
fn told(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap();
    let message = &event["message"];
    match kind {
        "message_update" => format!("{kind} {}", event["assistantMessageEvent"]["type"]),
        "message_start" | "message_end" => {
            let is_error = message["isError"] == json!(true);
            let content = if is_error { json!("some words") } else { content(&message["content"]) };
            format!(
                "{kind} {} {} {} error: {is_error} {content}",
                message["role"], message["stopReason"], message["toolCallId"]
            )
        }
        "tool_execution_start" | "tool_execution_update" => {
            let partial = &event["partialResult"]["content"];
            format!("{kind} {} {} {} {partial}", event["toolCallId"], event["toolName"], event["args"])
        }
        "tool_execution_end" => {
            let is_error = event["isError"] == json!(true);
            let content = if is_error { &json!("some words") } else { &event["result"]["content"] };
            format!("{kind} {} {} error: {is_error} {content}", event["toolCallId"], event["toolName"])
        }
        "turn_end" => {
            let ids: Vec<&Value> =
                event["toolResults"].as_array().unwrap().iter().map(|result| &result["toolCallId"]).collect();
            format!("{kind} {} {ids:?}", message["stopReason"])
        }
        "agent_end" => {
            let roles: Vec<&Value> =
                event["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
            format!("{kind} {roles:?}")
        }
        _ => kind.to_owned(),
    }
}

/// Content without what only a stream has in it; a plain text as its one block.
fn content(content: &Value) -> Value {
    if content.is_string() {
        return json!([{"type": "text", "text": content}]);
    }
    let mut content = content.clone();
    for block in content.as_array_mut().unwrap() {
        let block = block.as_object_mut().unwrap();
        for scratch in ["partialArgs", "streamIndex"] {
            block.remove(scratch);
        }
    }
    content
}

/// Runs a case's prompts one after another and tells our events.
async fn play(case: &Value, golden: &Value) -> Vec<String> {
    let dialect = Arc::new(Recorded(Mutex::new(answers(golden))));
    let steers = Arc::new(Queue(Mutex::new(VecDeque::new())));
    let mut record = Vec::new();
    let mut log = Vec::new();
    for (index, prompt) in case["prompts"].as_array().unwrap().iter().enumerate() {
        let config = Config {
            model: catalog_model(),
            dialect: dialect.clone(),
            steering: steers.clone(),
            max_turns: 20,
            session: "chat".to_owned(),
        };
        let cancel = CancellationToken::new();
        let mut sink = Triggered {
            steers: if index == 0 { triggers(&case["queues"]["steer"]) } else { Vec::new() },
            abort: (index == 0).then(|| case["abortAt"].clone()).filter(Value::is_object),
            queue: steers.clone(),
            cancel: cancel.clone(),
            seen: 0,
            last: Seq(u32::try_from(record.len()).unwrap()),
            log: Vec::new(),
        };
        sink.steer("start");
        let context = Context { system: String::new(), record: record.clone(), tools: tools(case) };
        let prompt = Message::user(prompt.as_str().unwrap(), 0);
        let new = run_loop(vec![prompt], context, &config, &mut sink, &cancel).await.unwrap();
        for message in new {
            record.push(Stored { seq: Seq(u32::try_from(record.len()).unwrap() + 1), message });
        }
        log.append(&mut sink.log);
    }
    log
}

/// What the model said, an answer a request: those that began as an empty message were streamed.
fn answers(golden: &Value) -> VecDeque<Vec<StreamEvent>> {
    let mut answers = VecDeque::new();
    let assistant = |event: &Value| -> AssistantMessage { serde_json::from_value(event["message"].clone()).unwrap() };
    let mut open: Option<Vec<StreamEvent>> = None;
    for event in golden["events"].as_array().unwrap() {
        let role = event["message"]["role"].as_str();
        match (event["type"].as_str().unwrap(), role) {
            ("message_start", Some("assistant")) if assistant(event).stop_reason == StopReason::Pending => {
                open = Some(vec![StreamEvent::Start(assistant(event))]);
            }
            ("message_update", _) => {
                let whole = Some(Box::new(assistant(event)));
                let event = serde_json::from_value(event["assistantMessageEvent"].clone()).unwrap();
                open.as_mut().unwrap().push(StreamEvent::Update { event, whole });
            }
            ("message_end", Some("assistant")) => {
                if let Some(mut answer) = open.take() {
                    answer.push(StreamEvent::End(Box::new(assistant(event))));
                    answers.push_back(answer);
                }
            }
            _ => {}
        }
    }
    answers
}

/// Says what it was recorded to say; a request after a stop is not made.
struct Recorded(Mutex<VecDeque<Vec<StreamEvent>>>);

impl Dialect for Recorded {
    fn stream(&self, _: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let stopped = AssistantMessage { stop_reason: StopReason::Aborted, ..AssistantMessage::default() };
        let answer = if cancel.is_cancelled() {
            vec![StreamEvent::End(Box::new(stopped))]
        } else {
            self.0.lock().unwrap().pop_front().expect("the reference made no such request")
        };
        Box::pin(futures::stream::iter(answer))
    }
}

/// Fires steers and the stop when their event comes by, before the loop goes on.
struct Triggered {
    steers: Vec<(Value, Message)>,
    abort: Option<Value>,
    queue: Arc<Queue>,
    cancel: CancellationToken,
    /// Events so far that the stop waits for.
    seen: u64,
    last: Seq,
    log: Vec<String>,
}

fn triggers(queue: &Value) -> Vec<(Value, Message)> {
    let steers = queue.as_array().into_iter().flatten();
    steers.map(|steer| (steer["after"].clone(), serde_json::from_value(steer["message"].clone()).unwrap())).collect()
}

impl Triggered {
    fn steer(&mut self, now: impl Into<Value>) {
        let now = now.into();
        let due = self.steers.iter().position(|(after, _)| *after == now || (now.is_object() && matches(after, &now)));
        if let Some(due) = due {
            self.queue.0.lock().unwrap().push_back(self.steers.remove(due).1);
        }
    }
}

fn matches(selector: &Value, event: &Value) -> bool {
    let kind = &selector["eventType"];
    selector["type"] == event["type"] && (kind.is_null() || *kind == event["assistantMessageEvent"]["type"])
}

#[async_trait]
impl Sink for Triggered {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        let json = serde_json::to_value(&event).unwrap();
        self.log.push(told(&json));
        self.steer(json.clone());
        if let Some(abort) = &self.abort
            && matches(abort, &json)
        {
            self.seen += 1;
            if self.seen == abort["nth"].as_u64().unwrap_or(1) {
                self.cancel.cancel();
            }
        }
        if !matches!(event, AgentEvent::MessageEnd { .. }) {
            return Ok(None);
        }
        self.last = self.last.next();
        Ok(Some(self.last))
    }
}

/// The case's tools, by their scripts. A delay is that many turns of the scheduler: the shorter one is over first.
fn tools(case: &Value) -> Vec<Arc<dyn Tool>> {
    let stopping = case["stopAfter"]["toolNames"].clone();
    case["tools"].as_array().unwrap().iter().map(|spec| scripted(spec, &stopping)).collect()
}

fn scripted(spec: &Value, stopping: &Value) -> Arc<dyn Tool> {
    let (name, script) = (spec["name"].as_str().unwrap().to_owned(), spec["script"].clone());
    let mode = if spec["executionMode"] == "sequential" { Mode::Sequential } else { Mode::Parallel };
    let stops = stopping.as_array().is_some_and(|names| names.contains(&json!(name)));
    let after = if stops { After::StopRun } else { After::GoOn };
    let description = spec["description"].as_str().unwrap().to_owned();
    let face = Face {
        spec: ToolSpec { name, description, parameters: spec["parameters"].clone() },
        label: "Scripted",
        snippet: "does what it did for the reference",
        mode,
        after,
    };
    let work = move |call: Call| -> futures::future::BoxFuture<'static, Result<Done, ToolError>> {
        Box::pin(perform(script.clone(), call))
    };
    Arc::new(Scripted { face, work: Box::new(work) })
}

async fn perform(script: Value, call: Call) -> Result<Done, ToolError> {
    let honours = script["honoursAbort"] == json!(true);
    let output = |text: &Value, details: &Value| ToolOutput {
        content: text.as_str().map(Block::text).into_iter().collect(),
        details: Some(details.clone()).filter(|details| !details.is_null()),
    };
    for update in script["updates"].as_array().into_iter().flatten() {
        call.updates.send(output(&update["text"], &update["details"]));
        wait(&call, update["thenMs"].as_u64(), honours).await?;
    }
    wait(&call, script["delayMs"].as_u64(), honours).await?;
    if let Some(words) = script["throws"].as_str() {
        return Err(ToolError(words.to_owned()));
    }
    let text = if script["returns"].is_null() { &json!("ok") } else { &script["returns"] };
    Ok(Done { output: output(text, &script["details"]), markers: Vec::new() })
}

async fn wait(call: &Call, turns: Option<u64>, honours: bool) -> Result<(), ToolError> {
    for _ in 0..turns.unwrap_or(0) {
        tokio::task::yield_now().await;
        if honours && call.cancel.is_cancelled() {
            return Err(ToolError("tool saw abort".to_owned()));
        }
    }
    Ok(())
}
