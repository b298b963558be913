//! Native messages: what the record holds and what a request replays.
//!
//! Unknown fields survive a load and a save (`extra`), in their order.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json::{Fault, Json, Node};
use super::record::{Fields, Record, from_the_wire, record, tagged, words};
use super::usage::Usage;

/// The type of the diagnostic that an answer with nothing in it has.
pub const EMPTY_ANSWER: &str = "empty-answer";

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

impl Json for Seq {
    fn read(node: Node) -> Result<Self, Fault> {
        u32::read(node).map(Self)
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

record! {
    /// A message with its place in the record.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Stored {
        pub seq: Seq = needed "seq",
        pub message: Message = needed "message",
    }
}

tagged! {
    /// One entry of a record, told apart by `role`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message by "role" {
        "user" => User(message: UserMessage),
        "assistant" => Assistant(message: AssistantMessage),
        "toolResult" => ToolResult(message: ToolResultMessage),
        "custom" => Custom(message: CustomMessage),
    }
}

record! {
    /// What the learner wrote.
    #[derive(Clone, Debug, PartialEq)]
    pub struct UserMessage {
        pub content: Content = needed "content",
        /// Unix time in ms.
        pub timestamp: i64 = default "timestamp",
        ..extra
    }
}

record! {
    /// One answer of a model, with everything that the next request needs to replay it.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct AssistantMessage {
        pub content: Vec<Block> = default "content",
        pub api: String = default "api",
        pub provider: String = default "provider",
        pub model: String = default "model",
        pub response_model: Option<String> = optional "responseModel",
        pub response_id: Option<String> = optional "responseId",
        pub usage: Usage = default "usage",
        pub stop_reason: StopReason = default "stopReason",
        /// Words for a person; present when `stop_reason` is `error` or `aborted`.
        pub error_message: Option<String> = optional "errorMessage",
        /// Unix time in ms.
        pub timestamp: i64 = default "timestamp",
        ..extra
    }
}

words! {
    /// Why an answer ended; `pending` while it streams.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum StopReason {
        #[default]
        Pending = "pending",
        Stop = "stop",
        Length = "length",
        ToolUse = "toolUse",
        Error = "error",
        Aborted = "aborted",
    }
}

record! {
    /// The outcome of one tool call, or the learner's answer to a question.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ToolResultMessage {
        pub tool_call_id: String = needed "toolCallId",
        pub tool_name: String = default "toolName",
        pub content: Vec<Block> = default "content",
        pub details: Option<Value> = optional "details",
        pub usage: Option<Usage> = optional "usage",
        pub is_error: bool = default "isError",
        /// Unix time in ms.
        pub timestamp: i64 = default "timestamp",
        ..extra
    }
}

record! {
    /// A message of the application's own; ours are markers (see [`super::marker`]).
    #[derive(Clone, Debug, PartialEq)]
    pub struct CustomMessage {
        pub custom_type: String = needed "customType",
        /// What a model reads in its place; empty for display-only markers.
        pub content: Content = default "content",
        pub display: bool = default "display",
        pub details: Value = default "details",
        pub id: String = default "id",
        /// Unix time in ms.
        pub timestamp: i64 = default "timestamp",
        ..extra
    }
}

/// Content of user and custom messages: one text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Json for Content {
    fn read(node: Node) -> Result<Self, Fault> {
        match node {
            Node::Text(text) => Ok(Self::Text(text)),
            blocks => Json::read(blocks).map(Self::Blocks),
        }
    }
}

from_the_wire!(Content);

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
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Block {
    Known(KnownBlock),
    /// A block of a type or shape that this version does not know, kept as it came.
    Other(Value),
}

impl Json for Block {
    fn read(node: Node) -> Result<Self, Fault> {
        let mut fields = match node {
            Node::Object(_) => Fields::of(node)?,
            other => return Ok(Self::Other(other.into())),
        };
        if KnownBlock::fit(&fields) {
            KnownBlock::read_fields(&mut fields).map(Self::Known)
        } else {
            Ok(Self::Other(Value::Object(fields.rest())))
        }
    }
}

from_the_wire!(Block);

tagged! {
    /// The blocks that we know, told apart by `type`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum KnownBlock by "type" {
        "text" => Text(block: TextBlock),
        "thinking" => Thinking(block: ThinkingBlock),
        "toolCall" => ToolCall(call: ToolCall),
        "image" => Image(block: ImageBlock),
    }
}

record! {
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct TextBlock {
        pub text: String = needed "text",
        pub text_signature: Option<String> = optional "textSignature",
        ..extra
    }
}

record! {
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ThinkingBlock {
        pub thinking: String = needed "thinking",
        pub thinking_signature: Option<String> = optional "thinkingSignature",
        pub redacted: Option<bool> = optional "redacted",
        ..extra
    }
}

record! {
    /// A call that the model made. `arguments` are the raw ones, as streamed; a tool sees a validated copy.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ToolCall {
        pub id: String = needed "id",
        pub name: String = needed "name",
        pub arguments: Value = default "arguments",
        pub thought_signature: Option<String> = optional "thoughtSignature",
        /// The argument text so far; only while the call streams.
        pub partial_args: Option<String> = optional "partialArgs",
        ..extra
    }
}

record! {
    /// An image as base64.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ImageBlock {
        pub data: String = needed "data",
        pub mime_type: String = needed "mimeType",
        ..extra
    }
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

    /// What its `diagnostics` hold under this type.
    #[must_use]
    pub fn diagnostic(&self, kind: &str) -> Option<&Value> {
        let known = self.extra.get("diagnostics")?.as_array()?;
        known.iter().find(|diagnostic| diagnostic.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// True for an answer that counts as failed because there was nothing in it.
    #[must_use]
    pub fn was_empty(&self) -> bool {
        self.diagnostic(EMPTY_ANSWER).is_some()
    }
}

impl ToolResultMessage {
    /// The result of a call that came to nothing, with words for the model; `timestamp` is Unix time in ms.
    #[must_use]
    pub fn failed(call: &ToolCall, words: &str, timestamp: i64) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Block::text(words)],
            details: None,
            usage: None,
            is_error: true,
            timestamp,
            extra: Map::new(),
        }
    }

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
