//! Markers: the `custom` messages of our own that say what happened between the learner, the teacher and the server.
//!
//! The text that a model reads is written once, into `content`, when a marker is made.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::message::{Content, CustomMessage, Message, Seq};
use super::plan::BlockStatus;

/// A marker by its `customType`, with its `details`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "customType", content = "details", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Marker {
    /// The prober has ended; the teacher takes over.
    ProbeHandoff { assessment: Assessment },
    /// The learner's word on the plan.
    PlanVerdict {
        accepted: bool,
        #[serde(default)]
        note: Option<String>,
    },
    /// A block was started or finished.
    PlanBlock { block_id: String, status: BlockStatus },
    /// A job's result.
    Steer {
        job_id: String,
        kind: String,
        outcome: String,
        #[serde(default)]
        artifact_id: Option<String>,
        summary: String,
    },
    /// The server went down in mid-answer.
    Interrupted,
    /// The answer at `replaces` failed and is asked for again.
    Retry { replaces: Seq },
    /// Something that the learner should know about a run.
    Notice { kind: NoticeKind },
    /// The learner asked for a question's hint.
    Hint { tool_call_id: String },
    /// The learner objects to a question.
    Objection { tool_call_id: String, reason: String },
    /// The teacher's word on an open short answer.
    Judgement { tool_call_id: String, verdict: String, reason: String },
}

/// What the prober found, in the learner's own concepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    #[serde(default)]
    pub known: Vec<String>,
    #[serde(default)]
    pub shaky: Vec<String>,
    #[serde(default)]
    pub unknown: Vec<String>,
    #[serde(default)]
    pub goal: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// The run reached its limit of turns.
    TurnCap,
    /// The store refused a write.
    Storage,
}

impl Marker {
    /// Reads a marker of ours; none when the message is somebody else's or misshapen.
    #[must_use]
    pub fn read(message: &CustomMessage) -> Option<Self> {
        serde_json::from_value(json!({"customType": message.custom_type, "details": message.details})).ok()
    }

    /// The message that the record keeps. `id` must be unique in the chat; `timestamp` is Unix time in ms.
    #[must_use]
    pub fn into_message(self, id: String, timestamp: i64) -> Message {
        let content = Content::Text(self.for_model());
        let mut fields = match serde_json::to_value(&self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let custom_type = fields.get("customType").and_then(Value::as_str).unwrap_or_default().to_owned();
        let details = fields.remove("details").unwrap_or(Value::Null);
        Message::Custom(CustomMessage {
            custom_type,
            content,
            display: true,
            details,
            id,
            timestamp,
            extra: Map::new(),
        })
    }

    /// What a model reads in its place; empty for what only people see.
    fn for_model(&self) -> String {
        match self {
            Self::ProbeHandoff { assessment } => assessment.for_model(),
            Self::PlanVerdict { accepted: true, note } => {
                with_note("The learner accepted the plan. Begin with the first block.", note)
            }
            Self::PlanVerdict { accepted: false, note } => {
                with_note("The learner asks for changes to the plan. Propose a changed plan with plan_init.", note)
            }
            Self::Steer { kind, outcome, summary, .. } => format!("Background {kind}: {outcome}.\n{summary}"),
            Self::Interrupted => "You were cut off after the words above; go on from there.".to_owned(),
            Self::Hint { .. } => "The learner asks for a hint to this question.".to_owned(),
            Self::Objection { reason, .. } => format!("The learner objects to the question: {reason}"),
            Self::PlanBlock { .. } | Self::Retry { .. } | Self::Notice { .. } | Self::Judgement { .. } => String::new(),
        }
    }
}

impl Assessment {
    fn for_model(&self) -> String {
        let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
        format!(
            "The probe is done.\nKnown: {}\nShaky: {}\nUnknown: {}\nGoal: {}\nPropose a plan with plan_init.",
            list(&self.known),
            list(&self.shaky),
            list(&self.unknown),
            self.goal
        )
    }
}

fn with_note(text: &str, note: &Option<String>) -> String {
    match note.as_deref().map(str::trim).filter(|note| !note.is_empty()) {
        Some(note) => format!("{text}\nTheir note: {note}"),
        None => text.to_owned(),
    }
}
