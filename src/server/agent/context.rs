//! What a model is shown of a record: a pure function from stored messages to a request's messages.
//!
//! Any record, however it was cut, becomes an order that providers accept: a user begins, every call has exactly one
//! result right after its message, no id comes twice, no result stands alone, no two answers follow each other, and the
//! last message is never the assistant's. Nothing that was said is lost for that.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Map;

use crate::app::native::message::{KnownBlock, UserMessage};
use crate::app::native::{
    AssistantMessage, Block, Content, CustomMessage, Marker, Message, Question, Seq, StopReason, Stored, ToolCall,
    ToolResultMessage,
};

/// Stands where a provider wants a user's word and there is none.
const GO_ON: &str = "Go on.";

/// The messages of the next request, oldest first: only `user`, `assistant` and `toolResult`. What goes as it is stored is
/// borrowed.
#[must_use]
pub fn to_llm(record: &[Stored]) -> Vec<Cow<'_, Message>> {
    let replaced = replaced(record);
    let shown: Vec<&Message> =
        record.iter().filter(|stored| !replaced.contains(&stored.seq)).map(|stored| &stored.message).collect();
    let results = results(&shown);
    let mut ids = HashMap::new();
    let mut messages: Vec<Cow<'_, Message>> = Vec::with_capacity(shown.len() + 1);
    for (at, message) in shown.into_iter().enumerate() {
        match message {
            Message::User(user) => messages.extend(said(&user.content).then_some(Cow::Borrowed(message))),
            Message::Custom(custom) => messages.extend(marker_words(custom).map(Cow::Owned)),
            Message::Assistant(answer) => {
                let Some(kept) = kept(message, answer) else { continue };
                go_on(&mut messages);
                messages.push(kept);
                if is_whole(answer) {
                    answer_calls(&mut messages, answer, at, &results, &mut ids);
                }
            }
            // Results stand right after their calls, wherever they were stored; those without a call are left out.
            Message::ToolResult(_) => {}
        }
    }
    go_on(&mut messages);
    messages
}

/// Puts a user's word where there would be none before or behind an answer.
fn go_on(messages: &mut Vec<Cow<'_, Message>>) {
    if messages.last().is_none_or(|last| last.as_assistant().is_some()) {
        messages.push(Cow::Owned(Message::user(GO_ON, 0)));
    }
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
fn results<'a>(shown: &[&'a Message]) -> HashMap<Place, &'a Message> {
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
                    Some(first) => drop(results.insert(waiting.remove(first), *message)),
                    None => early.push((result, *message)),
                }
            }
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) => {}
        }
    }
    for (result, message) in early {
        if let Some(waiting) = open.get_mut(result.tool_call_id.as_str()).filter(|waiting| !waiting.is_empty()) {
            results.insert(waiting.remove(0), message);
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

/// The part of `message`, which is `answer`, that may be replayed; nothing when nothing is left.
fn kept<'a>(message: &'a Message, answer: &'a AssistantMessage) -> Option<Cow<'a, Message>> {
    let whole = is_whole(answer);
    let is_kept = |block: &Block| match block {
        Block::Known(KnownBlock::Text(text)) => !text.text.trim().is_empty(),
        Block::Known(KnownBlock::Thinking(thinking)) => whole || thinking.thinking_signature.is_some(),
        Block::Known(KnownBlock::ToolCall(_) | KnownBlock::Image(_)) | Block::Other(_) => whole,
    };
    let speaks = |block: &Block| is_kept(block) && (block.as_text().is_some() || block.as_tool_call().is_some());
    if !answer.content.iter().any(speaks) {
        return None;
    }
    if answer.content.iter().all(is_kept) {
        return Some(Cow::Borrowed(message));
    }
    let mut kept = answer.clone();
    kept.content.retain(is_kept);
    Some(Cow::Owned(Message::Assistant(kept)))
}

/// Appends the results of the calls of `answer`, which is the last of `messages` and was shown at `at`. A call whose id
/// came before gets another, by what came before alone: the next request begins as this one does.
fn answer_calls<'a>(
    messages: &mut Vec<Cow<'a, Message>>,
    answer: &'a AssistantMessage,
    at: usize,
    results: &HashMap<Place, &'a Message>,
    ids: &mut HashMap<Cow<'a, str>, usize>,
) {
    let place = messages.len() - 1;
    for (nth, call) in answer.tool_calls().enumerate() {
        let id = unused(&call.id, ids);
        let result = results.get(&(at, nth)).copied();
        if let (Cow::Borrowed(_), Some(result)) = (&id, result) {
            messages.push(Cow::Borrowed(result));
            continue;
        }
        let result = result.and_then(Message::as_tool_result).cloned();
        let result = ToolResultMessage { tool_call_id: id.to_string(), ..result.unwrap_or_else(|| dangling(call)) };
        if let Cow::Owned(id) = id {
            rename_call(messages[place].to_mut(), nth, id);
        }
        messages.push(Cow::Owned(Message::ToolResult(result)));
    }
}

/// Gives the `nth` call of an answer another id.
fn rename_call(message: &mut Message, nth: usize, id: String) {
    let Message::Assistant(answer) = message else { return };
    let mut calls = answer.content.iter_mut().filter_map(|block| match block {
        Block::Known(KnownBlock::ToolCall(call)) => Some(call),
        Block::Known(KnownBlock::Text(_) | KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => None,
    });
    if let Some(call) = calls.nth(nth) {
        call.id = id;
    }
}

/// `id`, or a new one made of it when it came before. `ids` has the number of the last one made of each.
fn unused<'a>(id: &'a str, ids: &mut HashMap<Cow<'a, str>, usize>) -> Cow<'a, str> {
    let Some(&last) = ids.get(id) else {
        ids.insert(id.into(), 1);
        return id.into();
    };
    for count in last + 1.. {
        let made = format!("{id}_{count}");
        if !ids.contains_key(made.as_str()) {
            ids.insert(made.clone().into(), 1);
            ids.insert(id.into(), count);
            return made.into();
        }
    }
    id.into()
}

/// Stands in for the result of a call that never got one.
fn dangling(call: &ToolCall) -> ToolResultMessage {
    let text = if Question::is_question(&call.name) {
        "The question was interrupted."
    } else {
        "Interrupted; effects unknown."
    };
    ToolResultMessage::failed(call, text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_goes_as_it_is_stored_is_not_copied() {
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "stopReason": "toolUse", "content": [
                {"type": "text", "text": "See"}, {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}]},
            {"role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "stopReason": "toolUse", "content": [
                {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}]},
            {"role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": [{"type": "text", "text": "b"}]},
        ]))
        .unwrap();
        let record: Vec<Stored> =
            messages.into_iter().zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message }).collect();
        let copied: Vec<bool> = to_llm(&record).iter().map(|message| matches!(message, Cow::Owned(_))).collect();
        assert_eq!(copied, [false, false, false, true, true], "only an id that came before has to be changed");
    }
}
