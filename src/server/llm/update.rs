//! OpenRouter's own list of models, kept in the data folder: what its models cost today, and which are new.
//!
//! It is asked for at most once a day, in the background, and only with a key; without it the built-in list does. What was
//! asked for at one start is used from the next one on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

use super::catalog::{Input, Key, Model};
use super::get::{Bounds, Getter};
use super::known::{Catalog, Keys, Provider};
use super::prices::{Prices, Rates, Tier};
use super::thinking::{LevelMap, ThinkingLevel};
use crate::server::clock::now_ms;

/// The provider that has such a list.
const PROVIDER: &str = "openrouter";
const FILE: &str = "models.json";
/// Ms for which a list is new enough.
const DAY: i64 = 24 * 60 * 60 * 1000;
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(30), size: 16 * 1024 * 1024 };
/// Models that are taken over at most.
const MODELS: usize = 2_000;
/// Characters of an id or a name.
const NAME: usize = 200;
/// Models of this kind are for work that nobody waits for.
const BATCH: &str = ":batch";

/// The list as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Id of the provider whose list it is.
    pub provider: String,
    /// Unix time in ms.
    pub fetched: i64,
    pub models: Vec<Listed>,
}

/// What the list says of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub id: String,
    pub name: String,
    pub reasoning: bool,
    #[serde(default, rename = "thinkingLevelMap")]
    pub levels: LevelMap,
    pub input: Vec<Input>,
    /// None when they vary by the request.
    #[serde(rename = "cost")]
    pub prices: Option<Prices>,
    /// Tokens; 0 when nobody knows.
    pub context_window: u64,
    /// Tokens; 0 when nobody knows.
    pub max_tokens: u64,
}

impl Listed {
    /// Brings what is known of a model up to date.
    pub(super) fn refresh(self, model: &mut Model) {
        if let Some(prices) = self.prices {
            model.prices = prices;
        }
        for (size, known) in
            [(self.context_window, &mut model.context_window), (self.max_tokens, &mut model.max_tokens)]
        {
            if size > 0 {
                *known = size;
            }
        }
    }

    /// A model of which only the list is known.
    pub(super) fn model(self, provider: &Provider) -> Model {
        Model {
            id: self.id,
            name: self.name,
            provider: provider.id.clone(),
            api: provider.api,
            base_url: provider.base_url.clone(),
            key_variable: provider.key_variable.clone(),
            needs_key: true,
            reasoning: self.reasoning,
            levels: self.levels,
            input: self.input,
            prices: self.prices.unwrap_or_default(),
            context_window: self.context_window,
            max_tokens: self.max_tokens,
            ..Model::default()
        }
    }
}

impl Update {
    /// The kept list; none when there is none, or none that can be read.
    #[must_use]
    pub fn load(data: &Path) -> Option<Self> {
        let path = data.join(FILE);
        let size = std::fs::metadata(&path).ok()?.len();
        if size > BOUNDS.size as u64 {
            tracing::warn!(path = %path.display(), "the list of models is too long and is left out");
            return None;
        }
        let read = serde_json::from_slice(&std::fs::read(&path).ok()?);
        read.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "the list of models is left out")).ok()
    }

    /// Writes the list beside its place and then moves it there: nobody reads half of it.
    fn save(&self, data: &Path) -> Result<(), String> {
        let path = data.join(FILE);
        let unfinished = data.join(format!("{FILE}.{}", std::process::id()));
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let written = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &path));
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    /// Reads the answer of `GET /models`. Models that cannot teach are left out: without text, without tools, or in
    /// batches only.
    fn read(answer: &Value, fetched: i64) -> Result<Self, String> {
        let rows = answer.get("data").and_then(Value::as_array).ok_or("its answer is not a list of models")?;
        let rows = rows.iter().filter_map(|row| Row::deserialize(row).ok());
        let models: Vec<Listed> = rows.filter(Row::can_teach).map(Listed::from).take(MODELS).collect();
        if models.is_empty() {
            return Err("its list has no model that can teach".to_owned());
        }
        Ok(Self { provider: PROVIDER.to_owned(), fetched, models })
    }
}

/// Where a list comes from and where it is kept.
#[derive(Clone, Debug)]
pub struct Source {
    pub base_url: String,
    pub key: Key,
    pub data: PathBuf,
    pub bounds: Bounds,
}

impl Source {
    /// None without a key.
    #[must_use]
    pub fn of(catalog: &Catalog, keys: &Keys, data: &Path) -> Option<Self> {
        let base_url = catalog.provider(PROVIDER)?.base_url.clone();
        Some(Self { base_url, key: keys.get(PROVIDER)?.clone(), data: data.to_owned(), bounds: BOUNDS })
    }

