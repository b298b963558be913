//! What an input may and may not do to the record, over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header;
use learnharness::app::native::view::Next;
use learnharness::app::native::{AgentEvent, Message, StopReason};
use learnharness::app::transcript::scan::next::next;
use serde_json::{Value, json};

use crate::support::app::{Reply, TestApp};
use crate::support::reader::Reader;

pub(crate) fn quiz() -> Value {
    json!({"question": "2 + 2?", "kind": "single", "options": ["3", "4"], "correct": ["4"], "concept": "sums"})
}

fn probe_done() -> Value {
    json!({"assessment": {"known": ["sums"], "shaky": [], "unknown": ["fractions"], "goal": "Add fractions."}})
}

fn plan() -> Value {
    let block = |id: &str| json!({"id": id, "title": id, "objective": "Know it.", "concepts": []});
    json!({"title": "Fractions", "goal": "Add them.", "blocks": [block("a"), block("b")]})
}

fn answer(id: &str, value: &str) -> Value {
    json!({"type": "answer", "toolCallId": id, "answer": {"values": [value]}})
}

fn message(json: Value) -> Message {
    serde_json::from_value(json).unwrap()
}

/// A chat whose teacher has asked these questions, and a reader that is up to date.
async fn asked(app: &TestApp, ids: &[&str]) -> (String, Reader) {
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let calls: Vec<_> = ids.iter().map(|id| (*id, "quiz", quiz())).collect();
    app.model.call(&calls).await;
    reader.until("agent_end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
    (chat, reader)
}

/// A chat whose teacher has proposed a plan.
async fn planned(app: &TestApp) -> (String, Reader) {
    let chat = app
        .chat_with(vec![
            message(json!({"role": "user", "content": "hi"})),
            message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
                {"type": "toolCall", "id": "d", "name": "probe_done", "arguments": probe_done()}]})),
            message(json!({"role": "toolResult", "toolCallId": "d", "toolName": "probe_done", "content": []})),
        ])
        .await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "go on").await;
    app.model.call(&[("p", "plan_init", plan())]).await;
    reader.until("agent_end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
    (chat, reader)
}

/// Sends what must be refused, and looks that nothing has changed.
async fn refused(app: &TestApp, what: &str, status: u16, kind: &str, send: impl AsyncFnOnce() -> Reply) {
    let before = app.dump().await;
    let reply = send().await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (status, kind), "{what}: {}", reply.text);
    assert_eq!(app.dump().await, before, "{what} changed the record");
}

#[tokio::test]
async fn what_is_no_input_is_refused_and_changes_nothing() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let check = async |what: &str, body: String, status: u16, kind: &str| {
        refused(&app, what, status, kind, async || app.post_raw("/api/chat", "application/json", body).await).await;
    };
    let text = |text: String| json!({"chatId": chat, "input": {"type": "text", "text": text}}).to_string();
    check("an empty text", text(String::new()), 422, "invalid").await;
    check("a blank text", text(" \n\t ".to_owned()), 422, "invalid").await;
    check("100,001 characters", text("ü".repeat(100_001)), 422, "invalid").await;
    check("a megabyte", text("a".repeat(1 << 20)), 413, "too-large").await;
    check("malformed JSON", "{\"chatId\":".to_owned(), 400, "malformed").await;
    check("no JSON", "hello".to_owned(), 400, "malformed").await;
    check("an empty body", String::new(), 400, "malformed").await;
    check("no input", json!({"chatId": chat}).to_string(), 400, "malformed").await;
    check("no chat", json!({"input": {"type": "retry"}}).to_string(), 400, "malformed").await;
    let unknown = json!({"chatId": chat, "input": {"type": "shout", "text": "hi"}});
    check("an unknown input", unknown.to_string(), 400, "malformed").await;
    let elsewhere = json!({"chatId": "nowhere", "input": {"type": "text", "text": "hi"}});
    check("an unknown chat", elsewhere.to_string(), 404, "not-found").await;
    refused(&app, "a form", 415, "media-type", async || {
        app.post_raw("/api/chat", "application/x-www-form-urlencoded", text("hi".to_owned())).await
    })
    .await;
}

