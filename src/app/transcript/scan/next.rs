//! What a chat owes: the one scanner that inputs, settling, wakes, stop, recovery and the page ask.
//!
//! In order: answers that the learner owes, the handoff from the prober to the teacher, a reply that the agent owes, the
//! verdict on a plan, or nothing.

use crate::app::native::marker::NoticeKind;
use crate::app::native::message::{AssistantMessage, Message, StopReason, Stored, ToolCall, ToolResultMessage};
use crate::app::native::plan::{PLAN_INIT, PROBE_DONE};
use crate::app::native::question::{Question, Verdict};
use crate::app::native::view::{Next, Pending};
use crate::app::native::{CustomMessage, Marker};

/// What the chat of this record owes.
#[must_use]
pub fn next(record: &[Stored]) -> Next {
    let scan = Scan::of(record);
    if !scan.asked.is_empty() {
        return Next::Answer(scan.asked.iter().map(|call| call.id.clone()).collect());
    }
    if scan.probed {
        return Next::Handoff;
    }
    if scan.owes_reply() {
        return Next::Reply;
    }
    scan.proposed.map_or(Next::Idle, |id| Next::Verdict(id.to_owned()))
}

/// The questions that wait for the learner, in the order in which they were asked; the ids of [`Next::Answer`].
#[must_use]
pub fn pending(record: &[Stored]) -> Vec<Pending> {
    let scan = Scan::of(record);
    scan.asked
        .iter()
        .map(|call| Pending {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: call.arguments.clone(),
        })
        .collect()
}

/// True for a result that ends a run when it is clean: the probe is done, or a plan was proposed.
#[must_use]
pub fn ends_run(result: &ToolResultMessage) -> bool {
    !result.is_error && (result.tool_name == PROBE_DONE || result.tool_name == PLAN_INIT)
}

/// The verdict in a question result's details; none when the result is no outcome of a question.
#[must_use]
pub fn verdict(result: &ToolResultMessage) -> Option<Verdict> {
    let verdict = result.details.as_ref()?.get("verdict")?;
    serde_json::from_value(verdict.clone()).ok()
}

/// The state of one forward pass.
#[derive(Default)]
struct Scan<'a> {
    /// Question calls of the last answer that have no result.
    asked: Vec<&'a ToolCall>,
    /// Other calls of the last answer that have no result.
    unrun: Vec<&'a str>,
    /// A clean `probe_done` that no handoff has followed.
    probed: bool,
    /// The clean `plan_init` that waits for its verdict.
    proposed: Option<&'a str>,
    /// The last message that counts asks the agent for a reply.
    owed: bool,
    /// The last batch has ended its run, or its question was closed: the other results of it ask for nothing.
    halted: bool,
}

impl<'a> Scan<'a> {
    fn of(record: &'a [Stored]) -> Self {
        let mut scan = Self::default();
        for stored in record {
            scan.step(&stored.message);
        }
        scan
    }

    fn owes_reply(&self) -> bool {
        self.owed || (!self.halted && !self.unrun.is_empty())
    }

    fn step(&mut self, message: &'a Message) {
        match message {
            Message::User(_) => {
                self.close_batch();
                self.owed = true;
            }
            Message::Assistant(answer) => self.open_batch(answer),
            Message::ToolResult(result) => self.settle(result),
            Message::Custom(custom) => self.mark(custom),
        }
    }

    fn close_batch(&mut self) {
        self.asked.clear();
        self.unrun.clear();
        self.halted = false;
        self.owed = false;
    }

    /// Calls of an answer that was cut or refused are not run, so nobody waits for them.
    fn open_batch(&mut self, answer: &'a AssistantMessage) {
        self.close_batch();
        match answer.stop_reason {
            StopReason::Error | StopReason::Aborted | StopReason::Length => return,
            StopReason::Pending | StopReason::Stop | StopReason::ToolUse => {}
        }
        for call in answer.tool_calls() {
            if Question::is_question(&call.name) {
                self.asked.push(call);
            } else {
                self.unrun.push(&call.id);
            }
        }
    }

    fn settle(&mut self, result: &'a ToolResultMessage) {
        if result.is_posed_placeholder() {
            return;
        }
        self.asked.retain(|call| call.id != result.tool_call_id);
        self.unrun.retain(|&id| id != result.tool_call_id);
        if ends_run(result) {
            if result.tool_name == PROBE_DONE {
                self.probed = true;
            } else {
                self.proposed = Some(&result.tool_call_id);
            }
            self.halt();
        } else if verdict(result) == Some(Verdict::NotAnswered) {
            self.halt();
        } else if !self.halted || is_answer(result) {
            self.owed = true;
        }
    }

