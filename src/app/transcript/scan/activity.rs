//! What works for a chat right now, as far as its run says so.

use crate::app::transcript::label::label;
use crate::app::transcript::live::{Execution, Tail};

/// One tool that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Working {
    pub tool_call_id: String,
    pub name: String,
    /// The tool's name for people.
    pub label: String,
}

/// The calls of the open batch that have started and not ended, in order.
#[must_use]
pub fn activity(tail: &Tail) -> Vec<Working> {
    let running = tail.tools.iter().filter(|tool| matches!(tool.state, Execution::Running(_)));
    running
        .map(|tool| Working { tool_call_id: tool.id.clone(), name: tool.name.clone(), label: label(&tool.name) })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::app::native::AgentEvent;
    use crate::app::transcript::Live;

    #[test]
    fn a_tool_works_from_its_start_to_its_end() {
        let mut live = Live::default();
        let mut check = |event: serde_json::Value, expected: &[&str]| {
            let event: AgentEvent = serde_json::from_value(event).unwrap();
            live.apply(None, &event);
            let labels: Vec<String> = activity(&live.tail).into_iter().map(|working| working.label).collect();
            assert_eq!(labels, expected, "{event:?}");
        };
        let event = |kind: &str, id: &str| json!({"type": format!("tool_execution_{kind}"), "toolCallId": id, "toolName": "ls", "args": {}, "partialResult": {}, "result": {}, "isError": false});
        check(json!({"type": "agent_start"}), &[]);
        check(event("start", "a"), &["List a folder"]);
        check(event("start", "b"), &["List a folder", "List a folder"]);
        check(event("update", "a"), &["List a folder", "List a folder"]);
        check(event("end", "b"), &["List a folder"]);
        check(json!({"type": "agent_end", "messages": []}), &[]);
    }
}
