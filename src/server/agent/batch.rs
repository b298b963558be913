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
use super::tool::{After, Call, Done, Mode, Tool, ToolError, Updates};
use crate::app::native::event::ToolOutput;
use crate::app::native::partial::ARGUMENTS_FAULT;
use crate::app::native::{AgentEvent, AssistantMessage, Block, Marker, StopReason, ToolCall, ToolResultMessage};
use crate::server::clock::now_ms;

/// A tool that works longer than this has failed.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a tool may tidy up after an abort.
const GRACE: Duration = Duration::from_millis(250);

/// What became of a batch.
pub(super) struct Outcome {
    /// In source order.
    pub(super) results: Vec<ToolResultMessage>,
    pub(super) markers: Vec<Marker>,
    /// True when a clean result ends the run.
    pub(super) stop: bool,
}

/// A call with its end.
struct Finished {
    call: ToolCall,
    outcome: Result<Done, ToolError>,
    after: After,
}

type Updating = (mpsc::UnboundedSender<(usize, ToolOutput)>, mpsc::UnboundedReceiver<(usize, ToolOutput)>);

/// Executes the calls of `answer` and emits everything from the first `tool_execution_start` to the last result message.
pub(super) async fn execute(run: &mut Run<'_>, answer: &AssistantMessage) -> Result<Outcome, Halted> {
    let calls: Vec<ToolCall> = answer.tool_calls().cloned().collect();
    let sequential =
        calls.iter().filter_map(|call| tool_of(run, call)).any(|tool| tool.face().mode == Mode::Sequential);
    let finished = if answer.stop_reason == StopReason::Length {
        cut(run, calls).await?
    } else if sequential {
        one_by_one(run, calls).await?
    } else {
        side_by_side(run, calls).await?
    };
    let stop = finished.iter().any(|(end, _)| end.outcome.is_ok() && end.after == After::StopRun);
    let mut outcome = Outcome { results: Vec::new(), markers: Vec::new(), stop };
    for (end, result) in finished {
        outcome.results.push(result);
        outcome.markers.extend(end.outcome.into_iter().flat_map(|done| done.markers));
    }
    Ok(outcome)
}

/// The calls of an answer that hit its token limit may be incomplete; none of them runs.
async fn cut(run: &mut Run<'_>, calls: Vec<ToolCall>) -> Result<Vec<(Finished, ToolResultMessage)>, Halted> {
    let mut finished = Vec::new();
    for call in calls {
        start(run, &call).await?;
        let words = format!(
            "Tool call \"{}\" was not executed: the answer hit the output token limit, so its arguments may be incomplete. \
             Make the call again with complete arguments.",
            call.name
        );
        let end = Finished { call, outcome: Err(ToolError(words)), after: After::GoOn };
        finished.push(end_with_message(run, end).await?);
    }
    Ok(finished)
}

async fn one_by_one(run: &mut Run<'_>, calls: Vec<ToolCall>) -> Result<Vec<(Finished, ToolResultMessage)>, Halted> {
    let mut finished = Vec::new();
    for call in calls {
        start(run, &call).await?;
        let end = match prepare(run, &call) {
            Ok((tool, args)) => {
                let (sender, mut receiver): Updating = mpsc::unbounded_channel();
                let updates = Updates(sender, 0);
                let mut work = Box::pin(work(tool, call.clone(), args, updates, run.cancel.clone()));
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
            Err(error) => Finished { call, outcome: Err(error), after: After::GoOn },
        };
        finished.push(end_with_message(run, end).await?);
        if run.cancel.is_cancelled() {
            break;
        }
    }
    Ok(finished)
}

async fn side_by_side(run: &mut Run<'_>, calls: Vec<ToolCall>) -> Result<Vec<(Finished, ToolResultMessage)>, Halted> {
    let (sender, mut receiver): Updating = mpsc::unbounded_channel();
    let mut ends: Vec<Option<Finished>> = Vec::new();
    let mut ready = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        start(run, call).await?;
        match prepare(run, call) {
            Ok((tool, args)) => {
                ready.push((index, tool, args));
                ends.push(None);
            }
            Err(error) => {
                let end = Finished { call: call.clone(), outcome: Err(error), after: After::GoOn };
                finish(run, &end).await?;
                ends.push(Some(end));
            }
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
                    update(run, &calls[index], output).await?;
                }
            }
            Some((index, end)) = working.next() => {
                // What it reported in its last step came with the end.
                while let Ok((index, output)) = receiver.try_recv() {
                    if ends[index].is_none() {
                        update(run, &calls[index], output).await?;
                    }
                }
                finish(run, &end).await?;
                ends[index] = Some(end);
            }
        }
    }
    let mut finished = Vec::new();
    for end in ends.into_iter().flatten() {
        let result = message_of(&end);
        run.add_result(&result).await?;
        finished.push((end, result));
    }
    Ok(finished)
}

