//! A process may die between any two writes of a run: each test leaves the data as it is then, and a new process goes on.

use learnharness::app::native::{AssistantMessage, Message, Seq, StopReason};
use learnharness::server::store::{OpenMessage, Outcome};
use serde_json::{Value, json};

use crate::record::quiz;
use crate::support::app::TestApp;
use crate::support::soon;

fn message(json: Value) -> Message {
    serde_json::from_value(json).unwrap()
}

/// "hi", and an answer with these calls: `(id, name, arguments)`.
fn calling(calls: &[(&str, &str, Value)]) -> Vec<Message> {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, args)| json!({"type": "toolCall", "id": id, "name": name, "arguments": args}))
        .collect();
    vec![
        message(json!({"role": "user", "content": "hi"})),
        message(json!({"role": "assistant", "stopReason": "toolUse", "content": calls})),
    ]
}

fn result(id: &str, name: &str, text: &str) -> Message {
    let content = json!([{"type": "text", "text": text}]);
    message(json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": content}))
}

fn plan_block(id: &str) -> Message {
    let details = json!({"blockId": id, "status": "started"});
    message(json!({"role": "custom", "customType": "plan-block", "id": id, "details": details}))
}

fn progress(id: &str) -> Value {
    json!({"blockId": id, "status": "started"})
}

fn saying(text: &str) -> AssistantMessage {
    let content = json!([{"type": "text", "text": text}]);
    serde_json::from_value(json!({"content": content, "model": "scripted"})).unwrap()
}

/// A teacher's chat, so that all tools of teaching are there.
fn taught(rest: Vec<Message>) -> Vec<Message> {
    let mut record = vec![
        message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "d", "name": "probe_done", "arguments": {}}]})),
        result("d", "probe_done", "Done."),
        message(json!({"role": "custom", "customType": "probe-handoff", "id": "h", "details": {"assessment": {}}})),
    ];
    record.extend(rest);
    record
}

/// What the dead run had kept of its open message, as of this position.
async fn was_saying(app: &TestApp, chat: &str, position: u32, open: &AssistantMessage) {
    let json = serde_json::to_string(open).unwrap();
    let open = OpenMessage { chat: chat.to_owned(), run: "given".to_owned(), position: Seq(position), json };
    app.store.keep_open(vec![open]).await.unwrap();
}

async fn had_finished(app: &TestApp, chat: &str, position: u32, nth: usize, messages: Vec<Message>) {
    let outcome = Outcome { position: Seq(position), nth, messages };
    app.store.keep_outcome(chat, "given", &outcome).await.unwrap();
}

/// The next process, with its runs going on.
async fn next_process(app: TestApp) -> TestApp {
    let app = app.crash().await;
    app.runs.recover().await.unwrap();
    app
}

/// A process that died with this record, gone on with by the next one.
async fn died_with(record: Vec<Message>) -> (TestApp, String) {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, record).await;
    (next_process(app).await, chat)
}

async fn settled(app: &TestApp, chat: &str) -> Vec<String> {
    app.follow(chat).await.settled().await;
    assert!(app.store.claims().await.unwrap().is_empty());
    app.lines(chat).await
}

async fn next_of(app: &TestApp, chat: &str) -> Value {
    let chats = app.get("/api/chats").await.json();
    chats.as_array().unwrap().iter().find(|summary| summary["id"] == chat).unwrap()["next"].clone()
}

#[tokio::test]
async fn what_was_being_said_stays_and_the_teacher_goes_on_from_there() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    was_saying(&app, &chat, 1, &saying("Half is")).await;
    let app = next_process(app).await;
    let asked = app.model.request().await;
    let cut_off = "user You were cut off after the words above; go on from there.";
    assert_eq!(asked.texts(), ["user hi", "assistant[Aborted] Half is", cut_off]);
    asked.end(StopReason::Stop);
    let lines = settled(&app, &chat).await;
    assert_eq!(lines, ["user hi", "assistant[Aborted] Half is", "marker interrupted", "assistant[Stop] Well."]);
}

