//! The batch that a record ends in: the calls of its last answer that have no result, because the run that made them was
//! cut off before it had them all.

use std::collections::HashMap;

use crate::app::native::{AssistantMessage, Message, Seq, StopReason, Stored, ToolResultMessage};

/// A batch that is not through.
#[derive(Clone, Debug, PartialEq)]
pub struct CutBatch {
    /// Position of the answer that called.
    pub seq: Seq,
    pub answer: AssistantMessage,
    /// The results that are there, in the record's order.
    pub results: Vec<ToolResultMessage>,
    /// Places, among the answer's calls, of those without a result.
    pub open: Vec<usize>,
}

/// The batch that `record` ends in; none when every call has its result, when the answer failed or was stopped, or when
/// something was said since.
#[must_use]
pub fn cut_batch(record: &[Stored]) -> Option<CutBatch> {
    let at = record.iter().rposition(|stored| matches!(stored.message, Message::Assistant(_) | Message::User(_)))?;
    let (seq, answer) = (record[at].seq, record[at].message.as_assistant()?);
    match answer.stop_reason {
        StopReason::Error | StopReason::Aborted | StopReason::Pending => return None,
        StopReason::Stop | StopReason::ToolUse | StopReason::Length => {}
    }
    let results: Vec<_> = record[at + 1..].iter().filter_map(|stored| stored.message.as_tool_result()).collect();
    let mut settled: HashMap<&str, usize> = HashMap::new();
    for result in &results {
        *settled.entry(&result.tool_call_id).or_default() += 1;
    }
    let is_open = |id: &str| match settled.get_mut(id) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        Some(_) | None => true,
    };
    let open: Vec<usize> = answer
        .tool_calls()
        .map(|call| call.id.as_str())
        .map(is_open)
        .enumerate()
        .filter_map(|(nth, open)| open.then_some(nth))
        .collect();
    let results = results.into_iter().cloned().collect();
    (!open.is_empty()).then(|| CutBatch { seq, answer: answer.clone(), results, open })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::record;

    fn check(text: &str, open: &[usize]) {
        assert_eq!(cut_batch(&record(text)).map(|cut| cut.open).unwrap_or_default(), open, "{text}");
    }

    #[test]
    fn a_batch_is_cut_as_long_as_a_call_has_no_result() {
        check("", &[]);
        check("user hi\nteacher Hello.", &[]);
        check("user hi\nteacher[toolUse] ls#a {} | quiz#b {}", &[0, 1]);
        check("user hi\nteacher[toolUse] ls#a {} | quiz#b {}\nresult quiz#b x", &[0]);
        check("user hi\nteacher[toolUse] ls#a {} | ls#b {}\nresult ls#a x\nresult ls#b y", &[]);
        check("user hi\nteacher[length] ls#a {}", &[0]);
        check("teacher[toolUse] ls#a {} | ls#b {}\nresult ls#a x\nmarker plan-block {\"blockId\":\"b\"}", &[1]);
    }

    #[test]
    fn an_id_that_is_used_twice_takes_its_results_in_order() {
        check("teacher[toolUse] ls#a {} | ls#a {}\nresult ls#a x", &[1]);
    }

    #[test]
    fn an_answer_that_failed_or_was_overtaken_is_no_cut_batch() {
        check("teacher[aborted] ls#a {}", &[]);
        check("teacher[error] ls#a {}", &[]);
        check("teacher[toolUse] ls#a {}\nuser never mind", &[]);
        check("teacher[toolUse] ls#a {}\nteacher Never mind.", &[]);
    }
}
