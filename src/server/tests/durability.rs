//! What the record survives: a full disk, damaged rows, a log that is torn or gone, many writers.

use std::path::Path;
use std::sync::Arc;

use learnharness::app::native::{AgentEvent, ErrorKind, Message, Seq, StopReason};
use learnharness::server::llm::catalog::Models;
use learnharness::server::store::Store;
use serde_json::json;
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::disk::Disk;
use crate::support::model::{Hand, driven};

/// A process whose data is on a small disk.
async fn on_a_small_disk(disk: &Disk) -> (TestApp, Hand) {
    let (hand, models): (Hand, Models) = driven();
    (TestApp::process(Arc::new(TempDir::new_in(disk.path()).unwrap()), models).await, hand)
}

#[tokio::test]
async fn an_input_that_does_not_fit_on_the_disk_changes_nothing() {
    let Some(disk) = Disk::of("1m") else { return };
    let (app, hand) = on_a_small_disk(&disk).await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    hand.reply("Hello.").await;
    app.follow(&chat).await.settled().await;
    let before = app.dump().await;
    disk.fill();
    let refused = app.input(&chat, json!({"type": "text", "text": "more ".repeat(2000)})).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (507, "storage".to_owned()));
    assert_eq!(app.dump().await, before);
    assert!(hand.is_idle());
    assert_eq!(app.get(&format!("/api/chats/{chat}")).await.json()["messages"].as_array().unwrap().len(), 2);
    disk.free();
    app.text(&chat, "more").await;
    hand.reply("Well.").await;
    app.follow(&chat).await.settled().await;
    assert_eq!(app.lines(&chat).await.last().unwrap(), "assistant[Stop] Well.");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_on_the_disk_fails_and_is_not_shown_as_saved() {
    let Some(disk) = Disk::of("1m") else { return };
    let (app, hand) = on_a_small_disk(&disk).await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = hand.request().await;
    asked.say(&"Half is one of two. ".repeat(2500));
    disk.fill();
    asked.end(StopReason::Stop);
    let mut saved = 0;
    let mut errors = 0;
    reader
        .until("the end", |event, _| {
            saved += usize::from(matches!(event, AgentEvent::MessageEnd { message: Message::Assistant(_) }));
            errors += usize::from(matches!(event, AgentEvent::Error(body) if body.error.kind == ErrorKind::Storage));
            matches!(event, AgentEvent::TurnSettled)
        })
        .await;
    assert_eq!((saved, errors), (0, 1));
    assert_eq!(app.lines(&chat).await, ["user hi"]);
    disk.free();
    let retried = app.input(&chat, json!({"type": "retry"})).await;
    assert_eq!(retried.status, 202, "{}", retried.text);
    hand.reply("Half.").await;
    reader.settled().await;
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Stop] Half."]);
}

#[tokio::test]
async fn a_damaged_message_hides_no_other_chat_and_its_bytes_stay() {
    for damage in [
        "CAST(x'7b22726f6c65223a2275736572222c22636f6e74656e74223a2268e6b0' AS TEXT)",
        "''",
        "CAST(zeroblob(300) AS TEXT)",
    ] {
        let app = TestApp::new().await;
        let (damaged, other) =
            (app.chat_with(vec![Message::user("one", 0)]).await, app.chat_with(vec![Message::user("two", 0)]).await);
        app.claimed(&damaged, Vec::new()).await;
        let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", app.file().display())).await.unwrap();
        let update = format!("UPDATE messages SET body = {damage} WHERE chat = '{damaged}'");
        sqlx::query(&update).execute(&pool).await.unwrap();
        let bytes = "SELECT hex(body) FROM messages ORDER BY chat";
        let before: Vec<String> = sqlx::query_scalar(bytes).fetch_all(&pool).await.unwrap();
        let app = app.crash().await;
        app.runs.recover().await.unwrap();
        let listed = app.get("/api/chats").await.json();
        let titles: Vec<&str> = listed.as_array().unwrap().iter().map(|chat| chat["title"].as_str().unwrap()).collect();
        assert!(titles.contains(&"two") && titles.contains(&"Unreadable lesson"), "{titles:?}");
        let refused = app.get(&format!("/api/chats/{damaged}")).await;
        assert!(refused.text.contains("Message 1 of this lesson is damaged"), "{}", refused.text);
        assert_eq!(app.input(&damaged, json!({"type": "text", "text": "more"})).await.kind(), "internal");
        app.text(&other, "more").await;
        app.model.reply("Well.").await;
        app.follow(&other).await.settled().await;
        let after: Vec<String> = sqlx::query_scalar(bytes).fetch_all(&pool).await.unwrap();
        assert!(before.iter().all(|bytes| after.contains(bytes)));
        pool.close().await;
    }
}