#[tokio::test]
async fn thoughts_and_calls_of_the_open_message_stay_as_they_were() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    let open = json!({"content": [{"type": "thinking", "thinking": "Hm."},
        {"type": "toolCall", "id": "q", "name": "quiz", "arguments": {"question": "2"}, "partialArgs": "{\"question\": \"2"}]});
    was_saying(&app, &chat, 1, &serde_json::from_value(open).unwrap()).await;
    let app = next_process(app).await;
    app.model.reply("Well.").await;
    app.follow(&chat).await.settled().await;
    let record = app.record(&chat).await;
    let kept = serde_json::to_value(&record[1].message).unwrap();
    assert_eq!((&kept["content"][0]["thinking"], &kept["stopReason"]), (&json!("Hm."), &json!("aborted")));
    assert_eq!(kept["content"][1]["arguments"], json!({"question": "2"}));
}

#[tokio::test]
async fn an_open_message_with_nothing_in_it_leaves_no_trace() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    was_saying(&app, &chat, 1, &saying(" ")).await;
    let app = next_process(app).await;
    app.model.reply("Hello.").await;
    assert_eq!(settled(&app, &chat).await, ["user hi", "assistant[Stop] Hello."]);
}

#[tokio::test]
async fn a_checkpoint_that_the_record_has_overtaken_is_left_out() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let done = vec![
        Message::user("hi", 0),
        message(json!({"role": "assistant", "stopReason": "stop",
        "content": [{"type": "text", "text": "Half is 1/2."}]})),
    ];
    app.claimed(&chat, done).await;
    was_saying(&app, &chat, 1, &saying("Half is")).await;
    let app = next_process(app).await;
    assert_eq!(settled(&app, &chat).await, ["user hi", "assistant[Stop] Half is 1/2."]);
}

#[tokio::test]
async fn a_checkpoint_goes_with_its_claim_and_is_not_written_without_one() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    was_saying(&app, &chat, 1, &saying("Half is")).await;
    app.store.release(&chat, "given").await.unwrap();
    was_saying(&app, &chat, 1, &saying("Half is one")).await;
    app.claimed(&chat, Vec::new()).await;
    let app = next_process(app).await;
    app.model.reply("Hello.").await;
    assert_eq!(settled(&app, &chat).await, ["user hi", "assistant[Stop] Hello."]);
}

#[tokio::test]
async fn calls_that_were_not_begun_are_made_without_asking_the_model_again() {
    let calls = [("a", "plan_progress", progress("a")), ("b", "plan_progress", progress("b"))];
    let (app, chat) = died_with(taught(calling(&calls))).await;
    let asked = app.model.request().await;
    assert!(asked.texts().ends_with(&[
        "result plan_progress#a Block a is started.".to_owned(),
        "result plan_progress#b Block b is started.".to_owned()
    ]));
    asked.end(StopReason::Stop);
    let lines = settled(&app, &chat).await;
    let expected = [
        "result plan_progress#a Block a is started.",
        "marker plan-block",
        "result plan_progress#b Block b is started.",
        "marker plan-block",
        "assistant[Stop] Well.",
    ];
    assert_eq!(lines[5..], expected);
}

#[tokio::test]
async fn a_finished_call_is_not_made_again_and_keeps_its_marker() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let calls = [("a", "plan_progress", progress("a")), ("b", "plan_progress", progress("b"))];
    app.claimed(&chat, taught(calling(&calls))).await;
    had_finished(&app, &chat, 5, 1, vec![result("b", "plan_progress", "Kept."), plan_block("b")]).await;
    had_finished(&app, &chat, 1, 0, vec![result("a", "plan_progress", "Of another batch.")]).await;
    let app = next_process(app).await;
    app.model.reply("Well.").await;
    let lines = settled(&app, &chat).await;
    let expected = [
        "result plan_progress#b Kept.",
        "marker plan-block",
        "result plan_progress#a Block a is started.",
        "marker plan-block",
        "assistant[Stop] Well.",
    ];
    assert_eq!(lines[5..], expected);
}

