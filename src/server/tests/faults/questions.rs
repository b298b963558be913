//! Questions among other calls (fault 47), and questions whose ids come again.

use learnharness::app::native::view::Next;
use learnharness::app::native::{AgentEvent, StopReason};
use learnharness::app::transcript::scan::next::{next, pending};
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::reader::Reader;

/// A chat whose prober was asked something and is about to answer.
async fn begun(app: &TestApp) -> (String, Reader) {
    let chat = app.chat().await;
    let reader = app.watch(&chat).await;
    app.text(&chat, "hi").await;
    (chat, reader)
}

async fn run_ends(reader: &mut Reader) {
    reader.until("agent_end", |event, _| matches!(event, AgentEvent::AgentEnd { .. })).await;
    reader.settled().await;
}

fn quiz() -> Value {
    json!({"question": "2 + 2?", "kind": "single", "options": ["3", "4"], "correct": ["4"], "concept": "sums"})
}

fn ask(options: &Value) -> Value {
    json!({"question": "Which unit?", "options": options})
}

#[tokio::test]
async fn the_siblings_of_a_question_run_and_the_model_waits_for_the_learner() {
    let app = TestApp::new().await;
    let (chat, mut reader) = begun(&app).await;
    let calls =
        [("c1", "gone", json!({})), ("q1", "ask_user_question", ask(&json!(["m", "ft"]))), ("c2", "gone", json!({}))];
    app.model.call(&calls).await;
    run_ends(&mut reader).await;
    let results: Vec<String> = app.lines(&chat).await.split_off(2);
    assert_eq!(results, ["result! gone#c1 Tool gone not found", "result! gone#c2 Tool gone not found"]);
    assert_eq!(next(&app.record(&chat).await), Next::Answer(vec!["q1".to_owned()]));
    assert!(app.model.is_idle(), "the model was asked before the learner");
    app.input(&chat, json!({"type": "answer", "toolCallId": "q1", "answer": {"values": ["m"]}})).await;
    let asked = app.model.request().await;
    let order: Vec<String> = asked.texts()[2..].iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(order, ["gone#c1", "ask_user_question#q1", "gone#c2"]);
    asked.end(StopReason::Stop);
    reader.settled().await;
}

#[tokio::test]
async fn two_questions_of_a_batch_wait_each_for_its_own_answer() {
    let app = TestApp::new().await;
    let (chat, mut reader) = begun(&app).await;
    app.model.call(&[("q1", "quiz", quiz()), ("q2", "ask_user_question", json!({"question": "Ready?"}))]).await;
    run_ends(&mut reader).await;
    app.input(&chat, json!({"type": "answer", "toolCallId": "q1", "answer": {"values": ["4"]}})).await;
    assert_eq!(next(&app.record(&chat).await), Next::Answer(vec!["q2".to_owned()]));
    assert!(app.model.is_idle());
    app.input(&chat, json!({"type": "answer", "toolCallId": "q2", "answer": {"text": "Yes"}})).await;
    app.model.reply("Good.").await;
    reader.settled().await;
}

#[tokio::test]
async fn a_malformed_question_is_an_error_that_the_model_reads_and_no_card() {
    let malformed =
        [json!({"question": 7}), ask(&json!(["A", "A", ""])), ask(&json!(["A", "A"])), ask(&json!(["A", " "]))];
    for args in malformed {
        let app = TestApp::new().await;
        let (chat, mut reader) = begun(&app).await;
        app.model.call(&[("q1", "ask_user_question", args.clone())]).await;
        let asked = app.model.request().await;
        assert!(asked.texts()[2].starts_with("result! ask_user_question#q1 "), "{args}: {:?}", asked.texts());
        asked.end(StopReason::Stop);
        reader.settled().await;
        assert!(pending(&app.record(&chat).await).is_empty(), "{args}");
    }
}

#[tokio::test]
async fn a_question_whose_id_came_before_is_a_question_of_its_own() {
    let app = TestApp::new().await;
    let (chat, mut reader) = begun(&app).await;
    for value in ["4", "3"] {
        app.model.call(&[("call_0", "quiz", quiz())]).await;
        run_ends(&mut reader).await;
        let answer = json!({"type": "answer", "toolCallId": "call_0", "answer": {"values": [value]}});
        assert_eq!(app.input(&chat, answer).await.status, 202);
    }
    let asked = app.model.request().await;
    let verdicts: Vec<String> = asked.texts().into_iter().filter(|line| line.starts_with("result")).collect();
    assert_eq!(
        verdicts,
        [
            "result quiz#call_0 The learner answered: 4\nThat is correct.",
            "result quiz#call_0_2 The learner answered: 3\nThat is wrong; right is: 4"
        ]
    );
    asked.end(StopReason::Stop);
    reader.settled().await;
}
