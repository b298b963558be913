//! Answers with nothing in them, from the provider's wire to the record: asked for again once, then a failure with words.

use learnharness::app::native::{Message, StopReason};
use learnharness::server::llm::catalog::{Api, Model, Models};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::transport::Limits;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::dialect::{model, speaker};
use crate::support::provider::{Provider, Reply};

/// An application whose model is behind `provider`, as the data of `change` has it.
async fn app(api: Api, provider: &Provider, change: impl FnOnce(&mut Model)) -> TestApp {
    let mut model = model(api, provider);
    change(&mut model);
    let dialect = speaker(api, Limits { retries: 0, ..Limits::default() });
    TestApp::with_models(Models { model, dialect, options: Options::default() }).await
}

fn openrouter(routing: Value) -> impl FnOnce(&mut Model) {
    move |model| {
        model.provider = "openrouter".to_owned();
        model.compat.open_router_routing = Some(routing);
    }
}

fn chunk(upstream: &str, delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "gen-1", "provider": upstream, "choices": [choice]}))
}

/// The false stop that is known best: a sliver of reasoning, and an end that is billed.
fn false_stop(upstream: &str) -> Reply {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 203}});
    Reply::events([
        chunk(upstream, &json!({"reasoning": "Now the"}), None),
        chunk(upstream, &json!({}), Some("stop")),
        format!("data: {usage}\n\ndata: [DONE]\n\n"),
    ])
}

fn says(upstream: &str, text: &str) -> Reply {
    Reply::events([chunk(upstream, &json!({"content": text}), Some("stop")), "data: [DONE]\n\n".to_owned()])
}

/// A question, a batch of two calls, and their results.
fn worked() -> Vec<Message> {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {}});
    let result = |id: &str| json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": []});
    let messages = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "stopReason": "toolUse", "content": [call("a"), call("b")]},
        result("a"),
        result("b"),
    ]);
    serde_json::from_value(messages).unwrap()
}

#[tokio::test]
async fn a_false_stop_after_tool_results_is_asked_for_again_from_another_upstream() {
    let provider = Provider::start([false_stop("Novita"), says("DeepInfra", "There.")]).await;
    let pinned = json!({"order": ["novita", "deepinfra"], "ignore": ["z-ai"]});
    let app = app(Api::OpenAiCompletions, &provider, openrouter(pinned.clone())).await;
    let chat = app.chat_with(worked()).await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "And?").await;
    reader.settled().await;
    let lines = app.lines(&chat).await;
    assert_eq!(lines[4..], ["user And?", "assistant[Error] ", "marker notice", "assistant[Stop] There."]);
    let requests = provider.requests();
    assert_eq!(requests[0].body["provider"], pinned);
    let elsewhere = json!({"order": ["novita", "deepinfra"], "ignore": ["z-ai", "Novita"]});
    assert_eq!(requests[1].body["provider"], elsewhere);
    assert_eq!(requests[0].body["messages"], requests[1].body["messages"], "the same is asked again");
    let empty = serde_json::to_value(&app.record(&chat).await[5].message).unwrap();
    let details = json!({
        "case": "only-thinking", "upstream": "Novita", "billedTokens": 203, "characters": 7, "finishReason": "stop",
    });
    assert_eq!(
        (&empty["diagnostics"][0]["type"], &empty["diagnostics"][0]["details"]),
        (&json!("empty-answer"), &details)
    );
    let log: Vec<&str> = reader.log.iter().map(String::as_str).filter(|line| !line.contains("update")).collect();
    assert_eq!(
        log[log.iter().position(|line| *line == "4 agent_start").unwrap()..],
        [
            "4 agent_start",
            "4 turn_start",
            "4 message_start user",
            "5 message_end user",
            "5 message_start assistant",
            "6 message_end assistant",
            "6 turn_end assistant",
            "6 turn_start",
            "6 message_start custom",
            "7 message_end custom",
            "7 message_start assistant",
            "8 message_end assistant",
            "8 turn_end assistant",
            "8 agent_end",
            "8 turn-settled",
        ]
    );
}

#[tokio::test]
async fn the_next_request_of_a_lesson_may_go_to_any_upstream_again() {
    let replies = [false_stop("Novita"), says("DeepInfra", "There."), says("Novita", "Yes.")];
    let provider = Provider::start(replies).await;
    let app = app(Api::OpenAiCompletions, &provider, openrouter(json!({}))).await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    for text in ["Hi", "And?"] {
        app.text(&chat, text).await;
        reader.settled().await;
    }
    let ignored: Vec<Value> =
        provider.requests().iter().map(|request| request.body["provider"]["ignore"].clone()).collect();
    assert_eq!(ignored, [Value::Null, json!(["Novita"]), Value::Null]);
}

#[tokio::test]
async fn a_server_without_upstreams_is_asked_the_same_again() {
    let provider = Provider::start([false_stop("Novita"), says("Novita", "There.")]).await;
    let app = app(Api::OpenAiCompletions, &provider, |_| {}).await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "Hi").await;
    reader.settled().await;
    let requests = provider.requests();
    assert_eq!((&requests[0].body, requests.len()), (&requests[1].body, 2));
}

#[tokio::test]
async fn an_empty_turn_of_any_kind_ends_with_its_case_in_words_after_two_requests_at_most() {
    let fault: Value = serde_json::from_str(include_str!("fixtures/faults/31-empty-turn.json")).unwrap();
    let words = [
        "The model ended its turn without an answer.",
        "The model said that it calls a tool, and called none.",
        "The model thought, and ended its turn without an answer.",
        "The model ended its turn without an answer.",
        "The model used up its limit of tokens before it came to an answer.",
        "The model ended its turn without an answer.",
        "The provider's filter withheld the answer (content_filter).",
    ];
    for (variant, words) in fault["stimulus"]["variants"].as_array().unwrap().iter().zip(words) {
        let is_openai = variant["api"] == "openai-chat";
        let api = if is_openai { Api::OpenAiCompletions } else { Api::AnthropicMessages };
        let pieces = variant["chunks"].as_array().unwrap().iter().map(|chunk| chunk["text"].as_str().unwrap());
        let reply = Reply::events(pieces);
        let provider = Provider::start([reply.clone(), reply]).await;
        let app = app(api, &provider, |_| {}).await;
        let chat = app.chat().await;
        let mut reader = app.watch(&chat).await;
        app.text(&chat, "Hi").await;
        reader.settled().await;
        let record = app.record(&chat).await;
        let last = record.last().unwrap().message.as_assistant().unwrap();
        assert_eq!((last.stop_reason, last.error_message.as_deref()), (StopReason::Error, Some(words)), "{variant}");
        let can_ask_again = last.was_empty();
        assert_eq!(provider.requests().len(), if can_ask_again { 2 } else { 1 }, "{words}");
    }
}
