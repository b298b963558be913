//! Any record, however it was cut, makes a request that providers accept, and loses nothing that was said: records at
//! random, through both dialects, before a judge who knows the providers' rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use learnharness::app::native::partial::parse_repaired;
use learnharness::app::native::{Marker, Message, Seq, StopReason, Stored, ToolResultMessage};
use learnharness::server::agent::context::to_llm;
use learnharness::server::llm::Request;
use learnharness::server::llm::catalog::{Api, Input, Model};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::thinking::ThinkingLevel;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::judge::{LONG_ID, body_of, judge};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap());

/// Ids as providers give them: used again, of two parts, empty, long, and ones that only differ in a bad sign.
const IDS: [&str; 11] = [
    "call_0",
    "call_0",
    "call_0_2",
    "call.0",
    "call|fc_1",
    "call_fc_1",
    "call|fc_1",
    "call_fc_1",
    "",
    "abcDEF123",
    "functions.look:0/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const NAMES: [&str; 5] = ["look", "quiz", "search web", "", "ask_user_question"];
const STOPS: [&str; 8] = ["stop", "toolUse", "length", "error", "aborted", "pending", "toolUse", "stop"];
const IMAGES: [&str; 3] = ["image/png", "image/svg+xml", ""];
/// Ends of texts; the second is half of a character, as JSON may hold it.
const ENDS: [&str; 5] = ["", r" \ud83c", r" 🌱 \udf31", r" \u0000", r"\n"];
const BLANKS: [&str; 4] = ["", " ", r" \n\t", r"\u00a0"];

/// A number in the place of each text that must not be lost; it is filled in with the record.
const MARK: &str = "«?»";

fn one_of(list: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(list)
}

/// Something to read, as JSON.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => one_of(&ENDS).prop_map(|end| format!(r#""{MARK}{end}""#)),
        1 => one_of(&BLANKS).prop_map(|blank| format!(r#""{blank}""#)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    words().prop_map(|words| format!(r#"{{"type":"text","text":{words}}}"#))
}

fn image() -> impl Strategy<Value = String> {
    let data = prop_oneof![Just("iVBORw0KGgo="), Just("")];
    (one_of(&IMAGES), data)
        .prop_map(|(kind, data)| format!(r#"{{"type":"image","mimeType":"{kind}","data":"{data}"}}"#))
}

fn thinking() -> impl Strategy<Value = String> {
    let signature = prop_oneof![
        1 => Just(Value::Null),
        6 => Just(json!("c2ln")),
        1 => Just(json!("")),
        1 => Just(json!("reasoning_content")),
        1 => Just(json!(r#"[{"type":"reasoning.encrypted","data":"QUJD"}]"#)),
    ];
    let redacted = prop_oneof![3 => Just(false), 1 => Just(true)];
    (prop_oneof![Just("Hm."), Just("")], signature, redacted).prop_map(|(thinking, signature, redacted)| {
        let mut block = json!({"type": "thinking", "thinking": thinking});
        if !signature.is_null() {
            block["thinkingSignature"] = signature;
        }
        if redacted {
            block["redacted"] = true.into();
        }
        block.to_string()
    })
}

fn call() -> impl Strategy<Value = String> {
    let arguments =
        prop_oneof![Just(json!({"q": 1})), Just(json!({})), Just(Value::Null), Just(json!("[")), Just(json!([1]))];
    (one_of(&IDS), one_of(&NAMES), arguments).prop_map(|(id, name, arguments)| {
        json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments, "thoughtSignature": "s"}).to_string()
    })
}

fn odd() -> impl Strategy<Value = String> {
    prop_oneof![Just(r#"{"type":"future","x":1}"#), Just(r#"{"type":"text"}"#), Just("7")].prop_map(str::to_owned)
}

fn list(block: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(block, 0..6).prop_map(|blocks| format!("[{}]", blocks.join(",")))
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![words(), list(prop_oneof![text(), image(), odd()])]
}

fn answer() -> impl Strategy<Value = String> {
    let makers = prop_oneof![3 => Just(("openai-completions", "acme", "m")), 3 => Just(("anthropic-messages", "acme", "m")),
        1 => Just(("openai-completions", "acme", "other")), 1 => Just(("lesson", "", ""))];
    let blocks = list(prop_oneof![2 => text(), 2 => thinking(), 4 => call(), 1 => odd(), 1 => image()]);
    (blocks, makers, one_of(&STOPS)).prop_map(|(blocks, (api, provider, model), stop)| {
        format!(
            r#"{{"role":"assistant","content":{blocks},"api":"{api}","provider":"{provider}","model":"{model}","stopReason":"{stop}"}}"#
        )
    })
}

fn result() -> impl Strategy<Value = String> {
    let details = prop_oneof![4 => Just("null"), 1 => Just(r#"{"posed":true}"#), 1 => Just(r#"{"posed":false}"#)];
    let blocks = list(prop_oneof![4 => text(), 1 => image(), 1 => odd()]);
    (one_of(&IDS), one_of(&NAMES), blocks, details, any::<bool>()).prop_map(|(id, name, blocks, details, is_error)| {
        format!(
            r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"{name}","content":{blocks},"details":{details},"isError":{is_error}}}"#
        )
    })
}

fn marker() -> impl Strategy<Value = String> {
    let kinds = prop_oneof![
        4 => (0..16u8).prop_map(|at| ("retry", format!(r#"{{"replaces":{at}}}"#))),
        1 => Just(("interrupted", "null".to_owned())),
        1 => Just(("steer", r#"{"jobId":"j","kind":"demo","outcome":"done","summary":"s"}"#.to_owned())),
        1 => Just(("somebody's", "[1]".to_owned())),
    ];
    (kinds, content()).prop_map(|((kind, details), content)| {
        format!(r#"{{"role":"custom","customType":"{kind}","content":{content},"display":true,"details":{details},"id":"i"}}"#)
    })
}

/// Messages of every kind in any order, with marks that count them, read as the store reads them.
fn record() -> impl Strategy<Value = Vec<Stored>> {
    let user = content().prop_map(|content| format!(r#"{{"role":"user","content":{content}}}"#));
    let message = prop_oneof![2 => user, 4 => answer(), 4 => result(), 1 => marker()];
    prop::collection::vec(message, 0..14).prop_map(|messages| {
        let mut count = 0..;
        let numbered = |json: String| {
            let mut pieces = json.split(MARK);
            let first = pieces.next().unwrap_or_default().to_owned();
            pieces.fold(first, |text, piece| format!("{text}«{}»{piece}", count.next().unwrap_or_default()))
        };
        let messages: Vec<String> = messages.into_iter().map(numbered).collect();
        let read = |json: &String| serde_json::from_value(parse_repaired(json).unwrap()).unwrap();
        messages.iter().zip(1..).map(|(json, seq)| Stored { seq: Seq(seq), message: read(json) }).collect()
    })
}

/// Models of both APIs, as strict and as odd as they come.
fn model() -> impl Strategy<Value = (Model, Options)> {
    let host = prop_oneof![
        Just("http://proxy"),
        Just("https://api.openai.com/v1"),
        Just("https://api.mistral.ai/v1"),
        Just("https://openrouter.ai/api/v1")
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let level = prop_oneof![Just(ThinkingLevel::Off), Just(ThinkingLevel::Low)];
    (any::<bool>(), host, flags, level).prop_map(|(chat, host, (reasoning, sees, bridge, as_text, named), thinking)| {
        let api = if chat { Api::OpenAiCompletions } else { Api::AnthropicMessages };
        let mut model = Model { provider: "acme".into(), reasoning, ..Model::at(api, host, "m") };
        if sees {
            model.input = vec![Input::Text, Input::Image];
        }
        model.compat.requires_assistant_after_tool_result = Some(bridge);
        model.compat.requires_thinking_as_text = Some(as_text);
        model.compat.requires_tool_result_name = Some(named);
        model.compat.requires_reasoning_content_on_assistant_messages = Some(named);
        model.compat.allow_empty_signature = Some(as_text);
        model.compat.force_adaptive_thinking = Some(named && as_text);
        (model, Options { thinking, ..Options::default() })
    })
}

fn body(record: &[Stored], (model, options): &(Model, Options)) -> Value {
    let request = Request {
        model: model.clone(),
        system: "Teach.".to_owned(),
        messages: to_llm(record),
        tools: Vec::new(),
        session: String::new(),
        options: options.clone(),
    };
    RUNTIME.block_on(body_of(request))
}

/// All marks in `text`, in order.
fn marks(text: &str) -> Vec<&str> {
    text.split('«').skip(1).filter_map(|rest| rest.split_once('»')).map(|(mark, _)| mark).collect()
}

/// What was said in a record: not results, and not what a retry has replaced.
fn said(record: &[Stored]) -> String {
    let failed = |seq: &Seq| {
        let answer = record.iter().find(|stored| stored.seq == *seq).and_then(|stored| stored.message.as_assistant());
        answer.is_some_and(|answer| matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
    };
    let retries = record.iter().filter_map(|stored| match &stored.message {
        Message::Custom(custom) => match Marker::read(custom) {
            Some(Marker::Retry { replaces }) => Some(replaces).filter(|seq| *seq < stored.seq && failed(seq)),
            _ => None,
        },
        _ => None,
    });
    let replaced: Vec<Seq> = retries.collect();
    let shown = record.iter().filter(|stored| !replaced.contains(&stored.seq));
    shown
        .map(|stored| match &stored.message {
            Message::User(user) => user.content.text(),
            Message::Assistant(answer) => answer.text(),
            Message::Custom(custom) => custom.content.text(),
            Message::ToolResult(_) => String::new(),
        })
        .collect()
}

/// Texts of a request's messages: of results, or of all others.
fn told(body: &Value, of_results: bool) -> String {
    let mut told = String::new();
    for message in body["messages"].as_array().unwrap() {
        let is_result = message["role"] == "tool";
        if let Some(text) = message["content"].as_str().filter(|_| is_result == of_results) {
            told += text;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let is_result = is_result || block["type"] == "tool_result";
            let text =
                if block["type"] == "tool_result" { block["content"].to_string() } else { block["text"].to_string() };
            if is_result == of_results {
                told += &text;
            }
        }
    }
    told
}

/// The results of a record by their ids, and how many calls wait for them.
fn pairs(record: &[Stored]) -> BTreeMap<&str, (usize, Vec<&ToolResultMessage>)> {
    let mut pairs: BTreeMap<&str, (usize, Vec<&ToolResultMessage>)> = BTreeMap::new();
    for stored in record {
        match &stored.message {
            Message::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::Pending) =>
            {
                for call in answer.tool_calls() {
                    pairs.entry(&call.id).or_default().0 += 1;
                }
            }
            Message::ToolResult(result) if !result.is_posed_placeholder() => {
                pairs.entry(&result.tool_call_id).or_default().1.push(result);
            }
            _ => {}
        }
    }
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_record_makes_a_request_that_its_provider_accepts(record in record(), target in model()) {
        let body = body(&record, &target);
        // Ids that a server has given itself go back to it, however long.
        let may_be_long = !target.0.base_url.contains("openai.com");
        let faults: Vec<String> =
            judge(target.0.api, &body).into_iter().filter(|fault| !(may_be_long && fault.starts_with(LONG_ID))).collect();
        prop_assert!(faults.is_empty(), "{:#?}\n{:#}", faults, body);
    }

    #[test]
    fn nothing_that_was_said_is_lost_or_moved(record in record(), target in model()) {
        let body = body(&record, &target);
        let (said, told) = (said(&record), told(&body, false));
        prop_assert_eq!(marks(&said), marks(&told), "{:#}", body);
    }

    #[test]
    fn a_result_is_lost_only_when_its_call_has_another_or_is_not_there(record in record(), target in model()) {
        let body = body(&record, &target);
        let told = told(&body, true);
        let told: BTreeSet<&str> = marks(&told).into_iter().collect();
        for (id, (calls, results)) in pairs(&record) {
            let texts: Vec<String> = results.iter().map(|result| result.text()).filter(|text| text.contains('«')).collect();
            let lost = texts.iter().filter(|text| !marks(text).iter().all(|mark| told.contains(mark))).count();
            prop_assert!(lost <= results.len().saturating_sub(calls), "{} of {:?}: {:#}", lost, id, body);
        }
    }

    #[test]
    fn a_request_begins_like_the_one_before_it(record in record(), target in model(), more in record()) {
        // What comes later may answer calls that waited; but no id and no text of an answer changes.
        let ids = |record: &[Stored]| -> Vec<String> {
            let calls = |message: &Message| message.as_assistant().into_iter().flat_map(|answer| answer.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>()).collect::<Vec<_>>();
            to_llm(record).iter().flat_map(|message| calls(message)).collect()
        };
        let no_retry = |stored: &Stored| !matches!(&stored.message, Message::Custom(custom) if custom.custom_type == "retry");
        let mut longer = record.clone();
        longer.extend(more.into_iter().filter(no_retry).zip(record.len() as u32 + 1..).map(|(stored, seq)| Stored { seq: Seq(seq), ..stored }));
        let (one, two) = (ids(&record), ids(&longer));
        prop_assert!(two.starts_with(&one), "{:?}, then {:?}", one, two);
        prop_assert_eq!(body(&record, &target), body(&record, &target));
    }
}
