//! A lesson pack: one authored lesson as data, read from a Markdown file and checked.
//!
//! The file has TOML front matter, opening words, then level-1 sections `Probe`, `Block <id>: <title>` (several) and
//! `Summary`. Fences with the info string `ask`, `quiz` or `block` hold TOML; all else is prose, said as it stands. What a
//! block says must hold whatever stands beside it in the learner's plan; what links it to the block before it is its
//! `bridge`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::native::question::{ASK, QUIZ, QuizKind};

use super::check;
use super::section::{Fault, Part, Section, cut};

/// One lesson.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    /// Its name among packs: lower-case letters, digits and hyphens.
    pub slug: String,
    pub title: String,
    /// Words and phrases that ask for this lesson, in lower case.
    pub topics: Vec<String>,
    /// One line for the menu.
    pub summary: String,
    /// What the learner will be able to do at the end.
    pub goal: String,
    /// What a learner who finished should know.
    pub propositions: Vec<Proposition>,
    /// Said before the first question.
    pub opening: String,
    pub probe: Vec<ProbeItem>,
    pub blocks: Vec<PackBlock>,
    /// Said at the end, whatever the plan was.
    pub closing: String,
}

/// Something that the lesson teaches, as one sentence.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposition {
    pub concept: String,
    pub statement: String,
}

/// One question of the probe, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeItem {
    Ask(Wish),
    Quiz(ProbeQuiz),
}

/// What the learner is asked about themselves; own words are always allowed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    pub id: String,
    pub question: String,
    pub options: Vec<String>,
}

/// A question that finds out whether a block is known already.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeQuiz {
    pub id: String,
    /// The id of the block that it is about.
    pub block: String,
    pub concept: String,
    pub kind: QuizKind,
    pub question: String,
    #[serde(default)]
    pub options: Vec<String>,
    pub correct: Vec<String>,
}

/// One block: prose and quizzes in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PackBlock {
    pub id: String,
    pub title: String,
    pub objective: String,
    pub concepts: Vec<String>,
    /// What the learner can do after it, as the end of a sentence that begins with "You can".
    pub can: String,
    /// Said before it when it follows the block that comes before it in the file; may be empty.
    pub bridge: String,
    /// Said in place of the prose when the probe showed that the learner knows this.
    pub recap: String,
    /// At least one; the last quiz checks the block's objective.
    pub steps: Vec<PackStep>,
    /// Prose after the last quiz; mostly empty.
    pub after: String,
}

/// Prose (which may be empty) and the quiz that follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PackStep {
    pub prose: String,
    pub quiz: PackQuiz,
}

/// A graded question with what the teacher says to each answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackQuiz {
    pub id: String,
    pub concept: String,
    pub kind: QuizKind,
    pub question: String,
    #[serde(default)]
    pub options: Vec<String>,
    pub correct: Vec<String>,
    pub hint: String,
    pub explanation: String,
    /// Said after a right answer.
    pub praise: String,
    /// Said after "I don't know".
    pub unsure: String,
    /// By the wrong answer's text; `*` is for any other text, or for a right option that was missed.
    #[serde(default)]
    pub remedies: BTreeMap<String, String>,
}

/// The key of the remedy for everything that has none of its own.
pub(super) const ANY: &str = "*";

/// Why a pack's file was skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct PackError {
    pub file: String,
    /// From 1; 0 when the file could not be read at all.
    pub line: usize,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Front {
    slug: String,
    title: String,
    topics: Vec<String>,
    summary: String,
    goal: String,
    #[serde(default)]
    propositions: Vec<Proposition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    objective: String,
    concepts: Vec<String>,
    recap: String,
    /// Without it, the objective is said.
    #[serde(default)]
    can: Option<String>,
    #[serde(default)]
    bridge: String,
}