#[tokio::test]
async fn a_body_that_hides_its_length_is_cut_off_all_the_same() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let body = json!({"chatId": chat, "input": {"type": "text", "text": "a".repeat(1 << 20)}}).to_string();
    let pieces = body.into_bytes().chunks(4096).map(<[u8]>::to_vec).map(Ok::<_, std::io::Error>).collect::<Vec<_>>();
    refused(&app, "a megabyte in pieces", 413, "too-large", async || {
        let request = app.request("POST", "/api/chat").header(header::CONTENT_TYPE, "application/json");
        app.send(request.body(Body::from_stream(futures::stream::iter(pieces))).unwrap()).await
    })
    .await;
}

#[tokio::test]
async fn the_longest_text_is_taken() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, &"ü".repeat(100_000)).await;
    app.model.reply("Long.").await;
    app.follow(&chat).await.until("the reply", |_, live| live.record.len() == 2).await;
}

#[tokio::test]
async fn a_hint_that_is_looked_at_again_changes_nothing() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut quiz = quiz();
    quiz["hint"] = json!("Count your fingers.");
    app.model.call(&[("q", "quiz", quiz)]).await;
    reader.until("agent_end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
    let hint = json!({"type": "hint", "toolCallId": "q"});
    let first = app.input_as(&chat, "one", hint.clone()).await;
    let record = app.record(&chat).await;
    let again = app.input_as(&chat, "two", hint).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (202, 202));
    assert_eq!(first.json(), again.json(), "both tell the marker's position");
    assert_eq!(first.json()["seq"], json!(record.last().unwrap().seq));
    assert_eq!(app.record(&chat).await, record);
}

#[tokio::test]
async fn what_the_chat_cannot_take_now_is_refused_and_changes_nothing() {
    let app = TestApp::new().await;
    let empty = app.chat().await;
    let (waiting, _reader) = asked(&app, &["q"]).await;
    let check = async |what: &str, chat: &str, input: Value, status: u16, kind: &str| {
        refused(&app, what, status, kind, async || app.input(chat, input).await).await;
    };
    check("an answer to nothing", &empty, answer("q", "4"), 422, "invalid").await;
    check("a verdict without a plan", &empty, json!({"type": "verdict", "accepted": true}), 422, "invalid").await;
    check("retry with nothing failed", &empty, json!({"type": "retry"}), 422, "invalid").await;
    check("a hint to nothing", &empty, json!({"type": "hint", "toolCallId": "q"}), 422, "invalid").await;
    check("an answer to another question", &waiting, answer("z", "4"), 422, "invalid").await;
    check("an option that is not there", &waiting, answer("q", "5"), 422, "invalid").await;
    check("an empty answer", &waiting, json!({"type": "answer", "toolCallId": "q", "answer": {}}), 422, "invalid")
        .await;
    let both = json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["3", "4"]}});
    check("two options of one", &waiting, both, 422, "invalid").await;
    let words = json!({"type": "answer", "toolCallId": "q", "answer": {"text": "four"}});
    check("own words for a choice", &waiting, words, 422, "invalid").await;
    check("a verdict while a question waits", &waiting, json!({"type": "verdict", "accepted": true}), 422, "invalid")
        .await;
    check("retry while a question waits", &waiting, json!({"type": "retry"}), 422, "invalid").await;
    check("a hint that is not there", &waiting, json!({"type": "hint", "toolCallId": "q"}), 422, "invalid").await;
    let silent = json!({"type": "objection", "toolCallId": "q", "reason": " "});
    check("an objection without a reason", &waiting, silent, 422, "invalid").await;
}

