//! A formula as a line to read, until formulas are typeset: `\frac{3}{4} \times 2` as `3/4 × 2`.
//!
//! Only what can be said on one line without loss is changed; any other formula is shown as its source.

/// Commands and what they look like.
const SIGNS: &[(&str, &str)] = &[
    ("times", "×"),
    ("div", "÷"),
    ("cdot", "·"),
    ("pm", "±"),
    ("leq", "≤"),
    ("le", "≤"),
    ("geq", "≥"),
    ("ge", "≥"),
    ("neq", "≠"),
    ("ne", "≠"),
    ("approx", "≈"),
    ("pi", "π"),
    ("quad", "  "),
    (",", " "),
    (";", " "),
    ("%", "%"),
];

/// Deepest nesting of fractions that is read.
const DEPTH: usize = 8;

/// The formula as one line, or its source when it does not fit one.
pub(super) fn readable(source: &str) -> String {
    line(source, 0).unwrap_or_else(|| source.to_owned())
}

fn line(source: &str, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    let mut out = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['\\', '{', '}', '^', '_', '&']) {
        out.push_str(&rest[..at]);
        let command = rest[at..].strip_prefix('\\')?;
        let letters = command.chars().take_while(char::is_ascii_alphabetic).count().max(1);
        let (name, after) = (command.get(..letters)?, command.get(letters..)?);
        if matches!(name, "frac" | "tfrac" | "dfrac") {
            let (above, after) = group(after)?;
            let (below, after) = group(after)?;
            // A mixed number keeps its parts apart.
            if out.ends_with(|character: char| character.is_ascii_digit()) {
                out.push(' ');
            }
            out.push_str(&operand(&line(above, depth + 1)?));
            out.push('/');
            out.push_str(&operand(&line(below, depth + 1)?));
            rest = after;
        } else if name == "text" {
            let (words, after) = group(after)?;
            out.push_str(&line(words, depth + 1)?);
            rest = after;
        } else {
            out.push_str(SIGNS.iter().find(|(known, _)| *known == name)?.1);
            rest = after;
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The `{…}` at the start, and what follows it.
fn group(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('{')?;
    let mut depth = 0_usize;
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some((&inner[..at], &inner[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A sum or a product above or below a line keeps together.
fn operand(line: &str) -> String {
    let line = line.trim();
    let simple = line.chars().all(|character| character.is_alphanumeric() || matches!(character, '.' | ','));
    if simple { line.to_owned() } else { format!("({line})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_a_line_is_read_as_one_and_the_rest_is_source() {
        let check = |source: &str, shown: &str| assert_eq!(readable(source), shown);
        check(r"\frac{3}{4}", "3/4");
        check(r"\frac{2}{7} + \frac{3}{7} = \frac{5}{7}", "2/7 + 3/7 = 5/7");
        check(r"1\tfrac{3}{4}", "1 3/4");
        check(r"\frac{1 \times 3}{2 \times 3}", "(1 × 3)/(2 × 3)");
        check(r"4 \div \frac{2}{3} \approx 6", "4 ÷ 2/3 ≈ 6");
        check("a + b", "a + b");
        check(r"\sqrt{2}", r"\sqrt{2}");
        check("x^2", "x^2");
        check(r"\frac{1}", r"\frac{1}");
        check(r"\frac{1}{2", r"\frac{1}{2");
        check("\\", "\\");
        check(r"\é", r"\é");
    }
}
