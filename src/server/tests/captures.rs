//! Captures: what is kept of the wire, without keys and within bounds, and what can be done with it.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use learnharness::app::native::Message;
use learnharness::server::captures::{CaptureCommand, Changes, Folder, Keeper, run};
use learnharness::server::config::Config;
use learnharness::server::llm::anthropic_messages::AnthropicMessages;
use learnharness::server::llm::capture::{Exchange, Keep, LARGEST};
use learnharness::server::llm::catalog::{Api, Key};
use learnharness::server::llm::known::Keys;
use learnharness::server::llm::openai_completions::OpenAiCompletions;
use learnharness::server::llm::transport::{Limits, Transport};
use learnharness::server::llm::{Dialect, Request};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::dialect::{ask, finished, model, play};
use crate::support::model::catalog_model;
use crate::support::provider::{End, Provider, Recorded, Reply};

const SECRET: &str = "sk-test/NEVERSHOW-0123456789";

/// A data folder with a keeper, and the dialects that it listens to.
struct Stage {
    data: TempDir,
    keeper: Arc<Keeper>,
}

impl Stage {
    fn new() -> Self {
        let data = TempDir::new().unwrap();
        let keeper = Arc::new(Keeper::start(Folder::of(data.path()), Vec::new()).unwrap());
        Self { data, keeper }
    }

    fn dialect(&self, api: Api) -> Arc<dyn Dialect> {
        let transport = Transport::new(Limits::default(), Arc::new(|_| Box::pin(std::future::ready(())))).unwrap();
        let transport = transport.captured_by(Some(self.keeper.clone() as Arc<dyn Keep>));
        match api {
            Api::AnthropicMessages => Arc::new(AnthropicMessages::new(transport, || 0)),
            Api::OpenAiCompletions | Api::Lesson => Arc::new(OpenAiCompletions::new(transport, || 0)),
        }
    }

    /// Asks with the secret key, and waits until all is written.
    async fn ask(&self, request: Request<'_>, provider: &Provider) {
        play(&*self.dialect(request.model.api), request, provider, None).await;
        self.keeper.close();
    }

    fn read(&self, number: u64) -> Exchange {
        Folder::of(self.data.path()).read(number).unwrap()
    }
}

/// A request with the secret key.
fn with_key(api: Api, provider: &Provider) -> Request<'static> {
    let mut model = model(api, provider);
    model.key = Some(Key(SECRET.to_owned()));
    Request { model, ..ask(provider) }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

fn says(text: &str) -> Reply {
    Reply::events([chunk(&json!({"content": text}), Some("stop")), "data: [DONE]\n\n".to_owned()])
}

/// The configuration of whoever looks into the captures of `data`.
fn config(data: &Path, key: Option<(&str, &str)>) -> Config {
    let mut model = catalog_model();
    if let Some((url, key)) = key {
        model.base_url = url.to_owned();
        model.key = Some(Key(key.to_owned()));
    }
    Config {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: data.to_owned(),
        site: data.join("site"),
        model,
        thinking: None,
        keys: Keys::new(),
        capture: false,
        pace: Duration::ZERO,
        token: None,
    }
}

