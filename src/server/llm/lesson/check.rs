//! The rules that a lesson pack keeps, beyond what its types say.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::app::native::question::{Question, QuizKind};

use super::pack::{ANY, Lines, Pack, PackQuiz, ProbeItem};
use super::section::Fault;

/// Blocks of one pack; a plan takes no fewer and no more.
const BLOCKS: std::ops::RangeInclusive<usize> = 2..=12;
/// Longest id, so that a call's id stays within 64 characters.
const LONGEST_ID: usize = 30;

/// Checks the front matter; `texts` are those that must not be empty.
pub(super) fn front(slug: &str, topics: &[String], texts: &[&str]) -> Result<(), Fault> {
    name(1, slug)?;
    if topics.is_empty() {
        return Err(Fault::new(1, "`topics` is empty; without one nobody can ask for the lesson."));
    }
    if let Some(topic) = topics.iter().find(|topic| topic.to_lowercase() != **topic || topic.trim().is_empty()) {
        return Err(Fault::new(1, format!("The topic {topic:?} is not in lower case.")));
    }
    if texts.iter().any(|text| text.trim().is_empty()) {
        return Err(Fault::new(1, "`title`, `summary` and `goal` must not be empty."));
    }
    Ok(())
}

/// Checks the form of an id or a slug.
pub(super) fn name(line: usize, name: &str) -> Result<(), Fault> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if name.is_empty() || name.len() > LONGEST_ID || !name.chars().all(is_plain) {
        let reason = format!("The name {name:?} must be 1 to {LONGEST_ID} of a–z, 0–9 and hyphens.");
        return Err(Fault::new(line, reason));
    }
    Ok(())
}

/// Checks that named texts are not empty.
pub(super) fn filled(line: usize, texts: &[(&str, &str)]) -> Result<(), Fault> {
    match texts.iter().find(|(_, text)| text.trim().is_empty()) {
        Some((field, _)) => Err(Fault::new(line, format!("`{field}` is empty."))),
        None => Ok(()),
    }
}

/// Checks a question as its tool would, and notes where it stands.
pub(super) fn question(line: usize, id: &str, tool: &str, args: &Value, lines: &mut Lines) -> Result<(), Fault> {
    name(line, id)?;
    if let Some(earlier) = lines.of.insert(id.to_owned(), line) {
        return Err(Fault::new(line, format!("The id {id:?} is taken by the question on line {earlier}.")));
    }
    Question::from_args(tool, args).map(|_| ()).map_err(|reason| Fault::new(line, reason))
}

/// Checks that each wrong answer has its remedy, and that each remedy can be reached.
pub(super) fn remedies(line: usize, quiz: &PackQuiz) -> Result<(), Fault> {
    filled(
        line,
        &[
            ("hint", &quiz.hint),
            ("explanation", &quiz.explanation),
            ("praise", &quiz.praise),
            ("unsure", &quiz.unsure),
            ("concept", &quiz.concept),
        ],
    )?;
    let wrong = || quiz.options.iter().filter(|option| !quiz.correct.contains(option));
    if let Some(option) = wrong().find(|option| !quiz.remedies.contains_key(*option)) {
        return Err(Fault::new(line, format!("The wrong option {option:?} has no remedy.")));
    }
    let is_short = quiz.kind == QuizKind::Short;
    if quiz.kind != QuizKind::Single && !quiz.remedies.contains_key(ANY) {
        return Err(Fault::new(line, "A multi or short quiz needs the remedy \"*\"."));
    }
    for (key, text) in &quiz.remedies {
        filled(line, &[("remedies", text)])?;
        let reachable = key == ANY || is_short || wrong().any(|option| option == key);
        if !reachable || quiz.correct.contains(key) {
            return Err(Fault::new(
                line,
                format!("The remedy for {key:?} can never be said: that is no wrong answer."),
            ));
        }
    }
    Ok(())
}

/// Checks what concerns the pack as a whole.
pub(super) fn whole(pack: &Pack, lines: &Lines) -> Result<(), Fault> {
    for (what, text) in [("opening words", &pack.opening), ("summary", &pack.closing)] {
        if text.is_empty() {
            return Err(Fault::new(1, format!("The {what} are missing.")));
        }
    }
    if !BLOCKS.contains(&pack.blocks.len()) {
        let reason = format!("A lesson has 2 to 12 blocks; this one has {}.", pack.blocks.len());
        return Err(Fault::new(1, reason));
    }
    if pack.probes().next().is_none() {
        return Err(Fault::new(lines.probe.max(1), "The section `Probe` needs at least one quiz."));
    }
    let line = |id: &str| lines.of.get(id).copied().unwrap_or(1);
    if let Some(first) = pack.blocks.first().filter(|block| !block.bridge.is_empty()) {
        return Err(Fault::new(
            line(&format!("block {}", first.id)),
            "The first block has a `bridge`; nothing comes before it.",
        ));
    }
    if let Some(probe) = pack.probes().find(|probe| pack.block(&probe.block).is_none()) {
        return Err(Fault::new(line(&probe.id), format!("There is no block {:?}.", probe.block)));
    }
    let questions = pack.probe.iter().map(|item: &ProbeItem| (item.id(), item.question()));
    let questions = questions.chain(pack.quizzes().map(|(_, quiz)| (quiz.id.as_str(), quiz.question.as_str())));
    let mut seen = BTreeSet::new();
    for (id, text) in questions {
        if !seen.insert(text.trim()) {
            return Err(Fault::new(line(id), "This question is asked twice, word for word; each needs its own words."));
        }
    }
    Ok(())
}
