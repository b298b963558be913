//! Models as data, at the wire: what a model of the catalogue is asked and costs, OpenRouter's list, and local servers.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use learnharness::app::native::AssistantMessage;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::{Api, Key, Model};
use learnharness::server::llm::get::Bounds;
use learnharness::server::llm::known::Catalog;
use learnharness::server::llm::local::{self, AUTO, Server, learn};
use learnharness::server::llm::thinking::ThinkingLevel;
use learnharness::server::llm::update::{self, Refreshed, Source, Update};
use learnharness::server::{llm, models};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::dialect::{ask, finished, play};
use crate::support::provider::{End, Gate, Provider, Recorded, Reply};
use crate::support::soon;

const FLASH: &str = "openrouter/z-ai/glm-5.3-flash";
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A short answer that counts its tokens so.
fn answer(usage: &Value) -> Reply {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage});
    Reply::events([format!("data: {chunk}\n\ndata: [DONE]\n\n")])
}

/// Asks the model that the catalogue has under `name`, at the provider of the test.
async fn asked(name: &str, thinking: Option<ThinkingLevel>, reply: Reply) -> (Recorded, AssistantMessage) {
    let provider = Provider::start([reply]).await;
    let known = Catalog::built_in().find(name, None, |_| true).unwrap().clone();
    let model = Model { base_url: provider.url().to_owned(), key: Some(Key("sk-test".to_owned())), ..known };
    let models = llm::models(model, thinking, Path::new("none"), Duration::ZERO, None).unwrap();
    let request = Request { model: models.model, options: models.options, ..ask(&provider) };
    let message = finished(&play(&*models.dialect, request, &provider, None).await);
    (provider.requests().remove(0), message)
}

#[tokio::test]
async fn a_model_of_the_catalogue_is_asked_with_its_key_and_costs_its_price() {
    let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000});
    let (request, message) = asked(FLASH, None, answer(&usage)).await;
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(
        (&request.body["model"], &request.body["reasoning"]),
        (&json!("z-ai/glm-5.3-flash"), &json!({"effort": "low"}))
    );
    assert_eq!((message.provider.as_str(), message.usage.cost.total), ("openrouter", 0.325));
}

#[tokio::test]
async fn a_tier_holds_for_the_whole_of_a_long_request() {
    let cost = async |tokens: u64| {
        let usage = json!({"prompt_tokens": tokens, "completion_tokens": 0});
        let total = asked("openai/gpt-5.6-terra", None, answer(&usage)).await.1.usage.cost.total;
        (total * 1e6).round()
    };
    assert_eq!(cost(272_000).await, 544_000.0);
    assert_eq!(cost(272_001).await, 1_088_004.0);
}

#[tokio::test]
async fn a_level_is_asked_for_in_the_words_of_the_model_that_has_it() {
    let check = async |name: &str, level: ThinkingLevel, fields: Value| {
        let (request, _) = asked(name, Some(level), answer(&Value::Null)).await;
        for field in ["reasoning", "reasoning_effort", "thinking"] {
            assert_eq!(request.body.get(field), fields.get(field), "{field} of {name} at {}", level.name());
        }
    };
    use ThinkingLevel::{High, Low, Max, Medium, Off, Xhigh};
    check(FLASH, Off, json!({"reasoning": {"effort": "low"}})).await;
    check(FLASH, Medium, json!({"reasoning": {"effort": "high"}})).await;
    check(FLASH, Xhigh, json!({"reasoning": {"effort": "max"}})).await;
    check("openrouter/deepseek/deepseek-v3.2", Off, json!({"reasoning": {"effort": "none"}})).await;
    check("openai/gpt-5-mini", Low, json!({"reasoning_effort": "low"})).await;
    check("openai/gpt-5.4", High, json!({"reasoning_effort": "none"})).await;
    check("openai/gpt-4.1", High, json!({})).await;
    let switched = |word: &str| json!({"thinking": {"type": "enabled"}, "reasoning_effort": word});
    check("deepseek/deepseek-v4-pro", Low, switched("high")).await;
    check("deepseek/deepseek-v4-pro", Max, switched("max")).await;
    let zai = json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "max"});
    check("zai/glm-5.3", Max, zai).await;
}

