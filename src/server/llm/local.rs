//! Servers on this machine: which models they have, and how much of a conversation they really read.
//!
//! Such servers often read only a few thousand tokens, whatever the model could, and cut the rest off without a word. So
//! each is asked in its own way, and what it says stands in the model's note.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::{Api, Input, Key, Model};
use super::get::{Bounds, Getter};

/// The id that stands for the first model of a server.
pub const AUTO: &str = "auto";

const BOUNDS: Bounds = Bounds { time: Duration::from_secs(3), size: 4 * 1024 * 1024 };
/// Models of one server that are looked at.
const MODELS: usize = 100;
/// Tokens that a lesson needs: its instructions and tools, and room for a conversation.
const ENOUGH: u64 = 16_384;

/// A server that speaks `openai-completions`.
#[derive(Clone, Debug)]
pub struct Server {
    pub base_url: String,
    pub key: Option<Key>,
}

impl Server {
    /// Where local servers usually are.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        let at = |kind: &Kind| Self { base_url: format!("http://127.0.0.1:{}/v1", kind.port()), key: None };
        Kind::ALL.iter().map(at).collect()
    }

    /// True where local servers usually are.
    fn is_usual(&self) -> bool {
        let Ok(url) = Url::parse(&self.base_url) else { return false };
        let is_local = url.host_str().is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host));
        is_local && Kind::ALL.iter().any(|kind| Some(kind.port()) == url.port())
    }

    /// The models that it has, with what it says of each.
    ///
    /// # Errors
    /// In words, when it cannot be asked.
    pub async fn models(&self) -> Result<Vec<Model>, String> {
        self.look(None).await
    }

    /// Looks at the model `only`, or at all.
    async fn look(&self, only: Option<&str>) -> Result<Vec<Model>, String> {
        let getter = Getter::near(BOUNDS)?;
        let answer = getter.get(&format!("{}/models", self.base_url.trim_end_matches('/')), self.key.as_ref()).await?;
        let rows = answer.get("data").and_then(Value::as_array).ok_or("its answer is not a list of models")?;
        let rows: Vec<Row> = rows.iter().filter_map(|row| Row::deserialize(row).ok()).take(MODELS).collect();
        let wanted = |row: &Row| only.is_none_or(|only| row.id == only || row.id == format!("{only}:latest"));
        let probe = Probe { server: self, getter, root: self.root() };
        let kind = probe.kind(&rows).await;
        let mut models = Vec::new();
        for row in rows.iter().filter(|row| wanted(row)) {
            let facts = match &kind {
                Some((kind, told)) => probe.facts(*kind, told, row).await,
                None => Facts::default(),
            };
            if facts.can_chat {
                models.push(self.model(&row.id, kind.as_ref().map(|(kind, _)| *kind), &facts));
            }
        }
        Ok(models)
    }

    fn model(&self, id: &str, kind: Option<Kind>, facts: &Facts) -> Model {
        let model = Model::at(Api::OpenAiCompletions, &self.base_url, id);
        let Some(kind) = kind else { return Model { key: self.key.clone(), ..model } };
        Model {
            provider: kind.id().to_owned(),
            key: self.key.clone(),
            context_window: facts.context.tokens(),
            input: if facts.sees { vec![Input::Text, Input::Image] } else { vec![Input::Text] },
            note: facts.note(kind, id),
            ..model
        }
    }

    /// Its address without the path of the API.
    fn root(&self) -> String {
        let base_url = self.base_url.trim_end_matches('/');
        base_url.strip_suffix("/v1").unwrap_or(base_url).to_owned()
    }
}

/// Makes ready a model that was chosen: `auto` becomes the first model of its server, and a model by hand where local
/// servers usually are learns how much that server reads. What a person should know of it is logged.
///
/// # Errors
/// In words, when `auto` cannot become a model.
pub async fn settle(model: Model) -> Result<Model, String> {
    let server = Server { base_url: model.base_url.clone(), key: model.key.clone() };
    let settled = if model.id == AUTO {
        let models = server.models().await.map_err(|words| format!("{} has no models: {words}", server.base_url))?;
        models.into_iter().next().ok_or_else(|| format!("{} has no model that can chat", server.base_url))?
    } else if server.is_usual() {
        learn(&server, model).await
    } else {
        model
    };
    if !settled.note.is_empty() {
        tracing::warn!(model = %settled.id, "{}", settled.note);
    }
    Ok(settled)
}

