//! What a learner should know about an answer that looks sound: that its server has read only the end of the request, or
//! that the model wrote a call as text. The answer counts all the same.

use serde_json::Value;

use crate::app::native::marker::NoticeKind;
use crate::app::native::{AssistantMessage, Marker, Message, Stored};

/// Tokens up to which a request is too short to tell whether it was cut.
const SHORT: u64 = 3000;
/// How models write a call when their server does not read it: what opens it and what closes it.
const MARKUP: [(&str, &str); 5] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("[TOOL_CALLS]", ""),
    ("```tool_call", "```"),
];

/// The markers that belong behind `answer`, the last message of `record`. `estimated` is how many tokens its request had
/// at least; `offered` whether it offered tools.
pub(super) fn remarks(answer: &AssistantMessage, record: &[Stored], estimated: u64, offered: bool) -> Vec<Marker> {
    let mut remarks = Vec::new();
    let usage = &answer.usage;
    let counted = usage.input + usage.cache_read + usage.cache_write;
    if estimated > SHORT && counted > 0 && counted * 2 < estimated && !was_told(&answer.model, record) {
        remarks.push(Marker::CutPrompt { counted, estimated });
    }
    if offered && answer.tool_calls().next().is_none() && ends_with_call(&answer.text()) {
        remarks.push(Marker::Notice { kind: NoticeKind::CallAsText });
    }
    remarks
}

/// True when the learner was told already that this model's server cuts its requests.
fn was_told(model: &str, record: &[Stored]) -> bool {
    let mut asked = "";
    record.iter().any(|stored| match &stored.message {
        Message::Assistant(answer) => {
            asked = &answer.model;
            false
        }
        Message::Custom(custom) => asked == model && matches!(Marker::read(custom), Some(Marker::CutPrompt { .. })),
        Message::User(_) | Message::ToolResult(_) => false,
    })
}

/// True for a text whose whole end is a call as a model would write it. Such markup in the middle is quoted.
fn ends_with_call(text: &str) -> bool {
    MARKUP.iter().any(|(open, close)| {
        let inside = text.trim_end().strip_suffix(close).and_then(|text| Some(text.rsplit_once(open)?.1));
        let call = inside.and_then(|json| serde_json::from_str::<Value>(json).ok());
        call.is_some_and(|call| {
            let call = if call.is_array() { &call[0] } else { &call };
            call["name"].is_string() && (call["arguments"].is_object() || call["parameters"].is_object())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::native::{Block, Seq, Usage};

    fn answer(model: &str, usage: Usage) -> AssistantMessage {
        AssistantMessage { model: model.to_owned(), usage, ..AssistantMessage::default() }
    }

    fn stored(messages: Vec<Message>) -> Vec<Stored> {
        messages.into_iter().zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message }).collect()
    }

    #[test]
    fn a_prompt_that_was_cut_is_told_once_a_model() {
        let counted = |input, cache_read| Usage { input, cache_read, ..Usage::default() };
        let told =
            |usage, record: &[Stored], estimated| !remarks(&answer("m", usage), record, estimated, false).is_empty();
        assert!(told(counted(2051, 0), &[], 16_000));
        assert!(!told(counted(0, 0), &[], 16_000), "nothing was counted");
        assert!(!told(counted(2051, 6000), &[], 16_000), "the rest came from a cache");
        assert!(!told(counted(1000, 0), &[], 3000), "too short to tell");
        assert!(!told(counted(8000, 0), &[], 16_000));
        let marker = || Marker::CutPrompt { counted: 1, estimated: 9 }.into_message("i".to_owned(), 0);
        let before = |model| stored(vec![Message::Assistant(answer(model, Usage::default())), marker()]);
        assert!(!told(counted(2051, 0), &before("m"), 16_000), "it was told before");
        assert!(told(counted(2051, 0), &before("other"), 16_000), "that was another model");
    }

    #[test]
    fn a_text_that_ends_with_a_call_is_remarked_and_one_that_quotes_it_is_not() {
        let remarked = |text: &str, offered| {
            let answer = AssistantMessage { content: vec![Block::text(text)], ..AssistantMessage::default() };
            !remarks(&answer, &[], 0, offered).is_empty()
        };
        let call = r#"{"name":"read","arguments":{"path":"a"}}"#;
        for text in [
            format!("Let me look.\n<tool_call>{call}</tool_call>"),
            format!("<tool_call>\n{call}\n</tool_call>\n"),
            format!("[TOOL_CALLS][{call}]"),
            format!("```tool_call\n{call}\n```"),
        ] {
            assert!(remarked(&text, true), "{text}");
            assert!(!remarked(&text, false), "nothing was offered");
        }
        for text in [
            "To call a tool, models write `<tool_call>{\"name\":\"ls\"}</tool_call>`.".to_owned(),
            format!("They write <tool_call>{call}</tool_call> and wait."),
            "<tool_call>not JSON</tool_call>".to_owned(),
            call.to_owned(),
        ] {
            assert!(!remarked(&text, true), "{text}");
        }
    }
}
