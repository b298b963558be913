//! Calls whose ids a server counts anew in every answer, from the provider's wire to the record.

use learnharness::app::native::{AssistantMessage, Message};
use learnharness::server::llm::catalog::{Api, Models};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::transport::Limits;
use serde_json::{Value, json};

use crate::record::quiz;
use crate::support::app::TestApp;
use crate::support::dialect::{model, speaker};
use crate::support::provider::{Provider, Reply};

/// A reply that asks a question by a call of this id.
fn asks(api: Api, id: &str) -> Reply {
    let arguments = quiz().to_string();
    match api {
        Api::AnthropicMessages => {
            let block = json!({"type": "tool_use", "id": id, "name": "quiz", "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            let events = [
                json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 5}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": block}),
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ];
            Reply::events(events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())))
        }
        _ => {
            let function = json!({"name": "quiz", "arguments": arguments});
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"});
            Reply::events([format!("data: {}\n\n", json!({"choices": [choice]})), "data: [DONE]\n\n".to_owned()])
        }
    }
}

#[tokio::test]
async fn an_answer_to_a_question_is_never_taken_for_one_to_a_later_question_of_the_same_id() {
    for api in [Api::OpenAiCompletions, Api::AnthropicMessages] {
        let provider = Provider::start([asks(api, "call0"), asks(api, "call0")]).await;
        let dialect = speaker(api, Limits { retries: 0, ..Limits::default() });
        let models = Models { model: model(api, &provider), dialect, options: Options::default() };
        let app = TestApp::with_models(models).await;
        let chat = app.chat().await;
        let mut reader = app.watch(&chat).await;
        app.text(&chat, "hi").await;
        reader.settled().await;
        let answer = json!({"type": "answer", "toolCallId": "call0", "answer": {"values": ["4"]}});
        assert_eq!(app.input(&chat, answer.clone()).await.status, 202);
        reader.settled().await;
        let again = app.input(&chat, answer).await;
        assert_eq!((again.status.as_u16(), again.kind().as_str()), (409, "answered"));
        let record = app.record(&chat).await;
        let ids =
            record.iter().filter_map(|stored| stored.message.as_assistant()).flat_map(AssistantMessage::tool_calls);
        let ids: Vec<&str> = ids.map(|call| call.id.as_str()).collect();
        assert!(ids.len() == 2 && ids[0] == "call0" && ids[1] != "call0", "{ids:?}");
        let results = record.iter().filter(|stored| matches!(stored.message, Message::ToolResult(_)));
        assert_eq!(results.count(), 1);
        let next = app.get(&format!("/api/chats/{chat}")).await.json();
        assert_eq!(next["pending"][0]["toolCallId"], Value::from(ids[1]));
    }
}