#[tokio::test]
async fn a_model_that_decides_itself_how_much_it_thinks_is_told_the_effort() {
    let said = [
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 5}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let reply = Reply::events(said.iter().map(|data| format!("data: {data}\n\n")));
    let (request, _) = asked("anthropic/claude-sonnet-5", Some(ThinkingLevel::Max), reply).await;
    assert_eq!(request.header("x-api-key"), Some("sk-test"));
    assert_eq!(
        (&request.body["output_config"], &request.body["max_tokens"]),
        (&json!({"effort": "max"}), &json!(30_720))
    );
}

#[tokio::test]
async fn the_providers_own_cost_is_kept_when_it_is_another_than_ours() {
    // By our prices this is 0.325 USD.
    let noted = async |more: Value| {
        let mut usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000});
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (_, message) = asked(FLASH, None, answer(&usage)).await;
        assert_eq!(message.usage.cost.total, 0.325, "our own count stays");
        message.extra.get("diagnostics").cloned().unwrap_or_default()
    };
    assert_eq!(noted(json!({})).await, Value::Null);
    assert_eq!(noted(json!({"cost": 0.325})).await, Value::Null);
    assert_eq!(noted(json!({"cost": 0.3235})).await, Value::Null, "less than 1 % off");
    let diagnostic = noted(json!({"cost": 0.5})).await;
    assert_eq!(
        (&diagnostic[0]["type"], &diagnostic[0]["details"]),
        (&json!("provider-cost"), &json!({"reported": 0.5, "computed": 0.325}))
    );
    assert_eq!(noted(json!({"cost": 0})).await[0]["details"]["reported"], 0.0);
    let own_key =
        |is_byok| json!({"cost": 0.025, "is_byok": is_byok, "cost_details": {"upstream_inference_cost": 0.3}});
    assert_eq!(noted(own_key(true)).await, Value::Null, "the fee and what the upstream takes");
    assert_eq!(noted(own_key(false)).await[0]["details"]["reported"], 0.025);
}

#[tokio::test]
async fn usage_with_every_chunk_counts_the_last_cost() {
    let chunk = |finish: Value, cost: f64| {
        let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 0, "cost": cost});
        let choice = json!({"index": 0, "delta": {"content": "a"}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice], "usage": usage}))
    };
    let reply = Reply::events([chunk(Value::Null, 9.0), chunk(json!("stop"), 0.075), "data: [DONE]\n\n".to_owned()]);
    assert_eq!(asked(FLASH, None, reply).await.1.extra.get("diagnostics"), None);
}

/// OpenRouter's list, as far as it is read.
fn list() -> Value {
    json!({"data": [
        {
            "id": "z-ai/glm-5.3-flash", "name": "Z.ai: GLM 5.3 Flash", "context_length": 524_288,
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
            "pricing": {"prompt": "0.0000001", "completion": "0.0000005", "input_cache_read": "0.00000002",
                        "overrides": [{"min_prompt_tokens": 200_000, "prompt": "0.0000002"}]},
            "top_provider": {"context_length": 524_288, "max_completion_tokens": 65_536},
            "supported_parameters": ["tools"],
        },
        {
            "id": "acme/think-2", "name": "Acme: Think 2", "context_length": 1_000_000,
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "supported_parameters": ["tools", "reasoning"], "reasoning": {"mandatory": true, "supported_efforts": ["high"]},
        },
        {"id": "acme/think-2:batch", "pricing": {"prompt": "0", "completion": "0"}},
    ]})
}

