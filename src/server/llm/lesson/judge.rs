//! Judging a short answer that matches none of the accepted ones letter for letter.

use super::pack::{ANY, PackQuiz};
use super::words::{holds, words};

/// The name of the tool that settles an open answer.
pub(super) const JUDGE: &str = "judge";

/// Words beside the answer that make a match doubtful.
const DOUBTS: [&str; 8] = ["not", "no", "never", "nor", "isn", "doesn", "or", "maybe"];
/// Words that an answer may have around an accepted one.
const SLACK: usize = 6;

/// True when `answer` says the same as an accepted answer: as a number, or because it holds the accepted words.
pub(super) fn accepts(quiz: &PackQuiz, answer: &str) -> bool {
    if remedy_key(quiz, answer) != ANY {
        return false;
    }
    let given = plain(answer);
    let given = given.rsplit('=').next().unwrap_or(&given).trim();
    quiz.correct.iter().any(|right| same_number(quiz, given, &plain(right)) || contains(given, &plain(right)))
}

/// The key of the remedy that fits a wrong short answer.
pub(super) fn remedy_key<'q>(quiz: &'q PackQuiz, answer: &str) -> &'q str {
    let given = squeezed(answer);
    quiz.remedies.keys().find(|key| *key != ANY && squeezed(key) == given).map_or(ANY, String::as_str)
}

fn same_number(quiz: &PackQuiz, given: &str, right: &str) -> bool {
    let (Some(given), Some(right)) = (number(given), number(right)) else { return false };
    let asks_for_lowest_terms = ["simplest", "simplify", "lowest"].iter().any(|word| quiz.question.contains(word));
    (given.value - right.value).abs() < 1e-9 && (given.is_reduced || !asks_for_lowest_terms)
}

fn contains(given: &str, right: &str) -> bool {
    let (count, needed) = (words(given).len(), words(right).len());
    let has_digits = |text: &str| text.chars().any(|character| character.is_ascii_digit());
    let is_doubtful = words(given).iter().any(|word| DOUBTS.contains(&word.as_str()) && !holds(right, word));
    if is_doubtful || needed == 0 || count > needed + SLACK {
        return false;
    }
    if !has_digits(right) {
        return holds(given, right);
    }
    let numbers = |text: &str| {
        let tokens = text.split_whitespace().map(|token| token.trim_matches(|end: char| !end.is_alphanumeric()));
        tokens.filter(|token| has_digits(token)).map(str::to_owned).collect::<Vec<_>>()
    };
    holds(given, right) && numbers(given) == numbers(right)
}

struct Number {
    value: f64,
    /// False for a fraction that could be simplified.
    is_reduced: bool,
}

/// Reads `3`, `-0.5`, `0,5`, `50%`, `7/2` and `3 1/2`.
fn number(text: &str) -> Option<Number> {
    let text = text.trim().trim_end_matches('.').replace(" / ", "/");
    if let Some(percent) = text.strip_suffix('%') {
        return Some(Number { value: number(percent)?.value / 100.0, is_reduced: true });
    }
    if let Some((whole, fraction)) = text.split_once(' ') {
        let (whole, fraction) = (whole.parse::<u32>().ok()?, number(fraction.trim())?);
        let is_mixed = text.contains('/') && fraction.value < 1.0 && fraction.value > 0.0;
        return is_mixed.then(|| Number { value: f64::from(whole) + fraction.value, ..fraction });
    }
    if let Some((above, below)) = text.split_once('/') {
        let (above, below) = (above.parse::<i32>().ok()?, below.parse::<i32>().ok().filter(|below| *below != 0)?);
        let is_reduced = divisor(above.unsigned_abs(), below.unsigned_abs()) == 1;
        return Some(Number { value: f64::from(above) / f64::from(below), is_reduced });
    }
    let plain = |character: char| character.is_ascii_digit() || matches!(character, '-' | '.' | ',');
    let value = text.chars().all(plain).then(|| text.replace(',', ".").parse().ok()).flatten()?;
    Some(Number { value, is_reduced: true })
}

fn divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// Lower case, one kind of minus, and fractions of one character written out.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for character in text.trim().to_lowercase().chars() {
        let spelled = match character {
            '½' => " 1/2",
            '⅓' => " 1/3",
            '⅔' => " 2/3",
            '¼' => " 1/4",
            '¾' => " 3/4",
            '−' | '–' => "-",
            '⁄' => "/",
            other => {
                plain.push(other);
                continue;
            }
        };
        plain.push_str(spelled);
    }
    plain.trim().to_owned()
}

/// For comparing with keys: as [`plain`], and the space around signs does not count.
fn squeezed(text: &str) -> String {
    let plain = plain(text).replace(" / ", "/");
    plain.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::app::native::question::QuizKind;

    use super::*;

    fn quiz(question: &str, correct: &[&str], remedies: &[&str]) -> PackQuiz {
        let text = String::new;
        PackQuiz {
            id: text(),
            concept: text(),
            kind: QuizKind::Short,
            question: question.to_owned(),
            options: Vec::new(),
            correct: correct.iter().map(|&right| right.to_owned()).collect(),
            hint: text(),
            explanation: text(),
            praise: text(),
            unsure: text(),
            remedies: remedies.iter().map(|&key| (key.to_owned(), text())).collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn a_loose_match_is_accepted_and_a_known_slip_is_not() {
        let check = |quiz: &PackQuiz, answer: &str, expected: bool| {
            assert_eq!(accepts(quiz, answer), expected, "{answer:?} for {:?}", quiz.correct);
        };
        let portions = quiz("How many?", &["7/2", "3.5"], &["7/32", "3", "*"]);
        for right in ["3½", "3 1/2", "14/4", "350%", "3,5", "it is 7/2.", "7/8 : 1/4 = 7/2", "7/2 portions"] {
            check(&portions, right, true);
        }
        for wrong in ["3", "7/32", "2 7/2", "7/2 or 3", "not 7/2", "13.5", "", "many", "2/7", "7/2 7/2"] {
            check(&portions, wrong, false);
        }
        let simplest = quiz("Write 28/42 in simplest form.", &["2/3", "two thirds"], &["*"]);
        check(&simplest, "14/21", false);
        check(&simplest, "It is two thirds", true);
        let output = quiz("What does it print?", &["sun"], &["sunny", "*"]);
        check(&output, "it should print sun", true);
        check(&output, "sunny", false);
        check(&output, "sunny not sun", false);
        let mixed = quiz("As one fraction?", &["8/3"], &["2 2/3", "*"]);
        check(&mixed, "2⅔", false);
        check(&mixed, "16/6", true);
    }
}
