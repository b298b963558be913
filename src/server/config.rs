//! The configuration, read once from the environment (and a `.env` beside the data).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::Choice;
use super::llm::catalog::{Key, Model};
use super::llm::known::{Catalog, Keys, is_same_place};
use super::llm::thinking::ThinkingLevel;

/// All that can be set from outside; the README lists the variables.
#[derive(Clone, Debug)]
pub struct Config {
    pub addr: SocketAddr,
    pub data: PathBuf,
    /// The built browser side: `pkg/` with its manifest.
    pub site: PathBuf,
    pub model: Model,
    /// How hard the model thinks; none for a little.
    pub thinking: Option<ThinkingLevel>,
    /// The keys of all providers that have one.
    pub keys: Keys,
    /// What goes over the wire to models is kept.
    pub capture: bool,
    /// Delay a delta of the lesson teacher.
    pub pace: Duration,
    /// The access token that browsers and scripts must show; none on loopback.
    pub token: Option<Key>,
}

/// What there is to choose a model from, and where the data is; enough to list models when none could be chosen.
#[derive(Clone, Debug)]
pub struct Offer {
    pub data: PathBuf,
    pub choice: Choice,
}

/// Looks up a variable.
pub type Vars<'a> = &'a dyn Fn(&str) -> Option<String>;

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
        Self::read(offer()?, &var)
    }

    /// The key for what is at this address: a key goes to no other server than its own.
    #[must_use]
    pub fn key_for(&self, url: &str) -> Option<Key> {
        let is_chosen = is_same_place(url, &self.model.base_url);
        let theirs = || self.keys.get(&Catalog::built_in().provider_at(url)?.id);
        self.model.key.as_ref().filter(|_| is_chosen).or_else(theirs).cloned()
    }

    fn read(offer: Offer, var: Vars) -> Result<Self, ConfigError> {
        let addr: SocketAddr = parse("LEARNHARNESS_ADDR", var, "127.0.0.1:3004")?;
        let pace: u64 = parse("LEARNHARNESS_LESSON_PACE_MS", var, "15")?;
        let token = var("LEARNHARNESS_TOKEN").map(Key);
        let fits = |Key(token): &Key| token.bytes().all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte));
        if token.as_ref().is_some_and(|token| !fits(token)) {
            let reason = "may hold letters, digits and signs of ASCII only, without \" , ; and \\".to_owned();
            return Err(ConfigError { name: "LEARNHARNESS_TOKEN", reason });
        }
        if !addr.ip().is_loopback() && token.is_none() {
            let reason = format!("must be set to serve on {addr}, which others can reach");
            return Err(ConfigError { name: "LEARNHARNESS_TOKEN", reason });
        }
        Ok(Self {
            addr,
            data: offer.data,
            site: PathBuf::from(var("LEARNHARNESS_SITE").unwrap_or_else(|| "target/site".to_owned())),
            model: offer.choice.model(var("LEARNHARNESS_MODEL").as_deref())?,
            thinking: var("LEARNHARNESS_THINKING").map(|name| level(&name)).transpose()?,
            keys: offer.choice.keys,
            capture: switch("LEARNHARNESS_CAPTURE", var)?,
            pace: Duration::from_millis(pace),
            token,
        })
    }
}

/// Reads what a model can be chosen from.
///
/// # Errors
/// Names the variable that cannot be used.
pub fn offer() -> Result<Offer, ConfigError> {
    let data = PathBuf::from(var("LEARNHARNESS_DATA").unwrap_or_else(|| "data".to_owned()));
    readable()?;
    // What the environment holds already wins; a missing file is the usual case.
    match dotenvy::from_path(data.join(".env")) {
        Err(error) if !error.not_found() => return Err(ConfigError { name: ".env", reason: error.to_string() }),
        Ok(()) | Err(_) => {}
    }
    Ok(Offer { choice: Choice::read(Catalog::load(&data), &var)?, data })
}

fn level(name: &str) -> Result<ThinkingLevel, ConfigError> {
    ThinkingLevel::ALL.into_iter().find(|level| level.name() == name).ok_or_else(|| {
        let names = ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
        ConfigError { name: "LEARNHARNESS_THINKING", reason: format!("{name:?} is not one of {names}") }
    })
}

fn switch(name: &'static str, var: Vars) -> Result<bool, ConfigError> {
    match var(name).as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(text) => Err(ConfigError { name, reason: format!("{text:?} is neither 1 nor 0") }),
    }
}

fn parse<T: std::str::FromStr>(name: &'static str, var: Vars, default: &str) -> Result<T, ConfigError> {
    let text = var(name).unwrap_or_else(|| default.to_owned());
    text.parse().map_err(|_| ConfigError { name, reason: format!("{text:?} cannot be read; an example is {default}") })
}

/// A variable that cannot be read would count as absent, and with it a token or a key.
fn readable() -> Result<(), ConfigError> {
    let ours = |name: &str| name.starts_with("LEARNHARNESS_") || name.ends_with("_API_KEY");
    let broken = std::env::vars_os().find(|(name, value)| name.to_str().is_some_and(ours) && value.to_str().is_none());
    match broken {
        Some((name, _)) => {
            let reason = format!("{} is not UTF-8", name.to_string_lossy());
            Err(ConfigError { name: "environment", reason })
        }
        None => Ok(()),
    }
}