/// The model with what its server says of it; a server that is not running yet is no reason not to start.
pub async fn learn(server: &Server, model: Model) -> Model {
    let found = server.look(Some(&model.id)).await.unwrap_or_default().into_iter().next();
    match found {
        Some(Model { context_window, input, note, .. }) => Model { context_window, input, note, ..model },
        None => model,
    }
}

/// The servers that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ollama,
    LlamaCpp,
    LmStudio,
    Vllm,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Ollama, Self::LlamaCpp, Self::LmStudio, Self::Vllm];

    fn id(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "lm-studio",
            Self::Vllm => "vllm",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Ollama => 11434,
            Self::LlamaCpp => 8080,
            Self::LmStudio => 1234,
            Self::Vllm => 8000,
        }
    }

    /// How a person makes it read more.
    fn advice(self, id: &str) -> String {
        match self {
            Self::Ollama => "start it with OLLAMA_CONTEXT_LENGTH=32768 ollama serve".to_owned(),
            Self::LlamaCpp => "start it with llama-server -c 32768".to_owned(),
            Self::LmStudio => format!("load the model with lms load {id} --context-length 32768"),
            Self::Vllm => "start it with --max-model-len 32768".to_owned(),
        }
    }
}

/// A model in the list of `GET /v1/models`; each server adds fields of its own.
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    owned_by: Option<String>,
    /// vLLM's.
    #[serde(default)]
    max_model_len: Option<u64>,
}

/// What is known of a model.
#[derive(Debug)]
struct Facts {
    context: Context,
    sees: bool,
    can_chat: bool,
    can_call: bool,
}

impl Default for Facts {
    fn default() -> Self {
        Self { context: Context::Unknown, sees: false, can_chat: true, can_call: true }
    }
}

/// How much a server reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Tokens(u64),
    /// As much as the model itself says, which no setting of the server changes.
    Baked(u64),
    /// That is decided when the model is loaded.
    Unloaded,
    Unknown,
}

impl Context {
    fn of(tokens: Option<&Value>) -> Self {
        tokens.and_then(Value::as_u64).filter(|tokens| *tokens > 0).map_or(Self::Unknown, Self::Tokens)
    }

    /// 0 when nobody knows.
    fn tokens(self) -> u64 {
        match self {
            Self::Tokens(tokens) | Self::Baked(tokens) => tokens,
            Self::Unloaded | Self::Unknown => 0,
        }
    }
}

impl Facts {
    /// What a person must know before a lesson; mostly nothing.
    fn note(&self, kind: Kind, id: &str) -> String {
        let advice = kind.advice(id);
        let reads = |tokens| format!("this server reads {} tokens only", grouped(tokens));
        let context = match self.context {
            Context::Tokens(tokens) if tokens < ENOUGH => Some(format!("{}; {advice}", reads(tokens))),
            Context::Baked(tokens) if tokens < ENOUGH => Some(format!(
                "{}; the model's own num_ctx says so, make one with PARAMETER num_ctx 32768",
                reads(tokens)
            )),
            Context::Unloaded => {
                Some(format!("not loaded yet, and this server may then read 4,096 tokens only; {advice}"))
            }
            Context::Tokens(_) | Context::Baked(_) | Context::Unknown => None,
        };
        let calls = (!self.can_call).then(|| "it cannot call tools, which a lesson needs".to_owned());
        context.into_iter().chain(calls).collect::<Vec<_>>().join("; ")
    }
}

/// Asks one server what it is and what it has.
struct Probe<'a> {
    server: &'a Server,
    getter: Getter,
    root: String,
}