fn source(provider: &Provider, data: &TempDir) -> Source {
    Source {
        base_url: provider.url().to_owned(),
        key: Key("sk-test".to_owned()),
        data: data.path().to_owned(),
        bounds: Bounds { time: Duration::from_secs(20), size: 100_000 },
    }
}

#[tokio::test]
async fn openrouters_list_wins_for_prices_and_sizes_and_brings_new_models() {
    let (provider, data) = (Provider::start([Reply::status(200, &list().to_string())]).await, TempDir::new().unwrap());
    assert_eq!(source(&provider, &data).refresh(0).await, Ok(Refreshed::Taken(2)));
    let request = provider.requests().remove(0);
    assert_eq!((request.url.as_str(), request.header("authorization")), ("/models", Some("Bearer sk-test")));

    let (catalog, built_in) = (Catalog::load(data.path()), Catalog::built_in());
    assert_eq!(catalog.models.len(), built_in.models.len() + 1);
    let find = |catalog: &Catalog, name| catalog.find(name, None, |_| true).cloned().unwrap();
    let (flash, before) = (find(&catalog, FLASH), find(built_in, FLASH));
    assert_eq!((flash.context_window, flash.max_tokens), (524_288, 65_536));
    assert_eq!((flash.prices.rates.input, flash.prices.tiers[0].rates.input), (0.1, 0.2));
    assert_eq!((flash.prices.tiers[0].input_tokens_above, flash.prices.tiers[0].rates.output), (199_999, 0.5));
    assert_eq!(
        (&flash.levels, &flash.input, &flash.compat, &flash.name),
        (&before.levels, &before.input, &before.compat, &before.name)
    );
    let new = find(&catalog, "acme/think-2");
    assert_eq!((new.provider.as_str(), new.api, new.needs_key), ("openrouter", Api::OpenAiCompletions, true));
    assert_eq!(
        (new.base_url.as_str(), new.key_variable.as_str()),
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")
    );
    assert_eq!((new.clamp(ThinkingLevel::Low), new.prices.rates.output), (ThinkingLevel::High, 2.0));
    assert_eq!(
        find(&catalog, "claude-sonnet-5"),
        find(built_in, "claude-sonnet-5"),
        "other providers stay as they are"
    );
}

#[tokio::test]
async fn the_list_is_asked_for_once_a_day() {
    let (provider, data) = (Provider::start([]).await, TempDir::new().unwrap());
    let source = source(&provider, &data);
    for _ in 0..3 {
        provider.push(Reply::status(200, &list().to_string()));
    }
    for (now, expected) in [
        (DAY, Refreshed::Taken(2)),
        (DAY, Refreshed::NewEnough),
        (2 * DAY - 1, Refreshed::NewEnough),
        (2 * DAY, Refreshed::Taken(2)),
        // A clock that was put back does not keep an old list for ever.
        (2 * DAY - 1, Refreshed::Taken(2)),
    ] {
        assert_eq!(source.refresh(now).await, Ok(expected), "{now}");
    }
    assert_eq!(provider.requests().len(), 3);
}

#[tokio::test]
async fn a_list_that_cannot_be_had_leaves_the_one_before() {
    let (provider, data) = (Provider::start([Reply::status(200, &list().to_string())]).await, TempDir::new().unwrap());
    let source = source(&provider, &data);
    source.refresh(0).await.unwrap();
    let before = Update::load(data.path()).unwrap();
    let long = format!("{{\"data\": [\"{}\"]}}", "x".repeat(100_000));
    for (reply, words) in [
        (Reply::status(401, "{}"), "it answered 401"),
        (Reply::status(302, "").header("location", "/elsewhere"), "it answered 302"),
        (Reply::status(200, "<html>"), "its answer is not JSON"),
        (Reply::status(200, "{\"data\": []}"), "its list has no model that can teach"),
        (Reply::status(200, &long), "its answer is longer than 100000 bytes"),
        (Reply::status(200, "").end(End::Refuse), "it closed the connection"),
    ] {
        provider.push(reply);
        assert_eq!(source.refresh(DAY).await, Err(words.to_owned()));
        assert_eq!(Update::load(data.path()).unwrap(), before, "{words}");
    }
    provider.push(Reply::status(200, "{").end(End::Hang));
    let hasty = Bounds { time: Duration::from_millis(50), ..source.bounds };
    let silent = Source { bounds: hasty, ..source }.refresh(DAY).await;
    assert_eq!(silent, Err("it did not answer within 0.05 s".to_owned()));
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1, "nothing unfinished is left");
}

