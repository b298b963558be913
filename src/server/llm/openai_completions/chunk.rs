//! The wire's shapes: one chunk of a streamed chat completion, read leniently.
//!
//! A field of an unexpected type reads as absent: servers disagree about nearly all of them.

use std::borrow::Cow;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::native::Usage;
use crate::server::llm::error::{Category, ProviderError};
use crate::server::llm::prices::Prices;

use super::lenient::{Wanted, wanted};

/// Tokens beyond which a count is nonsense; sums of such counts stay numbers.
const MOST_TOKENS: f64 = 1e12;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Chunk<'a> {
    #[serde(deserialize_with = "wanted")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "wanted")]
    pub(super) model: Option<Cow<'a, str>>,
    /// Who answers behind OpenRouter.
    #[serde(deserialize_with = "wanted")]
    pub(super) provider: Option<Cow<'a, str>>,
    /// The first one; nobody asks for more.
    #[serde(rename = "choices", deserialize_with = "first_choice")]
    pub(super) choice: Option<Choice<'a>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Box<RawUsage>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Choice<'a> {
    #[serde(deserialize_with = "wanted")]
    pub(super) delta: Option<Delta<'a>>,
    /// What a server sends that answers a streaming request with one whole completion.
    #[serde(deserialize_with = "wanted")]
    pub(super) message: Option<Delta<'a>>,
    #[serde(deserialize_with = "wanted")]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Box<RawUsage>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Delta<'a> {
    pub(super) content: Value,
    #[serde(deserialize_with = "wanted")]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "wanted")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "wanted")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "wanted")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_details: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_calls: Option<Vec<CallPiece>>,
}

impl<'de> Wanted<'de> for Choice<'de> {
    fn object<A: MapAccess<'de>>(fields: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

impl<'de> Wanted<'de> for Delta<'de> {
    fn object<A: MapAccess<'de>>(fields: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

/// The choices of a chunk, as far as they are of interest.
struct Choices<'a>(Option<Choice<'a>>);

impl<'de> Wanted<'de> for Choices<'de> {
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Option<Self>, A::Error> {
        let first = items.next_element::<FirstChoice<'de>>()?;
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.map(|FirstChoice(choice)| Self(choice)))
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct FirstChoice<'a>(#[serde(deserialize_with = "wanted")] Option<Choice<'a>>);

