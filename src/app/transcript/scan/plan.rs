//! The plan that holds now, what the learner said to it, and how far it is.

use std::collections::HashMap;

use serde_json::Value;

use super::next::ends_run;
use crate::app::native::message::{Message, Stored, ToolResultMessage};
use crate::app::native::plan::{BlockStatus, PLAN_INIT, PLAN_PROGRESS};
use crate::app::native::view::{PlanVerdict, PlanView};
use crate::app::native::{CustomMessage, Marker, Plan};

/// The last plan that was proposed cleanly; none before the first.
///
/// Progress comes from `plan-block` markers, and from clean `plan_progress` results whose marker is not written yet. It
/// is kept by block id and never goes back, so what was done stays done across re-plans.
#[must_use]
pub fn plan(record: &[Stored]) -> Option<PlanView> {
    let mut scan = Scan::default();
    for stored in record {
        match &stored.message {
            Message::Assistant(answer) => {
                let calls = answer.tool_calls().filter(|call| call.name == PLAN_INIT || call.name == PLAN_PROGRESS);
                scan.calls.extend(calls.map(|call| (call.id.as_str(), &call.arguments)));
            }
            Message::ToolResult(result) => scan.settle(result),
            Message::Custom(custom) => scan.mark(custom),
            Message::User(_) => {}
        }
    }
    let (tool_call_id, plan) = scan.plan?;
    let progress = plan.blocks.iter().map(|block| scan.status.get(&block.id).copied().unwrap_or_default()).collect();
    Some(PlanView { tool_call_id: tool_call_id.to_owned(), plan, verdict: scan.verdict, progress })
}

struct Scan<'a> {
    calls: HashMap<&'a str, &'a Value>,
    plan: Option<(&'a str, Plan)>,
    verdict: PlanVerdict,
    status: HashMap<String, BlockStatus>,
}

impl Default for Scan<'_> {
    fn default() -> Self {
        Self { calls: HashMap::new(), plan: None, verdict: PlanVerdict::Waiting, status: HashMap::new() }
    }
}

impl<'a> Scan<'a> {
    fn settle(&mut self, result: &'a ToolResultMessage) {
        let Some(args) = self.calls.get(result.tool_call_id.as_str()).filter(|_| !result.is_error) else {
            return;
        };
        if result.tool_name == PLAN_PROGRESS {
            let block = args.get("blockId").and_then(Value::as_str);
            let status = args.get("status").and_then(|status| serde_json::from_value(status.clone()).ok());
            if let (Some(block), Some(status)) = (block.map(str::to_owned), status) {
                self.advance(block, status);
            }
        } else if ends_run(result)
            && let Ok(plan) = Plan::from_args(args)
        {
            self.plan = Some((&result.tool_call_id, plan));
            self.verdict = PlanVerdict::Waiting;
        }
    }

    fn mark(&mut self, custom: &CustomMessage) {
        match Marker::read(custom) {
            Some(Marker::PlanVerdict { accepted: true, .. }) => self.verdict = PlanVerdict::Accepted,
            Some(Marker::PlanVerdict { accepted: false, .. }) => self.verdict = PlanVerdict::SentBack,
            Some(Marker::PlanBlock { block_id, status }) => self.advance(block_id, status),
            Some(
                Marker::ProbeHandoff { .. }
                | Marker::Steer { .. }
                | Marker::Interrupted
                | Marker::Retry { .. }
                | Marker::Notice { .. }
                | Marker::CutPrompt { .. }
                | Marker::Hint { .. }
                | Marker::Objection { .. }
                | Marker::Judgement { .. },
            )
            | None => {}
        }
    }

    fn advance(&mut self, block: String, status: BlockStatus) {
        let now = self.status.entry(block).or_default();
        *now = match (*now, status) {
            (BlockStatus::Done, _) | (_, BlockStatus::Done) => BlockStatus::Done,
            (BlockStatus::Started, _) | (_, BlockStatus::Started) => BlockStatus::Started,
            (BlockStatus::Open, BlockStatus::Open) => BlockStatus::Open,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::{self, record};

    fn check(text: &str, shown: &str) {
        let found = plan(&record(text)).map_or_else(String::new, |view| {
            let blocks: Vec<String> = view
                .plan
                .blocks
                .iter()
                .zip(&view.progress)
                .map(|(block, status)| format!("{} {status:?}", block.id))
                .collect();
            format!("{} {:?}: {}", view.tool_call_id, view.verdict, blocks.join(", "))
        });
        assert_eq!(found, shown, "{text}");
    }

    #[test]
    fn a_plan_is_there_from_its_clean_result_on() {
        let call = sample::plan_call("p", &["a", "b"]);
        check(&call, "");
        check(&format!("{call}\nresult! plan_init#p No."), "");
        check(&format!("{call}\nresult plan_init#p Shown."), "p Waiting: a Open, b Open");
        check(
            &format!("{call}\nresult plan_init#p Shown.\nmarker plan-verdict {{\"accepted\":true}}"),
            "p Accepted: a Open, b Open",
        );
        check(
            &format!("{call}\nresult plan_init#p Shown.\nmarker plan-verdict {{\"accepted\":false}}"),
            "p SentBack: a Open, b Open",
        );
    }

    #[test]
    fn what_was_done_stays_done_across_plans() {
        let text = format!(
            "{}\nresult plan_init#p Shown.\nmarker plan-verdict {{\"accepted\":true}}\n\
             marker plan-block {{\"blockId\":\"a\",\"status\":\"done\"}}\n\
             marker plan-block {{\"blockId\":\"a\",\"status\":\"started\"}}\n\
             {}\nresult plan_init#q Shown.",
            sample::plan_call("p", &["a", "b"]),
            sample::plan_call("q", &["b", "a", "c"]),
        );
        check(&text, "q Waiting: b Open, a Done, c Open");
    }

    #[test]
    fn a_clean_progress_call_counts_before_its_marker_is_written() {
        let text = |mark: &str| {
            format!(
                "{}\nresult plan_init#p Shown.\nmarker plan-verdict {{\"accepted\":true}}\n\
                 teacher[toolUse] plan_progress#s {{\"blockId\":\"a\",\"status\":\"started\"}}\n\
                 result{mark} plan_progress#s Noted.",
                sample::plan_call("p", &["a", "b"]),
            )
        };
        check(&text(""), "p Accepted: a Started, b Open");
        check(&text("!"), "p Accepted: a Open, b Open");
    }
}
