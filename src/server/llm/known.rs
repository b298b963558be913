//! The catalogue: the models that are known by name, and the providers that have them.
//!
//! The built-in list is `models.json`, which says where its facts come from; OpenRouter's own list (see [`super::update`])
//! joins it. A name is `provider/id`, or an id alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::catalog::{Api, Key, Model};
use super::update::Update;

/// How alike two names must be to be taken for a slip of the pen, from 0 to 1.
const ALIKE: f64 = 0.5;
/// Names that are offered in the place of one that is not known.
const OFFERED: usize = 3;

/// The keys that are there, by the id of their provider.
pub type Keys = BTreeMap<String, Key>;

/// Models and providers; the first model of a provider is the one that is used when only its key is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    pub providers: Vec<Provider>,
    pub models: Vec<Model>,
}

/// Who offers models.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    pub id: String,
    /// For people.
    pub name: String,
    /// The variable that holds its key.
    pub key_variable: String,
    pub api: Api,
    pub base_url: String,
}

impl Catalog {
    /// The list that this program was built with.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| {
            Catalog::read(include_str!("models.json")).unwrap_or_else(|error| {
                tracing::error!(%error, "the list of known models cannot be read");
                Catalog::default()
            })
        });
        &BUILT_IN
    }

    /// The built-in list with what the data folder has of OpenRouter's.
    #[must_use]
    pub fn load(data: &Path) -> Self {
        let built_in = Self::built_in().clone();
        match Update::load(data) {
            Some(update) => built_in.with(update),
            None => built_in,
        }
    }

    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut catalog = Self::default();
        for section in serde_json::from_str::<File>(text)?.providers {
            for model in &section.models {
                catalog.models.push(section.model(model)?);
            }
            catalog.providers.push(section.provider);
        }
        Ok(catalog)
    }

    /// Takes over what changes by the day: prices and sizes of the models that are known, and the models that are not.
    /// How a model is spoken to stays ours.
    #[must_use]
    pub fn with(mut self, update: Update) -> Self {
        let Some(provider) = self.provider(&update.provider).cloned() else { return self };
        for listed in update.models {
            let known = self.models.iter_mut().find(|model| model.provider == provider.id && model.id == listed.id);
            match known {
                Some(model) => listed.refresh(model),
                None => self.models.push(listed.model(&provider)),
            }
        }
        self
    }

    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The provider whose servers `base_url` leads to.
    #[must_use]
    pub fn provider_at(&self, base_url: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| is_same_place(&provider.base_url, base_url))
    }

    /// The model that is used when only a key of `provider` is there.
    #[must_use]
    pub fn first_of(&self, provider: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.provider == provider)
    }

    /// The model that `name` means, of those that are spoken to with `api` (if given). Of several, one whose provider has
    /// a key beats the others, and a name with its provider beats an id: `openai/gpt-5-mini` is both.
    pub fn find(&self, name: &str, api: Option<Api>, has_key: impl Fn(&str) -> bool) -> Option<&Model> {
        let in_full = self.models.iter().filter(|model| model.full_name() == name);
        let by_id = self.models.iter().filter(|model| model.id == name);
        let meant: Vec<&Model> = in_full.chain(by_id).filter(|model| api.is_none_or(|api| model.api == api)).collect();
        meant.iter().find(|model| has_key(&model.provider)).or(meant.first()).copied()
    }

    /// The model that the server at `base_url` calls `name`: with all that is known of it when the server is its
    /// provider's (at whatever path), else without any promise.
    #[must_use]
    pub fn at(&self, api: Api, base_url: &str, name: &str) -> Model {
        let by_hand = Model::at(api, base_url, name);
        let theirs = self.models.iter().filter(|model| model.api == api && is_same_place(&model.base_url, base_url));
        let mut theirs = theirs.filter(|model| model.id == name || model.full_name() == name);
        theirs.next().map_or(by_hand.clone(), |model| Model { base_url: by_hand.base_url, ..model.clone() })
    }

    /// The known names that are most like `name`, the best first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<String> {
        let mut rated: Vec<(f64, String)> = self
            .models
            .iter()
            .map(|model| (likeness(name, model), model.full_name()))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        rated.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        rated.into_iter().take(OFFERED).map(|(_, name)| name).collect()
    }
}

