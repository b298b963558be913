//! What crosses the wire, as text: in and out again.

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::event::{ToolCallEntry, ToolOutput, ToolResultEntry};
use super::question::{Ask, Graded, Quiz};
use super::view::{ChatSummary, ChatView, Next};
use super::*;

const USER: &str = r#"{"role":"user","content":"hi","timestamp":3}"#;
const USAGE: &str = concat!(
    r#"{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"#,
    r#""cost":{"input":0.5,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.5}}"#
);

/// `text` as it comes out again.
fn through<T: DeserializeOwned + Serialize>(text: &str) -> String {
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    serde_json::to_string(&read).unwrap()
}

fn same<T: DeserializeOwned + Serialize>(text: &str) {
    assert_eq!(through::<T>(text), text);
}

fn fault<T: DeserializeOwned>(text: &str) -> String {
    serde_json::from_str::<T>(text).err().unwrap_or_else(|| panic!("{text} was read")).to_string()
}

#[test]
fn every_kind_of_message_comes_out_as_it_went_in() {
    same::<Message>(USER);
    same::<Message>(
        r#"{"role":"user","content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"timestamp":3}"#,
    );
    same::<Message>(&format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"a","textSignature":"s"}},{{"type":"thinking","thinking":"t","thinkingSignature":"s","redacted":true}},{{"type":"toolCall","id":"c","name":"quiz","arguments":{{"z":1,"a":[2.5]}},"thoughtSignature":"s","partialArgs":"{{"}}],"api":"x","provider":"p","model":"m","responseModel":"n","responseId":"r","usage":{USAGE},"stopReason":"toolUse","errorMessage":"e","timestamp":3,"diagnostics":[1]}}"#
    ));
    same::<Message>(&format!(
        r#"{{"role":"toolResult","toolCallId":"c","toolName":"quiz","content":[],"details":{{"b":1,"a":2}},"usage":{USAGE},"isError":true,"timestamp":3}}"#
    ));
    same::<Message>(
        r#"{"role":"custom","customType":"own","content":"c","display":true,"details":{"b":1,"a":2},"id":"i","timestamp":3}"#,
    );
}

