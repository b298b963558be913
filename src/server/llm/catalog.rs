//! Models as data: where they are, what they can do and what they cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Dialect;
use super::compat::Compat;
use super::options::Options;
use super::prices::Prices;
use super::thinking::{LevelMap, ThinkingLevel};
use crate::app::native::{AssistantMessage, ErrorBody, ErrorKind};

/// A model and how to reach it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub id: String,
    /// For people.
    #[serde(default)]
    pub name: String,
    /// For people: what must be known before it is used. Empty for nothing.
    #[serde(skip)]
    pub note: String,
    pub provider: String,
    pub api: Api,
    /// The API's own path is appended.
    pub base_url: String,
    /// Sent as the API wants it; none for local servers.
    #[serde(skip)]
    pub key: Option<Key>,
    /// True when the provider refuses to answer without one.
    #[serde(skip)]
    pub needs_key: bool,
    /// The variable that holds its provider's key; empty for a model by hand.
    #[serde(default)]
    pub key_variable: String,
    /// Sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// True when the model can be told how hard to think.
    pub reasoning: bool,
    #[serde(default, rename = "thinkingLevelMap")]
    pub levels: LevelMap,
    /// What a message to it may hold beside text.
    #[serde(default)]
    pub input: Vec<Input>,
    #[serde(rename = "cost")]
    pub prices: Prices,
    /// Tokens; 0 when nobody knows.
    pub context_window: u64,
    /// Tokens that one answer may have; 0 when nobody knows.
    pub max_tokens: u64,
    #[serde(default)]
    pub compat: Compat,
}

impl Model {
    /// The level that it has for `level`.
    #[must_use]
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        level.clamp(self.reasoning, &self.levels)
    }

    /// True when `message` was said by this very model: only then can it read its own reasoning and ids again.
    #[must_use]
    pub fn said(&self, message: &AssistantMessage) -> bool {
        message.api == self.api.name() && message.provider == self.provider && message.model == self.id
    }

    /// The message that an answer of this model begins as; `timestamp` is Unix time in ms.
    #[must_use]
    pub fn begun(&self, timestamp: i64) -> AssistantMessage {
        AssistantMessage {
            api: self.api.name().to_owned(),
            provider: self.provider.clone(),
            model: self.id.clone(),
            timestamp,
            ..AssistantMessage::default()
        }
    }

    #[must_use]
    pub fn sees_images(&self) -> bool {
        self.input.contains(&Input::Image)
    }

    /// The model that a server at `base_url` calls `id`, without any promise.
    #[must_use]
    pub fn at(api: Api, base_url: &str, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            provider: "custom".to_owned(),
            api,
            base_url: base_url.trim_end_matches('/').to_owned(),
            ..Self::default()
        }
    }

    /// Its provider and its id: the name that chooses this very model.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// The API that a model is spoken to with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    #[default]
    #[serde(rename = "openai-completions")]
    OpenAiCompletions,
    AnthropicMessages,
    Lesson,
}

impl Api {
    pub const ALL: [Self; 3] = [Self::OpenAiCompletions, Self::AnthropicMessages, Self::Lesson];

    /// Its name in messages and settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiCompletions => "openai-completions",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Lesson => "lesson",
        }
    }
}

/// What a message may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    Text,
    Image,
}

/// A secret that no log prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The model in use, the dialect that speaks to it, and what is asked of it unless a request says otherwise.
#[derive(Clone)]
pub struct Models {
    pub model: Model,
    pub dialect: Arc<dyn Dialect>,
    pub options: Options,
}

impl Models {
    /// Checks that the chosen model can be asked at all.
    ///
    /// # Errors
    /// `no-key` when its provider wants a key and there is none.
    pub fn ready(&self) -> Result<(), ErrorBody> {
        if self.model.needs_key && self.model.key.is_none() {
            let Model { id, key_variable, .. } = &self.model;
            let variable = if key_variable.is_empty() { "LEARNHARNESS_API_KEY" } else { key_variable };
            let words = format!("The model {id} has no key; set {variable}, or choose another model.");
            return Err(ErrorBody::new(ErrorKind::NoKey, words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_promised_of_an_unknown_model() {
        let model = Model::at(Api::OpenAiCompletions, "http://127.0.0.1:11434/v1", "qwen3");
        assert_eq!((model.reasoning, model.max_tokens, model.context_window), (false, 0, 0));
        assert!(!model.sees_images());
    }

    #[test]
    fn a_model_without_its_key_names_the_variable_that_is_missing() {
        let words = |key_variable: &str, key| {
            let model =
                Model { id: "m".into(), key_variable: key_variable.into(), needs_key: true, key, ..Model::default() };
            let models =
                crate::server::llm::models(model, None, std::path::Path::new("none"), std::time::Duration::ZERO, None);
            models.unwrap().ready().err().map(|body| body.error.message)
        };
        let told = "The model m has no key; set ZAI_API_KEY, or choose another model.";
        assert_eq!(words("ZAI_API_KEY", None).as_deref(), Some(told));
        assert!(words("", None).unwrap().contains("set LEARNHARNESS_API_KEY"));
        assert_eq!(words("ZAI_API_KEY", Some(Key("k".to_owned()))), None);
    }
}
