//! What a run says while it happens.

use serde_json::Value;

use super::error::ErrorBody;
use super::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use super::record::{record, tagged};
use super::view::Activity;

tagged! {
    /// An event of a run, and our three beside them (`turn-settled`, `error`, `activity`).
    #[derive(Clone, Debug, PartialEq)]
    pub enum AgentEvent by "type" {
        "agent_start" => AgentStart,
        "turn_start" => TurnStart,
        "message_start" => MessageStart { message: Message = needed "message", },
        /// `message` is left out when `fold(previous, event)` gives it exactly (delta updates).
        "message_update" => MessageUpdate {
            message: Option<Box<Message>> = optional "message",
            assistant_message_event: AssistantEvent = needed "assistantMessageEvent",
        },
        "message_end" => MessageEnd { message: Message = needed "message", },
        "tool_execution_start" => ToolExecutionStart {
            tool_call_id: String = needed "toolCallId",
            tool_name: String = needed "toolName",
            args: Value = needed "args",
        },
        "tool_execution_update" => ToolExecutionUpdate {
            tool_call_id: String = needed "toolCallId",
            tool_name: String = needed "toolName",
            args: Value = needed "args",
            partial_result: ToolOutput = needed "partialResult",
        },
        "tool_execution_end" => ToolExecutionEnd {
            tool_call_id: String = needed "toolCallId",
            tool_name: String = needed "toolName",
            result: ToolOutput = needed "result",
            is_error: bool = needed "isError",
        },
        "turn_end" => TurnEnd {
            message: Message = needed "message",
            tool_results: Vec<ToolResultEntry> = needed "toolResults",
        },
        "agent_end" => AgentEnd { messages: Vec<Message> = needed "messages", },
        /// Nothing is left to do: no run follows by itself.
        "turn-settled" => TurnSettled,
        "error" => Error(body: ErrorBody),
        "activity" => Activity(activity: Box<Activity>),
    }
}

tagged! {
    /// A tool result inside `turn_end`: the message with its `role`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolResultEntry by "role" {
        "toolResult" => ToolResult(message: ToolResultMessage),
    }
}

record! {
    /// What a tool returned, or has so far.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ToolOutput {
        pub content: Vec<Block> = default "content",
        pub details: Option<Value> = optional "details",
    }
}

tagged! {
    /// One step in the making of an assistant message; `content_index` counts its blocks.
    #[derive(Clone, Debug, PartialEq)]
    pub enum AssistantEvent by "type" {
        "text_start" => TextStart { content_index: usize = needed "contentIndex", },
        "text_delta" => TextDelta { content_index: usize = needed "contentIndex", delta: String = needed "delta", },
        "text_end" => TextEnd { content_index: usize = needed "contentIndex", content: String = needed "content", },
        "thinking_start" => ThinkingStart { content_index: usize = needed "contentIndex", },
        "thinking_delta" => ThinkingDelta {
            content_index: usize = needed "contentIndex",
            delta: String = needed "delta",
        },
        "thinking_end" => ThinkingEnd {
            content_index: usize = needed "contentIndex",
            content: String = needed "content",
        },
        "toolcall_start" => ToolCallStart { content_index: usize = needed "contentIndex", },
        "toolcall_delta" => ToolCallDelta {
            content_index: usize = needed "contentIndex",
            delta: String = needed "delta",
        },
        "toolcall_end" => ToolCallEnd {
            content_index: usize = needed "contentIndex",
            tool_call: Box<ToolCallEntry> = needed "toolCall",
        },
    }
}

tagged! {
    /// A tool call with its block `type`, as `toolcall_end` carries it.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolCallEntry by "type" {
        "toolCall" => ToolCall(call: ToolCall),
    }
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
