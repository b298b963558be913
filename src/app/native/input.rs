//! What a learner sends into a chat.

use super::record::{record, tagged};

/// Characters that one text of an input may have.
pub const LONGEST_TEXT: usize = 100_000;

/// Why a longer one is not taken, in words for the learner.
#[must_use]
pub fn too_long() -> String {
    format!("The message is longer than {LONGEST_TEXT} characters.")
}

/// True for a text with nothing to see in it: white space, control characters, and characters of no width.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    let is_unseen = |c: char| c.is_whitespace() || c.is_control();
    text.chars().all(|c| is_unseen(c) || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
}

tagged! {
    /// An input event; each is validated against the record as it is when it arrives.
    #[derive(Clone, Debug, PartialEq)]
    pub enum InputEvent by "type" {
        /// Free text. `note` is a remark on a plan that waits for its verdict.
        "text" => Text { text: String = needed "text", note: Option<String> = optional "note", },
        /// The answer to a posed question; `dismissed` when the learner skipped it.
        "answer" => Answer {
            tool_call_id: String = needed "toolCallId",
            answer: Answer = default "answer",
            dismissed: bool = default "dismissed",
        },
        /// The verdict on the plan that waits for one.
        "verdict" => Verdict { accepted: bool = needed "accepted", note: Option<String> = optional "note", },
        /// Ask again for the answer that failed.
        "retry" => Retry,
        /// Ask for a question's hint.
        "hint" => Hint { tool_call_id: String = needed "toolCallId", },
        /// Say that a question is wrong or unfair.
        "objection" => Objection { tool_call_id: String = needed "toolCallId", reason: String = needed "reason", },
    }
}

record! {
    /// An answer to a question: chosen options by their text, own words, or "I don't know".
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Answer {
        /// Chosen options.
        pub values: Vec<String> = optional "values",
        /// Own words where the options did not fit.
        pub other: Option<String> = optional "other",
        /// The answer to a question without options.
        pub text: Option<String> = optional "text",
        pub dont_know: bool = optional "dontKnow",
        /// A remark beside the answer.
        pub note: Option<String> = optional "note",
    }
}

impl Answer {
    /// What was answered, in one line for a person.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut parts: Vec<&str> = self.values.iter().map(String::as_str).collect();
        parts.extend(self.other.as_deref());
        parts.extend(self.text.as_deref());
        parts.join(", ")
    }
}
