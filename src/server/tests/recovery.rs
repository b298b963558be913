//! What a new process makes of what the one before left: claims, questions, handoffs.

use learnharness::app::native::Message;
use serde_json::{Value, json};

use crate::support::app::TestApp;

fn message(json: Value) -> Message {
    serde_json::from_value(json).unwrap()
}

fn hi() -> Vec<Message> {
    vec![Message::user("hi", 0)]
}

fn probed() -> Vec<Message> {
    vec![
        message(json!({"role": "user", "content": "hi"})),
        message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "d", "name": "probe_done", "arguments": {"assessment": {"goal": "Add."}}}]})),
        message(json!({"role": "toolResult", "toolCallId": "d", "toolName": "probe_done", "content": []})),
    ]
}

#[tokio::test]
async fn a_run_whose_process_died_goes_on_once() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, hi()).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    let mut reader = app.follow(&chat).await;
    let asked = app.model.request().await;
    assert_eq!(asked.texts(), ["user hi"]);
    let mut asked = asked;
    asked.say("Hello.");
    asked.end(learnharness::app::native::StopReason::Stop);
    reader.settled().await;
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Stop] Hello."]);
    assert!(app.store.claims().await.unwrap().is_empty());
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    assert!(app.model.is_idle());
}

#[tokio::test]
async fn an_empty_answer_that_was_being_asked_for_again_is_not_asked_for_a_third_time() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut cut = hi();
    let diagnostic = json!({"type": "empty-answer", "details": {"upstream": "Novita"}});
    cut.push(message(json!({"role": "assistant", "stopReason": "error", "content": [], "diagnostics": [diagnostic]})));
    cut.push(message(json!({"role": "custom", "customType": "notice", "details": {"kind": "empty-answer"}})));
    app.claimed(&chat, cut).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    let asked = app.model.request().await;
    assert_eq!((asked.texts(), &asked.request.options.avoid), (vec!["user hi".to_owned()], &vec!["Novita".to_owned()]));
    asked.end_as_it_is(learnharness::app::native::StopReason::Stop);
    app.follow(&chat).await.settled().await;
    assert_eq!(app.lines(&chat).await.last().unwrap(), "assistant[Error] ");
}

#[tokio::test]
async fn a_run_is_resumed_in_the_middle_of_its_tools() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut cut = hi();
    cut.push(message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "toolCall", "id": "a", "name": "plan_progress", "arguments": {}},
        {"type": "toolCall", "id": "b", "name": "plan_progress", "arguments": {}}]})));
    cut.push(message(json!({"role": "toolResult", "toolCallId": "a", "toolName": "plan_progress", "content": []})));
    app.claimed(&chat, cut).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    let asked = app.model.request().await;
    let last = asked.texts().pop().unwrap();
    assert_eq!(last, "result! plan_progress#b Tool plan_progress not found");
    asked.end(learnharness::app::native::StopReason::Stop);
    app.follow(&chat).await.settled().await;
}

#[tokio::test]
async fn an_orderly_end_costs_no_try() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, hi()).await;
    let mut app = app;
    for _ in 0..3 {
        app = app.restart().await;
        app.runs.recover().await.unwrap();
        drop(app.model.request().await);
    }
    assert_eq!(app.restart().await.store.claims().await.unwrap()[0].tries, 0);
}

#[tokio::test]
async fn a_claim_of_a_chat_that_owes_nothing_is_let_go() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut done = hi();
    done.push(message(
        json!({"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": "Hi."}]}),
    ));
    app.claimed(&chat, done).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    assert!(app.store.claims().await.unwrap().is_empty());
    app.text(&chat, "more").await;
    app.model.reply("Well.").await;
    app.follow(&chat).await.settled().await;
}

#[tokio::test]
async fn a_handoff_that_was_cut_off_is_made_up_for() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, probed()).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    let asked = app.model.request().await;
    assert!(asked.request.system.contains("You are planning."));
    asked.end(learnharness::app::native::StopReason::Stop);
    app.follow(&chat).await.settled().await;
    let lines = app.lines(&chat).await;
    assert_eq!(lines.iter().filter(|line| *line == "marker probe-handoff").count(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_question_waits_through_a_restart() {
    let app = TestApp::new().await;
    let mut asked = hi();
    asked.push(message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "toolCall", "id": "q", "name": "quiz", "arguments": crate::record::quiz()}]})));
    let chat = app.chat_with(asked).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    let view = app.get(&format!("/api/chats/{chat}")).await.json();
    assert_eq!(view["pending"][0]["toolCallId"], "q");
    let sent = app.input(&chat, json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["4"]}})).await;
    assert_eq!(sent.status, 202);
    app.model.reply("Right.").await;
    app.follow(&chat).await.settled().await;
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_leaves_its_runs_to_the_next_one_and_ends_its_streams() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    let mut reader = app.stream(&format!("/api/chats/{chat}/stream?after=0")).await;
    let mut asked = app.model.request().await;
    asked.say("Hel");
    reader.says("Hel").await;
    app.runs.shut_down().await;
    let rest = reader.rest().await;
    assert!(rest.is_empty(), "a stream that was cut off must not say that it is done: {rest:?}");
    assert_eq!(app.store.claims().await.unwrap().len(), 1);
    drop(asked);
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    app.model.reply("Hello.").await;
    app.follow(&chat).await.settled().await;
}
