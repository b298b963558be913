//! What a request asks for beside its messages.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::thinking::ThinkingLevel;

/// The wishes of one request; what a model cannot do is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub thinking: ThinkingLevel,
    /// Tokens that the answer may have; none for as many as the model can.
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub cache: Cache,
    pub tool_choice: Option<ToolChoice>,
    /// Beside those of the model, which they override.
    pub headers: BTreeMap<String, String>,
    /// Further fields of the request body, last and as they are (`openai-completions` only).
    pub fields: Map<String, Value>,
    /// Upstreams that are not to answer, as the provider named them (OpenRouter only).
    pub avoid: Vec<String>,
    /// Names the person to the provider, against abuse (`anthropic-messages` only).
    pub user: Option<String>,
}

/// How long the provider may keep the request's beginning, so that the next one is cheaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    None,
    #[default]
    Short,
    Long,
}

/// Whether the model must call a tool; a word of the API (`auto`, `any`, `required`, `none`), or its own object.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice {
    Word(String),
    Object(Value),
}

impl ToolChoice {
    /// As `openai-completions` writes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Word(word) => word.as_str().into(),
            Self::Object(object) => object.clone(),
        }
    }
}
