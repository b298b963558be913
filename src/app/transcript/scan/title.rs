//! What a chat is called until somebody names it.

use super::plan::plan;
use crate::app::native::message::{Message, Stored};

/// Characters of the first message that make a title, the ellipsis included.
const LENGTH: usize = 60;

/// The current plan's title, else the beginning of the learner's first message; none when there is neither.
#[must_use]
pub fn title(record: &[Stored]) -> Option<String> {
    let planned = plan(record).map(|view| one_line(&view.plan.title)).filter(|title| !title.is_empty());
    planned.or_else(|| {
        record.iter().find_map(|stored| match &stored.message {
            Message::User(user) => Some(cut(&one_line(&user.content.text()))).filter(|title| !title.is_empty()),
            Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) => None,
        })
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts after a whole word where there is one.
fn cut(text: &str) -> String {
    let Some(window) = head(text, LENGTH) else {
        return text.to_owned();
    };
    let word = window.rfind(' ').map(|space| &window[..space]);
    let kept = word.or_else(|| head(text, LENGTH - 1)).unwrap_or(text);
    format!("{kept}…")
}

/// The first `count` characters; none when there are no more than these.
fn head(text: &str, count: usize) -> Option<&str> {
    text.char_indices().nth(count).map(|(index, _)| &text[..index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::transcript::sample::{plan_call, record};

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(title(&record(text)).as_deref(), expected, "{text}");
    }

    #[test]
    fn the_first_message_names_the_chat_until_a_plan_does() {
        check("", None);
        check("teacher Hello.", None);
        check("user Teach me\\n  fractions!\nuser now", Some("Teach me fractions!"));
        let plan = plan_call("p", &["a", "b"]);
        check(&format!("user hi\n{plan}\nresult plan_init#p Shown."), Some("Fractions"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_word() {
        let long = "I would like to understand how photosynthesis works in desert plants";
        check(&format!("user {long}"), Some("I would like to understand how photosynthesis works in…"));
        check(&format!("user {}", "ü".repeat(70)), Some(&format!("{}…", "ü".repeat(59))));
        check(&format!("user {} b", "a".repeat(59)), Some(&format!("{}…", "a".repeat(59))));
    }
}
