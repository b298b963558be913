//! Answers with nothing in them: an end that the provider calls orderly, and no word and no call before it.
//!
//! Such an answer stays in the record as an error, with what is known of it in its `diagnostics`, and the model is asked
//! once more. Some upstreams do this with whole rows of requests, so that the second one goes to another of them where the
//! provider lets us choose. Thinking is no answer: the best known false stop leaves a sliver of it behind a batch of
//! results, and bills some two hundred tokens.

use serde_json::{Value, json};

use crate::app::native::marker::NoticeKind;
use crate::app::native::message::{EMPTY_ANSWER, KnownBlock};
use crate::app::native::{AssistantMessage, Block, Marker, Message, StopReason, Stored};
use crate::server::clock::now_ms;
use crate::server::llm::overflow;

/// What an answer has instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Nothing,
    OnlyThinking,
    /// The end says that calls were made.
    NoCall,
    /// Its tokens were used up before it began.
    LimitUsedUp,
}

impl Case {
    /// None when there is an answer, or when it did not come to an end.
    fn of(answer: &AssistantMessage) -> Option<Self> {
        if !answer.text().trim().is_empty() || answer.tool_calls().next().is_some() {
            return None;
        }
        let thinks = answer.content.iter().any(|block| matches!(block, Block::Known(KnownBlock::Thinking(_))));
        match answer.stop_reason {
            StopReason::Stop if thinks => Some(Self::OnlyThinking),
            StopReason::Stop => Some(Self::Nothing),
            StopReason::ToolUse => Some(Self::NoCall),
            StopReason::Length => Some(Self::LimitUsedUp),
            StopReason::Pending | StopReason::Error | StopReason::Aborted => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::OnlyThinking => "only-thinking",
            Self::NoCall => "no-call",
            Self::LimitUsedUp => "limit-used-up",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "The model ended its turn without an answer.",
            Self::OnlyThinking => "The model thought, and ended its turn without an answer.",
            Self::NoCall => "The model said that it calls a tool, and called none.",
            Self::LimitUsedUp => "The model used up its limit of tokens before it came to an answer.",
        }
    }
}

/// `answer` as the record keeps it: an error when there is nothing in it. `upstream` is who answered behind the provider.
pub(super) fn told(mut answer: AssistantMessage, upstream: Option<&str>, context_window: u64) -> AssistantMessage {
    let Some(case) = Case::of(&answer) else { return answer };
    let overflows = case == Case::LimitUsedUp && context_window > 0 && overflow::is_silent(&answer, context_window);
    answer.error_message = Some(if overflows {
        // Asking again would not help.
        "The conversation is too long for the model.".to_owned()
    } else {
        diagnose(&mut answer, case, upstream);
        case.words().to_owned()
    });
    answer.stop_reason = StopReason::Error;
    answer
}

/// The empty answer that is being asked for again, when the record ends with that.
pub(super) fn asked_again(record: &[Stored]) -> Option<&AssistantMessage> {
    let mut is_asked = false;
    for stored in record.iter().rev() {
        match &stored.message {
            Message::Custom(custom) => {
                let empty = Marker::Notice { kind: NoticeKind::EmptyAnswer };
                is_asked |= Marker::read(custom) == Some(empty);
            }
            Message::Assistant(answer) => return Some(answer).filter(|answer| is_asked && answer.was_empty()),
            // What had been waiting came in between.
            Message::User(_) if is_asked => {}
            Message::User(_) | Message::ToolResult(_) => return None,
        }
    }
    None
}

/// True when the record ends in an empty answer that the model is to be asked for once more, and was not yet.
#[must_use]
pub fn is_to_be_asked_again(record: &[Stored]) -> bool {
    let Some((Stored { message: Message::Assistant(answer), .. }, before)) = record.split_last() else { return false };
    answer.was_empty() && asked_again(before).is_none()
}

/// Who gave an empty answer behind the provider, if it said so.
pub(super) fn upstream(answer: &AssistantMessage) -> Option<String> {
    answer.diagnostic(EMPTY_ANSWER)?.pointer("/details/upstream")?.as_str().map(str::to_owned)
}

