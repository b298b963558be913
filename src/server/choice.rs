//! Which model teaches: by name, by hand, or by the key that is there.

use super::config::{ConfigError, Vars};
use super::llm::catalog::{Api, Key, Model};
use super::llm::known::{Catalog, Keys};
use super::llm::lesson::Lesson;
use super::llm::local::AUTO;

const EXAMPLE: &str = "http://127.0.0.1:11434/v1";

/// What can be chosen from.
#[derive(Clone, Debug)]
pub struct Choice {
    pub catalog: Catalog,
    /// Keys of providers, by the provider's id.
    pub keys: Keys,
    /// The key that was given for the model itself.
    pub key: Option<Key>,
    /// The server that was given by hand.
    pub base_url: Option<String>,
    api: Option<Api>,
}

impl Choice {
    /// Reads what the environment offers.
    ///
    /// # Errors
    /// Names the variable that cannot be used.
    pub fn read(catalog: Catalog, var: Vars) -> Result<Self, ConfigError> {
        let key =
            |provider: &super::llm::known::Provider| Some((provider.id.clone(), Key(var(&provider.key_variable)?)));
        let api = var("LEARNHARNESS_API").map(|name| {
            Api::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| {
                let names = Api::ALL.map(Api::name).join(", ");
                ConfigError { name: "LEARNHARNESS_API", reason: format!("{name:?} is not one of {names}") }
            })
        });
        Ok(Self {
            keys: catalog.providers.iter().filter_map(key).collect(),
            catalog,
            key: var("LEARNHARNESS_API_KEY").map(Key),
            base_url: var("LEARNHARNESS_BASE_URL").map(web_address).transpose()?,
            api: api.transpose()?,
        })
    }

    /// The model that `name` means; without a name, the first choice of the first provider whose key is there, else the
    /// built-in teacher.
    ///
    /// # Errors
    /// When there is no such model, with the names that are most like it.
    pub fn model(&self, name: Option<&str>) -> Result<Model, ConfigError> {
        match (name, self.api, &self.base_url) {
            (None, ..) => Ok(self.by_key().unwrap_or_else(Lesson::model)),
            (Some(_), Some(Api::Lesson), _) => Ok(Lesson::model()),
            (Some(AUTO), Some(Api::AnthropicMessages), _) => {
                let reason = format!("must be {} with LEARNHARNESS_MODEL={AUTO}", Api::default().name());
                Err(ConfigError { name: "LEARNHARNESS_API", reason })
            }
            (Some(name), api, Some(base_url)) => Ok(self.by_hand(api.unwrap_or_default(), base_url, name)),
            (Some(AUTO), _, None) => {
                let reason = format!("must be set beside LEARNHARNESS_MODEL={AUTO}, such as {EXAMPLE}");
                Err(ConfigError { name: "LEARNHARNESS_BASE_URL", reason })
            }
            (Some(name), api, None) => self.by_name(name, api),
        }
    }

    fn by_key(&self) -> Option<Model> {
        let with_key = self.catalog.providers.iter().filter(|provider| self.keys.contains_key(&provider.id));
        let model = with_key.filter_map(|provider| self.catalog.first_of(&provider.id)).next()?;
        Some(Model { key: self.keys.get(&model.provider).cloned(), ..model.clone() })
    }

    /// A provider's key goes to that provider only.
    fn by_hand(&self, api: Api, base_url: &str, name: &str) -> Model {
        let theirs = self.catalog.provider_at(base_url).and_then(|provider| self.keys.get(&provider.id));
        Model { key: self.key.clone().or(theirs.cloned()), ..self.catalog.at(api, base_url, name) }
    }

    fn by_name(&self, name: &str, api: Option<Api>) -> Result<Model, ConfigError> {
        if let Some(model) = self.catalog.find(name, api, |provider| self.keys.contains_key(provider)) {
            let key = self.key.as_ref().or_else(|| self.keys.get(&model.provider));
            return Ok(Model { key: key.cloned(), ..model.clone() });
        }
        // An API that has one home needs no address.
        let home = self.catalog.providers.iter().find(|provider| Some(provider.api) == api);
        match home.filter(|_| api == Some(Api::AnthropicMessages)) {
            Some(home) => Ok(Model { needs_key: true, ..self.by_hand(home.api, &home.base_url, name) }),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> ConfigError {
        let nearest = self.catalog.nearest(name);
        let nearest = match nearest.is_empty() {
            true => "`learnharness models` lists what is".to_owned(),
            false => format!("the nearest are {}", nearest.join(", ")),
        };
        let own = format!("for a server of your own set LEARNHARNESS_BASE_URL, such as {EXAMPLE}");
        ConfigError { name: "LEARNHARNESS_MODEL", reason: format!("{name:?} is not known; {nearest}; {own}") }
    }
}

fn web_address(base_url: String) -> Result<String, ConfigError> {
    let is_web = |url: reqwest::Url| {
        let is_plain = url.query().is_none() && url.fragment().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
    };
    if reqwest::Url::parse(&base_url).is_ok_and(is_web) {
        return Ok(base_url);
    }
    let reason = format!("{base_url:?} is not a web address; an example is {EXAMPLE}");
    Err(ConfigError { name: "LEARNHARNESS_BASE_URL", reason })
}
