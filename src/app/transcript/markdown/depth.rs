//! Bounds how deep quotes and lists go in each other before a text is parsed: the parser's work on a line grows with the
//! depth of the line before, so a few thousand marks would make it quadratic.

use std::borrow::Cow;

/// Marks of quotes and list items that a line may begin with.
const MARKS: usize = 64;

/// The text with one mark too many escaped on each line that has it; the marks behind it are text as well then.
pub(super) fn shallow(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(surplus) = surplus(line.as_bytes()) {
            out.push_str(&text[copied..start + surplus]);
            out.push('\\');
            copied = start + surplus;
        }
        start += line.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Where the first mark beyond the bound can be escaped.
fn surplus(line: &[u8]) -> Option<usize> {
    let is_space = |at: usize| line.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    let mut marks = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        let digits = line[at..].iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        let mark = match byte {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b'>' => at,
            b'-' | b'+' | b'*' if is_space(at + 1) => at,
            b'0'..=b'9' if matches!(line.get(at + digits), Some(b'.' | b')')) && is_space(at + digits + 1) => {
                at + digits
            }
            _ => return None,
        };
        marks += 1;
        if marks > MARKS {
            return Some(mark);
        }
        at = mark + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_with_too_many_marks_is_changed() {
        for text in ["", "> a\n> b", "- - a\n", "1. > b", "----", &"> ".repeat(MARKS), &"-".repeat(100)] {
            assert!(matches!(shallow(text), Cow::Borrowed(same) if same == text));
        }
        for (mark, escaped) in [("> ", "\\> "), ("- ", "\\- "), ("1) ", "1\\) "), (">", "\\>")] {
            let text = format!("a\n{}{mark}{mark}q\nb", mark.repeat(MARKS));
            let expected = format!("a\n{}{escaped}{mark}q\nb", mark.repeat(MARKS));
            assert_eq!(shallow(&text), expected);
        }
    }
}
