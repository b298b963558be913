//! The configuration, read once from the environment (and a `.env` beside the data).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::llm::catalog::{Api, Key, Model, Prices};
use super::llm::lesson::Lesson;

/// All that can be set from outside; the README lists the variables.
#[derive(Clone, Debug)]
pub struct Config {
    pub addr: SocketAddr,
    pub data: PathBuf,
    /// The built browser side: `pkg/` with its manifest.
    pub site: PathBuf,
    pub model: Model,
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

    fn read(data: PathBuf, var: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let addr: SocketAddr = parse("LEARNHARNESS_ADDR", var, "127.0.0.1:3004")?;
        let pace: u64 = parse("LEARNHARNESS_LESSON_PACE_MS", var, "15")?;
        let token = var("LEARNHARNESS_TOKEN").map(Key);
        if !addr.ip().is_loopback() && token.is_none() {
            let reason = format!("must be set to serve on {addr}, which others can reach");
            return Err(ConfigError { name: "LEARNHARNESS_TOKEN", reason });
        }
        Ok(Self {
            addr,
            data,
            site: PathBuf::from(var("LEARNHARNESS_SITE").unwrap_or_else(|| "target/site".to_owned())),
            model: model(var)?,
            pace: Duration::from_millis(pace),
            token,
        })
    }
}

/// The chosen model: by hand, else by the first key that is there, else the built-in teacher.
fn model(var: &dyn Fn(&str) -> Option<String>) -> Result<Model, ConfigError> {
    if let Some(id) = var("LEARNHARNESS_MODEL") {
        let api = match var("LEARNHARNESS_API").as_deref() {
            None | Some("openai-completions") => Api::OpenAiCompletions,
            Some("lesson") => Api::Lesson,
            Some(other) => {
                let reason = format!("{other:?} is not one of openai-completions, lesson");
                return Err(ConfigError { name: "LEARNHARNESS_API", reason });
            }
        };
        if api == Api::Lesson {
            return Ok(Lesson::model());
        }
        let base_url = var("LEARNHARNESS_BASE_URL").ok_or_else(|| ConfigError {
            name: "LEARNHARNESS_BASE_URL",
            reason: "must be set beside LEARNHARNESS_MODEL, such as http://127.0.0.1:11434/v1".to_owned(),
        })?;
        if !reqwest::Url::parse(&base_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            let reason = format!("{base_url:?} is not a web address; an example is http://127.0.0.1:11434/v1");
            return Err(ConfigError { name: "LEARNHARNESS_BASE_URL", reason });
        }
        let key = var("LEARNHARNESS_API_KEY").map(Key);
        return Ok(Model { key, needs_key: false, ..hosted("custom", &base_url, &id) });
    }
    if let Some(key) = var("OPENROUTER_API_KEY") {
        let model = hosted("openrouter", "https://openrouter.ai/api/v1", "z-ai/glm-5.3-flash");
        return Ok(Model { key: Some(Key(key)), ..model });
    }
    if let Some(key) = var("OPENAI_API_KEY") {
        return Ok(Model { key: Some(Key(key)), ..hosted("openai", "https://api.openai.com/v1", "gpt-5-mini") });
    }
    Ok(Lesson::model())
}

fn hosted(provider: &str, base_url: &str, id: &str) -> Model {
    Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        api: Api::OpenAiCompletions,
        base_url: base_url.trim_end_matches('/').to_owned(),
        key: None,
        needs_key: true,
        reasoning: true,
        prices: Prices::default(),
        context_window: 128_000,
        max_tokens: 16_384,
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