    /// Asks for the list unless there is one of the day before `now` (Unix time in ms); then it is as good as new.
    ///
    /// # Errors
    /// In words, when there is no new list; the old one stays.
    pub async fn refresh(&self, now: i64) -> Result<Refreshed, String> {
        let age = Update::load(&self.data).map(|update| now - update.fetched);
        if age.is_some_and(|age| (0..DAY).contains(&age)) {
            return Ok(Refreshed::NewEnough);
        }
        let answer = Getter::far(self.bounds)?.get(&format!("{}/models", self.base_url), Some(&self.key)).await?;
        let update = Update::read(&answer, now)?;
        update.save(&self.data)?;
        Ok(Refreshed::Taken(update.models.len()))
    }
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    NewEnough,
    /// So many models.
    Taken(usize),
}

/// Refreshes the list in the background, for as long as what is returned lives. Nobody waits for it.
#[must_use]
pub fn begin(source: Option<Source>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(source) = source {
        tasks.spawn(async move {
            match source.refresh(now_ms()).await {
                Ok(Refreshed::NewEnough) => {}
                Ok(Refreshed::Taken(models)) => tracing::info!(models, "OpenRouter's list of models is up to date"),
                Err(error) => {
                    tracing::warn!(error, "OpenRouter's list of models could not be read; the one before stays")
                }
            }
        });
    }
    tasks
}

/// A model as OpenRouter lists it.
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    context_length: Option<u64>,
    #[serde(default)]
    architecture: Architecture,
    #[serde(default)]
    pricing: Value,
    #[serde(default)]
    top_provider: TopProvider,
    #[serde(default)]
    supported_parameters: Option<Vec<String>>,
    #[serde(default)]
    reasoning: Option<Reasoning>,
}

#[derive(Debug, Default, Deserialize)]
struct Architecture {
    #[serde(default)]
    input_modalities: Option<Vec<String>>,
    #[serde(default)]
    output_modalities: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
struct TopProvider {
    #[serde(default)]
    context_length: Option<u64>,
    #[serde(default)]
    max_completion_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Reasoning {
    /// It cannot be told not to.
    #[serde(default)]
    mandatory: Option<bool>,
    #[serde(default)]
    supported_efforts: Option<Vec<String>>,
}

impl Row {
    fn can_teach(&self) -> bool {
        let has = |list: &Option<Vec<String>>, word: &str| {
            list.as_ref().is_none_or(|words| words.iter().any(|known| known == word))
        };
        (1..=NAME).contains(&self.id.len())
            && !self.id.ends_with(BATCH)
            && has(&self.architecture.output_modalities, "text")
            && has(&self.supported_parameters, "tools")
    }