#[tokio::test]
async fn a_result_that_the_record_has_is_not_appended_again() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    let mut record = taught(calling(&[("a", "plan_progress", progress("a"))]));
    record.extend([result("a", "plan_progress", "Stored."), plan_block("a")]);
    app.claimed(&chat, record).await;
    had_finished(&app, &chat, 5, 0, vec![result("a", "plan_progress", "Stored."), plan_block("a")]).await;
    let app = next_process(app).await;
    app.model.reply("Well.").await;
    let lines = settled(&app, &chat).await;
    assert_eq!(lines[5..], ["result plan_progress#a Stored.", "marker plan-block", "assistant[Stop] Well."]);
}

#[tokio::test]
async fn a_valid_question_is_posed_and_waits() {
    let (app, chat) = died_with(calling(&[("q", "quiz", quiz())])).await;
    settled(&app, &chat).await;
    assert_eq!(next_of(&app, &chat).await, json!({"kind": "answer", "of": ["q"]}));
    let sent = app.input(&chat, json!({"type": "answer", "toolCallId": "q", "answer": {"values": ["4"]}})).await;
    assert_eq!(sent.status, 202);
    app.model.reply("Right.").await;
    assert_eq!(settled(&app, &chat).await.last().unwrap(), "assistant[Stop] Right.");
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_goes_back_to_the_model() {
    let (app, chat) = died_with(calling(&[("q", "quiz", json!({"question": "2 + 2?"}))])).await;
    let asked = app.model.request().await;
    assert!(asked.texts().last().unwrap().starts_with("result! quiz#q "), "{:?}", asked.texts());
    asked.end(StopReason::Stop);
    settled(&app, &chat).await;
}

#[tokio::test]
async fn an_answer_that_was_taken_is_replied_to() {
    let mut record = calling(&[("q", "quiz", quiz())]);
    record.push(message(json!({"role": "toolResult", "toolCallId": "q", "toolName": "quiz",
        "content": [{"type": "text", "text": "4"}], "details": {"verdict": "correct"}})));
    let (app, chat) = died_with(record).await;
    app.model.reply("Right.").await;
    assert_eq!(settled(&app, &chat).await.last().unwrap(), "assistant[Stop] Right.");
}

#[tokio::test]
async fn the_rest_of_a_batch_that_proposed_a_plan_is_made_up_for_and_the_plan_waits() {
    let mut record = taught(calling(&[("p", "plan_init", json!({})), ("b", "plan_progress", progress("b"))]));
    record.push(result("p", "plan_init", "Shown."));
    let (app, chat) = died_with(record).await;
    let lines = settled(&app, &chat).await;
    assert_eq!(lines[6..], ["result plan_progress#b Block b is started.", "marker plan-block"]);
    assert_eq!(next_of(&app, &chat).await, json!({"kind": "verdict", "of": "p"}));
}

#[tokio::test]
async fn calls_of_an_answer_that_hit_its_limit_are_refused() {
    let mut record = calling(&[("q", "quiz", quiz())]);
    record[1] = message(json!({"role": "assistant", "stopReason": "length", "content": [
        {"type": "toolCall", "id": "q", "name": "quiz", "arguments": quiz()}]}));
    let (app, chat) = died_with(record).await;
    let asked = app.model.request().await;
    assert!(asked.texts().last().unwrap().starts_with("result! quiz#q Tool call \"quiz\" was not executed"));
    asked.end(StopReason::Stop);
    settled(&app, &chat).await;
}

#[tokio::test]
async fn an_answer_that_failed_is_not_asked_for_again() {
    let mut record = vec![Message::user("hi", 0)];
    record.push(message(json!({"role": "assistant", "stopReason": "error", "errorMessage": "No.", "content": []})));
    let (app, chat) = died_with(record).await;
    assert_eq!(settled(&app, &chat).await, ["user hi", "assistant[Error] "]);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let empty = || {
        let diagnostic = json!({"type": "empty-answer", "details": {}});
        message(json!({"role": "assistant", "stopReason": "error", "content": [], "diagnostics": [diagnostic]}))
    };
    let (app, chat) = died_with(vec![Message::user("hi", 0), empty()]).await;
    app.model.reply("Hello.").await;
    let lines = settled(&app, &chat).await;
    assert_eq!(lines, ["user hi", "assistant[Error] ", "marker notice", "assistant[Stop] Hello."]);
    let notice = message(json!({"role": "custom", "customType": "notice", "details": {"kind": "empty-answer"}}));
    let (app, chat) = died_with(vec![Message::user("hi", 0), empty(), notice, empty()]).await;
    assert_eq!(settled(&app, &chat).await.len(), 4);
}

#[tokio::test]
async fn a_handoff_that_was_appended_is_the_teachers_to_take() {
    let (app, chat) = died_with(taught(Vec::new())).await;
    let asked = app.model.request().await;
    assert!(asked.request.system.contains("You are planning."));
    asked.end(StopReason::Stop);
    let lines = settled(&app, &chat).await;
    assert_eq!(lines.iter().filter(|line| *line == "marker probe-handoff").count(), 1);
}

#[tokio::test]
async fn the_claim_outlives_the_probers_run_until_the_teachers_has_it() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    let assessment = json!({"assessment": {"known": [], "shaky": [], "unknown": [], "goal": "Add."}});
    let mut reader = app.follow(&chat).await;
    app.model.call(&[("d", "probe_done", assessment)]).await;
    let ended = |event: &_, _: &_| matches!(event, learnharness::app::native::AgentEvent::AgentEnd { .. });
    reader.until("the end of the probe", ended).await;
    assert_eq!(app.store.claims().await.unwrap().len(), 1);
    app.model.reply("A plan.").await;
    reader.settled().await;
    settled(&app, &chat).await;
}