/// How much `name` is like any of the names of `model`; the maker before an id may be missing.
fn likeness(name: &str, model: &Model) -> f64 {
    let name = name.to_lowercase();
    let (full_name, short) = (model.full_name(), model.id.rsplit('/').next().unwrap_or_default());
    let names = [full_name.as_str(), model.id.as_str(), short];
    names.into_iter().map(|known| strsim::normalized_damerau_levenshtein(&name, known)).fold(0.0, f64::max)
}

/// True when both addresses lead to the same server, over the same protocol.
#[must_use]
pub fn is_same_place(a: &str, b: &str) -> bool {
    let origin = |url: &str| Url::parse(url).ok().filter(Url::has_host).map(|url| url.origin());
    origin(a).is_some_and(|place| Some(place) == origin(b))
}

/// `models.json`.
#[derive(Deserialize)]
struct File {
    providers: Vec<Section>,
}

/// A provider with its models; `compat` holds for all of them.
#[derive(Deserialize)]
struct Section {
    #[serde(flatten)]
    provider: Provider,
    #[serde(default)]
    compat: Map<String, Value>,
    models: Vec<Map<String, Value>>,
}

impl Section {
    /// A model with what its provider says for all.
    fn model(&self, own: &Map<String, Value>) -> Result<Model, serde_json::Error> {
        let mut compat = self.compat.clone();
        compat.extend(own.get("compat").and_then(Value::as_object).cloned().unwrap_or_default());
        let mut fields = own.clone();
        fields.insert("provider".to_owned(), self.provider.id.as_str().into());
        fields.insert("api".to_owned(), self.provider.api.name().into());
        fields.insert("baseUrl".to_owned(), self.provider.base_url.as_str().into());
        fields.insert("keyVariable".to_owned(), self.provider.key_variable.as_str().into());
        fields.insert("compat".to_owned(), compat.into());
        Ok(Model { needs_key: true, ..serde_json::from_value(fields.into())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::thinking::ThinkingLevel;

    #[test]
    fn the_built_in_list_is_whole_and_its_facts_are_plausible() {
        let catalog = Catalog::read(include_str!("models.json")).unwrap();
        assert!(catalog.models.len() >= 60);
        let mut names: Vec<String> = catalog.models.iter().map(Model::full_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), catalog.models.len(), "no name twice");
        for model in &catalog.models {
            let name = model.full_name();
            let Model { prices, context_window, max_tokens, .. } = model;
            assert!(!model.name.is_empty() && model.input.contains(&super::super::catalog::Input::Text), "{name}");
            assert!(model.needs_key && model.key_variable.ends_with("_API_KEY"), "{name}");
            assert!(*max_tokens >= 4_096 && context_window > max_tokens && *context_window <= 2_000_000, "{name}");
            let rates = std::iter::once(&prices.rates).chain(prices.tiers.iter().map(|tier| &tier.rates));
            for rates in rates {
                assert!(rates.input > 0.0 && rates.output >= rates.input && rates.output <= 200.0, "{name}");
                assert!(rates.cache_read <= rates.input && rates.cache_write <= rates.input * 2.0, "{name}");
            }
            assert!(model.reasoning || model.levels.is_empty(), "{name}");
        }
        for provider in &catalog.providers {
            assert!(catalog.first_of(&provider.id).is_some(), "{}", provider.id);
            assert!(Url::parse(&provider.base_url).is_ok_and(|url| url.scheme() == "https"), "{}", provider.id);
        }
        let makers = ["z-ai/", "anthropic/", "openai/", "google/", "mistralai/", "deepseek/"];
        let through = |maker: &str| catalog.models.iter().any(|model| model.id.starts_with(maker));
        assert!(makers.into_iter().all(through));
    }

    #[test]
    fn the_first_model_of_a_provider_thinks_a_little_when_asked_to() {
        let catalog = Catalog::built_in();
        for provider in ["openrouter", "anthropic", "openai", "deepseek", "zai"] {
            let model = catalog.first_of(provider).unwrap();
            assert_eq!(model.clamp(ThinkingLevel::Low), ThinkingLevel::Low, "{}", model.id);
        }
        assert_eq!(catalog.first_of("openrouter").unwrap().id, "z-ai/glm-5.3-flash");
    }

    #[test]
    fn openais_newer_models_do_not_think_beside_tools_in_this_api() {
        let model = Catalog::built_in().find("openai/gpt-5.6-luna", None, |_| true).unwrap();
        assert_eq!(model.clamp(ThinkingLevel::High), ThinkingLevel::Off);
        assert_eq!(model.levels[&ThinkingLevel::Off].as_deref(), Some("none"));
    }

    fn found(name: &str, keys: &[&str]) -> Option<String> {
        let model = Catalog::built_in().find(name, None, |provider| keys.contains(&provider));
        model.map(|model| format!("{} at {}", model.id, model.provider))
    }

    #[test]
    fn a_name_is_an_id_with_or_without_its_provider() {
        let flash = Some("z-ai/glm-5.3-flash at openrouter".to_owned());
        assert_eq!(found("openrouter/z-ai/glm-5.3-flash", &[]), flash);
        assert_eq!(found("z-ai/glm-5.3-flash", &[]), flash);
        assert_eq!(found("zai/glm-5.3-flash", &["openrouter"]).unwrap(), "glm-5.3-flash at zai");
        assert_eq!(found("claude-sonnet-5", &[]).unwrap(), "claude-sonnet-5 at anthropic");
        assert_eq!(found("glm", &[]), None);
    }

    #[test]
    fn of_two_that_a_name_means_the_one_with_a_key_is_taken() {
        assert_eq!(found("openai/gpt-5-mini", &[]).unwrap(), "gpt-5-mini at openai");
        assert_eq!(found("openai/gpt-5-mini", &["openrouter"]).unwrap(), "openai/gpt-5-mini at openrouter");
        assert_eq!(found("openai/gpt-5-mini", &["openrouter", "openai"]).unwrap(), "gpt-5-mini at openai");
    }

    #[test]
    fn a_name_that_is_nearly_known_finds_its_neighbours() {
        let nearest = |name| Catalog::built_in().nearest(name);
        assert_eq!(nearest("openrouter/z-ai/glm-5.3-flsh")[0], "openrouter/z-ai/glm-5.3-flash");
        assert_eq!(nearest("claude-sonet-5")[0], "openrouter/anthropic/claude-sonnet-5");
        assert!(nearest("GPT-5.6-Luna").contains(&"openai/gpt-5.6-luna".to_owned()));
        assert_eq!(nearest("zzzzzzzzzzzz"), [""; 0]);
    }

    #[test]
    fn facts_hold_at_every_path_of_the_providers_own_server_and_nowhere_else() {
        let catalog = Catalog::built_in();
        let at = |base_url: &str| catalog.at(Api::OpenAiCompletions, base_url, "glm-5.3");
        let coding = at("https://api.z.ai/api/coding/paas/v4/");
        assert_eq!((coding.provider.as_str(), coding.context_window), ("zai", 1_000_000));
        assert_eq!(coding.base_url, "https://api.z.ai/api/coding/paas/v4");
        for elsewhere in
            ["http://api.z.ai/api/paas/v4", "https://api.z.ai.example/v1", "http://127.0.0.1:8080/v1", "no"]
        {
            assert_eq!((at(elsewhere).provider.as_str(), at(elsewhere).context_window), ("custom", 0), "{elsewhere}");
        }
        assert_eq!(catalog.at(Api::AnthropicMessages, "https://api.z.ai/x", "glm-5.3").provider, "custom");
    }
}