#[tokio::test]
async fn while_a_run_goes_on_every_other_input_is_busy() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let first = app.input_as(&chat, "one", json!({"type": "text", "text": "hi"})).await;
    let run = first.json()["runId"].clone();
    assert!(run.is_string(), "{}", first.text);
    let mut asked = app.model.request().await;
    asked.say("He");
    for input in [json!({"type": "text", "text": "again"}), answer("q", "4"), json!({"type": "retry"})] {
        let before = app.dump().await;
        let reply = app.input_as(&chat, "two", input).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (409, "busy"));
        assert_eq!(reply.json()["error"]["runId"], run);
        assert_eq!(app.dump().await, before);
    }
    // The known id is not busy: its acceptance comes again.
    let again = app.input_as(&chat, "one", json!({"type": "text", "text": "hi"})).await;
    assert_eq!((again.status, again.text), (first.status, first.text));
    asked.end(StopReason::Stop);
    let mut reader = app.follow(&chat).await;
    reader.settled().await;
    // What was refused has left no trace of its id.
    let taken = app.input_as(&chat, "two", json!({"type": "text", "text": "now"})).await;
    assert_eq!(taken.status, 202);
    app.model.reply("Yes.").await;
    reader.settled().await;
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Stop] He", "user now", "assistant[Stop] Yes."]);
}

#[tokio::test]
async fn the_same_input_sent_at_once_from_two_places_is_taken_once() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let send = || app.input_as(&chat, "one", json!({"type": "text", "text": "hi"}));
    let (one, two) = tokio::join!(send(), send());
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (202, 202));
    assert_eq!(one.text, two.text);
    app.model.reply("Hello.").await;
    app.follow(&chat).await.until("the reply", |_, live| live.record.len() == 2).await;
}

#[tokio::test]
async fn an_answer_is_graded_once_and_a_second_one_learns_of_the_first() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q"]).await;
    let first = app.input_as(&chat, "a1", answer("q", "4")).await;
    assert_eq!(first.status, 202, "{}", first.text);
    let asked = app.model.request().await;
    assert_eq!(asked.texts()[2], "result quiz#q The learner answered: 4\nThat is correct.");
    let again = app.input_as(&chat, "a1", answer("q", "4")).await;
    assert_eq!((again.status, again.text), (first.status, first.text.clone()), "the same id gets the same 202");
    asked.end(StopReason::Stop);
    reader.settled().await;
    for value in ["3", "4"] {
        let before = app.dump().await;
        let reply = app.input_as(&chat, "a2", answer("q", value)).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (409, "answered"));
        let accepted = &reply.json()["error"]["accepted"];
        assert_eq!((&accepted["answer"]["values"], &accepted["verdict"]), (&json!(["4"]), &json!("correct")));
        assert_eq!(app.dump().await, before);
    }
    let again = app.input_as(&chat, "a1", answer("q", "4")).await;
    assert_eq!((again.status, again.text), (first.status, first.text), "for as long as the chat lives");
}

#[tokio::test]
async fn two_answers_at_the_same_moment_are_one_result_and_one_run() {
    let app = TestApp::new().await;
    let (chat, _reader) = asked(&app, &["q"]).await;
    let (one, two) = tokio::join!(app.input(&chat, answer("q", "3")), app.input(&chat, answer("q", "4")));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409]);
    app.model.reply("Well.").await;
    app.follow(&chat).await.until("the reply", |_, live| live.record.len() == 4).await;
}

#[tokio::test]
async fn of_two_questions_the_first_answer_starts_no_run_and_the_second_does() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q", "r"]).await;
    let first = app.input(&chat, answer("r", "3")).await;
    assert_eq!((first.status.as_u16(), first.json()), (202, json!({"runId": null, "seq": 3})));
    reader.until("the first answer", |_, live| live.record.len() == 3).await;
    assert!(app.model.is_idle());
    let second = app.input(&chat, json!({"type": "answer", "toolCallId": "q", "dismissed": true})).await;
    assert_eq!((second.status.as_u16(), &second.json()["seq"]), (202, &json!(4)));
    let asked = app.model.request().await;
    let results = &asked.texts()[2..];
    assert_eq!(results[0], "result quiz#q The learner skipped the question.");
    assert_eq!(results[1], "result quiz#r The learner answered: 3\nThat is wrong; right is: 4");
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn a_text_closes_all_pending_questions_and_starts_a_run() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q", "r"]).await;
    app.text(&chat, "What is a sum?").await;
    let asked = app.model.request().await;
    assert_eq!(
        asked.texts()[2..],
        [
            "result quiz#q Not answered; the learner wrote instead.",
            "result quiz#r Not answered; the learner wrote instead.",
            "user What is a sum?"
        ]
    );
    asked.end(StopReason::Stop);
    reader.settled().await;
    refused(&app, "a late answer", 422, "invalid", async || app.input(&chat, answer("q", "4")).await).await;
}