impl Pack {
    /// Reads and checks the text of a pack's file; `file` names it in errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, PackError> {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        read(&text).map_err(|Fault { line, reason }| PackError { file: file.to_owned(), line, reason })
    }

    /// The block with this id.
    #[must_use]
    pub fn block(&self, id: &str) -> Option<&PackBlock> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// The block that comes before the one with this id.
    #[must_use]
    pub fn before(&self, id: &str) -> Option<&PackBlock> {
        let at = self.blocks.iter().position(|block| block.id == id)?;
        self.blocks.get(at.checked_sub(1)?)
    }

    /// The quizzes of all blocks, in order, each with its block.
    pub fn quizzes(&self) -> impl Iterator<Item = (&PackBlock, &PackQuiz)> {
        self.blocks.iter().flat_map(|block| block.steps.iter().map(move |step| (block, &step.quiz)))
    }

    /// The probe's graded questions.
    pub fn probes(&self) -> impl Iterator<Item = &ProbeQuiz> {
        self.probe.iter().filter_map(|item| match item {
            ProbeItem::Quiz(quiz) => Some(quiz),
            ProbeItem::Ask(_) => None,
        })
    }
}

impl ProbeItem {
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Ask(wish) => &wish.id,
            Self::Quiz(quiz) => &quiz.id,
        }
    }

    #[must_use]
    pub fn question(&self) -> &str {
        match self {
            Self::Ask(wish) => &wish.question,
            Self::Quiz(quiz) => &quiz.question,
        }
    }

    /// The name of the tool that poses it.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        match self {
            Self::Ask(_) => ASK,
            Self::Quiz(_) => QUIZ,
        }
    }

    /// The arguments of the call that poses it.
    #[must_use]
    pub fn args(&self) -> Value {
        match self {
            Self::Ask(wish) => json!({
                "question": wish.question, "options": wish.options, "multiSelect": false, "allowOther": true,
            }),
            Self::Quiz(quiz) => without_empty_options(json!({
                "question": quiz.question, "kind": quiz.kind, "options": quiz.options, "correct": quiz.correct,
                "concept": quiz.concept,
            })),
        }
    }
}

impl PackQuiz {
    /// The arguments of the call that poses it.
    #[must_use]
    pub fn args(&self) -> Value {
        without_empty_options(json!({
            "question": self.question, "kind": self.kind, "options": self.options, "correct": self.correct,
            "concept": self.concept, "explanation": self.explanation, "hint": self.hint,
        }))
    }
}

/// A short question has no options, not an empty list of them.
fn without_empty_options(mut args: Value) -> Value {
    if let Some(fields) = args.as_object_mut()
        && fields.get("options").and_then(Value::as_array).is_some_and(Vec::is_empty)
    {
        fields.shift_remove("options");
    }
    args
}

fn read(text: &str) -> Result<Pack, Fault> {
    let document = cut(text)?;
    let front: Front = data(document.front.0, &document.front.1)?;
    check::front(&front.slug, &front.topics, &[&front.title, &front.summary, &front.goal])?;
    let mut pack = Pack {
        slug: front.slug,
        title: front.title,
        topics: front.topics,
        summary: front.summary,
        goal: front.goal,
        propositions: front.propositions,
        opening: String::new(),
        probe: Vec::new(),
        blocks: Vec::new(),
        closing: String::new(),
    };
    let mut lines = Lines::default();
    for section in document.sections {
        take_section(&mut pack, &mut lines, section)?;
    }
    check::whole(&pack, &lines)?;
    Ok(pack)
}

/// Where things stand in the file, for errors that are found later.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) probe: usize,
    /// By id of a question or a block.
    pub(super) of: BTreeMap<String, usize>,
}

