//! Models as data: where they are, what they can do and what they cost.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

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

    #[must_use]
    pub fn sees_images(&self) -> bool {
        self.input.contains(&Input::Image)
    }

    /// The model that a server at `base_url` calls `id`: with all that is known of it, or else without any promise.
    #[must_use]
    pub fn at(api: Api, base_url: &str, id: &str) -> Self {
        let base_url = base_url.trim_end_matches('/');
        let known = KNOWN.iter().find(|model| model.id == id && model.base_url == base_url && model.api == api);
        known.cloned().unwrap_or_else(|| Self {
            id: id.to_owned(),
            name: id.to_owned(),
            provider: "custom".to_owned(),
            api,
            base_url: base_url.to_owned(),
            ..Self::default()
        })
    }

    /// The model that is used when only a key of `provider` is there.
    #[must_use]
    pub fn of_provider(provider: &str, key: Key) -> Option<Self> {
        let known = KNOWN.iter().find(|model| model.provider == provider)?;
        Some(Self { key: Some(key), needs_key: true, ..known.clone() })
    }
}

/// The models that are known by name, one a provider.
static KNOWN: LazyLock<Vec<Model>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("models.json")).unwrap_or_else(|error| {
        tracing::error!(%error, "the list of known models cannot be read");
        Vec::new()
    })
});

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
            let words = format!("The model {} has no key; set one, or choose another model.", self.model.id);
            return Err(ErrorBody::new(ErrorKind::NoKey, words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_with_a_key_has_its_model_with_facts() {
        for provider in ["openrouter", "anthropic", "openai"] {
            let model = Model::of_provider(provider, Key("k".to_owned())).unwrap();
            assert!(model.context_window > model.max_tokens && model.prices.rates.output > 0.0, "{model:?}");
            assert_eq!(model.clamp(ThinkingLevel::Low), ThinkingLevel::Low, "{}", model.id);
            let found = Model::at(model.api, &format!("{}/", model.base_url), &model.id);
            assert_eq!((found.prices, found.needs_key), (model.prices, false));
        }
    }

    #[test]
    fn nothing_is_promised_of_an_unknown_model() {
        let model = Model::at(Api::OpenAiCompletions, "http://127.0.0.1:11434/v1", "qwen3");
        assert_eq!((model.reasoning, model.max_tokens, model.context_window), (false, 0, 0));
        assert!(!model.sees_images());
    }
}
