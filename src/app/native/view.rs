//! What the server says of a chat: the shapes of `GET /api/chats` and `GET /api/chats/{id}`.

use serde::Serialize;
use serde_json::Value;

use super::json::{Fault, Json, Node};
use super::message::{Seq, Stored};
use super::plan::{BlockStatus, Plan};
use super::record::{Fields, from_the_wire, record, words};
use super::usage::Usage;

words! {
    /// Where a lesson is; derived from the record, never stored.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Phase {
        #[default]
        Probe = "probe",
        Plan = "plan",
        Teach = "teach",
    }
}

/// What a chat owes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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

impl Json for Next {
    fn read(node: Node) -> Result<Self, Fault> {
        let mut fields = Fields::of(node)?;
        let kind: String = fields.needed("kind")?;
        match kind.as_str() {
            "idle" => Ok(Self::Idle),
            "reply" => Ok(Self::Reply),
            "answer" => fields.needed("of").map(Self::Answer),
            "verdict" => fields.needed("of").map(Self::Verdict),
            "handoff" => Ok(Self::Handoff),
            other => Err(Fault::unknown(other, &["idle", "reply", "answer", "verdict", "handoff"])),
        }
    }
}

from_the_wire!(Next);

record! {
    /// One chat in the list. `updated` is Unix time in ms.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChatSummary {
        pub id: String = needed "id",
        pub title: String = needed "title",
        pub phase: Phase = needed "phase",
        pub next: Next = needed "next",
        pub running: bool = needed "running",
        pub updated: i64 = needed "updated",
        pub usage: Usage = needed "usage",
    }
}

record! {
    /// A chat as of now, with the messages after the position that was asked for.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChatView {
        pub id: String = needed "id",
        pub title: String = needed "title",
        pub phase: Phase = needed "phase",
        pub running: bool = needed "running",
        pub pending: Vec<Pending> = needed "pending",
        pub plan: Option<PlanView> = default "plan",
        pub usage: Usage = needed "usage",
        pub jobs: Vec<Value> = needed "jobs",
        /// The run waits to ask its model again.
        pub retry: Option<Retry> = optional "retry",
        pub messages: Vec<Stored> = needed "messages",
    }
}

impl ChatView {
    /// The position of its last message, `START` when it has none.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.messages.last().map_or(Seq::START, |stored| stored.seq)
    }
}

record! {
    /// A question that waits for the learner.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Pending {
        pub tool_call_id: String = needed "toolCallId",
        pub tool_name: String = needed "toolName",
        pub args: Value = needed "args",
    }
}

record! {
    /// The plan that holds now, with how far it is.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlanView {
        pub tool_call_id: String = needed "toolCallId",
        pub plan: Plan = needed "plan",
        pub verdict: PlanVerdict = needed "verdict",
        /// One status a block, in the plan's order.
        pub progress: Vec<BlockStatus> = needed "progress",
    }
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PlanVerdict {
        Waiting = "waiting",
        Accepted = "accepted",
        SentBack = "sentBack",
    }
}

record! {
    /// Whether something works for a chat right now; the first event of a stream that stays open. What it leaves out is as it
    /// was.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Activity {
        pub running: bool = needed "running",
        pub jobs: Option<Vec<Value>> = optional "jobs",
        /// The run waits to ask its model again; over when the answer begins, or the turn ends.
        pub retry: Option<Retry> = optional "retry",
    }
}

record! {
    /// A request to a model that failed and will be made again.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Retry {
        /// 1 for the first retry.
        pub attempt: u32 = needed "attempt",
        pub wait_ms: u64 = needed "waitMs",
        /// Why, in words for a person.
        pub reason: String = needed "reason",
    }
}