#[tokio::test]
async fn whole_messages_load_from_a_log_that_is_torn_or_gone_and_later_ones_stay() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("learnharness.db");
    let store = Store::open(&file).await.unwrap();
    store.create_chat("chat", 0).await.unwrap();
    store.claim("chat", "run", Vec::new(), 0).await.unwrap();
    let written: Vec<Message> = (0..20).map(|nth| Message::user(format!("{nth} {}", "æ".repeat(500)), 0)).collect();
    for message in &written {
        store.append("chat", "run", message, 0).await.unwrap();
    }
    let log = std::fs::read(dir.path().join("learnharness.db-wal")).unwrap();
    let mut loaded = Vec::new();
    for tenth in 0..=10 {
        let copy = TempDir::new().unwrap();
        let copied = copy.path().join("learnharness.db");
        std::fs::copy(&file, &copied).unwrap();
        let torn = log.len() * tenth / 10;
        std::fs::write(copy.path().join("learnharness.db-wal"), &log[..torn]).unwrap();
        loaded.push(reopened(&copied, &written).await);
        std::fs::write(copy.path().join("learnharness.db-wal"), [&log[..torn], &[0; 300]].concat()).unwrap();
    }
    assert!(loaded.is_sorted() && loaded.last() == Some(&written.len()), "{loaded:?}");
    let copy = TempDir::new().unwrap();
    std::fs::copy(&file, copy.path().join("learnharness.db")).unwrap();
    reopened(&copy.path().join("learnharness.db"), &written).await;
    store.close().await;
}

/// How many of `written` are there: the first ones, and with them whatever is appended now.
async fn reopened(file: &Path, written: &[Message]) -> usize {
    let store = Store::open(file).await.unwrap();
    let record = store.messages("chat", Seq::START).await.unwrap_or_default();
    assert!(record.iter().zip(written).all(|(stored, message)| stored.message == *message));
    let _ = store.create_chat("chat", 0).await;
    store.release("chat", "run").await.unwrap();
    store.claim("chat", "next", vec![Message::user("later", 0)], 0).await.unwrap();
    store.close().await;
    let store = Store::open(file).await.unwrap();
    let again = store.messages("chat", Seq::START).await.unwrap();
    assert_eq!((again.len(), &again.last().unwrap().message), (record.len() + 1, &Message::user("later", 0)));
    store.close().await;
    record.len()
}

#[tokio::test]
async fn many_writers_of_one_chat_leave_whole_messages_without_a_gap() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&dir.path().join("learnharness.db")).await.unwrap();
    store.create_chat("chat", 0).await.unwrap();
    store.claim("chat", "run", Vec::new(), 0).await.unwrap();
    let message = Message::user("x".repeat(300_000), 0);
    let appends = (0..100).map(|_| store.append("chat", "run", &message, 0));
    let mut seqs: Vec<Seq> = futures::future::try_join_all(appends).await.unwrap();
    seqs.sort();
    assert_eq!(seqs, (1..=100).map(Seq).collect::<Vec<_>>());
    let record = store.messages("chat", Seq::START).await.unwrap();
    assert!(record.len() == 100 && record.iter().all(|stored| stored.message == message));
    store.close().await;
}
