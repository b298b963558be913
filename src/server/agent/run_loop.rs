//! The loop: a free function from (prompts, context, config, sink, cancel) to messages.
//!
//! The order of events is that of pi's agent loop: `agent_start`, then turns of one assistant message and its tool results,
//! then `agent_end`. Steering is polled at the start and after every turn.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::batch::Times;
use super::cut::{CutBatch, cut_batch};
use super::tool::Tool;
use super::{batch, circles, context::to_llm, empty, remarks::remarks};
use crate::app::native::event::ToolResultEntry;
use crate::app::native::marker::NoticeKind;
use crate::app::native::view::{Activity, Next};
use crate::app::native::{AgentEvent, AssistantMessage, Marker, Message, Seq, StopReason, Stored};
use crate::app::transcript::scan::next::next;
use crate::server::clock::now_ms;
use crate::server::llm::catalog::Model;
use crate::server::llm::options::Options;
use crate::server::llm::{Dialect, Request, StreamEvent, estimate};

/// What the agent knows: instructions, the record so far (without the prompts), and its tools.
pub struct Context {
    pub system: String,
    pub record: Vec<Stored>,
    pub tools: Vec<Arc<dyn Tool>>,
}

/// How the agent runs.
pub struct Config {
    pub model: Model,
    pub dialect: Arc<dyn Dialect>,
    pub steering: Arc<dyn Steering>,
    /// Turns after which a run ends with a notice.
    pub max_turns: usize,
    /// The chat's id, for provider-side caching.
    pub session: String,
    /// What is asked of the model beside its messages.
    pub options: Options,
}

/// Takes the events of a run, in order.
#[async_trait]
pub trait Sink: Send {
    /// Returns once the event is safe and on its way; a `message_end` that was stored returns its position.
    ///
    /// # Errors
    /// `Halted` when the record refused: the run ends at once, without further events.
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted>;

    /// Keeps how the `nth` call of the last answer ended, its result first, in case that the run is cut off before the
    /// record has it. Comes before the call's end is emitted.
    async fn keep(&mut self, _nth: usize, _outcome: &[Message]) {}

    /// Puts a steer into the record; its events follow. False when it waits no more, and is left out.
    ///
    /// # Errors
    /// `Halted` when the record refused.
    async fn deliver(&mut self, _steer: &Message) -> Result<bool, Halted> {
        Ok(true)
    }

    /// Puts messages that belong together into the record at once; their events follow.
    ///
    /// # Errors
    /// `Halted` when the record refused all of them.
    async fn store(&mut self, _messages: &[Message]) -> Result<(), Halted> {
        Ok(())
    }
}

/// The sink took no more.
#[derive(Debug, thiserror::Error)]
#[error("the record could not be written: {0}")]
pub struct Halted(pub String);

/// Messages that wait to join a running lesson at its next turn boundary.
#[async_trait]
pub trait Steering: Send + Sync {
    /// Only looks; a message waits until the sink has delivered it.
    async fn poll(&self) -> Vec<Message>;
}

/// Runs the agent until it has nothing more to do, is stopped by a tool, by `cancel` or by its limit of turns.
/// `prompts` are echoed as events first; the sink knows those that are stored already. A batch that the record ends in is
/// gone on with before the model is asked.
///
/// # Errors
/// `Halted` when the sink took no more.
pub async fn run_loop(
    prompts: Vec<Message>,
    context: Context,
    config: &Config,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Result<Vec<Message>, Halted> {
    let mut run = Run { context, config, sink, cancel, new: Vec::new(), estimated: 0 };
    run.sink.emit(AgentEvent::AgentStart).await?;
    run.sink.emit(AgentEvent::TurnStart).await?;
    for prompt in prompts {
        run.add(prompt).await?;
    }
    run.turns().await?;
    let messages = std::mem::take(&mut run.new);
    run.sink.emit(AgentEvent::AgentEnd { messages: messages.clone() }).await?;
    Ok(messages)
}

/// A run in progress.
pub(super) struct Run<'a> {
    pub(super) context: Context,
    pub(super) config: &'a Config,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) cancel: &'a CancellationToken,
    new: Vec<Message>,
    /// Tokens that the last request had at least.
    estimated: u64,
}

/// Whether the loop goes on after a turn.
enum Onward {
    /// The model owes a reply to its tool results.
    Reply,
    /// There was nothing in its answer; it is asked once more.
    Again,
    /// Only a steer can start another turn.
    Done,
    /// The run ends before steering is polled.
    Stop,
}