/// A variable that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "this is the one file that reads the environment")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::catalog::Api;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let var = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let choice = Choice::read(Catalog::built_in().clone(), &var)?;
        Config::read(Offer { data: PathBuf::from("data"), choice }, &var)
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
        assert_eq!(chosen(&[("ZAI_API_KEY", "z")]), of("zai", Api::OpenAiCompletions, "z"));
        assert_eq!(chosen(&[("ZAI_API_KEY", "z"), ("DEEPSEEK_API_KEY", "d")]).0, "deepseek");
    }

    #[test]
    fn a_name_chooses_the_address_the_api_the_key_and_the_prices() {
        let keys = [("OPENROUTER_API_KEY", "r"), ("ANTHROPIC_API_KEY", "a")];
        let named = |name| read(&[&keys[..], &[("LEARNHARNESS_MODEL", name)]].concat()).unwrap().model;
        let flash = named("openrouter/z-ai/glm-5.3-flash");
        assert_eq!((flash.base_url.as_str(), flash.key), ("https://openrouter.ai/api/v1", Some(Key("r".to_owned()))));
        assert_eq!((flash.prices.rates.output, flash.api, flash.needs_key), (0.25, Api::OpenAiCompletions, true));
        let sonnet = named("claude-sonnet-5");
        assert_eq!((sonnet.api, sonnet.key), (Api::AnthropicMessages, Some(Key("a".to_owned()))));
        let deepseek = named("deepseek-v4-pro");
        assert_eq!(
            (deepseek.needs_key, deepseek.key, deepseek.key_variable.as_str()),
            (true, None, "DEEPSEEK_API_KEY")
        );
    }

    #[test]
    fn a_providers_key_reaches_its_own_server_at_any_path_and_no_other() {
        let at = |base_url| {
            let by_hand =
                [("LEARNHARNESS_MODEL", "glm-5.3"), ("LEARNHARNESS_BASE_URL", base_url), ("ZAI_API_KEY", "z")];
            let model = read(&by_hand).unwrap().model;
            (model.key.map(|key| key.0), model.context_window)
        };
        assert_eq!(at("https://api.z.ai/api/coding/paas/v4"), (Some("z".to_owned()), 1_000_000));
        assert_eq!(at("http://api.z.ai/api/coding/paas/v4"), (None, 0));
        assert_eq!(at("https://elsewhere.example/v1"), (None, 0));
    }

    #[test]
    fn thinking_is_one_of_the_levels() {
        let thinking = |name| read(&[("LEARNHARNESS_THINKING", name)]).map(|config| config.thinking);
        assert_eq!(thinking("max").unwrap(), Some(ThinkingLevel::Max));
        assert_eq!(read(&[]).unwrap().thinking, None);
        assert_eq!(
            thinking("hard").unwrap_err().to_string(),
            "LEARNHARNESS_THINKING: \"hard\" is not one of off, minimal, low, medium, high, xhigh, max"
        );
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
            &[("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_BASE_URL", "http://127.0.0.1:1/v1?key=x")],
            "LEARNHARNESS_BASE_URL: \"http://127.0.0.1:1/v1?key=x\" is not a web address; an example is http://127.0.0.1:11434/v1",
        );
        for token in ["a;b", "\u{fc}", "a b"] {
            check(
                &[("LEARNHARNESS_TOKEN", token)],
                "LEARNHARNESS_TOKEN: may hold letters, digits and signs of ASCII only, without \" , ; and \\",
            );
        }
        check(
            &[("LEARNHARNESS_ADDR", "0.0.0.0:80")],
            "LEARNHARNESS_TOKEN: must be set to serve on 0.0.0.0:80, which others can reach",
        );
        check(
            &[("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_API", "x")],
            "LEARNHARNESS_API: \"x\" is not one of openai-completions, anthropic-messages, lesson",
        );
        check(
            &[("LEARNHARNESS_MODEL", "auto")],
            "LEARNHARNESS_BASE_URL: must be set beside LEARNHARNESS_MODEL=auto, such as http://127.0.0.1:11434/v1",
        );
        check(
            &[("LEARNHARNESS_MODEL", "auto"), ("LEARNHARNESS_API", "anthropic-messages")],
            "LEARNHARNESS_API: must be openai-completions with LEARNHARNESS_MODEL=auto",
        );
        check(
            &[("LEARNHARNESS_MODEL", "claude-sonet-5")],
            "LEARNHARNESS_MODEL: \"claude-sonet-5\" is not known; the nearest are openrouter/anthropic/claude-sonnet-5, \
             anthropic/claude-sonnet-5, anthropic/claude-sonnet-4-5; for a server of your own set LEARNHARNESS_BASE_URL, \
             such as http://127.0.0.1:11434/v1",
        );
        check(
            &[("LEARNHARNESS_MODEL", "zzzzzzzzzzzz")],
            "LEARNHARNESS_MODEL: \"zzzzzzzzzzzz\" is not known; `learnharness models` lists what is; for a server of your \
             own set LEARNHARNESS_BASE_URL, such as http://127.0.0.1:11434/v1",
        );
    }

    #[test]
    fn a_key_is_never_printed() {
        let config = read(&[("OPENROUTER_API_KEY", "sk-secret"), ("LEARNHARNESS_TOKEN", "t0ken")]).unwrap();
        let printed = format!("{config:?}");
        assert!(!printed.contains("sk-secret") && !printed.contains("t0ken"), "{printed}");
    }
}