#[test]
fn every_event_comes_out_as_it_went_in() {
    for event in [
        r#"{"type":"agent_start"}"#.to_owned(),
        r#"{"type":"turn_start"}"#.to_owned(),
        format!(r#"{{"type":"message_start","message":{USER}}}"#),
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"d"}}"#.to_owned(),
        format!(
            r#"{{"type":"message_update","message":{USER},"assistantMessageEvent":{{"type":"toolcall_start","contentIndex":0}}}}"#
        ),
        format!(r#"{{"type":"message_end","message":{USER}}}"#),
        r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"n","args":{"b":1,"a":2}}"#.to_owned(),
        r#"{"type":"tool_execution_update","toolCallId":"c","toolName":"n","args":{},"partialResult":{"content":[]}}"#.to_owned(),
        r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"n","result":{"content":[],"details":{"a":1}},"isError":false}"#.to_owned(),
        format!(
            r#"{{"type":"turn_end","message":{USER},"toolResults":[{{"role":"toolResult","toolCallId":"c","toolName":"n","content":[],"isError":false,"timestamp":3}}]}}"#
        ),
        format!(r#"{{"type":"agent_end","messages":[{USER}]}}"#),
        r#"{"type":"turn-settled"}"#.to_owned(),
        r#"{"type":"error","error":{"kind":"not-found","message":"m"}}"#.to_owned(),
        r#"{"type":"activity","running":true,"jobs":[]}"#.to_owned(),
        r#"{"type":"activity","running":true,"retry":{"attempt":1,"waitMs":3000,"reason":"Busy."}}"#.to_owned(),
    ] {
        same::<AgentEvent>(&event);
    }
    for kind in ["text", "thinking"] {
        same::<AssistantEvent>(&format!(r#"{{"type":"{kind}_start","contentIndex":0}}"#));
        same::<AssistantEvent>(&format!(r#"{{"type":"{kind}_delta","contentIndex":0,"delta":"d"}}"#));
        same::<AssistantEvent>(&format!(r#"{{"type":"{kind}_end","contentIndex":0,"content":"d"}}"#));
    }
    same::<AssistantEvent>(r#"{"type":"toolcall_delta","contentIndex":0,"delta":"{"}"#);
    same::<AssistantEvent>(
        r#"{"type":"toolcall_end","contentIndex":0,"toolCall":{"type":"toolCall","id":"i","name":"n","arguments":{}}}"#,
    );
}

#[test]
fn inputs_views_and_errors_come_out_as_they_went_in() {
    same::<InputEvent>(r#"{"type":"text","text":"t","note":"n"}"#);
    same::<InputEvent>(
        r#"{"type":"answer","toolCallId":"c","answer":{"values":["a"],"other":"o","text":"t","dontKnow":true,"note":"n"},"dismissed":true}"#,
    );
    same::<InputEvent>(r#"{"type":"verdict","accepted":false}"#);
    same::<InputEvent>(r#"{"type":"retry"}"#);
    same::<InputEvent>(r#"{"type":"hint","toolCallId":"c"}"#);
    same::<InputEvent>(r#"{"type":"objection","toolCallId":"c","reason":"r"}"#);
    same::<ErrorBody>(r#"{"error":{"kind":"too-large","message":"m","runId":"r","accepted":{"b":1,"a":2}}}"#);
    same::<Accepted>(r#"{"runId":null,"seq":4}"#);
    same::<Graded>(r#"{"kind":"quiz","verdict":"dontKnow","answer":{"dontKnow":true},"correct":["a"],"note":"n"}"#);
    for next in [r#""idle""#, r#""reply""#, r#""answer","of":["c"]"#, r#""verdict","of":"c""#, r#""handoff""#] {
        same::<Next>(&format!(r#"{{"kind":{next}}}"#));
    }
    same::<ChatSummary>(&format!(
        r#"{{"id":"i","title":"t","phase":"teach","next":{{"kind":"idle"}},"running":false,"updated":5,"usage":{USAGE}}}"#
    ));
    same::<ChatView>(&format!(
        r#"{{"id":"i","title":"t","phase":"plan","running":true,"pending":[{{"toolCallId":"c","toolName":"quiz","args":{{}}}}],"plan":{{"toolCallId":"p","plan":{{"title":"t","goal":"g","blocks":[{{"id":"a","title":"A","objective":"o","concepts":["c"]}}]}},"verdict":"sentBack","progress":["started"]}},"usage":{USAGE},"jobs":[{{}}],"messages":[{{"seq":1,"message":{USER}}}]}}"#
    ));
}

#[test]
fn markers_are_read_from_the_messages_that_they_make() {
    for (marker, details) in [
        (Marker::Interrupted, "null"),
        (Marker::PlanVerdict { accepted: true, note: None }, r#"{"accepted":true,"note":null}"#),
        (Marker::Retry { replaces: Seq(3) }, r#"{"replaces":3}"#),
        (Marker::Hint { tool_call_id: "c".to_owned() }, r#"{"toolCallId":"c"}"#),
    ] {
        let Message::Custom(message) = marker.clone().into_message("i".to_owned(), 3) else { panic!("{marker:?}") };
        assert_eq!(message.details.to_string(), details);
        assert_eq!(Marker::read(&message), Some(marker));
        assert_eq!(Marker::read(&CustomMessage { details: json!("odd"), ..message }), None);
    }
}

#[test]
fn what_may_be_missing_gets_its_default() {
    let message =
        through::<Message>(r#"{"stopReason":"stop","role":"assistant","usage":{"input":4},"errorMessage":null}"#);
    assert_eq!(
        message,
        r#"{"role":"assistant","content":[],"api":"","provider":"","model":"","usage":{"input":4,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}},"stopReason":"stop","timestamp":0}"#
    );
    let answer = through::<InputEvent>(r#"{"type":"answer","toolCallId":"c"}"#);
    assert_eq!(answer, r#"{"type":"answer","toolCallId":"c","answer":{},"dismissed":false}"#);
    assert_eq!(through::<Accepted>(r#"{"seq":4}"#), r#"{"runId":null,"seq":4}"#);
    assert_eq!(through::<ToolOutput>("{}"), r#"{"content":[]}"#);
    let ask: Ask = serde_json::from_str(r#"{"question":3,"options":[1.0,null,true]}"#).unwrap();
    assert_eq!((ask.question.as_str(), ask.options.join("|").as_str(), ask.allow_other), ("3", "1||true", true));
}

#[test]
fn unknown_fields_and_blocks_survive_in_their_order() {
    same::<Message>(r#"{"role":"user","content":"hi","timestamp":3,"z":{"b":1,"a":null},"a":[1e+300],"m":-7}"#);
    let scattered = through::<Message>(r#"{"z":1,"timestamp":3,"y":2,"content":"hi","role":"user","x":3}"#);
    assert_eq!(scattered, r#"{"role":"user","content":"hi","timestamp":3,"z":1,"y":2,"x":3}"#);
    same::<Block>(r#"{"type":"text","text":"t","z":1,"a":2}"#);
    for other in [
        r#"{"z":1,"type":"citation","a":{"c":1,"b":2}}"#,
        r#"{"type":"text","z":1,"text":7,"a":2}"#,
        r#"{"type":"toolCall","id":"i"}"#,
        r#"{"text":"no type"}"#,
        r#""bare""#,
        "null",
    ] {
        same::<Block>(other);
        assert!(matches!(serde_json::from_str(other).unwrap(), Block::Other(_)), "{other}");
    }
}

#[test]
fn a_fault_names_its_field() {
    let check = |fault: String, words: &str| assert_eq!(fault.split(" at line").next().unwrap(), words);
    check(fault::<InputEvent>(r#"{"type":"answer"}"#), "missing field `toolCallId`");
    check(fault::<InputEvent>(r#"{"text":"t"}"#), "missing field `type`");
    check(fault::<InputEvent>(r#"{"type":"text","text":"a","text":"b"}"#), "duplicate field `text`");
    check(
        fault::<InputEvent>(r#"{"type":"answer","toolCallId":"c","answer":{"values":["a",7]}}"#),
        "field `answer.values.1`: expected a string, got the number 7",
    );
    check(
        fault::<InputEvent>(r#"{"type":"wish"}"#),
        "`wish` is none of `text`, `answer`, `verdict`, `retry`, `hint`, `objection`",
    );
    check(
        fault::<Message>(r#"{"role":"assistant","stopReason":"tired"}"#),
        "field `stopReason`: `tired` is none of `pending`, `stop`, `length`, `toolUse`, `error`, `aborted`",
    );
    check(fault::<Message>(r#"{"role":"user","content":7}"#), "field `content`: expected a list, got the number 7");
    check(fault::<Accepted>(r#"{"seq":-1}"#), "field `seq`: expected a whole number of 32 bits, got the number -1");
    check(fault::<Quiz>("[]"), "expected an object, got a list");
    check(fault::<ToolCallEntry>(r#"{"type":"toolCall","id":"i"}"#), "missing field `name`");
    check(fault::<ToolResultEntry>(r#"{"role":"user"}"#), "`user` is none of `toolResult`");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Fields that no message knows, in any order.
fn extra() -> impl Strategy<Value = Map<String, Value>> {
    vec(("x[a-z]{0,4}", value()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        (any::<String>(), any::<Option<String>>(), extra()).prop_map(|(text, text_signature, extra)| {
            Block::Known(message::KnownBlock::Text(message::TextBlock { text, text_signature, extra }))
        }),
        (any::<String>(), any::<Option<bool>>(), extra()).prop_map(|(thinking, redacted, extra)| {
            let block = message::ThinkingBlock { thinking, thinking_signature: None, redacted, extra };
            Block::Known(message::KnownBlock::Thinking(block))
        }),
        (any::<String>(), value(), any::<Option<String>>(), extra()).prop_map(
            |(id, arguments, partial_args, extra)| {
                ToolCall { name: id.clone(), id, arguments, thought_signature: None, partial_args, extra }.into()
            }
        ),
        value().prop_map(Block::Other),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let blocks = || vec(block(), 0..4);
    prop_oneof![
        (any::<String>(), any::<i64>(), extra()).prop_map(|(text, timestamp, extra)| {
            Message::User(UserMessage { content: text.into(), timestamp, extra })
        }),
        (blocks(), any::<Option<String>>(), any::<u64>(), extra()).prop_map(
            |(content, error_message, input, extra)| {
                let usage = Usage { input, reasoning: Some(input), ..Usage::default() };
                Message::Assistant(AssistantMessage {
                    content,
                    error_message,
                    usage,
                    extra,
                    ..AssistantMessage::default()
                })
            }
        ),
        (any::<String>(), blocks(), any::<bool>(), extra()).prop_map(|(tool_call_id, content, is_error, extra)| {
            Message::ToolResult(ToolResultMessage {
                tool_name: tool_call_id.clone(),
                tool_call_id,
                content,
                details: Some(json!({"posed": is_error})),
                usage: None,
                is_error,
                timestamp: 0,
                extra,
            })
        }),
        (any::<String>(), blocks(), value(), extra()).prop_map(|(id, content, details, extra)| {
            let (custom_type, content) = (id.clone(), Content::Blocks(content));
            Message::Custom(CustomMessage { custom_type, content, display: true, details, id, timestamp: 1, extra })
        }),
    ]
}

proptest! {
    #[test]
    fn any_message_is_read_as_it_was_written(message in any_message()) {
        let text = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Message>(&text).unwrap(), &message);
        prop_assert_eq!(serde_json::to_value(&message).unwrap().to_string(), text.as_str());
        prop_assert_eq!(serde_json::from_value::<Message>(serde_json::from_str(&text).unwrap()).unwrap(), message);
    }
}
