//! What a learner sends into a chat.

use serde::{Deserialize, Serialize};

/// An input event; each is validated against the record as it is when it arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InputEvent {
    /// Free text. `note` is a remark on a plan that waits for its verdict.
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The answer to a posed question; `dismissed` when the learner skipped it.
    Answer {
        tool_call_id: String,
        #[serde(default)]
        answer: Answer,
        #[serde(default)]
        dismissed: bool,
    },
    /// The verdict on the plan that waits for one.
    Verdict {
        accepted: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Ask again for the answer that failed.
    Retry,
    /// Ask for a question's hint.
    Hint { tool_call_id: String },
    /// Say that a question is wrong or unfair.
    Objection { tool_call_id: String, reason: String },
}

/// An answer to a question: chosen options by their text, own words, or "I don't know".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// Chosen options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Own words where the options did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The answer to a question without options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dont_know: bool,
    /// A remark beside the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
