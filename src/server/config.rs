//! The configuration, read once from the environment (and a `.env` beside the data).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::llm::catalog::{Api, Key, Model};
use super::llm::lesson::Lesson;

/// All that can be set from outside; the README lists the variables.
#[derive(Clone, Debug)]
pub struct Config {
    pub addr: SocketAddr,
    pub data: PathBuf,
    /// The built browser side: `pkg/` with its manifest.
    pub site: PathBuf,
    pub model: Model,
    /// Every key of a provider that is known, with the address that it is for.
    pub keys: Vec<(String, Key)>,
    /// What goes over the wire to models is kept.
    pub capture: bool,
    /// Delay a delta of the lesson teacher.
    pub pace: Duration,
    /// The access token that browsers and scripts must show; none on loopback.
    pub token: Option<Key>,
}

/// A variable that cannot be used, in words for the owner.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct ConfigError {
    pub name: &'static str,
    pub reason: String,
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// Names the variable that cannot be used.
    pub fn from_env() -> Result<Self, ConfigError> {
        let data = PathBuf::from(var("LEARNHARNESS_DATA").unwrap_or_else(|| "data".to_owned()));
        // A missing file is the usual case; what the environment holds already wins.
        let _ = dotenvy::from_path(data.join(".env"));
        Self::read(data, &var)
    }

    /// The key for what is at this address: a key goes to no other server than its own.
    #[must_use]
    pub fn key_for(&self, url: &str) -> Option<Key> {
        let origin = |url: &str| reqwest::Url::parse(url).ok().filter(reqwest::Url::has_host).map(|url| url.origin());
        let wanted = origin(url)?;
        self.keys.iter().find(|(base_url, _)| origin(base_url).as_ref() == Some(&wanted)).map(|(_, key)| key.clone())
    }

    fn read(data: PathBuf, var: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let addr: SocketAddr = parse("LEARNHARNESS_ADDR", var, "127.0.0.1:3004")?;
        let pace: u64 = parse("LEARNHARNESS_LESSON_PACE_MS", var, "15")?;
        let token = var("LEARNHARNESS_TOKEN").map(Key);
        if !addr.ip().is_loopback() && token.is_none() {
            let reason = format!("must be set to serve on {addr}, which others can reach");
            return Err(ConfigError { name: "LEARNHARNESS_TOKEN", reason });
        }
        let model = model(var)?;
        Ok(Self {
            addr,
            data,
            keys: keys(var, &model),
            capture: switch("LEARNHARNESS_CAPTURE", var)?,
            site: PathBuf::from(var("LEARNHARNESS_SITE").unwrap_or_else(|| "target/site".to_owned())),
            model,
            pace: Duration::from_millis(pace),
            token,
        })
    }
}

/// The keys that are there, each with the address of its provider; the chosen model's own first.
fn keys(var: &dyn Fn(&str) -> Option<String>, chosen: &Model) -> Vec<(String, Key)> {
    let known = PROVIDERS.iter().filter_map(|(name, provider)| Model::of_provider(provider, Key(var(name)?)));
    let models = std::iter::once(chosen.clone()).chain(known);
    models.filter_map(|model| Some((model.base_url, model.key?))).collect()
}

/// The chosen model: by hand, else by the first key that is there, else the built-in teacher.
fn model(var: &dyn Fn(&str) -> Option<String>) -> Result<Model, ConfigError> {
    if let Some(id) = var("LEARNHARNESS_MODEL") {
        return by_hand(var, &id);
    }
    let keys = PROVIDERS.iter().filter_map(|(name, provider)| Some((*provider, var(name)?)));
    let known = keys.filter_map(|(provider, key)| Model::of_provider(provider, Key(key))).next();
    Ok(known.unwrap_or_else(Lesson::model))
}

/// The variables that hold a provider's key, the first choice first.
const PROVIDERS: [(&str, &str); 3] =
    [("OPENROUTER_API_KEY", "openrouter"), ("ANTHROPIC_API_KEY", "anthropic"), ("OPENAI_API_KEY", "openai")];