#[tokio::test]
async fn nobody_waits_for_the_list_and_it_ends_with_its_owner() {
    let gate = Gate::default();
    let (provider, data) = (Provider::start([Reply::status(200, "{}").before(&gate)]).await, TempDir::new().unwrap());
    let tasks = update::begin(Some(source(&provider, &data)));
    soon("the request", provider.asked(1)).await;
    drop(tasks);
    soon("the end of its connection", provider.closed(1)).await;
    assert!(update::begin(None).is_empty(), "without a key nobody is asked");
}

/// What a server with these replies has: a line a model.
async fn found(replies: &[(&str, Value)]) -> Vec<String> {
    let provider = Provider::start(replies.iter().map(|(_, reply)| match reply {
        Value::Null => Reply::status(404, "{}"),
        reply => Reply::status(200, &reply.to_string()),
    }))
    .await;
    let server = Server { base_url: format!("{}/v1", provider.url()), key: None };
    let models = server.models().await.unwrap();
    let urls: Vec<String> = provider.requests().into_iter().map(|request| request.url).collect();
    assert_eq!(urls, replies.iter().map(|(url, _)| *url).collect::<Vec<_>>());
    let line = |model: &Model| {
        let sees = if model.sees_images() { " sees" } else { "" };
        format!("{} {}{sees}: {}", model.full_name(), model.context_window, model.note)
    };
    models.iter().map(line).collect()
}

fn models_of(rows: &Value) -> (&'static str, Value) {
    ("/v1/models", json!({"object": "list", "data": rows}))
}

#[tokio::test]
async fn ollama_says_what_it_reads_of_a_model_once_that_is_loaded() {
    let ids = ["small", "roomy", "baked", "idle", "embed"];
    let rows = ids.map(|id| json!({"id": id, "object": "model", "owned_by": "library"}));
    let running = json!({"models": [
        {"name": "small", "model": "small", "context_length": 4096},
        {"name": "roomy", "model": "roomy", "context_length": 65_536},
    ]});
    let shown = |capabilities: Value, parameters: &str| {
        ("/api/show", json!({"capabilities": capabilities, "parameters": parameters}))
    };
    let lines = found(&[
        models_of(&json!(rows)),
        ("/api/ps", running),
        shown(json!(["completion", "tools"]), "stop    \"x\""),
        shown(json!(["completion", "vision", "tools"]), ""),
        shown(json!(["completion"]), "temperature 0.7\nnum_ctx                        8192"),
        ("/api/show", Value::Null),
        shown(json!(["embedding"]), ""),
    ])
    .await;
    let advice = "start it with OLLAMA_CONTEXT_LENGTH=32768 ollama serve";
    assert_eq!(
        lines,
        [
            format!("ollama/small 4096: this server reads 4,096 tokens only; {advice}"),
            "ollama/roomy 65536 sees: ".to_owned(),
            "ollama/baked 8192: this server reads 8,192 tokens only; the model's own num_ctx says so, make one with \
             PARAMETER num_ctx 32768; it cannot call tools, which a lesson needs"
                .to_owned(),
            format!("ollama/idle 0: not loaded yet, and this server may then read 4,096 tokens only; {advice}"),
        ]
    );
}