#[tokio::test]
async fn a_run_that_is_cut_off_twice_is_left_to_retry() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    was_saying(&app, &chat, 1, &saying("Half")).await;
    let app = next_process(app).await;
    let _asked = app.model.request().await;
    assert_eq!(app.store.claims().await.unwrap()[0].tries, 1);
    was_saying(&app, &chat, 3, &saying("is one")).await;
    let app = next_process(app).await;
    let expected =
        ["user hi", "assistant[Aborted] Half", "marker interrupted", "assistant[Aborted] is one", "marker notice"];
    assert_eq!(settled(&app, &chat).await, expected);
    assert_eq!(serde_json::to_value(&app.record(&chat).await[4].message).unwrap()["details"]["kind"], "cut-twice");
    assert_eq!(app.get(&format!("/api/chats/{chat}")).await.json()["running"], false);
    assert_eq!(app.input(&chat, json!({"type": "retry"})).await.status, 202);
    app.model.reply("Hello.").await;
    settled(&app, &chat).await;
}

#[tokio::test]
async fn whatever_a_run_finishes_gives_it_another_try() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, taught(vec![Message::user("hi", 0)])).await;
    let mut app = next_process(app).await;
    for id in ["a", "b", "c"] {
        app.model.call(&[(id, "plan_progress", progress(id))]).await;
        let _next = app.model.request().await;
        app = next_process(app).await;
    }
    app.model.reply("Well.").await;
    let lines = settled(&app, &chat).await;
    assert_eq!(lines.iter().filter(|line| *line == "marker plan-block").count(), 3);
    assert!(!lines.contains(&"marker notice".to_owned()));
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_not_left_pending_by_a_run_that_was_cut_off_twice() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.claimed(&chat, calling(&[("q", "quiz", json!({"question": "2 + 2?"}))])).await;
    app.store.count_try(&chat, "given").await.unwrap();
    let app = next_process(app).await;
    settled(&app, &chat).await;
    assert_eq!(next_of(&app, &chat).await, json!({"kind": "reply"}));
}