    fn halt(&mut self) {
        self.halted = true;
        self.owed = false;
    }

    fn mark(&mut self, custom: &CustomMessage) {
        match Marker::read(custom) {
            Some(Marker::ProbeHandoff { .. }) => {
                self.probed = false;
                self.owed = true;
            }
            Some(Marker::PlanVerdict { .. }) => {
                self.proposed = None;
                self.owed = true;
            }
            Some(
                Marker::Steer { .. }
                | Marker::Interrupted
                | Marker::Retry { .. }
                | Marker::Notice { kind: NoticeKind::EmptyAnswer },
            ) => self.owed = true,
            Some(
                Marker::PlanBlock { .. }
                | Marker::Notice {
                    kind:
                        NoticeKind::TurnCap
                        | NoticeKind::Storage
                        | NoticeKind::Loop
                        | NoticeKind::CallAsText
                        | NoticeKind::CutTwice,
                }
                | Marker::CutPrompt { .. }
                | Marker::Hint { .. }
                | Marker::Objection { .. }
                | Marker::Judgement { .. },
            )
            | None => {}
        }
    }
}

/// An answer asks for a reply even when its batch has proposed a plan: the plan goes on waiting afterwards.
fn is_answer(result: &ToolResultMessage) -> bool {
    !result.is_error && Question::is_question(&result.tool_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::record;

    fn check(text: &str, owed: &str) {
        let record = record(text);
        let found = match next(&record) {
            Next::Idle => "idle".to_owned(),
            Next::Reply => "reply".to_owned(),
            Next::Answer(ids) => format!("answer {}", ids.join(" ")),
            Next::Verdict(id) => format!("verdict {id}"),
            Next::Handoff => "handoff".to_owned(),
        };
        assert_eq!(found, owed, "{text}");
        let ids: Vec<String> = pending(&record).into_iter().map(|question| question.tool_call_id).collect();
        assert_eq!(!ids.is_empty(), owed.starts_with("answer"), "{text}");
    }

    #[test]
    fn an_empty_or_answered_chat_owes_nothing() {
        check("", "idle");
        check("user hi\nteacher Hello.", "idle");
        check("user hi\nteacher[error] Hel", "idle");
        check("user hi\nteacher[aborted] Hel", "idle");
    }

    #[test]
    fn an_empty_answer_that_is_asked_for_again_owes_a_reply() {
        let asked = "user hi\nteacher[error] ~hm\nmarker notice {\"kind\":\"empty-answer\"}";
        check(asked, "reply");
        check(&format!("{asked}\nteacher Hello."), "idle");
        check(&format!("{asked}\nteacher[error]"), "idle");
        check("user hi\nteacher[error] ~hm\nmarker notice {\"kind\":\"turn-cap\"}", "idle");
    }

    #[test]
    fn a_message_a_result_and_a_cut_run_ask_for_a_reply() {
        check("user hi", "reply");
        check("user hi\nteacher[toolUse] ls#a {}\nresult ls#a notes.md", "reply");
        check("user hi\nteacher[toolUse] ls#a {}\nresult! ls#a No such folder.", "reply");
        check("user hi\nteacher[toolUse] ls#a {}", "reply");
        check("user hi\nteacher[stop] ls#a {}", "reply");
        check("user hi\nteacher[toolUse] ls#a {} | ls#b {}\nresult ls#a x", "reply");
    }

    #[test]
    fn a_question_waits_until_it_has_a_result() {
        check("user hi\nteacher[toolUse] Look: | quiz#q {}", "answer q");
        check("user hi\nteacher[toolUse] quiz#q {}\nresult quiz#q 4 @ {\"verdict\":\"correct\"}", "reply");
        check("user hi\nteacher[toolUse] quiz#q {}\nresult! quiz#q The question is empty.", "reply");
        check("user hi\nteacher[stop] ask_user_question#q {}", "answer q");
        check("user hi\nteacher[toolUse] quiz#q {}\nmarker hint {\"toolCallId\":\"q\"}", "answer q");
    }

    #[test]
    fn the_loops_stand_in_for_an_answer_is_none() {
        check("user hi\nteacher[toolUse] quiz#q {}\nresult quiz#q Waiting. @ {\"posed\":true}", "answer q");
    }

    #[test]
    fn every_question_of_a_batch_waits_for_itself() {
        let batch = "user hi\nteacher[toolUse] ls#a {} | quiz#q {} | ask_user_question#r {}\nresult ls#a x";
        check(batch, "answer q r");
        check(&format!("{batch}\nresult quiz#q 4"), "answer r");
        check(&format!("{batch}\nresult quiz#q 4\nresult ask_user_question#r yes"), "reply");
    }

    #[test]
    fn calls_of_a_failed_or_overtaken_answer_are_never_pending() {
        for reason in ["error", "aborted", "length"] {
            check(&format!("user hi\nteacher[{reason}] quiz#q {{}}"), "idle");
        }
        check("user hi\nteacher[toolUse] quiz#q {}\nuser never mind", "reply");
        check("user hi\nteacher[toolUse] quiz#q {}\nteacher Never mind.", "idle");
    }

    #[test]
    fn a_question_closed_without_an_answer_asks_for_nothing() {
        let closed = "result quiz#q Not answered. @ {\"verdict\":\"notAnswered\"}";
        check(&format!("user hi\nteacher[toolUse] quiz#q {{}}\n{closed}"), "idle");
        check(&format!("user hi\nteacher[toolUse] ls#a {{}} | quiz#q {{}}\nresult ls#a x\n{closed}"), "idle");
        check(&format!("user hi\nteacher[toolUse] quiz#q {{}}\n{closed}\nuser other"), "reply");
    }

    #[test]
    fn the_probers_end_asks_for_the_handoff_first() {
        let probed = "user hi\nteacher[toolUse] probe_done#p {}\nresult probe_done#p Done.";
        check(probed, "handoff");
        check(&format!("{probed}\nuser wait"), "handoff");
        check(&format!("{probed}\nmarker probe-handoff {{\"assessment\":{{}}}}"), "reply");
        check("user hi\nteacher[toolUse] probe_done#p {}\nresult! probe_done#p No goal.", "reply");
        check("user hi\nteacher[toolUse] quiz#q {} | probe_done#p {}\nresult probe_done#p Done.", "answer q");
    }

    #[test]
    fn a_plan_waits_for_its_verdict_whatever_else_was_in_the_batch() {
        let proposed = "user hi\nteacher[toolUse] plan_init#p {} | ls#a {}\nresult plan_init#p Shown.\nresult ls#a x";
        check(proposed, "verdict p");
        check(&format!("{proposed}\nuser a question first"), "reply");
        check(&format!("{proposed}\nuser a question first\nteacher Yes."), "verdict p");
        check(&format!("{proposed}\nuser go\nteacher[error] Y"), "verdict p");
        check(&format!("{proposed}\nmarker plan-verdict {{\"accepted\":true}}"), "reply");
        check(&format!("{proposed}\nmarker plan-verdict {{\"accepted\":false}}\nteacher Well."), "idle");
        check("teacher[toolUse] ls#a {} | plan_init#p {}\nresult ls#a x\nresult plan_init#p Shown.", "verdict p");
        check("teacher[toolUse] plan_init#p {}\nresult! plan_init#p Two blocks have one id.", "reply");
    }

    #[test]
    fn an_answer_beside_a_plan_gets_its_reply_before_the_verdict() {
        let answered = "teacher[toolUse] quiz#q {} | plan_init#p {}\nresult plan_init#p Shown.\nresult quiz#q 4";
        check(answered, "reply");
        check(&format!("{answered}\nteacher Right."), "verdict p");
    }

    #[test]
    fn markers_that_only_people_see_are_looked_through() {
        for marker in [
            "plan-block {\"blockId\":\"b\",\"status\":\"done\"}",
            "notice {\"kind\":\"turn-cap\"}",
            "hint {\"toolCallId\":\"q\"}",
            "objection {\"toolCallId\":\"q\",\"reason\":\"r\"}",
            "judgement {\"toolCallId\":\"q\",\"verdict\":\"correct\",\"reason\":\"r\"}",
            "somebody-elses {}",
        ] {
            check(&format!("user hi\nmarker {marker}"), "reply");
            check(&format!("user hi\nteacher Hello.\nmarker {marker}"), "idle");
        }
    }

    #[test]
    fn markers_that_speak_to_the_agent_ask_for_a_reply() {
        for marker in [
            "steer {\"jobId\":\"j\",\"kind\":\"demo\",\"outcome\":\"done\",\"summary\":\"s\"}",
            "interrupted null",
            "retry {\"replaces\":2}",
        ] {
            check(&format!("user hi\nteacher[error] Hel\nmarker {marker}"), "reply");
            check(&format!("user hi\nteacher[error] Hel\nmarker {marker}\nteacher Hello."), "idle");
        }
    }
}
