//! What a scripted teacher can honestly say to free words of the learner.

use super::history::{Entry, History};
use super::pack::{Pack, PackQuiz};
use super::shelf::{Packs, score};
use super::words::{holds, words};

/// The question that waits while the learner writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting<'p> {
    /// One of the probe, with its options.
    Probe(&'p [String]),
    Quiz(&'p PackQuiz),
    Nothing,
}

/// Words that only ask to go on.
const GO_ON: [&str; 24] = [
    "continue", "go", "on", "ok", "okay", "yes", "ready", "next", "resume", "please", "sure", "fine", "thanks",
    "thank", "you", "let", "s", "us", "proceed", "carry", "again", "now", "i", "m",
];

/// Replies to what the learner wrote, asked or objected since the teacher's last answer; none when nothing needs it.
pub(super) fn to_tail(history: &History<'_>, packs: &Packs, pack: &Pack, waiting: Waiting<'_>) -> Option<String> {
    let asks_for_hint = history.tail().iter().any(|entry| matches!(entry, Entry::Hint));
    let objects = history.tail().iter().any(|entry| matches!(entry, Entry::Objection));
    let texts = history.new_texts();
    if asks_for_hint || texts.iter().any(|text| wants_hint(text)) {
        return hint(waiting);
    }
    if let Some(text) = texts.iter().rev().find(|text| !only_goes_on(text)) {
        return Some(to_text(text, history, packs, pack, waiting));
    }
    objects.then(|| match waiting {
        Waiting::Probe(_) | Waiting::Quiz(_) => {
            "You object to the question, and I can't weigh that: I am scripted, and \
            the question stays as its author wrote it. Your objection is in the record. If it seems unfair, skip it."
                .to_owned()
        }
        Waiting::Nothing => "Your objection is in the record. I am scripted and can't weigh it, so I go on.".to_owned(),
    })
}

/// True when the text asks for nothing but to go on.
pub(super) fn only_goes_on(text: &str) -> bool {
    words(text).iter().all(|word| GO_ON.contains(&word.as_str()))
}

/// The other lesson that a text names, when it does not name this one.
pub(super) fn other_pack<'p>(packs: &'p Packs, pack: &Pack, text: &str) -> Option<&'p Pack> {
    packs.find(text).filter(|other| other.slug != pack.slug && score(pack, text) == 0)
}

fn wants_hint(text: &str) -> bool {
    words(text).iter().any(|word| matches!(word.as_str(), "hint" | "hints" | "help" | "clue" | "stuck"))
}

fn hint(waiting: Waiting<'_>) -> Option<String> {
    match waiting {
        Waiting::Quiz(quiz) => Some(format!("A hint: {}", quiz.hint)),
        Waiting::Probe(_) => Some(
            "There are no hints in these first questions, because they are to show me where you stand. \"I don't know\" \
             is a good answer here."
                .to_owned(),
        ),
        Waiting::Nothing => None,
    }
}

fn to_text(text: &str, history: &History<'_>, packs: &Packs, pack: &Pack, waiting: Waiting<'_>) -> String {
    if let Some(other) = other_pack(packs, pack, text) {
        return format!(
            "For \"{}\", start a new chat and ask for it there; this chat is about {}.",
            other.title, pack.title
        );
    }
    let has_form = !matches!(waiting, Waiting::Nothing);
    if has_form && ["don t know", "dont know", "no idea", "idk", "not sure"].iter().any(|phrase| holds(text, phrase)) {
        return "If you don't know, that is fine: choose \"I don't know\" below the question, and I go on from there."
            .to_owned();
    }
    if has_form && holds(text, "skip") {
        return "You can skip it with the button \"Skip\" below the question.".to_owned();
    }
    let options = match waiting {
        Waiting::Probe(options) => options,
        Waiting::Quiz(quiz) => &quiz.options,
        Waiting::Nothing => &[],
    };
    if options.iter().any(|option| option.trim().eq_ignore_ascii_case(text.trim())) {
        return "That reads like an answer. Please give it in the form of the question, so that it counts.".to_owned();
    }
    let earlier = history.entries.iter().filter(|entry| matches!(entry, Entry::Learner(_))).count();
    let honest = match earlier % 3 {
        0 => "I am a scripted teacher: I can't discuss what you wrote, because I know only the words of this lesson.",
        1 => "I have to be honest: I can't take that up. My lesson was written beforehand, and I only follow it.",
        _ => "That goes beyond what I can do. I play a written lesson and can't answer questions of your own.",
    };
    match waiting {
        Waiting::Quiz(_) => format!("{honest} If you write \"hint\", I can give you a hint, though."),
        Waiting::Probe(_) | Waiting::Nothing => honest.to_owned(),
    }
}
