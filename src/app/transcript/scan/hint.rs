//! Which hints the learner has looked at.

use crate::app::native::{Marker, Message, Stored};

/// The questions whose hint was shown, by their tool calls, in the order of their first marker.
#[must_use]
pub fn hinted(record: &[Stored]) -> Vec<String> {
    let mut hinted = Vec::new();
    for stored in record {
        if let Message::Custom(custom) = &stored.message
            && let Some(Marker::Hint { tool_call_id }) = Marker::read(custom)
            && !hinted.contains(&tool_call_id)
        {
            hinted.push(tool_call_id);
        }
    }
    hinted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::record;

    #[test]
    fn a_hint_counts_once_and_for_its_own_question() {
        let asked = "user hi\nteacher[toolUse] quiz#q {} | quiz#r {}";
        assert!(hinted(&record(asked)).is_empty());
        let marker = "marker hint {\"toolCallId\":\"q\"}";
        assert_eq!(hinted(&record(&format!("{asked}\n{marker}"))), ["q"]);
        assert_eq!(hinted(&record(&format!("{asked}\n{marker}\n{marker}"))), ["q"]);
    }
}