#[tokio::test]
async fn a_stop_while_a_question_waits_says_that_the_learner_stopped() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q"]).await;
    assert_eq!(app.post("/api/activity/abort", &json!({"chatId": chat})).await.status, 202);
    app.text(&chat, "Go on.").await;
    let asked = app.model.request().await;
    assert_eq!(asked.texts()[2..], ["result quiz#q Not answered; the learner stopped here.", "user Go on."]);
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn a_text_with_nothing_to_see_and_a_note_on_no_plan_are_refused() {
    let app = TestApp::new().await;
    let (chat, _reader) = asked(&app, &["q"]).await;
    for text in ["", " \n\t", "\u{0}", "\u{200b}", "\u{feff} \u{2060}", "\u{ad}"] {
        let send = async || app.input(&chat, json!({"type": "text", "text": text})).await;
        refused(&app, "a blank text", 422, "invalid", send).await;
    }
    let noted = async || app.input(&chat, json!({"type": "text", "text": "Well", "note": "Shorter."})).await;
    refused(&app, "a note without a plan", 422, "invalid", noted).await;
}

#[tokio::test]
async fn the_placeholder_of_a_posed_question_is_never_stored() {
    let app = TestApp::new().await;
    let (chat, reader) = asked(&app, &["q"]).await;
    assert!(reader.log.contains(&"2 message_end toolResult q".to_owned()), "{:#?}", reader.log);
    assert_eq!(app.lines(&chat).await, ["user hi", "assistant[ToolUse]  quiz#q"]);
    assert!(!app.dump().await.contains("posed"));
    assert_eq!(reader.live.record, app.record(&chat).await);
}

#[tokio::test]
async fn a_verdict_goes_to_the_teacher_and_a_second_one_is_refused() {
    let app = TestApp::new().await;
    let (chat, mut reader) = planned(&app).await;
    let sent = app.input(&chat, json!({"type": "verdict", "accepted": true, "note": "Quickly."})).await;
    assert_eq!(sent.status, 202);
    let asked = app.model.request().await;
    let words = "user The learner accepted the plan. Begin with the first block.\nTheir note: Quickly.";
    assert_eq!(asked.texts().last().unwrap(), words);
    asked.end(StopReason::Stop);
    reader.settled().await;
    let again = async || app.input(&chat, json!({"type": "verdict", "accepted": false})).await;
    refused(&app, "a second verdict", 422, "invalid", again).await;
}

#[tokio::test]
async fn a_failed_answer_is_asked_for_again_and_left_out_of_the_request() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    asked.say("Hel");
    asked.fail("The provider is down.");
    reader.settled().await;
    assert_eq!(app.input(&chat, json!({"type": "retry"})).await.status, 202);
    let mut asked = app.model.request().await;
    assert_eq!(asked.texts(), ["user hi"]);
    asked.say("Hello.");
    asked.end(StopReason::Stop);
    reader.settled().await;
    let lines = app.lines(&chat).await;
    assert_eq!(lines[1..3], ["assistant[Error] Hel", "marker retry"], "the store keeps what failed");
    refused(&app, "retry of nothing", 422, "invalid", async || app.input(&chat, json!({"type": "retry"})).await).await;
}

#[tokio::test]
async fn a_stop_with_nothing_in_it_is_a_failure_that_can_be_asked_for_again() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    for _ in 0..2 {
        app.model.request().await.end_as_it_is(StopReason::Stop);
    }
    reader.settled().await;
    let empty = "assistant[Error] ";
    assert_eq!(app.lines(&chat).await[1..], [empty, "marker notice", empty], "once by itself, and then no more");
    assert_eq!(app.input(&chat, json!({"type": "retry"})).await.status, 202);
    app.model.reply("Hello.").await;
    reader.settled().await;
    let retry = app.record(&chat).await.remove(4).message;
    assert_eq!(serde_json::to_value(retry).unwrap()["details"], json!({"replaces": 4}));
}