fn diagnose(answer: &mut AssistantMessage, case: Case, upstream: Option<&str>) {
    let details = json!({
        "case": case.name(),
        "upstream": upstream,
        "billedTokens": answer.usage.output,
        "characters": characters(answer),
        "finishReason": answer.extra.get("rawStopReason"),
    });
    tracing::warn!(case = case.name(), upstream, model = answer.model, "an answer was empty");
    let diagnostic = json!({"type": EMPTY_ANSWER, "timestamp": now_ms(), "details": details});
    match answer.extra.get_mut("diagnostics").and_then(Value::as_array_mut) {
        Some(known) => known.push(diagnostic),
        None => {
            answer.extra.insert("diagnostics".to_owned(), json!([diagnostic]));
        }
    }
}

/// Characters of text and thinking that came.
fn characters(answer: &AssistantMessage) -> usize {
    let texts = answer.content.iter().filter_map(|block| match block {
        Block::Known(KnownBlock::Text(block)) => Some(&block.text),
        Block::Known(KnownBlock::Thinking(block)) => Some(&block.thinking),
        Block::Known(KnownBlock::ToolCall(_) | KnownBlock::Image(_)) | Block::Other(_) => None,
    });
    texts.map(|text| text.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::native::Usage;

    fn answer(stop_reason: StopReason, content: Vec<Block>) -> AssistantMessage {
        AssistantMessage { content, stop_reason, ..AssistantMessage::default() }
    }

    fn words(answer: AssistantMessage, window: u64) -> Option<String> {
        told(answer, None, window).error_message
    }

    #[test]
    fn an_answer_for_which_no_room_was_left_says_so() {
        let cut = |input, text: &str| {
            let usage = Usage { input, ..Usage::default() };
            AssistantMessage { usage, ..answer(StopReason::Length, vec![Block::text(text)]) }
        };
        assert_eq!(words(cut(1000, ""), 1000).as_deref(), Some("The conversation is too long for the model."));
        assert!(!told(cut(1000, ""), None, 1000).was_empty(), "to ask again does not help");
        let used_up = Some(Case::LimitUsedUp.words().to_owned());
        assert_eq!([words(cut(1000, ""), 0), words(cut(500, ""), 1000)], [used_up.clone(), used_up]);
        assert_eq!(words(cut(1000, "Half"), 1000), None);
    }

    #[test]
    fn thinking_and_blanks_are_no_answer() {
        let thought = || Block::thinking("Let me");
        assert_eq!(words(answer(StopReason::Stop, vec![]), 0).as_deref(), Some(Case::Nothing.words()));
        assert_eq!(words(answer(StopReason::Stop, vec![thought()]), 0).as_deref(), Some(Case::OnlyThinking.words()));
        assert_eq!(
            words(answer(StopReason::Stop, vec![Block::text(" \n")]), 0).as_deref(),
            Some(Case::Nothing.words())
        );
        assert_eq!(words(answer(StopReason::ToolUse, vec![thought()]), 0).as_deref(), Some(Case::NoCall.words()));
        assert_eq!(words(answer(StopReason::Stop, vec![thought(), Block::text("Hi")]), 0), None);
        assert_eq!(words(answer(StopReason::Aborted, vec![]), 0), None);
    }

    #[test]
    fn what_is_known_of_an_empty_answer_stays_with_it() {
        let mut false_stop = answer(StopReason::Stop, vec![Block::thinking("Now the"), Block::text("\n")]);
        false_stop.usage.output = 203;
        false_stop.extra.insert("rawStopReason".to_owned(), "stop".into());
        let kept = told(false_stop, Some("Novita"), 0);
        assert_eq!(
            (kept.stop_reason, kept.was_empty(), upstream(&kept).as_deref()),
            (StopReason::Error, true, Some("Novita"))
        );
        let details = json!({
            "case": "only-thinking", "upstream": "Novita", "billedTokens": 203, "characters": 8, "finishReason": "stop",
        });
        assert_eq!(kept.extra["diagnostics"][0]["details"], details);
    }
}