async fn told(command: CaptureCommand, config: &Config) -> Result<String, String> {
    let mut out = Vec::new();
    run(command, config, &mut out).await.map_err(|failure| failure.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

async fn replayed(what: &str, changes: Changes, config: &Config) -> String {
    told(CaptureCommand::Replay { what: what.to_owned(), changes }, config).await.unwrap()
}

#[tokio::test]
async fn an_exchange_is_kept_as_it_went_over_the_wire_without_any_key() {
    let stage = Stage::new();
    let body = chunk(&json!({"content": format!("Not {SECRET}, Ångström")}), Some("stop"));
    // Once in the middle of the key, once in the middle of a character.
    let (head, rest) = body.as_bytes().split_at(body.find("NEVER").unwrap() + 2);
    let (middle, tail) = rest.split_at(rest.iter().position(|byte| *byte == 0xC3).unwrap() + 1);
    let reply =
        Reply::events([head, middle, tail]).header("set-cookie", "session=NEVERSHOW").header("x-request-id", "7");
    let provider = Provider::start([reply]).await;
    let mut request = with_key(Api::OpenAiCompletions, &provider);
    let headers = [("x-title", "lesson"), ("cookie", "a=NEVERSHOW"), ("x-goog-api-key", "NEVERSHOW-2")];
    request.model.headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    request.messages =
        vec![Cow::Owned(Message::user(format!("My key is {SECRET}, hers sk-or-v1-NEVERSHOWNEVERSHOW"), 0))];
    stage.ask(request, &provider).await;
    let file = std::fs::read_to_string(stage.data.path().join("captures/000001.json")).unwrap();
    assert!(!file.contains("NEVERSHOW") && !file.contains("sk-test/NE"), "{file}");
    let kept = stage.read(1);
    let sent = &provider.requests()[0];
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!((kept.api.as_str(), kept.request.method.as_str()), ("openai-completions", "POST"));
    assert_eq!(kept.request.url, format!("{}/chat/completions", provider.url()));
    let body: Value = serde_json::from_str(&kept.request.body).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&sent.body["model"], &json!(true)));
    let header = |headers: &[(String, String)], name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let sent = ["authorization", "cookie", "x-goog-api-key", "x-title"].map(|name| header(&kept.request.headers, name));
    assert_eq!(sent, ["(removed)", "(removed)", "(removed)", "lesson"].map(|value| Some(value.to_owned())));
    let response = kept.response.clone().unwrap();
    assert_eq!((response.status, header(&response.headers, "x-request-id").as_deref()), (200, Some("7")));
    assert_eq!(header(&response.headers, "set-cookie").as_deref(), Some("(removed)"));
    let text = String::from_utf8(kept.body()).unwrap();
    assert_eq!(text, body_without_the_key(&String::from_utf8([head, middle, tail].concat()).unwrap()));
    assert!(response.pieces.iter().is_sorted_by_key(|piece| piece.after_ms), "{response:?}");
    assert_eq!(kept.end, "whole");
}

fn body_without_the_key(body: &str) -> String {
    body.replace(SECRET, &"*".repeat(SECRET.len()))
}

