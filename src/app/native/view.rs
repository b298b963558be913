//! What the server says of a chat: the shapes of `GET /api/chats` and `GET /api/chats/{id}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::{Seq, Stored};
use super::plan::{BlockStatus, Plan};
use super::usage::Usage;

/// Where a lesson is; derived from the record, never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    #[default]
    Probe,
    Plan,
    Teach,
}

/// What a chat owes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "of", rename_all = "camelCase")]
pub enum Next {
    #[default]
    Idle,
    /// The agent owes a reply.
    Reply,
    /// The learner owes answers to these calls.
    Answer(Vec<String>),
    /// The learner owes a verdict on the plan of this call.
    Verdict(String),
    /// The teacher takes over from the prober.
    Handoff,
}

/// One chat in the list. `updated` is Unix time in ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatSummary {
    pub id: String,
    pub title: String,
    pub phase: Phase,
    pub next: Next,
    pub running: bool,
    pub updated: i64,
    pub usage: Usage,
}

/// A chat as of now, with the messages after the position that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatView {
    pub id: String,
    pub title: String,
    pub phase: Phase,
    pub running: bool,
    pub pending: Vec<Pending>,
    pub plan: Option<PlanView>,
    pub usage: Usage,
    pub jobs: Vec<Value>,
    pub messages: Vec<Stored>,
}

impl ChatView {
    /// The position of its last message, `START` when it has none.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.messages.last().map_or(Seq::START, |stored| stored.seq)
    }
}

/// A question that waits for the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub tool_call_id: String,
    pub tool_name: String,
    pub args: Value,
}

/// The plan that holds now, with how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    pub tool_call_id: String,
    pub plan: Plan,
    pub verdict: PlanVerdict,
    /// One status a block, in the plan's order.
    pub progress: Vec<BlockStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanVerdict {
    Waiting,
    Accepted,
    SentBack,
}

/// Whether something works for a chat right now; the first event of a stream that stays open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    pub running: bool,
    pub jobs: Vec<Value>,
}