#[tokio::test]
async fn every_text_and_id_of_an_input_is_bounded() {
    let app = TestApp::new().await;
    let (chat, _reader) = asked(&app, &["q"]).await;
    let long = "x".repeat(100_001);
    let note = json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["4"], "note": long}});
    refused(&app, "a long note", 422, "invalid", async || app.input(&chat, note.clone()).await).await;
    let remark = json!({"type": "text", "text": "hi", "note": long});
    refused(&app, "a long remark", 422, "invalid", async || app.input(&chat, remark.clone()).await).await;
}

#[tokio::test]
async fn an_answer_survives_a_provider_that_is_down() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q"]).await;
    app.input(&chat, answer("q", "4")).await;
    app.model.request().await.fail("The provider is down.");
    reader.settled().await;
    app.input(&chat, json!({"type": "retry"})).await;
    let asked = app.model.request().await;
    assert_eq!(asked.texts().last().unwrap(), "result quiz#q The learner answered: 4\nThat is correct.");
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn an_objection_closes_its_question_and_goes_to_the_teacher() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q"]).await;
    let sent = app.input(&chat, json!({"type": "objection", "toolCallId": "q", "reason": "Both are right."})).await;
    assert_eq!(sent.status, 202, "{}", sent.text);
    let asked = app.model.request().await;
    assert_eq!(asked.texts().last().unwrap(), "user The learner objects to the question: Both are right.");
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn whatever_run_comes_after_the_probe_hands_over_first() {
    let batch = vec![
        message(json!({"role": "user", "content": "hi"})),
        message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "q", "name": "quiz", "arguments": quiz()},
            {"type": "toolCall", "id": "d", "name": "probe_done", "arguments": probe_done()}]})),
        message(json!({"role": "toolResult", "toolCallId": "d", "toolName": "probe_done", "content": []})),
    ];
    let objection = json!({"type": "objection", "toolCallId": "q", "reason": "Unfair."});
    for input in [answer("q", "4"), json!({"type": "text", "text": "What now?"}), objection] {
        let app = TestApp::new().await;
        let chat = app.chat_with(batch.clone()).await;
        assert_eq!(app.input(&chat, input.clone()).await.status, 202);
        let asked = app.model.request().await;
        assert!(asked.request.system.contains("You are planning."), "{input}");
        assert!(asked.texts().iter().any(|text| text.starts_with("user The probe is done.")), "{:?}", asked.texts());
        asked.end(StopReason::Stop);
        app.follow(&chat).await.settled().await;
        let markers = app.lines(&chat).await.iter().filter(|line| *line == "marker probe-handoff").count();
        assert_eq!(markers, 1, "{input}");
    }
}

#[tokio::test]
async fn unknown_fields_of_stored_messages_survive() {
    let app = TestApp::new().await;
    let told = json!({
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi.", "zeta": 1, "alpha": {"b": 1, "a": 2}}, {"type": "odd", "x": [1.5]}],
        "api": "a", "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 5,
        "diagnostics": [{"z": 1, "a": "b"}], "later": null,
    });
    let chat = app.chat_with(vec![message(json!({"role": "user", "content": "hi"})), message(told.clone())]).await;
    let shown = app.get(&format!("/api/chats/{chat}")).await.json();
    let found = &shown["messages"][1]["message"];
    for field in ["content", "diagnostics", "later"] {
        assert_eq!(found[field].to_string(), told[field].to_string(), "{field}");
    }
}

#[tokio::test]
async fn a_refused_write_leaves_the_others_of_its_group() {
    let app = TestApp::new().await;
    let chats = [app.chat().await, app.chat().await];
    let message = message(json!({"role": "user", "content": "hi"}));
    let good = chats.iter().map(|chat| app.store.claim(chat, "run", vec![message.clone()], 0));
    let bad = app.store.append(&chats[0], "nobody", &message, 0);
    let (good, bad) = tokio::join!(futures::future::join_all(good), bad);
    assert!(good.iter().all(Result::is_ok), "{good:?}");
    assert!(bad.is_err());
    for chat in &chats {
        assert_eq!(app.lines(chat).await, ["user hi"]);
    }
}