fn tool_of(run: &Run<'_>, call: &ToolCall) -> Option<Arc<dyn Tool>> {
    run.context.tools.iter().find(|tool| tool.face().spec.name == call.name).cloned()
}

fn prepare(run: &Run<'_>, call: &ToolCall) -> Result<(Arc<dyn Tool>, Value), ToolError> {
    let tool = tool_of(run, call).ok_or_else(|| ToolError(format!("Tool {} not found", call.name)))?;
    check_readable(call)?;
    let args = schema::validate(&call.name, &tool.face().spec.parameters, &call.arguments).map_err(ToolError)?;
    Ok((tool, args))
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

async fn work(
    tool: Arc<dyn Tool>,
    call: ToolCall,
    args: Value,
    updates: Updates,
    cancel: CancellationToken,
) -> Finished {
    let aborted = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let at_work = Call { id: call.id.clone(), args, cancel: cancel.clone(), updates };
    let outcome = tokio::select! {
        outcome = AssertUnwindSafe(tool.execute(at_work)).catch_unwind() => outcome.unwrap_or_else(|_| {
            tracing::error!(tool = call.name, "a tool panicked");
            Err(ToolError(format!("{} broke; its effects are unknown.", call.name)))
        }),
        () = aborted => Err(ToolError("Interrupted; effects unknown.".to_owned())),
        () = tokio::time::sleep(LIMIT) => Err(ToolError(format!("{} took longer than {} s and was given up.", call.name, LIMIT.as_secs()))),
    };
    Finished { call, outcome, after: tool.face().after }
}

async fn start(run: &mut Run<'_>, call: &ToolCall) -> Result<(), Halted> {
    let (tool_call_id, tool_name, args) = (call.id.clone(), call.name.clone(), call.arguments.clone());
    run.sink.emit(AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args }).await.map(drop)
}

async fn update(run: &mut Run<'_>, call: &ToolCall, partial_result: ToolOutput) -> Result<(), Halted> {
    let (tool_call_id, tool_name, args) = (call.id.clone(), call.name.clone(), call.arguments.clone());
    run.sink.emit(AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, args, partial_result }).await.map(drop)
}

async fn finish(run: &mut Run<'_>, end: &Finished) -> Result<(), Halted> {
    run.sink
        .emit(AgentEvent::ToolExecutionEnd {
            tool_call_id: end.call.id.clone(),
            tool_name: end.call.name.clone(),
            result: output_of(end),
            is_error: end.outcome.is_err(),
        })
        .await
        .map(drop)
}

async fn end_with_message(run: &mut Run<'_>, end: Finished) -> Result<(Finished, ToolResultMessage), Halted> {
    finish(run, &end).await?;
    let result = message_of(&end);
    run.add_result(&result).await?;
    Ok((end, result))
}

fn output_of(end: &Finished) -> ToolOutput {
    match &end.outcome {
        Ok(done) => done.output.clone(),
        Err(error) => ToolOutput { content: vec![Block::text(&error.0)], details: Some(json!({})) },
    }
}

fn message_of(end: &Finished) -> ToolResultMessage {
    let output = output_of(end);
    ToolResultMessage {
        tool_call_id: end.call.id.clone(),
        tool_name: end.call.name.clone(),
        content: output.content,
        details: output.details,
        usage: None,
        is_error: end.outcome.is_err(),
        timestamp: now_ms(),
        extra: Map::new(),
    }
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