#[tokio::test]
async fn each_try_is_an_exchange_of_its_own_whatever_became_of_it() {
    let stage = Stage::new();
    let refusal = format!(r#"{{"error":{{"message":"Busy, {SECRET}"}}}}"#);
    let provider =
        Provider::start([Reply::status(503, &refusal), Reply::events([""]).end(End::Refuse), says("Hi")]).await;
    stage.ask(with_key(Api::OpenAiCompletions, &provider), &provider).await;
    let kept: Vec<_> = (1..=3).map(|number| stage.read(number)).collect();
    let ends: Vec<_> =
        kept.iter().map(|kept| (kept.response.as_ref().map(|head| head.status), kept.end.as_str())).collect();
    let gone = "The provider could not be reached: it closed the connection.";
    assert_eq!(ends, [(Some(503), "whole"), (None, gone), (Some(200), "whole")]);
    assert_eq!(String::from_utf8(kept[0].body()).unwrap(), body_without_the_key(&refusal));
    assert!(kept[2].body().ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn an_answer_that_was_stopped_is_kept_as_far_as_it_came() {
    let stage = Stage::new();
    let provider = Provider::start([Reply::events([chunk(&json!({"content": "Half"}), None)]).end(End::Hang)]).await;
    let cancel = CancellationToken::new();
    let dialect = stage.dialect(Api::OpenAiCompletions);
    let mut events = dialect.stream(with_key(Api::OpenAiCompletions, &provider), cancel.clone());
    events.next().await;
    cancel.cancel();
    while events.next().await.is_some() {}
    stage.keeper.close();
    let kept = stage.read(1);
    assert_eq!((kept.body().is_empty(), kept.end.as_str()), (false, "left before its end"));
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_says_so_and_cannot_be_sent_again() {
    let stage = Stage::new();
    let comment = format!(":{}\n", "q".repeat(1024 * 1024 - 2));
    let reply = Reply::events(vec![comment; 5]).then(chunk(&json!({"content": "Hi"}), Some("stop")));
    let provider = Provider::start([reply]).await;
    let mut request = with_key(Api::OpenAiCompletions, &provider);
    request.messages = vec![Cow::Owned(Message::user("q".repeat(LARGEST), 0))];
    let events = play(&*stage.dialect(Api::OpenAiCompletions), request, &provider, None).await;
    stage.keeper.close();
    assert_eq!(finished(&events).text(), "Hi", "the answer itself is whole");
    let kept = stage.read(1);
    let response = kept.response.clone().unwrap();
    assert_eq!((kept.request.body.len(), kept.body().len()), (LARGEST, LARGEST));
    assert!(kept.request.cut > 0 && response.cut > 1024 * 1024, "{} {}", kept.request.cut, response.cut);
    let replay = CaptureCommand::Replay { what: "1".to_owned(), changes: Changes::default() };
    let words = told(replay, &config(stage.data.path(), None)).await.unwrap_err();
    assert_eq!(words, "This request was too long to be kept whole, so it cannot be sent again.");
}

#[tokio::test]
async fn the_oldest_go_when_there_are_too_many_or_too_much() {
    let stage = Stage::new();
    let provider = Provider::start([says("Hi")]).await;
    stage.ask(with_key(Api::OpenAiCompletions, &provider), &provider).await;
    let kept = stage.read(1);
    let length = std::fs::metadata(stage.data.path().join("captures/000001.json")).unwrap().len();
    let fill = |folder: Folder| {
        for _ in 0..5 {
            folder.add(&kept).unwrap();
        }
        folder.numbers().unwrap()
    };
    let many = TempDir::new().unwrap();
    assert_eq!(fill(Folder::of(many.path()).bounded(3, u64::MAX)), [3, 4, 5]);
    let much = TempDir::new().unwrap();
    assert_eq!(fill(Folder::of(much.path()).bounded(100, 2 * length + 1)), [4, 5]);
    let none = TempDir::new().unwrap();
    assert!(fill(Folder::of(none.path()).bounded(100, 1)).is_empty());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_fails_no_answer() {
    let stage = Stage::new();
    std::fs::write(stage.data.path().join("captures"), "in the way").unwrap();
    let provider = Provider::start([says("Hi"), says("again")]).await;
    for text in ["Hi", "again"] {
        let request = with_key(Api::OpenAiCompletions, &provider);
        let events = play(&*stage.dialect(Api::OpenAiCompletions), request, &provider, None).await;
        assert_eq!(finished(&events).text(), text);
        // One that is closed takes no more, and says nothing.
        stage.keeper.close();
    }
}

#[tokio::test]
async fn captures_are_listed_and_shown() {
    let stage = Stage::new();
    let config = config(stage.data.path(), None);
    let none = "There are no captures. A server that runs with LEARNHARNESS_CAPTURE=1 makes them.\n";
    assert_eq!(told(CaptureCommand::List, &config).await.unwrap(), none);
    let provider = Provider::start([Reply::status(401, r#"{"error":"No"}"#)]).await;
    stage.ask(with_key(Api::OpenAiCompletions, &provider), &provider).await;
    let list = told(CaptureCommand::List, &config).await.unwrap();
    assert!(
        list.starts_with("     1  ") && list.contains("  401  acme/think-1  ") && list.ends_with(" ms: whole\n"),
        "{list}"
    );
    let shown = told(CaptureCommand::Show { number: 1 }, &config).await.unwrap();
    for part in ["authorization: (removed)", "\"model\": \"acme/think-1\"", " ms  401", r#"{"error":"No"}"#] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(told(CaptureCommand::Show { number: 2 }, &config).await.unwrap_err(), "There is no capture 2.");
}

/// A provider whose first request was captured, and an answer for the next one.
async fn captured(api: Api, first: Reply, next: Reply) -> (Stage, Provider, Recorded) {
    let stage = Stage::new();
    let provider = Provider::start([first, next]).await;
    stage.ask(with_key(api, &provider), &provider).await;
    let sent = provider.requests().remove(0);
    (stage, provider, sent)
}

#[tokio::test]
async fn a_request_is_sent_again_as_it_was_and_its_answer_is_told_as_it_comes() {
    let call =
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "ls", "arguments": "{\"path\":\".\"}"}}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}});
    let next = Reply::events([
        chunk(&json!({"reasoning": "Let "}), None),
        chunk(&json!({"reasoning": "me."}), None),
        chunk(&json!({"content": "I look."}), None),
        chunk(&call, Some("tool_calls")),
        format!("data: {usage}\n\ndata: [DONE]\n\n"),
    ]);
    let (stage, provider, sent) = captured(Api::OpenAiCompletions, says("Hi"), next).await;
    let config = config(stage.data.path(), Some((provider.url(), "another-key")));
    let told = replayed("1", Changes::default(), &config).await;
    let again = &provider.requests()[1];
    assert_eq!((&again.url, &again.body), (&sent.url, &sent.body));
    assert_eq!(again.header("authorization"), Some("Bearer another-key"));
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "status: 200",
            "thinking: Let me.",
            "text: I look.",
            r#"call: ls c {"path":"."}"#,
            "usage: 9 in, 4 out (0 reasoning), 0 from the cache, 0 into the cache",
            "finish: tool_calls (toolUse)",
        ]
    );
}

#[tokio::test]
async fn a_request_is_sent_again_with_changes_to_either_api() {
    let named = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let said = |text: &str| {
        Reply::events([
            named(json!({"type": "message_start", "message": {"usage": {"input_tokens": 5}}})),
            named(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
            named(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})),
            named(json!({"type": "content_block_stop", "index": 0})),
            named(
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            ),
            named(json!({"type": "message_stop"})),
        ])
    };
    let replies =
        [(Api::OpenAiCompletions, says("Hi"), says("Hello")), (Api::AnthropicMessages, said("Hi"), said("Hello"))];
    for (api, first, next) in replies {
        let (stage, provider, sent) = captured(api, first, next).await;
        let config = config(stage.data.path(), Some((provider.url(), "another-key")));
        let changes = Changes { max_tokens: Some(77), model: Some("other".to_owned()), ..Changes::default() };
        let told = replayed("1", changes, &config).await;
        assert!(told.contains("status: 200\ntext: Hello\n"), "{told}");
        let again = &provider.requests()[1];
        let mut expected = sent.body.clone();
        expected["model"] = "other".into();
        expected["max_tokens"] = 77.into();
        assert_eq!(again.body, expected);
        let (name, key) = match api {
            Api::AnthropicMessages => ("x-api-key", "another-key"),
            Api::OpenAiCompletions | Api::Lesson => ("authorization", "Bearer another-key"),
        };
        assert_eq!(again.header(name), Some(key));
    }
}

#[tokio::test]
async fn an_exported_capture_is_sent_again_elsewhere_without_the_key_of_where_it_was_made() {
    let (stage, provider, sent) =
        captured(Api::OpenAiCompletions, says(SECRET), Reply::status(401, r#"{"error":{"message":"No key"}}"#)).await;
    let elsewhere = TempDir::new().unwrap();
    let file = elsewhere.path().join("bundle.json");
    let export = |file| CaptureCommand::Export { number: 1, file };
    let here = config(stage.data.path(), None);
    told(export(Some(file.clone())), &here).await.unwrap();
    let bundle = std::fs::read_to_string(&file).unwrap();
    assert!(!bundle.contains("NEVERSHOW"), "{bundle}");
    assert_eq!(told(export(None), &here).await.unwrap(), bundle);
    // A key goes to its own provider only, wherever a bundle says that its request should go.
    let there = config(elsewhere.path(), Some(("https://openrouter.ai/api/v1", "not-for-others")));
    let told = replayed(file.to_str().unwrap(), Changes::default(), &there).await;
    let again = &provider.requests()[1];
    assert_eq!((&again.body, again.header("authorization")), (&sent.body, None));
    let words = "(without a key: none is configured for this address)\n\
                 status: 401\nerror: The provider refused the key (401): No key.\n";
    assert!(told.ends_with(words), "{told}");
    std::fs::write(&file, "{}").unwrap();
    let replay = CaptureCommand::Replay { what: file.display().to_string(), changes: Changes::default() };
    let words = run(replay, &there, &mut Vec::new()).await.unwrap_err().to_string();
    assert!(words.contains("bundle.json cannot be read: it is no capture"), "{words}");
}