impl Probe<'_> {
    /// Which server it is, with what it said of itself; none for one that says nothing of its own.
    async fn kind(&self, rows: &[Row]) -> Option<(Kind, Value)> {
        if rows.iter().any(|row| row.max_model_len.is_some()) {
            return Some((Kind::Vllm, Value::Null));
        }
        let is_llama = rows.iter().any(|row| row.owned_by.as_deref() == Some("llamacpp"));
        let tries: &[(Kind, &str, &str)] = if is_llama {
            &[(Kind::LlamaCpp, "/props", "/default_generation_settings")]
        } else {
            &[
                (Kind::Ollama, "/api/ps", "/models"),
                (Kind::LmStudio, "/api/v0/models", "/data"),
                (Kind::LlamaCpp, "/props", "/default_generation_settings"),
            ]
        };
        for (kind, path, sign) in tries {
            let told = self.getter.get(&format!("{}{path}", self.root), self.server.key.as_ref()).await;
            if let Ok(told) = told
                && told.pointer(sign).is_some()
            {
                return Some((*kind, told));
            }
        }
        None
    }

    async fn facts(&self, kind: Kind, told: &Value, row: &Row) -> Facts {
        match kind {
            Kind::Ollama => self.ollama(told, &row.id).await,
            Kind::LlamaCpp => Facts {
                context: Context::of(told.pointer("/default_generation_settings/n_ctx")),
                sees: told.pointer("/modalities/vision") == Some(&Value::Bool(true)),
                ..Facts::default()
            },
            Kind::LmStudio => lm_studio(told, &row.id),
            Kind::Vllm => {
                Facts { context: row.max_model_len.map_or(Context::Unknown, Context::Tokens), ..Facts::default() }
            }
        }
    }

    /// A loaded model has its context in `api/ps`; of the others, the model's own parameters may say.
    async fn ollama(&self, running: &Value, id: &str) -> Facts {
        let (url, body) = (format!("{}/api/show", self.root), json!({"model": id}));
        let shown = self.getter.post(&url, self.server.key.as_ref(), &body).await.unwrap_or_default();
        let loaded = entry(running.get("models"), &["name", "model"], id);
        let loaded = loaded.map_or(Context::Unknown, |model| Context::of(model.get("context_length")));
        let parameters = shown.get("parameters").and_then(Value::as_str).unwrap_or_default();
        let baked = parameters.lines().find_map(|line| line.strip_prefix("num_ctx")?.trim().parse().ok());
        let context = match (loaded, baked) {
            (_, Some(tokens)) => Context::Baked(tokens),
            (Context::Unknown, None) => Context::Unloaded,
            (loaded, None) => loaded,
        };
        let can = |skill: &str| {
            let skills = shown.get("capabilities").and_then(Value::as_array);
            skills.map(|skills| skills.iter().any(|known| known == skill))
        };
        Facts {
            context,
            sees: can("vision").unwrap_or(false),
            can_chat: can("completion").unwrap_or(true),
            can_call: can("tools").unwrap_or(true),
        }
    }
}

fn lm_studio(told: &Value, id: &str) -> Facts {
    let Some(model) = entry(told.get("data"), &["id"], id) else { return Facts::default() };
    let is = |field: &str, word: &str| model.get(field).and_then(Value::as_str) == Some(word);
    Facts {
        context: match Context::of(model.get("loaded_context_length")) {
            Context::Unknown if is("state", "not-loaded") => Context::Unloaded,
            context => context,
        },
        sees: is("type", "vlm"),
        can_chat: !is("type", "embeddings"),
        ..Facts::default()
    }
}

/// The entry of `list` that has `id` in one of `fields`.
fn entry<'a>(list: Option<&'a Value>, fields: &[&str], id: &str) -> Option<&'a Value> {
    let is_it = |entry: &&Value| fields.iter().any(|field| entry.get(field).and_then(Value::as_str) == Some(id));
    list?.as_array()?.iter().find(is_it)
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1_000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
    }

    #[test]
    fn local_servers_are_known_by_their_usual_places() {
        let usual = |base_url: &str| Server { base_url: base_url.to_owned(), key: None }.is_usual();
        let places =
            ["http://127.0.0.1:11434/v1", "http://localhost:8080", "http://[::1]:1234/v1", "http://127.0.0.1:8000/v1"];
        assert!(places.into_iter().all(usual));
        for elsewhere in ["http://127.0.0.1:9999/v1", "http://192.168.1.2:11434/v1", "https://api.openai.com/v1", "no"]
        {
            assert!(!usual(elsewhere), "{elsewhere}");
        }
        assert_eq!(Server::usual().len(), Kind::ALL.len());
    }
}
