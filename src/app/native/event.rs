//! What a run says while it happens.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ErrorBody;
use super::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use super::view::Activity;

/// An event of a run, and our three beside them (`turn-settled`, `error`, `activity`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    AgentStart,
    TurnStart,
    MessageStart {
        message: Message,
    },
    /// `message` is left out when `fold(previous, event)` gives it exactly (delta updates).
    MessageUpdate {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Box<Message>>,
        assistant_message_event: AssistantEvent,
    },
    MessageEnd {
        message: Message,
    },
    ToolExecutionStart {
        tool_call_id: String,
        tool_name: String,
        args: Value,
    },
    ToolExecutionUpdate {
        tool_call_id: String,
        tool_name: String,
        args: Value,
        partial_result: ToolOutput,
    },
    ToolExecutionEnd {
        tool_call_id: String,
        tool_name: String,
        result: ToolOutput,
        is_error: bool,
    },
    TurnEnd {
        message: Message,
        tool_results: Vec<ToolResultEntry>,
    },
    AgentEnd {
        messages: Vec<Message>,
    },
    /// Nothing is left to do: no run follows by itself.
    #[serde(rename = "turn-settled")]
    TurnSettled,
    Error(ErrorBody),
    Activity(Box<Activity>),
}

/// A tool result inside `turn_end`: the message with its `role`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role")]
pub enum ToolResultEntry {
    #[serde(rename = "toolResult")]
    ToolResult(ToolResultMessage),
}

/// What a tool returned, or has so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    #[serde(default)]
    pub content: Vec<Block>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// One step in the making of an assistant message; `content_index` counts its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(
    clippy::large_enum_variant,
    reason = "deltas are the rule, and a box would be followed for each finished call only"
)]
pub enum AssistantEvent {
    TextStart {
        content_index: usize,
    },
    TextDelta {
        content_index: usize,
        delta: String,
    },
    TextEnd {
        content_index: usize,
        content: String,
    },
    ThinkingStart {
        content_index: usize,
    },
    ThinkingDelta {
        content_index: usize,
        delta: String,
    },
    ThinkingEnd {
        content_index: usize,
        content: String,
    },
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        content_index: usize,
    },
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        content_index: usize,
        delta: String,
    },
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        content_index: usize,
        tool_call: ToolCallEntry,
    },
}

/// A tool call with its block `type`, as `toolcall_end` carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToolCallEntry {
    #[serde(rename = "toolCall")]
    ToolCall(ToolCall),
}

impl AgentEvent {
    /// The assistant message of an update, when it is there whole.
    #[must_use]
    pub fn update(assistant_message_event: AssistantEvent, message: Option<AssistantMessage>) -> Self {
        Self::MessageUpdate {
            message: message.map(|message| Box::new(Message::Assistant(message))),
            assistant_message_event,
        }
    }
}
