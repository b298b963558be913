//! Chats that are deleted: gone for everybody, brought back for a while, and removed for good after that.

use learnharness::app::native::{AgentEvent, ErrorKind, Message, StopReason};
use learnharness::server::clock::now_ms;
use serde_json::{Value, json};

use crate::record::quiz;
use crate::support::app::TestApp;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

async fn post(app: &TestApp, verb: &str, chat: &str) -> u16 {
    app.post(&format!("/api/chats/{verb}"), &json!({"chatId": chat})).await.status.as_u16()
}

/// The ids of the chats in the list.
async fn listed(app: &TestApp) -> Vec<String> {
    let list = app.get("/api/chats").await.json();
    list.as_array().unwrap().iter().map(|chat| chat["id"].as_str().unwrap().to_owned()).collect()
}

fn says_gone(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Error(body) if body.error.kind == ErrorKind::Gone)
}

#[tokio::test]
async fn a_deleted_chat_is_gone_for_everybody_until_it_is_restored() {
    let app = TestApp::new().await;
    let chat = app.chat_with(vec![Message::user("hi", 0)]).await;
    let other = app.chat_with(vec![Message::user("ho", 0)]).await;
    let before = app.get(&format!("/api/chats/{chat}")).await.json();
    let mut reader = app.watch(&chat).await;
    assert_eq!((post(&app, "delete", &chat).await, post(&app, "delete", &chat).await), (200, 200), "twice is once");
    let rest = reader.rest().await;
    assert_eq!(rest.len(), 1, "the stream ends: {rest:?}");
    assert!(rest[0].event.as_ref().is_some_and(says_gone));

    assert_eq!(listed(&app).await, [other]);
    let late = app.input(&chat, json!({"type": "text", "text": "more"})).await;
    let looks =
        [app.get(&format!("/api/chats/{chat}")).await, app.get(&format!("/api/chats/{chat}/stream")).await, late];
    for reply in &looks {
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (404, "gone"));
    }
    assert_eq!(app.get(&format!("/chat/{chat}")).await.status, 404);
    assert_eq!(app.stop(&chat).await, 404);

    assert_eq!((post(&app, "restore", &chat).await, post(&app, "restore", &chat).await), (200, 200));
    assert_eq!(listed(&app).await.len(), 2);
    assert_eq!(app.get(&format!("/api/chats/{chat}")).await.json(), before);
    app.text(&chat, "more").await;
    app.model.reply("Yes.").await;
    for verb in ["delete", "restore"] {
        let nowhere = app.post(&format!("/api/chats/{verb}"), &json!({"chatId": "nowhere"})).await;
        assert_eq!((nowhere.status.as_u16(), nowhere.kind().as_str()), (404, "not-found"));
    }
}

#[tokio::test]
async fn a_chat_is_deleted_by_pages_of_ours_only() {
    let app = TestApp::new().await;
    let chat = app.chat_with(vec![Message::user("hi", 0)]).await;
    let foreign = app.request("POST", "/api/chats/delete").header("origin", "http://evil.example");
    let body = json!({"chatId": chat}).to_string();
    let reply = app.send(foreign.header("content-type", "application/json").body(body.into()).unwrap()).await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (403, "forbidden"));
    assert_eq!(listed(&app).await, [chat]);
}

#[tokio::test]
async fn what_runs_in_a_chat_is_stopped_before_it_is_deleted() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    asked.say("Half a sen");
    reader.says("Half a sen").await;
    assert_eq!(post(&app, "delete", &chat).await, 200);
    assert!(asked.cancel.is_cancelled());
    let told = reader.rest().await;
    assert!(told.last().and_then(|sent| sent.event.as_ref()).is_some_and(says_gone), "{told:?}");
    assert_eq!(reader.live.record.len(), 2, "the end of the run came before");
    assert!(app.store.claims().await.unwrap().is_empty());
    assert_eq!(post(&app, "restore", &chat).await, 200);
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Aborted] Half a sen"]);
    app.text(&chat, "go on").await;
    app.model.request().await.end(StopReason::Stop);
}

#[tokio::test]
async fn a_question_that_waited_waits_again_after_a_restore() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    app.model.call(&[("q", "quiz", quiz())]).await;
    reader.settled().await;
    post(&app, "delete", &chat).await;
    post(&app, "restore", &chat).await;
    let answered = app.input(&chat, json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["4"]}})).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    app.model.request().await.end(StopReason::Stop);
}

#[tokio::test]
async fn an_input_that_comes_while_a_chat_is_deleted_is_taken_before_or_refused() {
    let app = TestApp::new().await;
    for _ in 0..20 {
        let chat = app.chat_with(vec![Message::user("hi", 0)]).await;
        let sent = app.input(&chat, json!({"type": "text", "text": "more"}));
        let (sent, deleted) = tokio::join!(sent, post(&app, "delete", &chat));
        assert_eq!(deleted, 200);
        assert!(sent.status == 202 || sent.kind() == "gone", "{}", sent.text);
        assert_eq!(app.get(&format!("/api/chats/{chat}")).await.kind(), "gone");
        assert!(app.store.claims().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn after_a_week_a_deleted_chat_is_removed_for_good() {
    let app = TestApp::new().await;
    let kept = app.chat_with(vec![Message::user("stay", 0)]).await;
    let chat = app.chat_with(vec![Message::user("go", 0)]).await;
    post(&app, "delete", &chat).await;
    let now = now_ms();
    assert_eq!(app.runs.purge(now + 6 * DAY_MS).await.unwrap(), 0);
    assert_eq!(app.get(&format!("/api/chats/{chat}")).await.kind(), "gone");
    // Deleting it once more does not begin the week anew.
    post(&app, "delete", &chat).await;
    assert_eq!(app.runs.purge(now + 8 * DAY_MS).await.unwrap(), 1);
    assert_eq!(app.get(&format!("/api/chats/{chat}")).await.kind(), "not-found");
    assert_eq!(post(&app, "restore", &chat).await, 404);
    assert!(!app.dump().await.contains(&chat));
    assert_eq!(listed(&app).await, [kept]);
}

#[tokio::test]
async fn a_deletion_outlives_the_process() {
    let app = TestApp::new().await;
    let chat = app.chat_with(vec![Message::user("hi", 0)]).await;
    post(&app, "delete", &chat).await;
    let app = app.restart().await;
    app.runs.recover().await.unwrap();
    assert_eq!(app.get("/api/chats").await.json(), Value::Array(Vec::new()));
    assert_eq!(post(&app, "restore", &chat).await, 200);
    assert_eq!(listed(&app).await, [chat]);
}