fn first_choice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Choice<'de>>, D::Error> {
    Ok(wanted::<D, Choices<'de>>(deserializer)?.and_then(|Choices(first)| first))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) function: Option<FunctionPiece>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    arguments: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    #[serde(deserialize_with = "lenient")]
    prompt_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's place for the tokens that a cache saved.
    #[serde(deserialize_with = "lenient")]
    prompt_cache_hit_tokens: Option<f64>,
    /// Kimi's place for them.
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<f64>,
    /// USD that OpenRouter takes.
    #[serde(deserialize_with = "lenient")]
    cost: Option<f64>,
    /// It takes them beside what the upstream takes from a key of one's own.
    #[serde(deserialize_with = "lenient")]
    is_byok: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    cost_details: Option<CostDetails>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    cache_write_tokens: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    #[serde(deserialize_with = "lenient")]
    reasoning_tokens: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CostDetails {
    #[serde(deserialize_with = "lenient")]
    upstream_inference_cost: Option<f64>,
}

impl<'a> Chunk<'a> {
    /// Reads the data of one event. None for JSON that is no object; an error for what is no JSON, because nobody can
    /// say what it held.
    pub(super) fn read(data: &'a str) -> Result<Option<Self>, ProviderError> {
        match serde_json::from_str::<Self>(data) {
            Ok(chunk) => Ok(Some(chunk)),
            // It is JSON, only no object.
            Err(error) if error.is_data() && !data.trim_start().starts_with('{') => Ok(None),
            Err(error) => Err(ProviderError::with_words(Category::Unreadable, format!("broken data, {error}"))),
        }
    }
}

impl Delta<'_> {
    /// The text of `content`: a string, or the texts of an array of parts.
    pub(super) fn text(&mut self) -> String {
        match self.content.take() {
            Value::String(text) => text,
            Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }

    /// Readable reasoning and the name of its field: the first one that holds any, because some servers fill several
    /// with the same words.
    pub(super) fn reasoning(&mut self) -> Option<(&'static str, String)> {
        let fields = [
            ("reasoning_content", &mut self.reasoning_content),
            ("reasoning", &mut self.reasoning),
            ("reasoning_text", &mut self.reasoning_text),
        ];
        fields
            .into_iter()
            .find_map(|(name, field)| Some((name, field.take().filter(|text| !text.is_empty())?.into_owned())))
    }
}

impl FunctionPiece {
    /// A piece of the arguments' text; arguments that came as an object are written as text.
    pub(super) fn arguments(&mut self) -> String {
        match self.arguments.take() {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

impl RawUsage {
    /// Our count: cached tokens are no input, reasoning is part of the output, costs are the model's own.
    pub(super) fn count(&self, prices: &Prices) -> Usage {
        let tokens = |count: Option<f64>| count.unwrap_or(0.0).clamp(0.0, MOST_TOKENS) as u64;
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cache_read = tokens(cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens));
        let cache_write = tokens(details.and_then(|details| details.cache_write_tokens));
        let input = tokens(self.prompt_tokens).saturating_sub(cache_read + cache_write);
        let output = tokens(self.completion_tokens);
        let reasoning = tokens(self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens));
        let mut usage = Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning: Some(reasoning),
            total_tokens: input + output + cache_read + cache_write,
            ..Usage::default()
        };
        prices.apply(&mut usage);
        usage
    }

    /// USD that the answer cost by the provider's own word.
    pub(super) fn reported_cost(&self) -> Option<f64> {
        let upstream = self.cost_details.as_ref().and_then(|details| details.upstream_inference_cost);
        let upstream = upstream.filter(|_| self.is_byok == Some(true)).unwrap_or(0.0);
        Some(self.cost? + upstream)
    }

    /// True for the `{}` that some servers send with every chunk.
    pub(super) fn is_empty(&self) -> bool {
        self.prompt_tokens.is_none() && self.completion_tokens.is_none()
    }
}

/// Reads the field from its own text, so that a tree is made of nothing that nobody looks at.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?.get();
    Ok(if text == "null" { None } else { serde_json::from_str(text).ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn said(data: &str, expected: Option<&str>) {
        let choice = Chunk::read(data).unwrap().unwrap().choice;
        let delta = choice.and_then(|choice| choice.delta.or(choice.message));
        assert_eq!(delta.map(|mut delta| delta.text()).as_deref(), expected, "{data}");
    }

    #[test]
    fn fields_of_other_types_are_absent_and_the_rest_counts() {
        let choice = r#"{"delta":{"content":"Hi","refusal":7,"reasoning":{"a":[1]},"tool_calls":"x"}}"#;
        for odd in ["null", "true", "-1", "2.5", "[[{}],1]", "{\"a\":{\"b\":[]}}"] {
            said(&format!(r#"{{"id":{odd},"model":{odd},"usage":{odd},"choices":[{choice},{odd}]}}"#), Some("Hi"));
            said(&format!(r#"{{"choices":[{odd}]}}"#), None);
            said(&format!(r#"{{"choices":{odd}}}"#), None);
        }
        said(r#"{"choices":[{"delta":null,"message":{"content":"Hi"}}]}"#, Some("Hi"));
        said(r#"{"choices":[{"delta":{"content":"Hi"},"message":null}]}"#, Some("Hi"));
        said(r#"{"choices":[]}"#, None);
    }

    #[test]
    fn escapes_are_read() {
        let chunk = Chunk::read(r#"{"id":"a\nb","choices":[{"finish_reason":"s\u0074op"}]}"#).unwrap().unwrap();
        assert_eq!(chunk.id.as_deref(), Some("a\nb"));
        assert_eq!(chunk.choice.unwrap().finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn what_is_no_object_says_nothing_and_what_is_no_json_is_an_error() {
        assert!(Chunk::read("7").unwrap().is_none());
        assert!(Chunk::read(r#"{"choices":[{"delta":"#).is_err());
    }
}
