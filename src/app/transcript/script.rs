//! Plays a run to readers, for tests: the events that a record's end would have come with, and those of an attach.

use serde_json::Value;

use super::live::{Execution, Live};
use crate::app::native::event::{ToolCallEntry, ToolOutput, ToolResultEntry};
use crate::app::native::message::KnownBlock;
use crate::app::native::question::Question;
use crate::app::native::{
    AgentEvent, AssistantEvent, AssistantMessage, Block, Message, Seq, StopReason, Stored, ToolCall, fold,
};

type Script = Vec<(Seq, AgentEvent)>;

/// One run whose events make the messages after the first `cut`.
pub(crate) fn events(record: &[Stored], cut: usize) -> Script {
    let mut position = record[..cut].last().map_or(Seq::START, |stored| stored.seq);
    let mut script = vec![(position, AgentEvent::AgentStart), (position, AgentEvent::TurnStart)];
    let mut answered = false;
    for stored in &record[cut..] {
        match &stored.message {
            Message::Assistant(answer) => {
                if std::mem::replace(&mut answered, true) {
                    script.push((position, turn_end()));
                    script.push((position, AgentEvent::TurnStart));
                }
                script.extend(streamed(answer).into_iter().map(|event| (position, event)));
                position = stored.seq;
                script.push((position, AgentEvent::MessageEnd { message: stored.message.clone() }));
                let runs = matches!(answer.stop_reason, StopReason::Stop | StopReason::ToolUse);
                let calls = answer.tool_calls().filter(|_| runs);
                script.extend(calls.flat_map(executed).map(|event| (position, event)));
            }
            message => {
                script.push((position, AgentEvent::MessageStart { message: message.clone() }));
                position = stored.seq;
                script.push((position, AgentEvent::MessageEnd { message: message.clone() }));
            }
        }
    }
    script.push((position, turn_end()));
    script.push((position, AgentEvent::AgentEnd { messages: Vec::new() }));
    script.push((position, AgentEvent::TurnSettled));
    script
}

/// What a reader at `after` gets first, when `now` is what there is.
pub(crate) fn attach(now: &Live, after: Seq) -> Script {
    let mut script = Vec::new();
    if now.tail.running {
        script.extend([(after, AgentEvent::AgentStart), (after, AgentEvent::TurnStart)]);
    }
    let mut position = after;
    for stored in now.record.iter().filter(|stored| stored.seq > after) {
        script.push((position, AgentEvent::MessageStart { message: stored.message.clone() }));
        position = stored.seq;
        script.push((position, AgentEvent::MessageEnd { message: stored.message.clone() }));
    }
    let position = now.position();
    if let Some(open) = &now.tail.open {
        script.push((position, AgentEvent::MessageStart { message: Message::Assistant(open.clone()) }));
    }
    for tool in &now.tail.tools {
        let (tool_call_id, tool_name) = (tool.id.clone(), tool.name.clone());
        let start = AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args: tool.args.clone() };
        script.push((position, start));
        let (tool_call_id, tool_name) = (tool.id.clone(), tool.name.clone());
        match &tool.state {
            Execution::Running(_) => {}
            Execution::Done(result) => script.push((
                position,
                AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result: result.clone(), is_error: false },
            )),
            Execution::Failed(result) => script.push((
                position,
                AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result: result.clone(), is_error: true },
            )),
        }
    }
    if !now.tail.running {
        script.push((position, AgentEvent::TurnSettled));
    }
    script
}

fn turn_end() -> AgentEvent {
    let message = Message::Assistant(AssistantMessage::default());
    AgentEvent::TurnEnd { message, tool_results: Vec::<ToolResultEntry>::new() }
}

/// The start and the updates of an answer; every second one carries the message whole.
fn streamed(answer: &AssistantMessage) -> Vec<AgentEvent> {
    let mut open = AssistantMessage {
        content: Vec::new(),
        stop_reason: StopReason::Pending,
        error_message: None,
        ..answer.clone()
    };
    let mut events = vec![AgentEvent::MessageStart { message: Message::Assistant(open.clone()) }];
    for (content_index, block) in answer.content.iter().enumerate() {
        for (step, event) in steps(content_index, block).into_iter().enumerate() {
            fold(&mut open, &event);
            let whole = (step % 2 == 1).then(|| open.clone());
            events.push(AgentEvent::update(event, whole));
        }
    }
    events
}

fn steps(content_index: usize, block: &Block) -> Vec<AssistantEvent> {
    let halves = |text: &str| {
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(index, _)| index);
        [text[..middle].to_owned(), text[middle..].to_owned()]
    };
    match block {
        Block::Known(KnownBlock::Text(block)) => {
            let [first, second] = halves(&block.text);
            vec![
                AssistantEvent::TextStart { content_index },
                AssistantEvent::TextDelta { content_index, delta: first },
                AssistantEvent::TextDelta { content_index, delta: second },
                AssistantEvent::TextEnd { content_index, content: block.text.clone() },
            ]
        }
        Block::Known(KnownBlock::Thinking(block)) => {
            let [first, second] = halves(&block.thinking);
            vec![
                AssistantEvent::ThinkingStart { content_index },
                AssistantEvent::ThinkingDelta { content_index, delta: first },
                AssistantEvent::ThinkingDelta { content_index, delta: second },
                AssistantEvent::ThinkingEnd { content_index, content: block.thinking.clone() },
            ]
        }
        Block::Known(KnownBlock::ToolCall(call)) => {
            let [first, second] = halves(&call.arguments.to_string());
            vec![
                AssistantEvent::ToolCallStart { content_index },
                AssistantEvent::ToolCallDelta { content_index, delta: first },
                AssistantEvent::ToolCallDelta { content_index, delta: second },
                AssistantEvent::ToolCallEnd {
                    content_index,
                    tool_call: Box::new(ToolCallEntry::ToolCall(call.clone())),
                },
            ]
        }
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => Vec::new(),
    }
}

/// A call's execution; a question's ends with the loop's stand-in for the answer.
fn executed(call: &ToolCall) -> Vec<AgentEvent> {
    let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
    let start = AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args: call.arguments.clone() };
    let posed = Question::is_question(&call.name);
    let details = posed.then(|| serde_json::json!({"posed": true}));
    let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
    let result = ToolOutput { content: Vec::new(), details: details.clone() };
    let mut events = vec![start, AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result, is_error: false }];
    if posed {
        let message: Message = serde_json::from_value(serde_json::json!({
            "role": "toolResult", "toolCallId": call.id, "toolName": call.name, "details": details.unwrap_or(Value::Null),
        }))
        .unwrap();
        events.extend([AgentEvent::MessageStart { message: message.clone() }, AgentEvent::MessageEnd { message }]);
    }
    events
}
