//! Models as data: where they are, what they can do and what they cost.

use std::sync::Arc;

use super::Dialect;
use crate::app::native::{ErrorBody, ErrorKind, Usage};

/// A model and how to reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub id: String,
    pub provider: String,
    pub api: Api,
    /// Without a trailing slash; `/chat/completions` is appended.
    pub base_url: String,
    /// Sent as a bearer token; none for local servers.
    pub key: Option<Key>,
    /// True when the provider refuses to answer without one.
    pub needs_key: bool,
    /// True when the model can reason.
    pub reasoning: bool,
    pub prices: Prices,
    /// Tokens.
    pub context_window: u64,
    /// Tokens that one answer may have.
    pub max_tokens: u64,
}

/// The API that a model is spoken to with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    OpenAiCompletions,
    Lesson,
}

impl Api {
    /// Its name in messages and settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiCompletions => "openai-completions",
            Self::Lesson => "lesson",
        }
    }
}

/// A secret that no log prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// USD a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Prices {
    /// Fills in `usage.cost` from its token counts.
    pub fn apply(&self, usage: &mut Usage) {
        let cost = |price: f64, tokens: u64| price / 1_000_000.0 * tokens as f64;
        usage.cost.input = cost(self.input, usage.input);
        usage.cost.output = cost(self.output, usage.output);
        usage.cost.cache_read = cost(self.cache_read, usage.cache_read);
        usage.cost.cache_write = cost(self.cache_write, usage.cache_write);
        usage.cost.total = usage.cost.input + usage.cost.output + usage.cost.cache_read + usage.cost.cache_write;
    }
}

/// The model in use and the dialect that speaks to it.
#[derive(Clone)]
pub struct Models {
    pub model: Model,
    pub dialect: Arc<dyn Dialect>,
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
