//! The calls of one answer: prepared in order, run side by side or one by one, their results in source order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::run_loop::{Halted, Run};
use super::schema;
use super::tool::{After, Call, Done, Mode, Replay, Tool, ToolError, Updates};
use crate::app::native::event::ToolOutput;
use crate::app::native::partial::ARGUMENTS_FAULT;
use crate::app::native::{AgentEvent, AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};
use crate::server::clock::now_ms;

/// A tool that works longer than this has failed.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a tool may tidy up after an abort.
const GRACE: Duration = Duration::from_millis(250);

/// What became of a batch.
pub(super) struct Outcome {
    /// In source order.
    pub(super) results: Vec<ToolResultMessage>,
    /// True when a clean result ends the run.
    pub(super) stop: bool,
}

/// Whether the calls of a batch are made for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    First,
    /// Another process was cut off while it made them.
    Again,
}

/// A call to be made.
#[derive(Clone)]
struct Due {
    /// Its place among the answer's calls.
    nth: usize,
    call: ToolCall,
    times: Times,
}

/// A call with its end.
struct Finished {
    due: Due,
    outcome: Result<Done, ToolError>,
    after: After,
}

/// What an end leaves to the record.
struct Ended {
    result: ToolResultMessage,
    markers: Vec<Message>,
    /// True when it ends the run.
    stop: bool,
}

type Updating = (mpsc::UnboundedSender<(usize, ToolOutput)>, mpsc::UnboundedReceiver<(usize, ToolOutput)>);

/// Executes the calls of `answer` at the places `open` and emits everything from the first `tool_execution_start` to the
/// last result message. Markers follow the result that they belong to.
pub(super) async fn execute(
    run: &mut Run<'_>,
    answer: &AssistantMessage,
    open: &[usize],
    times: Times,
) -> Result<Outcome, Halted> {
    let calls = answer.tool_calls().cloned().enumerate().filter(|(nth, _)| open.contains(nth));
    let calls: Vec<Due> = calls.map(|(nth, call)| Due { nth, call, times }).collect();
    let sequential =
        calls.iter().filter_map(|due| tool_of(run, &due.call)).any(|tool| tool.face().mode == Mode::Sequential);
    let ended = if answer.stop_reason == StopReason::Length {
        cut(run, calls).await?
    } else if sequential {
        one_by_one(run, calls).await?
    } else {
        side_by_side(run, calls).await?
    };
    let stop = ended.iter().any(|(_, stop)| *stop);
    Ok(Outcome { results: ended.into_iter().map(|(result, _)| result).collect(), stop })
}

/// The calls of an answer that hit its token limit may be incomplete; none of them runs.
async fn cut(run: &mut Run<'_>, calls: Vec<Due>) -> Result<Vec<(ToolResultMessage, bool)>, Halted> {
    let mut ended = Vec::new();
    for due in calls {
        start(run, &due.call).await?;
        let words = format!(
            "Tool call \"{}\" was not executed: the answer hit the output token limit, so its arguments may be incomplete. \
             Make the call again with complete arguments.",
            due.call.name
        );
        let end = finish(run, failed(due, ToolError(words))).await?;
        ended.push(add(run, end).await?);
    }
    Ok(ended)
}

async fn one_by_one(run: &mut Run<'_>, calls: Vec<Due>) -> Result<Vec<(ToolResultMessage, bool)>, Halted> {
    let mut ended = Vec::new();
    for due in calls {
        start(run, &due.call).await?;
        let end = match prepare(run, &due) {
            Ok((tool, args)) => {
                let call = due.call.clone();
                let (sender, mut receiver): Updating = mpsc::unbounded_channel();
                let updates = Updates(sender, 0);
                let mut work = Box::pin(work(tool, due, args, updates, run.cancel.clone()));
                let end = loop {
                    tokio::select! {
                        biased;
                        Some((_, output)) = receiver.recv() => update(run, &call, output).await?,
                        end = &mut work => break end,
                    }
                };
                // What it reported in its last step came with the end.
                while let Ok((_, output)) = receiver.try_recv() {
                    update(run, &call, output).await?;
                }
                end
            }
            Err(error) => failed(due, error),
        };
        let end = finish(run, end).await?;
        ended.push(add(run, end).await?);
        if run.cancel.is_cancelled() {
            break;
        }
    }
    Ok(ended)
}

async fn side_by_side(run: &mut Run<'_>, calls: Vec<Due>) -> Result<Vec<(ToolResultMessage, bool)>, Halted> {
    let (sender, mut receiver): Updating = mpsc::unbounded_channel();
    let mut ends: Vec<Option<Ended>> = Vec::new();
    let mut ready = Vec::new();
    for (index, due) in calls.iter().enumerate() {
        start(run, &due.call).await?;
        match prepare(run, due) {
            Ok((tool, args)) => {
                ready.push((index, tool, args));
                ends.push(None);
            }
            Err(error) => ends.push(Some(finish(run, failed(due.clone(), error)).await?)),
        }
        if run.cancel.is_cancelled() {
            break;
        }
    }
    let mut working: FuturesUnordered<_> = ready
        .into_iter()
        .map(|(index, tool, args)| {
            let work = work(tool, calls[index].clone(), args, Updates(sender.clone(), index), run.cancel.clone());
            async move { (index, work.await) }
        })
        .collect();
    while !working.is_empty() {
        tokio::select! {
            biased;
            Some((index, output)) = receiver.recv() => {
                if ends[index].is_none() {
                    update(run, &calls[index].call, output).await?;
                }
            }
            Some((index, end)) = working.next() => {
                // What it reported in its last step came with the end.
                while let Ok((index, output)) = receiver.try_recv() {
                    if ends[index].is_none() {
                        update(run, &calls[index].call, output).await?;
                    }
                }
                ends[index] = Some(finish(run, end).await?);
            }
        }
    }
    let mut ended = Vec::new();
    for end in ends.into_iter().flatten() {
        ended.push(add(run, end).await?);
    }
    Ok(ended)
}

