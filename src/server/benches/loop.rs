//! The loop alone under a load, for `cargo xtask bench`: a dialect, the loop and one listener in a process of their own, which
//! prints what it took as one line of JSON. The reference packages' agent gets the same load in a process beside it.
//!
//! `loop URL RUNS` has so many runs at once answer one prompt each; `loop URL turns N` has one run take N turns with a call
//! of a tool each; `loop parse BYTES` decodes and folds a recorded answer of about that size, without a network.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use learnharness::app::native::{AgentEvent, AssistantEvent, AssistantMessage, Message, Seq, fold};
use learnharness::server::agent::run_loop::{Config, Context, Halted, Sink, Steering, run_loop};
use learnharness::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use learnharness::server::llm::catalog::{Api, Model};
use learnharness::server::llm::{Sampling, ToolSpec, models, sse};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = match words.as_slice() {
        ["parse", bytes] => parse(bytes.parse()?)?,
        [url, "turns", turns] => runtime()?.block_on(turns_with_calls(url, turns.parse()?))?,
        [url, runs] => runtime()?.block_on(runs_at_once(url, runs.parse()?))?,
        _ => return Err("usage: loop URL RUNS | loop URL turns N | loop parse BYTES".into()),
    };
    println!("{said}");
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn runs_at_once(url: &str, runs: usize) -> Result<Value, Failure> {
    run(url, 20, &mut Listener::default()).await?;
    let (cpu, start) = (cpu()?, Instant::now());
    let mut listeners: Vec<Listener> = (0..runs).map(|_| Listener::default()).collect();
    for outcome in join_all(listeners.iter_mut().map(|listener| run(url, 20, listener))).await {
        outcome?;
    }
    Ok(took(cpu, start)?)
}

/// Also says what the first and the last tenth of the turns took: a growing history must not make turns dear.
async fn turns_with_calls(url: &str, turns: usize) -> Result<Value, Failure> {
    let (before, start) = (cpu()?, Instant::now());
    let mut listener = Listener::default();
    run(url, turns, &mut listener).await?;
    let mut said = took(before, start)?;
    let marks = &listener.turns;
    let tenth = (marks.len() / 10).max(1);
    let micros = |from: Duration, to: Duration| (to.saturating_sub(from)).as_micros() as u64 / tenth as u64;
    said["firstTurnMicroseconds"] = micros(before, marks[tenth - 1]).into();
    said["lastTurnMicroseconds"] = micros(marks[marks.len() - tenth - 1], marks[marks.len() - 1]).into();
    Ok(said)
}

async fn run(url: &str, max_turns: usize, listener: &mut Listener) -> Result<(), Failure> {
    let model = Model::at(Api::OpenAiCompletions, url, "measured");
    let models = models(model, None, std::path::Path::new("none"), Duration::ZERO, None)?;
    let config = Config {
        model: models.model,
        dialect: models.dialect,
        steering: Arc::new(Nothing),
        max_turns,
        session: "measured".to_owned(),
        options: models.options,
    };
    let context = Context { system: String::new(), record: Vec::new(), tools: vec![Arc::new(Look::new())] };
    let prompts = vec![Message::user("Tell me about it.", 0)];
    let messages = run_loop(prompts, context, &config, listener, &CancellationToken::new()).await?;
    match messages.iter().rev().find_map(Message::as_assistant) {
        Some(answer) if answer.error_message.is_none() => Ok(()),
        other => Err(format!("no answer: {other:?}").into()),
    }
}

/// Counts what it hears, and notes the CPU time at the end of each turn.
#[derive(Default)]
struct Listener {
    last: Seq,
    turns: Vec<Duration>,
}

#[async_trait]
impl Sink for Listener {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        match event {
            AgentEvent::MessageEnd { .. } => self.last = self.last.next(),
            AgentEvent::TurnEnd { .. } => {
                self.turns.push(cpu().map_err(|error| Halted(error.to_string()))?);
                return Ok(None);
            }
            _ => return Ok(None),
        }
        Ok(Some(self.last))
    }
}

/// No steers.
struct Nothing;

#[async_trait]
impl Steering for Nothing {
    async fn poll(&self) -> Vec<Message> {
        Vec::new()
    }
}

/// The tool that the provider's answers call.
struct Look(Face);

impl Look {
    fn new() -> Self {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let (name, description) = ("ls".to_owned(), "Lists a folder.".to_owned());
        let spec = ToolSpec { name, description, parameters, sampling: Sampling::Free };
        Self(Face {
            spec,
            label: "List",
            snippet: "lists",
            mode: Mode::Parallel,
            after: After::GoOn,
            replay: Replay::Again,
        })
    }
}

#[async_trait]
impl Tool for Look {
    fn face(&self) -> &Face {
        &self.0
    }

    async fn execute(&self, _: Call) -> Result<Done, ToolError> {
        Ok(Done::text("notes.md"))
    }
}

/// Decodes and folds an answer of about `bytes` bytes of text, in pieces of 1,400 bytes as a network would bring them.
fn parse(bytes: usize) -> Result<Value, Failure> {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tide\"}}]}\n\n";
    let stream = event.repeat(bytes / event.len());
    let (before, start) = (cpu()?, Instant::now());
    let mut decoder = sse::Decoder::default();
    let mut events = Vec::new();
    for piece in stream.as_bytes().chunks(1_400) {
        decoder.push(piece, &mut events).map_err(|_| "an event is too long")?;
    }
    let decoded = cpu()?;
    let mut message = AssistantMessage::default();
    fold(&mut message, &AssistantEvent::TextStart { content_index: 0 });
    for event in &events {
        fold(&mut message, &AssistantEvent::TextDelta { content_index: 0, delta: event.data[38..42].to_owned() });
    }
    let mut said = took(before, start)?;
    said["decodeMicroseconds"] = ((decoded - before).as_micros() as u64).into();
    said["foldMicroseconds"] = ((cpu()? - decoded).as_micros() as u64).into();
    said["events"] = events.len().into();
    Ok(said)
}

/// What happened since `cpu` and `start`, in the words of the reference's program.
fn took(before: Duration, start: Instant) -> std::io::Result<Value> {
    let wall = start.elapsed();
    let peak = std::fs::read_to_string("/proc/self/status")?;
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
    Ok(json!({
        "cpuMicroseconds": (cpu()? - before).as_micros() as u64,
        "peakBytes": kilobytes * 1024,
        "wallMicroseconds": wall.as_micros() as u64,
    }))
}

/// CPU time of this thread, the only one.
fn cpu() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)))
}
