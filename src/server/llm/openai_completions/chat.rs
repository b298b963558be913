//! The wire's shapes: one message of a request.
//!
//! They borrow what they say: a long lesson is written with every request, and copying it would cost more than writing it.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// One message, told apart by its role.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Chat<'a> {
    /// Instructions, what a user said, or a text that stands for an answer.
    Said {
        role: &'static str,
        content: Content<'a>,
    },
    Answer(Answer<'a>),
    Result {
        role: &'static str,
        content: Content<'a>,
        tool_call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

impl<'a> Chat<'a> {
    pub(super) fn content_mut(&mut self) -> &mut Content<'a> {
        match self {
            Self::Said { content, .. } | Self::Result { content, .. } => content,
            Self::Answer(answer) => &mut answer.content,
        }
    }
}

/// What a model answered.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) content: Content<'a>,
    /// Readable reasoning, and the field that it came in.
    pub(super) reasoning: Option<(&'static str, String)>,
    pub(super) calls: Vec<Call<'a>>,
    /// The provider's own record of its reasoning.
    pub(super) details: Option<Value>,
    /// It says that there was no readable reasoning.
    pub(super) empty_reasoning: bool,
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("content", &self.content)?;
        if let Some((field, text)) = &self.reasoning {
            map.serialize_entry(field, text)?;
        }
        if !self.calls.is_empty() {
            map.serialize_entry("tool_calls", &self.calls)?;
        }
        if let Some(details) = &self.details {
            map.serialize_entry("reasoning_details", details)?;
        }
        if self.empty_reasoning {
            map.serialize_entry("reasoning_content", "")?;
        }
        map.end()
    }
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> From<&'a str> for Content<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    ImageUrl {
        image_url: Image,
    },
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Image {
    url: String,
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn image(url: String) -> Self {
        Self::ImageUrl { image_url: Image { url } }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

impl<'a> Call<'a> {
    /// `arguments` as JSON.
    pub(super) fn new(id: &'a str, name: &'a str, arguments: String) -> Self {
        Self { id, r#type: "function", function: Function { name, arguments } }
    }
}