    fn can_reason(&self) -> bool {
        let asked = |parameters: &Vec<String>| parameters.iter().any(|parameter| parameter == "reasoning");
        self.reasoning.is_some() || self.supported_parameters.as_ref().is_some_and(asked)
    }
}

impl From<Row> for Listed {
    fn from(row: Row) -> Self {
        let sees = row.architecture.input_modalities.iter().flatten().any(|kind| kind == "image");
        let windows = [row.context_length, row.top_provider.context_length];
        Self {
            name: row.name.as_deref().unwrap_or(&row.id).chars().take(NAME).collect(),
            reasoning: row.can_reason(),
            levels: row.reasoning.as_ref().map(levels).unwrap_or_default(),
            input: if sees { vec![Input::Text, Input::Image] } else { vec![Input::Text] },
            prices: prices(&row.pricing),
            context_window: windows.into_iter().flatten().min().unwrap_or(0),
            max_tokens: row.top_provider.max_completion_tokens.unwrap_or(0),
            id: row.id,
        }
    }
}

/// The levels that a model has; all of the usual ones when it does not say.
fn levels(reasoning: &Reasoning) -> LevelMap {
    let mut levels = LevelMap::new();
    if let Some(efforts) = &reasoning.supported_efforts {
        for level in ThinkingLevel::ALL.into_iter().filter(|level| *level != ThinkingLevel::Off) {
            let word = efforts.iter().find(|effort| *effort == level.name());
            levels.insert(level, word.cloned());
        }
    }
    if reasoning.mandatory == Some(true) {
        levels.insert(ThinkingLevel::Off, None);
    }
    levels
}

/// Prices come in USD a token. A tier begins at its number of tokens; ours begin above it.
fn prices(pricing: &Value) -> Option<Prices> {
    let base = Rates { input: price(pricing, "prompt")?, output: price(pricing, "completion")?, ..Rates::default() };
    let with = |rates: Rates, pricing: &Value| Rates {
        input: price(pricing, "prompt").unwrap_or(rates.input),
        output: price(pricing, "completion").unwrap_or(rates.output),
        cache_read: price(pricing, "input_cache_read").unwrap_or(rates.cache_read),
        cache_write: price(pricing, "input_cache_write").unwrap_or(rates.cache_write),
    };
    let rates = with(base, pricing);
    let overrides = pricing.get("overrides").and_then(Value::as_array).into_iter().flatten();
    let tiers = overrides.filter_map(|tier| {
        let from = tier.get("min_prompt_tokens").and_then(Value::as_u64).filter(|tokens| *tokens > 0)?;
        Some(Tier { input_tokens_above: from - 1, rates: with(rates, tier) })
    });
    Some(Prices { rates, tiers: tiers.collect() })
}

/// USD a million tokens, without the noise of binary fractions; none for a price that is no number or varies (-1).
fn price(pricing: &Value, kind: &str) -> Option<f64> {
    let price = match pricing.get(kind)? {
        Value::String(text) => text.parse().ok()?,
        number => number.as_f64()?,
    };
    let million: f64 = (price * 1e15_f64).round() / 1e9;
    (million.is_finite() && million >= 0.0).then_some(million)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(row: &Value) -> Vec<Listed> {
        Update::read(&json!({"data": [row, {"id": "other"}]}), 0).unwrap().models
    }

    fn check_prices(pricing: &Value, expected: &Value) {
        let row = json!({"id": "a/m", "pricing": pricing});
        assert_eq!(json!(listed(&row)[0].prices), *expected);
    }

    #[test]
    fn a_model_is_read_with_its_sizes_inputs_and_name() {
        let row = json!({
            "id": "acme/think-1", "name": "Acme: Think", "context_length": 200_000,
            "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
            "top_provider": {"context_length": 131_072, "max_completion_tokens": 8192, "is_moderated": false},
            "supported_parameters": ["tools", "reasoning"], "pricing": {"prompt": "0.000000075", "completion": "0"},
        });
        let model = listed(&row).remove(0);
        assert_eq!((model.id.as_str(), model.name.as_str(), model.reasoning), ("acme/think-1", "Acme: Think", true));
        assert_eq!((model.context_window, model.max_tokens), (131_072, 8192));
        assert_eq!(model.input, [Input::Text, Input::Image]);
        assert_eq!(model.prices.unwrap().rates, Rates { input: 0.075, ..Rates::default() });
    }

    #[test]
    fn prices_are_read_as_texts_or_numbers_with_their_tiers() {
        let rates = |input: f64, output: f64, cache_read: f64| json!({"input": input, "output": output, "cacheRead": cache_read, "cacheWrite": 0.0});
        check_prices(
            &json!({"prompt": 0.000_002, "completion": "0.00001", "input_cache_read": "0.0000002"}),
            &rates(2.0, 10.0, 0.2),
        );
        let overrides =
            json!([{"min_prompt_tokens": 200_000, "prompt": "0.000004"}, {"weekday": "sunday", "prompt": "0"}]);
        let mut tiered = rates(2.0, 10.0, 0.2);
        tiered["tiers"] =
            json!([{"inputTokensAbove": 199_999, "input": 4.0, "output": 10.0, "cacheRead": 0.2, "cacheWrite": 0.0}]);
        check_prices(
            &json!({"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000002", "overrides": overrides}),
            &tiered,
        );
        check_prices(&json!({"prompt": "-1", "completion": "-1"}), &Value::Null);
        check_prices(&json!({"prompt": "free", "completion": "0"}), &Value::Null);
        check_prices(&json!("nothing"), &Value::Null);
    }

    #[test]
    fn levels_are_those_that_the_list_names() {
        let of = |reasoning: Value| listed(&json!({"id": "a/m", "reasoning": reasoning})).remove(0);
        let model = of(json!({"mandatory": true, "supported_efforts": ["max", "high", "low"]}))
            .model(&Catalog::built_in().providers[0]);
        let clamped = ThinkingLevel::ALL.map(|level| model.clamp(level).name());
        assert_eq!(clamped, ["low", "low", "low", "high", "high", "max", "max"]);
        assert!(of(json!({"mandatory": false})).levels.is_empty());
    }

    #[test]
    fn what_cannot_teach_is_left_out() {
        for row in [
            json!({"id": "a/picture", "architecture": {"output_modalities": ["image"]}}),
            json!({"id": "a/no-tools", "supported_parameters": ["temperature"]}),
            json!({"id": "a/m:batch"}),
            json!({"id": ""}),
            json!({"name": "no id"}),
            json!("nothing"),
        ] {
            assert_eq!(listed(&row).len(), 1, "{row}");
        }
        assert!(Update::read(&json!({"data": []}), 0).unwrap_err().contains("no model"));
        assert!(Update::read(&json!({"error": "x"}), 0).unwrap_err().contains("not a list"));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_as_none() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(Update::load(data.path()), None);
        std::fs::write(data.path().join(FILE), "{\"models\": [").unwrap();
        assert_eq!(Update::load(data.path()), None);
        assert_eq!(Catalog::load(data.path()), *Catalog::built_in());
    }
}
