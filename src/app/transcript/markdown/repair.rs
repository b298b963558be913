//! Completes what is open at the very end of a growing text, so that its marks don't flash up before they mean something.
//!
//! Only the end changes, and only until the next bytes come; a text that is whole is never repaired.

use std::borrow::Cow;

/// Bytes after a bracket that may still become a link's text.
const LINK_TEXT: usize = 40;

/// Marks that are open inside each other; the outer ones are given up beyond that, and the work stays linear.
const NESTING: usize = 16;

/// The longest run of one mark that is read as one.
const RUN: usize = 64;

/// The text with its end completed.
pub(super) fn repaired(text: &str) -> Cow<'_, str> {
    let start = text.rfind('\n').map_or(0, |newline| newline + 1);
    let last = text[start..].trim();
    match open_fence(text) {
        Some(fence) if fence.is_half_closed_by(last) => Cow::Borrowed(&text[..start]),
        Some(_) => Cow::Borrowed(text),
        None => match table(text) {
            Some(completed) => Cow::Owned(completed),
            None if is_half_mark(last) => Cow::Borrowed(&text[..start]),
            None => inline(text),
        },
    }
}

/// The mark of a code block, and how many there are of it.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    count: usize,
}

impl Fence {
    /// The fence that a line begins, and what follows it; quotes and lists around it are looked through.
    fn at(line: &str) -> Option<(Self, &str)> {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim_start();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let count = line.len() - rest.len();
        (count >= 3).then_some((Self { mark, count }, rest.trim()))
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::at(line)
            .is_some_and(|(other, rest)| other.mark == self.mark && other.count >= self.count && rest.is_empty())
    }

    fn is_half_closed_by(self, last: &str) -> bool {
        !last.is_empty() && last.len() < self.count && last.chars().all(|character| character == self.mark)
    }
}

/// The fence that is open at the end.
fn open_fence(text: &str) -> Option<Fence> {
    let mut open: Option<Fence> = None;
    for line in text.lines() {
        open = match (open, Fence::at(line)) {
            (Some(fence), _) if fence.is_closed_by(line) => None,
            (Some(fence), _) => Some(fence),
            (None, Some((fence, info))) if fence.mark == '~' || !info.contains('`') => Some(fence),
            (None, _) => None,
        };
    }
    open
}

/// True for a line of nothing but marks, which may become a fence, a heading, a list, a rule or emphasis.
fn is_half_mark(line: &str) -> bool {
    let digits = line.trim_end_matches(['.', ')']);
    let is_number =
        digits.len() + 1 == line.len() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_marks = line.len() <= 6 && line.chars().all(|character| "`~#-*_=+>|:".contains(character));
    !line.is_empty() && (is_marks || (is_number && !digits.is_empty()))
}

/// Gives a table that has only its first line the second one, which makes it a table.
fn table(text: &str) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let rows: Vec<&str> = body.rsplit('\n').take(3).take_while(|line| line.starts_with('|')).collect();
    let (header, rule) = match rows[..] {
        [header] => (header, ""),
        [rule, header] if rule.chars().all(|character| "|-: ".contains(character)) => (header, rule),
        _ => return None,
    };
    if !header.starts_with("| ") || columns(rule) == columns(header) && rule.trim_end().ends_with('|') {
        return None;
    }
    let kept = if rule.is_empty() { body } else { &body[..body.len() - rule.len() - 1] };
    let kept = inline(kept);
    let end = if kept.trim_end().ends_with('|') { "" } else { " |" };
    Some(format!("{kept}{end}\n|{}", "-|".repeat(columns(header))))
}

/// How many cells a row has, the one that is being written included.
fn columns(row: &str) -> usize {
    let cells = row.trim().trim_start_matches('|').trim_end_matches('|');
    1 + cells.replace("\\|", "").matches('|').count()
}

/// A mark that is open, with its place.
#[derive(Clone, Copy)]
enum Open {
    Code {
        at: usize,
        count: usize,
    },
    Strong {
        at: usize,
    },
    /// `[`, or `![` when `width` is 2.
    Bracket {
        at: usize,
        width: usize,
    },
    /// A link whose address has begun; its text ends at `end`.
    Link {
        at: usize,
        width: usize,
        end: usize,
    },
}

/// Closes code, strong text and links that are open in the last paragraph.
fn inline(text: &str) -> Cow<'_, str> {
    let start = text.rfind("\n\n").map_or(0, |blank| blank + 2);
    let open = open_marks(text, start);
    if open.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = text.to_owned();
    for mark in open.into_iter().rev() {
        match mark {
            Open::Code { at, count } if out[at + count..].trim().is_empty() => out.truncate(at),
            Open::Code { count, .. } => out.push_str(&"`".repeat(count)),
            Open::Strong { at } => close_strong(&mut out, at),
            Open::Bracket { at, width } if text.len() - at <= LINK_TEXT => out.replace_range(at..at + width, ""),
            Open::Bracket { .. } => {}
            Open::Link { at, width, end } => {
                out.truncate(end);
                out.replace_range(at..at + width, "");
            }
        }
    }
    Cow::Owned(out)
}

fn close_strong(out: &mut String, at: usize) {
    out.truncate(out.trim_end().len());
    let half = out.len() > at + 2 && out.ends_with('*');
    if out.len() <= at + 2 {
        out.truncate(at);
    } else {
        out.push_str(if half { "*" } else { "**" });
    }
}