fn by_hand(var: &dyn Fn(&str) -> Option<String>, id: &str) -> Result<Model, ConfigError> {
    let api = match var("LEARNHARNESS_API") {
        None => Api::default(),
        Some(name) => Api::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| {
            let names = Api::ALL.map(Api::name).join(", ");
            ConfigError { name: "LEARNHARNESS_API", reason: format!("{name:?} is not one of {names}") }
        })?,
    };
    let given = (var("LEARNHARNESS_BASE_URL"), var("LEARNHARNESS_API_KEY").map(Key));
    let (base_url, key, needs_key) = match (api, given) {
        (Api::Lesson, _) => return Ok(Lesson::model()),
        (Api::AnthropicMessages, (None, key)) => {
            ("https://api.anthropic.com".to_owned(), key.or_else(|| var("ANTHROPIC_API_KEY").map(Key)), true)
        }
        (_, (Some(base_url), key)) => (web_address(base_url)?, key, false),
        (Api::OpenAiCompletions, (None, _)) => {
            let reason = "must be set beside LEARNHARNESS_MODEL, such as http://127.0.0.1:11434/v1".to_owned();
            return Err(ConfigError { name: "LEARNHARNESS_BASE_URL", reason });
        }
    };
    Ok(Model { key, needs_key, ..Model::at(api, &base_url, id) })
}

fn web_address(base_url: String) -> Result<String, ConfigError> {
    let is_web = |url: reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if reqwest::Url::parse(&base_url).is_ok_and(is_web) {
        return Ok(base_url);
    }
    let reason = format!("{base_url:?} is not a web address; an example is http://127.0.0.1:11434/v1");
    Err(ConfigError { name: "LEARNHARNESS_BASE_URL", reason })
}

fn switch(name: &'static str, var: &dyn Fn(&str) -> Option<String>) -> Result<bool, ConfigError> {
    match var(name).as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(text) => Err(ConfigError { name, reason: format!("{text:?} is neither 1 nor 0") }),
    }
}

fn parse<T: std::str::FromStr>(
    name: &'static str,
    var: &dyn Fn(&str) -> Option<String>,
    default: &str,
) -> Result<T, ConfigError> {
    let text = var(name).unwrap_or_else(|| default.to_owned());
    text.parse().map_err(|_| ConfigError { name, reason: format!("{text:?} cannot be read; an example is {default}") })
}