#[tokio::test]
async fn what_a_reader_has_seen_end_is_on_disk() {
    let app = TestApp::new().await;
    let (chat, mut reader) = asked(&app, &["q"]).await;
    app.input(&chat, answer("q", "3")).await;
    app.model.call(&[("d", "probe_done", probe_done())]).await;
    app.model.reply("Teaching.").await;
    loop {
        let sent = reader.next().await.unwrap();
        assert!(sent.id.0 as usize <= app.record(&chat).await.len(), "{}", sent.data);
        assert_eq!(reader.live.record[..], app.record(&chat).await[..reader.live.record.len()]);
        if matches!(sent.event, Some(AgentEvent::TurnSettled)) {
            break;
        }
    }
}

#[tokio::test]
async fn an_input_that_cannot_be_stored_is_refused() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.store.close().await;
    let reply = app.input(&chat, json!({"type": "text", "text": "hi"})).await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (507, "storage"));
    assert_eq!(app.post("/api/chats", &json!({})).await.status, 507);
}

#[tokio::test]
async fn a_disk_that_is_full_in_mid_run_ends_the_run_and_the_chat_goes_on_later() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let mut asked = app.model.request().await;
    asked.say("He");
    let full = Full::begin(&app).await;
    asked.end(StopReason::Stop);
    let told = reader.until("an error", |event, _| matches!(event, AgentEvent::Error(_))).await;
    assert!(told.data.contains("\"kind\":\"storage\""), "{}", told.data);
    reader.until("agent_end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
    assert_eq!(reader.live.record, app.record(&chat).await, "something was shown as saved");
    assert_eq!(app.input(&chat, json!({"type": "text", "text": "lost"})).await.status, 507);
    full.end().await;
    assert_eq!(next(&app.record(&chat).await), Next::Reply);
    assert_eq!(app.input(&chat, json!({"type": "retry"})).await.status, 202);
    app.model.reply("Hello.").await;
    reader.settled().await;
    assert_eq!(app.lines(&chat).await.last().unwrap(), "assistant[Stop] Hello.");
}

/// A disk without space: every insert and delete fails until the end.
struct Full(sqlx::SqlitePool);

impl Full {
    const TABLES: [(&str, &str); 3] = [("messages", "INSERT"), ("runs", "INSERT"), ("runs", "DELETE")];

    async fn begin(app: &TestApp) -> Self {
        let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", app.file().display())).await.unwrap();
        for (index, (table, action)) in Self::TABLES.iter().enumerate() {
            let trigger = format!(
                "CREATE TRIGGER full{index} BEFORE {action} ON {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END"
            );
            sqlx::query(&trigger).execute(&pool).await.unwrap();
        }
        Self(pool)
    }

    async fn end(self) {
        for index in 0..Self::TABLES.len() {
            sqlx::query(&format!("DROP TRIGGER full{index}")).execute(&self.0).await.unwrap();
        }
        self.0.close().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_at_any_moment_leaves_no_chat_behind_that_nobody_runs() {
    for polls in 0..40 {
        let app = Arc::new(TestApp::new().await);
        let chat = app.chat().await;
        let mut reader = app.watch(&chat).await;
        {
            let text = json!({"type": "text", "text": "hi"});
            let mut sending = std::pin::pin!(app.input_as(&chat, "one", text));
            for _ in 0..polls {
                if futures::poll!(sending.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        // Whether the first attempt came through or not, the second one brings it to its end.
        assert_eq!(app.input_as(&chat, "one", json!({"type": "text", "text": "hi"})).await.status, 202);
        app.model.reply("Hello.").await;
        reader.settled().await;
        assert_eq!(app.lines(&chat).await, ["user hi", "assistant[Stop] Hello."], "after {polls} polls");
    }
}
