//! The wire's shapes: one event of a streamed message, read leniently.
//!
//! What this version does not know (events, blocks, deltas) is skipped; what it knows but cannot read is an error, because
//! nobody can say what was lost with it.

use serde::Deserialize;
use serde_json::Value;

use crate::app::native::partial::parse_repaired;
use crate::server::llm::error::{Category, ProviderError};
use crate::server::llm::halves;
use crate::server::llm::sse;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Head,
    },
    ContentBlockStart {
        index: Option<u64>,
        content_block: Opening,
    },
    ContentBlockDelta {
        index: Option<u64>,
        delta: Delta,
    },
    ContentBlockStop {
        index: Option<u64>,
    },
    MessageDelta {
        #[serde(default)]
        delta: Tail,
        usage: Option<RawUsage>,
    },
    MessageStop,
    /// A whole message, as a server sends it that streams nothing.
    Message(Whole),
    Ping,
    Error,
    #[serde(other)]
    Other,
}

/// What is known of a message when it begins.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<RawUsage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    pub(super) head: Head,
    #[serde(default)]
    pub(super) content: Vec<Opening>,
    #[serde(flatten)]
    pub(super) tail: Tail,
}

/// A block as it begins; some servers put all of it there.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Opening {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        signature: Option<String>,
    },
    RedactedThinking {
        #[serde(default)]
        data: String,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the API's own names")]
pub(super) enum Delta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    OtherDelta,
}

/// What is known of a message when it ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tail {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails {
    pub(super) explanation: Option<String>,
}

/// Counts; those that are missing were said before.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_creation: Option<CacheCreation>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheCreation {
    pub(super) ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

/// The names under which something comes that this version reads.
const NAMES: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

impl Event {
    /// Reads one event and says whether lone halves of surrogate pairs stand in it (see [`halves`]). An error that the
    /// provider reports is an error here, whatever its shape.
    pub(super) fn read(event: &sse::Event) -> Result<(Self, bool), ProviderError> {
        if event.name == "ping" {
            return Ok((Self::Ping, false));
        }
        // Some servers send no names; then the data tells.
        if !event.name.is_empty() && !NAMES.contains(&event.name.as_str()) {
            return Ok((Self::Other, false));
        }
        let value = serde_json::from_str::<Value>(&event.data).ok().map(|value| (value, false));
        let value = value.or_else(|| Some((serde_json::from_str(&halves::hide(&event.data)?).ok()?, true)));
        let value = value.or_else(|| Some((parse_repaired(&event.data)?, false)));
        let is_error =
            |value: &Value| value["type"] == "error" || (value["type"].is_null() && !value["error"].is_null());
        if event.name == "error" || value.as_ref().is_some_and(|(value, _)| is_error(value)) {
            return Err(match value {
                Some((value, _)) => ProviderError::reported(&value),
                None => ProviderError::with_words(Category::Reported, &event.data),
            });
        }
        let unreadable = |why: &str| ProviderError::with_words(Category::Unreadable, format!("broken data, {why}"));
        let (value, has_halves) = value.ok_or_else(|| unreadable("no JSON"))?;
        if !value["type"].is_string() {
            return Ok((Self::Other, false));
        }
        let event = serde_json::from_value(value).map_err(|error| unreadable(&error.to_string()))?;
        Ok((event, has_halves))
    }
}