/// A variable that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "this is the one file that reads the environment")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let var = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::read(PathBuf::from("data"), &var)
    }

    #[test]
    fn without_a_key_the_built_in_teacher_teaches_on_loopback() {
        let config = read(&[]).unwrap();
        assert_eq!(config.addr.to_string(), "127.0.0.1:3004");
        assert_eq!(config.model.api, Api::Lesson);
    }

    #[test]
    fn a_model_by_hand_beats_a_key() {
        let config = read(&[
            ("LEARNHARNESS_MODEL", "qwen3"),
            ("LEARNHARNESS_BASE_URL", "http://127.0.0.1:11434/v1/"),
            ("OPENROUTER_API_KEY", "k"),
        ])
        .unwrap();
        assert_eq!((config.model.id.as_str(), config.model.base_url.as_str()), ("qwen3", "http://127.0.0.1:11434/v1"));
    }

    #[test]
    fn the_first_key_that_is_there_chooses_the_provider() {
        let chosen = |pairs: &[(&str, &str)]| {
            let model = read(pairs).unwrap().model;
            (model.provider, model.api, model.key.map(|key| key.0))
        };
        let (openrouter, anthropic) = (("OPENROUTER_API_KEY", "r"), ("ANTHROPIC_API_KEY", "a"));
        let of = |provider: &str, api, key: &str| (provider.to_owned(), api, Some(key.to_owned()));
        assert_eq!(chosen(&[anthropic, openrouter]), of("openrouter", Api::OpenAiCompletions, "r"));
        assert_eq!(chosen(&[("OPENAI_API_KEY", "o"), anthropic]), of("anthropic", Api::AnthropicMessages, "a"));
        assert_eq!(chosen(&[("OPENAI_API_KEY", "o")]), of("openai", Api::OpenAiCompletions, "o"));
    }

    #[test]
    fn a_model_by_hand_may_speak_anthropics_api() {
        let by_hand = [("LEARNHARNESS_MODEL", "claude-sonnet-5"), ("LEARNHARNESS_API", "anthropic-messages")];
        let read = |more: &[(&str, &str)]| {
            let model = read(&[&by_hand, more].concat()).unwrap().model;
            (model.base_url, model.key.map(|key| key.0), model.needs_key, model.max_tokens)
        };
        let at = |base_url: &str, key: Option<&str>, needs_key, max_tokens| {
            (base_url.to_owned(), key.map(str::to_owned), needs_key, max_tokens)
        };
        let (own, theirs) = ("https://api.anthropic.com", ("ANTHROPIC_API_KEY", "a"));
        assert_eq!(read(&[]), at(own, None, true, 128_000));
        assert_eq!(read(&[theirs]), at(own, Some("a"), true, 128_000));
        assert_eq!(read(&[theirs, ("LEARNHARNESS_API_KEY", "k")]), at(own, Some("k"), true, 128_000));
        let proxy = ("LEARNHARNESS_BASE_URL", "http://127.0.0.1:8080");
        assert_eq!(
            read(&[theirs, proxy]),
            at("http://127.0.0.1:8080", None, false, 0),
            "a key goes to its own provider"
        );
    }

    #[test]
    fn a_key_is_for_the_server_of_its_provider_and_for_no_other() {
        let by_hand = [("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_BASE_URL", "http://127.0.0.1:8080/v1")];
        let keys = [("LEARNHARNESS_API_KEY", "mine"), ("OPENROUTER_API_KEY", "r"), ("ANTHROPIC_API_KEY", "a")];
        let config = read(&[&by_hand[..], &keys[..]].concat()).unwrap();
        let key = |url: &str| config.key_for(url).map(|key| key.0);
        assert_eq!(key("http://127.0.0.1:8080/v1/chat/completions").as_deref(), Some("mine"));
        assert_eq!(key("https://openrouter.ai/api/v1/chat/completions").as_deref(), Some("r"));
        assert_eq!(key("https://api.anthropic.com/v1/messages").as_deref(), Some("a"));
        let strangers =
            ["http://127.0.0.1:9090/v1", "http://openrouter.ai/api", "https://openrouter.ai.evil/api", "x:y"];
        assert_eq!(strangers.map(key), [None, None, None, None]);
    }

    #[test]
    fn captures_are_made_when_they_are_asked_for() {
        let capture = |value| read(&[("LEARNHARNESS_CAPTURE", value)]).map(|config| config.capture);
        assert!(!read(&[]).unwrap().capture && !capture("0").unwrap() && capture("1").unwrap());
        assert_eq!(capture("some").unwrap_err().to_string(), "LEARNHARNESS_CAPTURE: \"some\" is neither 1 nor 0");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let check = |pairs: &[(&str, &str)], words: &str| assert_eq!(read(pairs).unwrap_err().to_string(), words);
        check(
            &[("LEARNHARNESS_ADDR", "here")],
            "LEARNHARNESS_ADDR: \"here\" cannot be read; an example is 127.0.0.1:3004",
        );
        check(
            &[("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_BASE_URL", "not a url")],
            "LEARNHARNESS_BASE_URL: \"not a url\" is not a web address; an example is http://127.0.0.1:11434/v1",
        );
        check(
            &[("LEARNHARNESS_ADDR", "0.0.0.0:80")],
            "LEARNHARNESS_TOKEN: must be set to serve on 0.0.0.0:80, which others can reach",
        );
        check(
            &[("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_API", "x")],
            "LEARNHARNESS_API: \"x\" is not one of openai-completions, anthropic-messages, lesson",
        );
        check(
            &[("LEARNHARNESS_MODEL", "m")],
            "LEARNHARNESS_BASE_URL: must be set beside LEARNHARNESS_MODEL, such as http://127.0.0.1:11434/v1",
        );
    }

    #[test]
    fn a_key_is_never_printed() {
        let config = read(&[("OPENROUTER_API_KEY", "sk-secret"), ("LEARNHARNESS_TOKEN", "t0ken")]).unwrap();
        let printed = format!("{config:?}");
        assert!(!printed.contains("sk-secret") && !printed.contains("t0ken"), "{printed}");
    }
}