fn take_section(pack: &mut Pack, lines: &mut Lines, section: Section) -> Result<(), Fault> {
    if let Some(name) = section.heading.strip_prefix("Block ") {
        let Some((id, title)) = name.split_once(':') else {
            return Err(Fault::new(section.line, "A block's heading reads `# Block <id>: <title>`."));
        };
        let (id, title) = (id.trim().to_owned(), title.trim().to_owned());
        check::name(section.line, &id)?;
        if pack.block(&id).is_some() {
            return Err(Fault::new(section.line, format!("Two blocks have the id {id:?}.")));
        }
        lines.of.insert(format!("block {id}"), section.line);
        let block = read_block(id, title, section, lines)?;
        pack.blocks.push(block);
        return Ok(());
    }
    match section.heading.as_str() {
        "" => pack.opening = only_prose(&section, "the opening words")?,
        "Summary" => pack.closing = only_prose(&section, "the summary")?,
        "Probe" => {
            lines.probe = section.line;
            for part in section.parts {
                pack.probe.push(probe_item(part, lines)?);
            }
        }
        other => {
            let reason = format!("The section {other:?} is none of `Probe`, `Block <id>: <title>` and `Summary`.");
            return Err(Fault::new(section.line, reason));
        }
    }
    Ok(())
}

fn only_prose(section: &Section, what: &str) -> Result<String, Fault> {
    match section.parts.as_slice() {
        [Part::Prose { text, .. }] => Ok(text.clone()),
        _ => Err(Fault::new(section.line, format!("Here {what} are expected: prose, and nothing else."))),
    }
}

fn probe_item(part: Part, lines: &mut Lines) -> Result<ProbeItem, Fault> {
    match part {
        Part::Prose { line, .. } => Err(Fault::new(line, "The probe has no prose; put it before `# Probe`.")),
        Part::Data { line, info, text } if info == "ask" => {
            let wish: Wish = data(line + 1, &text)?;
            check::question(line, &wish.id, ASK, &ProbeItem::Ask(wish.clone()).args(), lines)?;
            Ok(ProbeItem::Ask(wish))
        }
        Part::Data { line, info, text } if info == "quiz" => {
            let quiz: ProbeQuiz = data(line + 1, &text)?;
            check::question(line, &quiz.id, QUIZ, &ProbeItem::Quiz(quiz.clone()).args(), lines)?;
            Ok(ProbeItem::Quiz(quiz))
        }
        Part::Data { line, .. } => Err(Fault::new(line, "The probe holds `ask` and `quiz` fences only.")),
    }
}

fn read_block(id: String, title: String, section: Section, lines: &mut Lines) -> Result<PackBlock, Fault> {
    let mut parts = section.parts.into_iter();
    let head: Head = match parts.next() {
        Some(Part::Data { line, info, text }) if info == "block" => data(line + 1, &text)?,
        _ => return Err(Fault::new(section.line, "A block begins with a `block` fence.")),
    };
    let (mut steps, mut prose) = (Vec::new(), String::new());
    for part in parts {
        match part {
            Part::Prose { text, .. } => prose = text,
            Part::Data { line, info, text } if info == "quiz" => {
                let quiz: PackQuiz = data(line + 1, &text)?;
                check::question(line, &quiz.id, QUIZ, &quiz.args(), lines)?;
                check::remedies(line, &quiz)?;
                steps.push(PackStep { prose: std::mem::take(&mut prose), quiz });
            }
            Part::Data { line, info, .. } => {
                return Err(Fault::new(line, format!("A fence {info:?} has no place in the middle of a block.")));
            }
        }
    }
    if steps.is_empty() {
        return Err(Fault::new(section.line, format!("The block {id:?} has no quiz; its last one verifies it.")));
    }
    let Head { objective, concepts, recap, can, bridge } = head;
    check::filled(section.line, &[("title", &title), ("objective", &objective), ("recap", &recap)])?;
    let can = can.unwrap_or_else(|| as_ending(&objective));
    Ok(PackBlock { id, title, objective, concepts, can, bridge, recap, steps, after: prose })
}

/// A sentence as the end of another one: without its capital and its full stop.
fn as_ending(sentence: &str) -> String {
    let mut letters = sentence.trim().trim_end_matches('.').chars();
    let first = letters.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Reads TOML that begins on `line` of the file.
fn data<T: DeserializeOwned>(line: usize, text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let offset = before.matches('\n').count();
        Fault::new(line + offset, error.message().trim().to_owned())
    })
}