impl Run<'_> {
    async fn turns(&mut self) -> Result<(), Halted> {
        let mut cut = cut_batch(&self.context.record);
        // Nothing comes between a call and its result.
        let mut steers = if cut.is_some() { Vec::new() } else { self.waiting().await };
        let mut onward = Onward::Reply;
        for turn in 1.. {
            for steer in std::mem::take(&mut steers) {
                if self.sink.deliver(&steer).await? {
                    self.add(steer).await?;
                }
            }
            if matches!(onward, Onward::Again) {
                self.mark(Marker::Notice { kind: NoticeKind::EmptyAnswer }).await?;
            }
            onward = match cut.take() {
                Some(cut) => self.finish_batch(cut).await?,
                None => self.turn().await?,
            };
            if matches!(onward, Onward::Stop) {
                return Ok(());
            }
            steers = self.waiting().await;
            if matches!(onward, Onward::Done) && steers.is_empty() {
                return Ok(());
            }
            if matches!(onward, Onward::Reply) && steers.is_empty() && circles::goes_in_circles(&self.new) {
                return self.mark(Marker::Notice { kind: NoticeKind::Loop }).await;
            }
            if turn >= self.config.max_turns {
                return self.mark(Marker::Notice { kind: NoticeKind::TurnCap }).await;
            }
            self.sink.emit(AgentEvent::TurnStart).await?;
        }
        Ok(())
    }

    /// The steers that join at this boundary. Those of a run that is stopped wait for the next one.
    async fn waiting(&mut self) -> Vec<Message> {
        if self.cancel.is_cancelled() { Vec::new() } else { self.config.steering.poll().await }
    }

    async fn turn(&mut self) -> Result<Onward, Halted> {
        let is_second = empty::asked_again(&self.context.record).is_some();
        let answer = self.answer().await?;
        let message = Message::Assistant(answer.clone());
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            self.sink.emit(AgentEvent::TurnEnd { message, tool_results: Vec::new() }).await?;
            let again = answer.was_empty() && !is_second && !self.cancel.is_cancelled();
            return Ok(if again { Onward::Again } else { Onward::Stop });
        }
        let remarks = remarks(&answer, &self.context.record, self.estimated, !self.context.tools.is_empty());
        if answer.tool_calls().next().is_none() {
            for remark in remarks {
                self.mark(remark).await?;
            }
            self.sink.emit(AgentEvent::TurnEnd { message, tool_results: Vec::new() }).await?;
            return Ok(Onward::Done);
        }
        let all: Vec<usize> = (0..answer.tool_calls().count()).collect();
        let outcome = batch::execute(self, &answer, &all, Times::First).await?;
        for remark in remarks {
            self.mark(remark).await?;
        }
        let tool_results = outcome.results.into_iter().map(ToolResultEntry::ToolResult).collect();
        self.sink.emit(AgentEvent::TurnEnd { message, tool_results }).await?;
        Ok(if outcome.stop { Onward::Stop } else { Onward::Reply })
    }

    /// Ends the turn that another process was cut off in. What its results ask for stands in the record.
    async fn finish_batch(&mut self, cut: CutBatch) -> Result<Onward, Halted> {
        let outcome = batch::execute(self, &cut.answer, &cut.open, Times::Again).await?;
        let tool_results = cut.results.into_iter().chain(outcome.results).map(ToolResultEntry::ToolResult).collect();
        self.sink.emit(AgentEvent::TurnEnd { message: Message::Assistant(cut.answer), tool_results }).await?;
        let stop = outcome.stop || next(&self.context.record) != Next::Reply;
        Ok(if stop { Onward::Stop } else { Onward::Reply })
    }

    /// Streams one answer of the model.
    async fn answer(&mut self) -> Result<AssistantMessage, Halted> {
        let mut options = self.config.options.clone();
        options.avoid.extend(empty::asked_again(&self.context.record).and_then(empty::upstream));
        let request = Request {
            model: self.config.model.clone(),
            system: self.context.system.clone(),
            messages: to_llm(&self.context.record),
            tools: self.context.tools.iter().map(|tool| tool.face().spec.clone()).collect(),
            session: self.config.session.clone(),
            options,
        };
        self.estimated = estimate::texts(&request);
        let mut upstream = None;
        let mut stream = self.config.dialect.stream(request, self.cancel.clone());
        let mut started = false;
        let mut answer = None;
        while let Some(event) = stream.next().await {
            match event {
                StreamEvent::Retry(retry) => {
                    let activity = Activity { running: true, jobs: None, retry: Some(retry) };
                    self.sink.emit(AgentEvent::Activity(Box::new(activity))).await?;
                }
                StreamEvent::Upstream(name) => upstream = Some(name),
                StreamEvent::Start(message) => {
                    started = true;
                    self.sink.emit(AgentEvent::MessageStart { message: Message::Assistant(*message) }).await?;
                }
                StreamEvent::Update { event, whole } => {
                    self.sink.emit(AgentEvent::update(event, whole.map(|whole| *whole))).await?;
                }
                StreamEvent::End(message) => answer = Some(*message),
            }
        }
        let model = &self.config.model;
        let answer = answer.unwrap_or_else(|| broken(model));
        let answer = empty::told(answer, upstream.as_deref(), model.context_window);
        if !started {
            self.sink.emit(AgentEvent::MessageStart { message: Message::Assistant(answer.clone()) }).await?;
        }
        self.end(Message::Assistant(answer.clone())).await?;
        Ok(answer)
    }

    /// Appends a message that is there whole.
    pub(super) async fn add(&mut self, message: Message) -> Result<(), Halted> {
        self.sink.emit(AgentEvent::MessageStart { message: message.clone() }).await?;
        self.end(message).await
    }

    /// Appends messages that the record has all of or none.
    pub(super) async fn add_together(&mut self, messages: Vec<Message>) -> Result<(), Halted> {
        self.sink.store(&messages).await?;
        for message in messages {
            self.add(message).await?;
        }
        Ok(())
    }

    async fn mark(&mut self, marker: Marker) -> Result<(), Halted> {
        let id = uuid::Uuid::now_v7().to_string();
        self.add(marker.into_message(id, now_ms())).await
    }

    async fn end(&mut self, message: Message) -> Result<(), Halted> {
        let seq = self.sink.emit(AgentEvent::MessageEnd { message: message.clone() }).await?;
        if let Some(seq) = seq {
            self.context.record.push(Stored { seq, message: message.clone() });
        }
        self.new.push(message);
        Ok(())
    }
}

/// Stands in for the answer of a dialect that broke its contract.
fn broken(model: &Model) -> AssistantMessage {
    AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some("The model's stream ended without an answer.".to_owned()),
        ..model.begun(now_ms())
    }
}
