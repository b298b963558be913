//! What a model is shown of a record: a pure function from stored messages to a request's messages.
//!
//! Any record, however it was cut, becomes an order that providers accept: every call has exactly one result right after
//! its message, no result stands alone, and the last message is never the assistant's.

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use crate::app::native::message::KnownBlock;
use crate::app::native::{
    AssistantMessage, Block, CustomMessage, Marker, Message, Question, Seq, StopReason, Stored, ToolCall,
    ToolResultMessage,
};

/// The messages of the next request, oldest first: only `user`, `assistant` and `toolResult`.
#[must_use]
pub fn to_llm(record: &[Stored]) -> Vec<Message> {
    let replaced = replaced(record);
    let results = results(record);
    let mut seen = HashSet::new();
    let mut messages = Vec::with_capacity(record.len());
    for stored in record.iter().filter(|stored| !replaced.contains(&stored.seq)) {
        match &stored.message {
            Message::User(user) => messages.push(Message::User(user.clone())),
            Message::Custom(custom) => messages.extend(marker_text(custom)),
            Message::Assistant(answer) => {
                let Some(kept) = kept(answer, &mut seen) else { continue };
                let answered = kept.tool_calls().map(|call| result_for(call, &results)).collect::<Vec<_>>();
                messages.push(Message::Assistant(kept));
                messages.extend(answered);
            }
            // Results stand right after their calls, wherever they were stored; those without a call are left out.
            Message::ToolResult(_) => {}
        }
    }
    if matches!(messages.last(), Some(Message::Assistant(_))) {
        messages.push(Message::user("Go on.", 0));
    }
    messages
}

/// The failed answers that a retry replaces.
fn replaced(record: &[Stored]) -> HashSet<Seq> {
    record
        .iter()
        .filter_map(|stored| match &stored.message {
            Message::Custom(custom) => match Marker::read(custom) {
                Some(Marker::Retry { replaces }) => Some(replaces),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// The first result of each call.
fn results(record: &[Stored]) -> HashMap<&str, &ToolResultMessage> {
    let mut results = HashMap::new();
    for result in record.iter().filter_map(|stored| stored.message.as_tool_result()) {
        results.entry(result.tool_call_id.as_str()).or_insert(result);
    }
    results
}

fn marker_text(custom: &CustomMessage) -> Option<Message> {
    let text = custom.content.text();
    (!text.trim().is_empty()).then(|| Message::user(text, custom.timestamp))
}

/// The part of an answer that may be replayed; nothing when nothing is left. A call whose id was seen before is dropped.
fn kept(answer: &AssistantMessage, seen: &mut HashSet<String>) -> Option<AssistantMessage> {
    let whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::Pending);
    let mut kept = answer.clone();
    kept.content.retain(|block| match block {
        Block::Known(KnownBlock::Text(text)) => !text.text.trim().is_empty(),
        Block::Known(KnownBlock::Thinking(thinking)) => whole || thinking.thinking_signature.is_some(),
        Block::Known(KnownBlock::ToolCall(call)) => whole && seen.insert(call.id.clone()),
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => whole,
    });
    let speaks = kept.content.iter().any(|block| block.as_text().is_some() || block.as_tool_call().is_some());
    speaks.then_some(kept)
}

fn result_for(call: &ToolCall, results: &HashMap<&str, &ToolResultMessage>) -> Message {
    let message = results.get(call.id.as_str()).map_or_else(|| dangling(call), |&result| result.clone());
    Message::ToolResult(message)
}

/// Stands in for the result of a call that never got one.
fn dangling(call: &ToolCall) -> ToolResultMessage {
    let text = if Question::is_question(&call.name) {
        "The question was interrupted."
    } else {
        "Interrupted; effects unknown."
    };
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![Block::text(text)],
        details: None,
        usage: None,
        is_error: true,
        timestamp: 0,
        extra: Map::new(),
    }
}
