//! What a model is shown of a record: a pure function from stored messages to a request's messages.
//!
//! Any record, however it was cut, becomes an order that providers accept: a user begins, every call has exactly one
//! result right after its message, no id comes twice, no result stands alone, no two answers follow each other, and the
//! last message is never the assistant's. Nothing that was said is lost for that.

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use crate::app::native::message::{KnownBlock, UserMessage};
use crate::app::native::{
    AssistantMessage, Block, Content, CustomMessage, Marker, Message, Question, Seq, StopReason, Stored, ToolCall,
    ToolResultMessage,
};

/// Stands where a provider wants a user's word and there is none.
const GO_ON: &str = "Go on.";

/// The messages of the next request, oldest first: only `user`, `assistant` and `toolResult`.
#[must_use]
pub fn to_llm(record: &[Stored]) -> Vec<Message> {
    let replaced = replaced(record);
    let shown: Vec<&Message> =
        record.iter().filter(|stored| !replaced.contains(&stored.seq)).map(|stored| &stored.message).collect();
    let results = results(&shown);
    let mut ids = HashMap::new();
    let mut messages = Vec::with_capacity(shown.len());
    for (at, message) in shown.into_iter().enumerate() {
        match message {
            Message::User(user) => messages.extend(said(&user.content).then(|| message.clone())),
            Message::Custom(custom) => messages.extend(marker_words(custom)),
            Message::Assistant(answer) => {
                let Some(mut kept) = kept(answer) else { continue };
                if matches!(messages.last(), Some(Message::Assistant(_)) | None) {
                    messages.push(Message::user(GO_ON, 0));
                }
                let answered = answer_calls(&mut kept, at, &results, &mut ids);
                messages.push(Message::Assistant(kept));
                messages.extend(answered);
            }
            // Results stand right after their calls, wherever they were stored; those without a call are left out.
            Message::ToolResult(_) => {}
        }
    }
    if matches!(messages.last(), Some(Message::Assistant(_)) | None) {
        messages.push(Message::user(GO_ON, 0));
    }
    messages
}

/// The failed answers that a later retry replaces. Nothing else can be replaced, whatever a marker points at.
fn replaced(record: &[Stored]) -> HashSet<Seq> {
    let mut failed = HashSet::new();
    let mut replaced = HashSet::new();
    for stored in record {
        match &stored.message {
            Message::Assistant(answer) if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) => {
                failed.insert(stored.seq);
            }
            Message::Custom(custom) => match Marker::read(custom) {
                Some(Marker::Retry { replaces }) if failed.contains(&replaces) => drop(replaced.insert(replaces)),
                _ => {}
            },
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => {}
        }
    }
    replaced
}

/// A call by the place of its message and its own place among the message's calls.
type Place = (usize, usize);

/// The result of each call that has one. Providers use ids again, so a result goes to the last answer before it that has
/// a call of that id without a result; else to the first call of that id that stays without; else it is one too many.
fn results<'a>(shown: &[&'a Message]) -> HashMap<Place, &'a ToolResultMessage> {
    let mut open: HashMap<&str, Vec<Place>> = HashMap::new();
    let mut early = Vec::new();
    let mut results = HashMap::new();
    for (at, message) in shown.iter().enumerate() {
        match message {
            Message::Assistant(answer) if is_whole(answer) => {
                for (nth, call) in answer.tool_calls().enumerate() {
                    open.entry(&call.id).or_default().push((at, nth));
                }
            }
            Message::ToolResult(result) if !result.is_posed_placeholder() => {
                let waiting = open.entry(&result.tool_call_id).or_default();
                match waiting.iter().position(|place| Some(place.0) == waiting.last().map(|last| last.0)) {
                    Some(first) => drop(results.insert(waiting.remove(first), result)),
                    None => early.push(result),
                }
            }
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) => {}
        }
    }
    for result in early {
        if let Some(waiting) = open.get_mut(result.tool_call_id.as_str()).filter(|waiting| !waiting.is_empty()) {
            results.insert(waiting.remove(0), result);
        }
    }
    results
}

/// True when there is something to read or to see.
fn said(content: &Content) -> bool {
    match content {
        Content::Text(text) => !text.trim().is_empty(),
        Content::Blocks(blocks) => blocks.iter().any(|block| match block {
            Block::Known(KnownBlock::Text(text)) => !text.text.trim().is_empty(),
            Block::Known(KnownBlock::Image(_)) => true,
            Block::Known(KnownBlock::Thinking(_) | KnownBlock::ToolCall(_)) | Block::Other(_) => false,
        }),
    }
}

fn marker_words(custom: &CustomMessage) -> Option<Message> {
    let (content, timestamp) = (custom.content.clone(), custom.timestamp);
    said(&content).then(|| Message::User(UserMessage { content, timestamp, extra: Map::new() }))
}

/// False for an answer that broke off: its calls never ran.
fn is_whole(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::Pending)
}

/// The part of an answer that may be replayed; nothing when nothing is left.
fn kept(answer: &AssistantMessage) -> Option<AssistantMessage> {
    let whole = is_whole(answer);
    let mut kept = answer.clone();
    kept.content.retain(|block| match block {
        Block::Known(KnownBlock::Text(text)) => !text.text.trim().is_empty(),
        Block::Known(KnownBlock::Thinking(thinking)) => whole || thinking.thinking_signature.is_some(),
        Block::Known(KnownBlock::ToolCall(_) | KnownBlock::Image(_)) | Block::Other(_) => whole,
    });
    let speaks = kept.content.iter().any(|block| block.as_text().is_some() || block.as_tool_call().is_some());
    speaks.then_some(kept)
}

/// The results of the calls of `kept`, which is the message at `at`. A call whose id came before gets another, by what
/// came before alone: the next request begins as this one does.
fn answer_calls(
    kept: &mut AssistantMessage,
    at: usize,
    results: &HashMap<Place, &ToolResultMessage>,
    ids: &mut HashMap<String, usize>,
) -> Vec<Message> {
    let calls = kept.content.iter_mut().filter_map(|block| match block {
        Block::Known(KnownBlock::ToolCall(call)) => Some(call),
        Block::Known(KnownBlock::Text(_) | KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => None,
    });
    let answered = calls.enumerate().map(|(nth, call)| {
        call.id = unused(&call.id, ids);
        let mut result = results.get(&(at, nth)).map_or_else(|| dangling(call), |result| (*result).clone());
        result.tool_call_id.clone_from(&call.id);
        Message::ToolResult(result)
    });
    answered.collect()
}

/// `id`, or a new one made of it when it came before. `ids` has the number of the last one made of each.
fn unused(id: &str, ids: &mut HashMap<String, usize>) -> String {
    let Some(&last) = ids.get(id) else {
        ids.insert(id.to_owned(), 1);
        return id.to_owned();
    };
    for count in last + 1.. {
        let made = format!("{id}_{count}");
        if !ids.contains_key(&made) {
            ids.insert(made.clone(), 1);
            ids.insert(id.to_owned(), count);
            return made;
        }
    }
    id.to_owned()
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
