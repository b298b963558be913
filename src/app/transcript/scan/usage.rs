//! What a chat has cost, and how full the model's context is.

use crate::app::native::Usage;
use crate::app::native::message::{Message, Stored};

/// Tokens and USD of all answers and tools, summed over the record. What a retry replaced was spent, so it counts.
#[must_use]
pub fn usage(record: &[Stored]) -> Usage {
    let mut sum = Usage::default();
    for stored in record {
        match &stored.message {
            Message::Assistant(answer) => sum.add(&answer.usage),
            Message::ToolResult(result) => {
                if let Some(usage) = &result.usage {
                    sum.add(usage);
                }
            }
            Message::User(_) | Message::Custom(_) => {}
        }
    }
    sum
}

/// Tokens in the context after the last answer that says so; 0 before the first.
#[must_use]
pub fn context_tokens(record: &[Stored]) -> u64 {
    let answers = record.iter().rev().filter_map(|stored| stored.message.as_assistant());
    answers.map(|answer| answer.usage.total_tokens).find(|&tokens| tokens > 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::record;

    fn spent(tokens: u64) -> Usage {
        Usage { input: tokens, total_tokens: tokens, ..Usage::default() }
    }

    #[test]
    fn usage_is_the_sum_over_answers_and_tools() {
        let mut record = record("user hi\nteacher[toolUse] ls#a {}\nresult ls#a x\nteacher[error] Hel");
        for stored in &mut record {
            match &mut stored.message {
                Message::Assistant(answer) => answer.usage = spent(if stored.seq.0 == 2 { 10 } else { 0 }),
                Message::ToolResult(result) => result.usage = Some(spent(7)),
                Message::User(_) | Message::Custom(_) => {}
            }
        }
        assert_eq!(usage(&record).total_tokens, 17);
        assert_eq!(context_tokens(&record), 10);
        assert_eq!(context_tokens(&[]), 0);
    }
}
