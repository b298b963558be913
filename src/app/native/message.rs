//! Native messages: what the record holds and what a request replays.
//!
//! Unknown fields survive a load and a save (`extra`), in their order.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::usage::Usage;

/// Position of a message in its chat's record: 1 for the first, without gaps. 0 is "before everything".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u32);

impl Seq {
    pub const START: Self = Self(0);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Seq {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A message with its place in the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    pub seq: Seq,
    pub message: Message,
}

/// One entry of a record, told apart by `role`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    Custom(CustomMessage),
}

/// What the learner wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    pub content: Content,
    /// Unix time in ms.
    #[serde(default)]
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One answer of a model, with everything that the next request needs to replay it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    #[serde(default)]
    pub content: Vec<Block>,
    #[serde(default)]
    pub api: String,
    #[serde(default)]
    pub provider: String,
    #[serde(default)]
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub stop_reason: StopReason,
    /// Words for a person; present when `stop_reason` is `error` or `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Unix time in ms.
    #[serde(default)]
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Why an answer ended; `pending` while it streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    #[default]
    Pending,
    Stop,
    Length,
    ToolUse,
    Error,
    Aborted,
}

/// The outcome of one tool call, or the learner's answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    pub tool_call_id: String,
    #[serde(default)]
    pub tool_name: String,
    #[serde(default)]
    pub content: Vec<Block>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default)]
    pub is_error: bool,
    /// Unix time in ms.
    #[serde(default)]
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A message of the application's own; ours are markers (see [`super::marker`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    pub custom_type: String,
    /// What a model reads in its place; empty for display-only markers.
    #[serde(default)]
    pub content: Content,
    #[serde(default)]
    pub display: bool,
    #[serde(default)]
    pub details: Value,
    #[serde(default)]
    pub id: String,
    /// Unix time in ms.
    #[serde(default)]
    pub timestamp: i64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Content of user and custom messages: one text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Content {
    /// Its text; blocks joined by a newline, images left out.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => text_of(blocks),
        }
    }
}

/// One block of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Block {
    Known(KnownBlock),
    /// A block of a type that this version does not know, kept as it came.
    Other(Value),
}

/// The blocks that we know, told apart by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum KnownBlock {
    Text(TextBlock),
    Thinking(ThinkingBlock),
    ToolCall(ToolCall),
    Image(ImageBlock),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextBlock {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingBlock {
    pub thinking: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A call that the model made. `arguments` are the raw ones, as streamed; a tool sees a validated copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The argument text so far; only while the call streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_args: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An image as base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageBlock {
    pub data: String,
    pub mime_type: String,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Block {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Known(KnownBlock::Text(TextBlock { text: text.into(), ..TextBlock::default() }))
    }

    #[must_use]
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::Known(KnownBlock::Thinking(ThinkingBlock { thinking: thinking.into(), ..ThinkingBlock::default() }))
    }

    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Known(KnownBlock::Text(block)) => Some(&block.text),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::Known(KnownBlock::ToolCall(call)) => Some(call),
            _ => None,
        }
    }
}

impl From<ToolCall> for Block {
    fn from(call: ToolCall) -> Self {
        Self::Known(KnownBlock::ToolCall(call))
    }
}

impl Message {
    /// A user message of plain text.
    #[must_use]
    pub fn user(text: impl Into<String>, timestamp: i64) -> Self {
        Self::User(UserMessage { content: Content::Text(text.into()), timestamp, extra: Map::new() })
    }

    #[must_use]
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            _ => None,
        }
    }
}

impl AssistantMessage {
    /// The calls that it made, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Block::as_tool_call)
    }

    /// Its text blocks joined by a newline.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

impl ToolResultMessage {
    /// True for the loop's stand-in for an answer that is still to come; never stored.
    #[must_use]
    pub fn is_posed_placeholder(&self) -> bool {
        self.details.as_ref().and_then(|details| details.get("posed")) == Some(&Value::Bool(true))
    }

    /// Its text blocks joined by a newline.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
}