fn tool_of(run: &Run<'_>, call: &ToolCall) -> Option<Arc<dyn Tool>> {
    run.context.tools.iter().find(|tool| tool.face().spec.name == call.name).cloned()
}

fn prepare(run: &Run<'_>, due: &Due) -> Result<(Arc<dyn Tool>, Value), ToolError> {
    let call = &due.call;
    let tool = tool_of(run, call).ok_or_else(|| ToolError(format!("Tool {} not found", call.name)))?;
    check_readable(call)?;
    let args = schema::validate(&call.name, &tool.face().spec.parameters, &call.arguments).map_err(ToolError)?;
    match (due.times, tool.face().replay) {
        (Times::Again, Replay::Never) => Err(interrupted()),
        (Times::Again, Replay::Again) | (Times::First, _) => Ok((tool, args)),
    }
}

fn interrupted() -> ToolError {
    ToolError("Interrupted; effects unknown.".to_owned())
}

/// Refuses arguments that the dialect could not read whole: what was salvaged of them is not what the model meant.
fn check_readable(call: &ToolCall) -> Result<(), ToolError> {
    match call.extra.get(ARGUMENTS_FAULT).and_then(Value::as_str) {
        Some(fault) => {
            Err(ToolError(format!("Tool call \"{}\" was not executed: {fault} Make the call again.", call.name)))
        }
        None => Ok(()),
    }
}

async fn work(tool: Arc<dyn Tool>, due: Due, args: Value, updates: Updates, cancel: CancellationToken) -> Finished {
    let aborted = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let at_work = Call { id: due.call.id.clone(), args, cancel: cancel.clone(), updates };
    let outcome = tokio::select! {
        outcome = AssertUnwindSafe(tool.execute(at_work)).catch_unwind() => outcome.unwrap_or_else(|_| {
            tracing::error!(tool = due.call.name, "a tool panicked");
            Err(ToolError(format!("{} broke; its effects are unknown.", due.call.name)))
        }),
        () = aborted => Err(interrupted()),
        () = tokio::time::sleep(LIMIT) => Err(ToolError(format!("{} took longer than {} s and was given up.", due.call.name, LIMIT.as_secs()))),
    };
    Finished { due, outcome, after: tool.face().after }
}

async fn start(run: &mut Run<'_>, call: &ToolCall) -> Result<(), Halted> {
    let (tool_call_id, tool_name, args) = (call.id.clone(), call.name.clone(), call.arguments.clone());
    run.sink.emit(AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args }).await.map(drop)
}

async fn update(run: &mut Run<'_>, call: &ToolCall, partial_result: ToolOutput) -> Result<(), Halted> {
    let (tool_call_id, tool_name, args) = (call.id.clone(), call.name.clone(), call.arguments.clone());
    run.sink.emit(AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, args, partial_result }).await.map(drop)
}

fn failed(due: Due, error: ToolError) -> Finished {
    Finished { due, outcome: Err(error), after: After::GoOn }
}

/// Tells how a call ended, once that is kept. A stand-in for a learner's answer is nothing to keep.
async fn finish(run: &mut Run<'_>, end: Finished) -> Result<Ended, Halted> {
    let Finished { due, outcome, after } = end;
    let is_error = outcome.is_err();
    let Done { output, markers } = outcome.unwrap_or_else(|error| Done {
        output: ToolOutput { content: vec![Block::text(&error.0)], details: Some(json!({})) },
        markers: Vec::new(),
    });
    let result = ToolResultMessage {
        tool_call_id: due.call.id.clone(),
        tool_name: due.call.name.clone(),
        content: output.content.clone(),
        details: output.details.clone(),
        usage: None,
        is_error,
        timestamp: now_ms(),
        extra: Map::new(),
    };
    let id = || uuid::Uuid::now_v7().to_string();
    let markers: Vec<Message> = markers.into_iter().map(|marker| marker.into_message(id(), now_ms())).collect();
    if !result.is_posed_placeholder() {
        let kept: Vec<Message> = std::iter::once(Message::ToolResult(result.clone())).chain(markers.clone()).collect();
        run.sink.keep(due.nth, &kept).await;
    }
    let (tool_call_id, tool_name) = (due.call.id, due.call.name);
    run.sink.emit(AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result: output, is_error }).await?;
    Ok(Ended { result, markers, stop: !is_error && after == After::StopRun })
}

/// Appends a result with what follows it; with it comes whether it ends the run.
async fn add(run: &mut Run<'_>, end: Ended) -> Result<(ToolResultMessage, bool), Halted> {
    let result = Message::ToolResult(end.result.clone());
    if end.result.is_posed_placeholder() {
        run.add(result).await?;
    } else {
        run.add_together(std::iter::once(result).chain(end.markers).collect()).await?;
    }
    Ok((end.result, end.stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_whose_arguments_were_cut_off_is_refused() {
        let whole = ToolCall { name: "look".into(), arguments: json!({}), ..ToolCall::default() };
        assert!(check_readable(&whole).is_ok());
        let mut cut = whole;
        cut.extra.insert(ARGUMENTS_FAULT.into(), "They are cut off.".into());
        let words = "Tool call \"look\" was not executed: They are cut off. Make the call again.";
        assert_eq!(check_readable(&cut).unwrap_err().0, words);
    }
}