fn open_marks(text: &str, start: usize) -> Vec<Open> {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut code: Option<Open> = None;
    let mut at = start;
    while at < bytes.len() {
        let byte = bytes[at];
        let run = if matches!(byte, b'`' | b'*') { run(&bytes[at..]) } else { 1 };
        at += match (byte, code) {
            (b'`', Some(Open::Code { count, .. })) if count == run => {
                code = None;
                run
            }
            (b'`', None) => {
                code = Some(Open::Code { at, count: run });
                run
            }
            (b'`', Some(_)) => run,
            (_, Some(_)) => 1,
            (b'\\', None) => 2,
            (b'*', None) if run == 2 => {
                toggle_strong(&mut open, bytes, at);
                run
            }
            (b'[', None) => {
                let width = 1 + usize::from(at > start && bytes[at - 1] == b'!');
                if open.len() == NESTING {
                    open.remove(0);
                }
                open.push(Open::Bracket { at: at + 1 - width, width });
                1
            }
            (b']', None) => match close_bracket(&mut open, text, at) {
                Some(next) => next - at,
                None => return open,
            },
            (_, None) => 1,
        };
    }
    open.extend(code);
    open
}

/// How often the first byte stands there.
fn run(bytes: &[u8]) -> usize {
    bytes.iter().take(RUN).take_while(|&&byte| byte == bytes[0]).count()
}

fn toggle_strong(open: &mut Vec<Open>, bytes: &[u8], at: usize) {
    match open.iter().rposition(|mark| matches!(mark, Open::Strong { .. })) {
        Some(index) => open.truncate(index),
        None if bytes.get(at + 2).is_none_or(|next| !next.is_ascii_whitespace()) => open.push(Open::Strong { at }),
        None => {}
    }
}

/// Closes a link's text. Where to go on; none when the link is open up to the end.
fn close_bracket(open: &mut Vec<Open>, text: &str, close: usize) -> Option<usize> {
    let after = close + 1;
    let Some(index) = open.iter().rposition(|mark| matches!(mark, Open::Bracket { .. })) else {
        return Some(after);
    };
    let Open::Bracket { at, width } = open[index] else { return Some(after) };
    open.truncate(index);
    match text.as_bytes().get(after) {
        Some(b'(') => {
            if let Some(end) = address_end(&text[after..]) {
                return Some(after + end);
            }
        }
        Some(_) => return Some(after),
        None => {}
    }
    open.push(Open::Link { at, width, end: close });
    None
}

/// The length of `(…)`, parentheses in it balanced; none when it is not closed on its line.
fn address_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(index + 1),
            b')' => depth -= 1,
            // An address ends with its line; what is not closed there is no link any more.
            b'\n' => return Some(index),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(repaired(text), expected, "{text:?}");
    }

    #[test]
    fn a_half_link_is_its_text() {
        check("See [the docs](https://a.te", "See the docs");
        check("See [the docs](", "See the docs");
        check("See [the docs]", "See the docs");
        check("See [the do", "See the do");
        check("See ![a cat](https://a.te", "See a cat");
        check("See [the docs](https://a.test) and", "See [the docs](https://a.test) and");
        check("[a](b(c)", "a");
        check("[a](b\nc", "[a](b\nc");
        check("`[a](b", "`[a](b`");
        let interval = "[0, 1) is an interval that holds 0 but does not hold 1";
        check(interval, interval);
    }

    #[test]
    fn half_emphasis_and_half_code_are_closed() {
        check("So **bold", "So **bold**");
        check("So **bold*", "So **bold**");
        check("So **bold ", "So **bold**");
        check("So **", "So ");
        check("So **bold** `", "So **bold** ");
        check("So ``a`b", "So ``a`b``");
        check("So **`a", "So **`a`**");
        check("2 ** 3 is", "2 ** 3 is");
        check("a \\`b", "a \\`b");
        check("**one\n\ntwo", "**one\n\ntwo");
    }

    #[test]
    fn a_line_of_marks_waits_for_what_it_is() {
        for marks in ["`", "``", "~~", "#", "-", "--", "=", "*", "**", ">", "1.", "12)", "|"] {
            check(&format!("Text\n{marks}"), "Text\n");
        }
        check("Text\n-\n", "Text\n-\n");
        check("Text\n12", "Text\n12");
    }

    #[test]
    fn code_is_left_alone_but_for_a_half_closing_fence() {
        check("````sh\necho [a](b `\n``", "````sh\necho [a](b `\n");
        check("````sh\n```", "````sh\n");
        check("````sh\n```\n", "````sh\n```\n");
        check("```\na\n```\n[b](c", "```\na\n```\nb");
        check("```ru", "```ru");
    }

    #[test]
    fn a_table_is_one_from_its_first_line_on() {
        check("| a", "| a |\n|-|");
        check("| a | b |", "| a | b |\n|-|-|");
        check("| a | b |\n", "| a | b |\n|-|-|");
        check("| a | b |\n|--", "| a | b |\n|-|-|");
        check("| a | b |\n|---|---|", "| a | b |\n|---|---|");
        check("| a | b |\n|---|---|\n| 1 | [x](h", "| a | b |\n|---|---|\n| 1 | x");
        check("|x| is the size", "|x| is the size");
    }
}