#[tokio::test]
async fn a_run_that_was_stopped_stays_so() {
    let app = TestApp::new().await;
    let (chat, other) = (app.chat().await, app.chat().await);
    app.claimed(&chat, vec![Message::user("hi", 0)]).await;
    was_saying(&app, &chat, 1, &saying("Half")).await;
    let calls = [("q", "quiz", quiz()), ("r", "quiz", json!({"question": "What?"}))];
    app.claimed(&other, calling(&calls)).await;
    for chat in [&chat, &other] {
        app.store.mark_stopped(chat, "given").await.unwrap();
    }
    let app = next_process(app).await;
    assert_eq!(settled(&app, &chat).await, ["user hi", "assistant[Aborted] Half"]);
    let closed = settled(&app, &other).await;
    let expected = ["result! quiz#r missing field `kind`", "result quiz#q Not answered; the learner stopped here."];
    assert_eq!(closed[2..], expected);
    assert_eq!(next_of(&app, &other).await, json!({"kind": "idle"}));
}

#[tokio::test]
async fn a_few_runs_go_on_at_a_time_and_the_others_wait_and_can_be_stopped() {
    let app = TestApp::new().await;
    let mut chats = Vec::new();
    for _ in 0..6 {
        let chat = app.chat().await;
        app.claimed(&chat, vec![Message::user("hi", 0)]).await;
        chats.push(chat);
    }
    let app = next_process(app).await;
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(app.model.request().await);
    }
    let claims = app.store.claims().await.unwrap();
    let waiting: Vec<&str> = claims.iter().filter(|claim| claim.tries == 0).map(|claim| claim.chat.as_str()).collect();
    assert_eq!(waiting.len(), 2);
    let listed = app.get("/api/chats").await.json();
    assert!(listed.as_array().unwrap().iter().all(|chat| chat["running"] == true));
    assert_eq!(app.input(waiting[0], json!({"type": "text", "text": "more"})).await.status, 409);
    let mut reader = app.follow(waiting[0]).await;
    assert_eq!(app.stop(waiting[0]).await, 202);
    reader.settled().await;
    assert_eq!(app.lines(waiting[0]).await, ["user hi", "assistant[Aborted] "]);
    assert!(app.model.is_idle());
    for asked in asked {
        asked.end(StopReason::Stop);
    }
    app.model.reply("Well.").await;
    for chat in &chats {
        app.follow(chat).await.settled().await;
    }
}

#[tokio::test]
async fn what_is_said_is_kept_about_once_a_second() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, "hi").await;
    let mut reader = app.follow(&chat).await;
    let mut asked = app.model.request().await;
    asked.say("Half is");
    reader.says("Half is").await;
    let url = format!("sqlite://{}?mode=ro", app.file().display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let kept = async {
        while !sqlx::query_scalar::<_, String>("SELECT message FROM checkpoints")
            .fetch_optional(&pool)
            .await
            .unwrap()
            .is_some_and(|message| message.contains("Half is"))
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    soon("a checkpoint", kept).await;
    pool.close().await;
    let app = next_process(app).await;
    app.model.reply("1/2.").await;
    let lines = settled(&app, &chat).await;
    assert_eq!(lines[1..], ["assistant[Aborted] Half is", "marker interrupted", "assistant[Stop] 1/2."]);
}

#[tokio::test]
async fn a_result_is_on_disk_before_its_end_is_shown() {
    let app = TestApp::new().await;
    let chat = app.chat_with(taught(Vec::new())).await;
    let mut reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    let calls = [("a", "plan_progress", progress("a")), ("b", "plan_progress", progress("b"))];
    let calling = app.model.call(&calls);
    let shown = reader.until("the first end", |event, _| {
        matches!(event, learnharness::app::native::AgentEvent::ToolExecutionEnd { .. })
    });
    tokio::join!(calling, shown);
    let url = format!("sqlite://{}?mode=ro", app.file().display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM outcomes").fetch_one(&pool).await.unwrap();
    assert!(kept >= 1);
    pool.close().await;
    app.model.reply("Well.").await;
    reader.settled().await;
}
