//! Whether an answer shows that its request was too long for the model, though nobody said so.

use crate::app::native::{AssistantMessage, StopReason};

/// True when the counted tokens of a finished answer tell that the request overflowed the context window: some servers
/// take more than they can read, others cut the beginning off and have no room left for an answer.
#[must_use]
pub fn is_silent(message: &AssistantMessage, context_window: u64) -> bool {
    let sent = message.usage.input + message.usage.cache_read;
    match message.stop_reason {
        StopReason::Stop => sent > context_window,
        StopReason::Length => message.usage.output == 0 && sent as f64 >= context_window as f64 * 0.99,
        StopReason::Pending | StopReason::ToolUse | StopReason::Error | StopReason::Aborted => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/overflow-by-usage.json");

    #[test]
    fn silent_overflow_is_seen_where_the_reference_sees_it() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let given = &row["in"];
            let message = serde_json::from_value(serde_json::json!({
                "stopReason": given["stopReason"],
                "usage": {"input": given["input"], "cacheRead": given["cacheRead"], "output": given["output"]},
            }));
            let found = is_silent(&message.unwrap(), given["contextWindow"].as_u64().unwrap());
            assert_eq!(Value::from(found), row["out"], "{given}");
        }
    }
}