#[tokio::test]
async fn llama_cpp_says_what_it_reads_in_its_properties() {
    let rows = json!([{"id": "gemma", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}]);
    let props = json!({"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": true}});
    let lines = found(&[models_of(&rows), ("/props", props)]).await;
    let words = "this server reads 4,096 tokens only; start it with llama-server -c 32768";
    assert_eq!(lines, [format!("llama.cpp/gemma 4096 sees: {words}")]);
}

#[tokio::test]
async fn lm_studio_says_what_it_reads_of_a_model_that_is_loaded() {
    let rows = json!(["qwen", "vision", "idle", "embed"].map(|id| json!({"id": id, "owned_by": "organization_owner"})));
    let own = json!({"data": [
        {"id": "qwen", "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 4096},
        {"id": "vision", "type": "vlm", "state": "loaded", "loaded_context_length": 32_768},
        {"id": "idle", "type": "llm", "state": "not-loaded", "max_context_length": 131_072},
        {"id": "embed", "type": "embeddings", "state": "not-loaded"},
    ]});
    let unexpected = json!({"error": "Unexpected endpoint or method."});
    let lines = found(&[models_of(&rows), ("/api/ps", unexpected), ("/api/v0/models", own)]).await;
    assert_eq!(
        lines,
        [
            "lm-studio/qwen 4096: this server reads 4,096 tokens only; load the model with lms load qwen --context-length 32768",
            "lm-studio/vision 32768 sees: ",
            "lm-studio/idle 0: not loaded yet, and this server may then read 4,096 tokens only; load the model with lms load \
             idle --context-length 32768",
        ]
    );
}

#[tokio::test]
async fn vllm_says_what_it_reads_in_its_list() {
    let rows = json!([{"id": "a", "owned_by": "vllm", "max_model_len": 8192}, {"id": "b", "max_model_len": 40_960}]);
    let words = "this server reads 8,192 tokens only; start it with --max-model-len 32768";
    assert_eq!(found(&[models_of(&rows)]).await, [format!("vllm/a 8192: {words}"), "vllm/b 40960: ".to_owned()]);
}

#[tokio::test]
async fn nothing_is_said_of_a_server_that_nobody_knows() {
    let none = |url| (url, Value::Null);
    let rows = json!([{"id": "m"}, {"object": "no model"}]);
    let lines = found(&[models_of(&rows), none("/api/ps"), none("/api/v0/models"), none("/props")]).await;
    assert_eq!(lines, ["custom/m 0: "]);
}

#[tokio::test]
async fn auto_is_the_first_model_of_its_server() {
    let rows = json!([{"id": "a", "max_model_len": 8192}, {"id": "b", "max_model_len": 40_960}]);
    let provider = Provider::start([Reply::status(200, &json!({"data": rows}).to_string())]).await;
    let auto =
        |base_url: &str| Model { key: Some(Key("k".to_owned())), ..Model::at(Api::OpenAiCompletions, base_url, AUTO) };
    let model = local::settle(auto(provider.url())).await.unwrap();
    assert_eq!((model.id.as_str(), model.context_window, model.base_url.as_str()), ("a", 8192, provider.url()));
    assert_eq!(provider.requests()[0].header("authorization"), Some("Bearer k"));
    for (reply, words) in [
        (Reply::status(500, ""), "has no models: it answered 500"),
        (Reply::status(200, "{}"), "has no models: its answer is not a list of models"),
    ] {
        provider.push(reply);
        let error = local::settle(auto(provider.url())).await.unwrap_err();
        assert_eq!(error, format!("{} {words}", provider.url()));
    }
    for _ in 0..4 {
        provider.push(Reply::status(200, "{\"data\": []}"));
    }
    let error = local::settle(auto(provider.url())).await.unwrap_err();
    assert_eq!(error, format!("{} has no model that can chat", provider.url()));
}

#[tokio::test]
async fn a_model_by_hand_learns_what_its_server_reads_and_stays_itself() {
    let rows = json!([{"id": "other"}, {"id": "qwen3:latest"}]);
    let provider = Provider::start([
        Reply::status(200, &json!({"data": rows}).to_string()),
        Reply::status(200, &json!({"models": [{"name": "qwen3:latest", "context_length": 4096}]}).to_string()),
        Reply::status(404, ""),
    ])
    .await;
    let server = Server { base_url: format!("{}/v1", provider.url()), key: None };
    let by_hand = Model::at(Api::AnthropicMessages, &server.base_url, "qwen3");
    let model = learn(&server, by_hand.clone()).await;
    assert_eq!((model.context_window, model.note.is_empty()), (4096, false));
    assert_eq!((&model.id, model.api, &model.provider), (&by_hand.id, by_hand.api, &by_hand.provider));
    provider.push(Reply::status(200, "").end(End::Refuse));
    assert_eq!(learn(&server, by_hand.clone()).await, by_hand, "a server that is not there changes nothing");
    let elsewhere = Model::at(Api::OpenAiCompletions, provider.url(), "qwen3");
    let asked = provider.requests().len();
    assert_eq!(local::settle(elsewhere.clone()).await.unwrap(), elsewhere);
    assert_eq!(provider.requests().len(), asked, "a server that is nobody's usual place is not asked");
}

#[tokio::test]
async fn the_servers_of_this_machine_are_listed_as_they_are_chosen() {
    let rows = json!([{"id": "a", "max_model_len": 8192}, {"id": "b", "max_model_len": 40_960}]);
    let provider = Provider::start([Reply::status(200, &json!({"data": rows}).to_string())]).await;
    let server = |base_url: &str| Server { base_url: base_url.to_owned(), key: None };
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = format!("http://{closed}/v1");
    let text = models::on_servers(&[server(&gone), server(provider.url())]).await;
    let expected = format!(
        "LEARNHARNESS_BASE_URL={}
  LEARNHARNESS_MODEL=a (vllm): this server reads 8,192 tokens only; start it with --max-model-len 32768
  LEARNHARNESS_MODEL=b (vllm): reads 40,960 tokens
",
        provider.url()
    );
    assert_eq!(text, expected);
    assert_eq!(models::on_servers(&[server(&gone)]).await, format!("No server answers at {gone}.\n"));
}

/// Runs the program itself in an empty environment.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (Output, String, String) {
    let data = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_learnharness"));
    command.args(arguments).env_clear().env("LEARNHARNESS_DATA", data.path()).envs(environment.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

#[test]
fn the_program_lists_models_even_when_the_chosen_one_is_not_known() {
    let (output, out, err) = run(&["models"], &[("LEARNHARNESS_MODEL", "nobody"), ("ZAI_API_KEY", "k")]);
    assert!(output.status.success(), "{err}");
    let line = |name: &str| out.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
    assert!(line(FLASH).ends_with("no, set OPENROUTER_API_KEY"), "{out}");
    assert!(line("zai/glm-5.3").ends_with("yes"), "{out}");
}

#[test]
fn the_program_says_in_one_line_what_it_cannot_do() {
    let (output, _, err) = run(&[], &[("LEARNHARNESS_MODEL", "glm-5.3-flsh")]);
    assert!(!output.status.success());
    let near = "LEARNHARNESS_MODEL: \"glm-5.3-flsh\" is not known; the nearest are openrouter/z-ai/glm-5.3-flash, zai/glm-5.3-flash";
    assert!(err.starts_with(&format!("learnharness: {near}")) && err.lines().count() == 1, "{err}");
    let (output, _, err) = run(&["modles"], &[]);
    assert!(!output.status.success() && err.contains("unrecognized subcommand 'modles'"), "{err}");
    let (output, _, err) = run(&["models", "--far"], &[]);
    assert!(!output.status.success() && err.contains("unexpected argument '--far'"), "{err}");
    let (output, out, _) = run(&["--help"], &[]);
    assert!(output.status.success() && out.contains("models") && out.contains("capture"), "{out}");
}
