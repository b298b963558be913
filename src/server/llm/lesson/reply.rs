//! What a scripted teacher can honestly say to free words of the learner: once, short, and with its lesson's own words
//! where they answer.

use crate::app::native::question::QuizKind;

use super::heard::{Heard, heard};
use super::history::{Call, Entry, History, Instead};
use super::pack::{ANY, Pack, PackQuiz};
use super::quote;
use super::shelf::{Packs, score};
use super::words::{Set, words};

/// What waits while the learner writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting<'p> {
    /// A question of the probe, with its options.
    Probe(&'p [String]),
    Plan,
    /// A quiz, with the recap of its block unless that was said just before.
    Quiz {
        quiz: &'p PackQuiz,
        recap: Option<&'p str>,
    },
    Nothing,
}

/// How an open question goes on after what the learner did instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Pose,
    /// It was posed again after a text before; now it waits until the learner wants to go on.
    Wait,
    /// The learner wants to stop.
    Stop,
}

/// Said when a question is not posed again for now.
pub(super) const WAITS: &str = "The question stays open. Write \"go on\", and I ask it again.";

/// How the open `question` goes on.
pub(super) fn again(history: &History<'_>, question: &str) -> Again {
    let texts = history.new_texts();
    if texts.last().is_some_and(|text| heard(text) == Heard::Stop) {
        return Again::Stop;
    }
    let talks = |heard: Heard| !matches!(heard, Heard::GoOn | Heard::Stop);
    // A wish to go on begins anew.
    let goes_on = |entry: &Entry<'_>| matches!(entry, Entry::Learner(text) if heard(text) == Heard::GoOn);
    let from = history.entries.iter().rposition(goes_on).map_or(0, |last| last + 1);
    let is_talk = |entry: &&Entry<'_>| match entry {
        Entry::Call(call) => {
            let wrote = matches!(call.instead, Some(Instead::Wrote(heard)) if talks(heard));
            wrote && call.question() == Some(question) && call.answered().is_none()
        }
        _ => false,
    };
    let earlier = history.entries[from..].iter().filter(is_talk).count();
    if earlier >= 2 && texts.last().is_some_and(|text| talks(heard(text))) { Again::Wait } else { Again::Pose }
}

/// The other lesson that a text names, when it does not name this one.
pub(super) fn other_pack<'p>(packs: &'p Packs, pack: &Pack, text: &str) -> Option<&'p Pack> {
    packs.find(text).filter(|other| other.slug != pack.slug && score(pack, text) == 0)
}

/// Somebody who replies.
#[derive(Clone, Copy)]
pub(super) struct Listener<'a> {
    pub(super) history: &'a History<'a>,
    pub(super) packs: &'a Packs,
    pub(super) pack: &'a Pack,
    pub(super) waiting: Waiting<'a>,
}

impl Listener<'_> {
    /// Replies to what the learner wrote, asked or objected since the teacher's last answer; none when nothing needs it.
    pub(super) fn reply(&self) -> Option<String> {
        let texts = self.history.new_texts();
        if let Some(text) = texts.iter().rev().find(|text| heard(text) != Heard::GoOn) {
            return Some(self.reply_to(text));
        }
        let tail = self.history.tail();
        if tail.iter().any(|entry| matches!(entry, Entry::Hint)) {
            return self.hint();
        }
        let objects = tail.iter().any(|entry| matches!(entry, Entry::Objection));
        objects.then(|| match self.waiting {
            Waiting::Probe(_) | Waiting::Quiz { .. } => {
                "You object to the question, and I can't weigh that: I am scripted, and the question stays as its author \
                 wrote it. Your objection is in the record. If it seems unfair, skip it."
                    .to_owned()
            }
            Waiting::Plan | Waiting::Nothing => {
                "Your objection is in the record. I am scripted and can't weigh it, so I go on.".to_owned()
            }
        })
    }

    /// Replies to one text.
    fn reply_to(&self, text: &str) -> String {
        if let Some(other) = other_pack(self.packs, self.pack, text) {
            return format!(
                "For \"{}\", start a new chat and ask for it there; this chat is about {}.",
                other.title, self.pack.title
            );
        }
        match heard(text) {
            Heard::GoOn | Heard::Stop | Heard::Skip | Heard::DontKnow => "All right.".to_owned(),
            Heard::Greeting => "Hello!".to_owned(),
            Heard::Hint => self.hint().unwrap_or_else(|| self.honest()),
            Heard::Again => self.once_more(),
            Heard::Why => self.why(text),
            Heard::Other => self.answer(text),
        }
    }

    fn hint(&self) -> Option<String> {
        match self.waiting {
            Waiting::Quiz { quiz, .. } => Some(format!("A hint: {}", quiz.hint)),
            Waiting::Probe(_) => Some(
                "There are no hints in these first questions, because they are to show me where you stand. \"I don't \
                 know\" is a good answer here."
                    .to_owned(),
            ),
            Waiting::Plan | Waiting::Nothing => None,
        }
    }

    /// Says it in other words: the block's recap, then the question's hint.
    fn once_more(&self) -> String {
        let Waiting::Quiz { quiz, recap } = self.waiting else {
            return self.hint().unwrap_or_else(|| self.honest());
        };
        let times = |heard: Heard| {
            let is_it = |call: &&Call<'_>| call.instead == Some(Instead::Wrote(heard));
            self.history.unanswered(&quiz.question).filter(is_it).count()
        };
        match (times(Heard::Again) + times(Heard::Why), recap) {
            (0 | 1, Some(recap)) => format!("In short, it is this:\n\n{}", quoted(recap)),
            (0 | 1, None) | (2, Some(_)) => format!("Perhaps this helps: {}", quiz.hint),
            _ => "I have no other words for it than these. \"I don't know\" is a good answer too: then I explain it from \
                  another side."
                .to_owned(),
        }
    }

    /// Says why the answer before was right or wrong, unless the text asks why of something else.
    fn why(&self, text: &str) -> String {
        if let Some(found) = self.found(text) {
            return found;
        }
        let Waiting::Quiz { quiz: open, .. } = self.waiting else { return self.honest() };
        if quote::asks_of_something(text) {
            return self.honest();
        }
        let answered = self.history.calls().rev().find(|call| call.answered().is_some());
        let quiz = answered.and_then(|call| {
            let question = call.question()?;
            self.pack.quizzes().map(|(_, quiz)| quiz).find(|quiz| quiz.question == question)
        });
        let is_first = self.history.unanswered(&open.question).count() <= 1;
        match quiz.filter(|_| is_first) {
            Some(quiz) => format!("If you mean the question before: {}", quiz.explanation),
            None => self.once_more(),
        }
    }

    fn answer(&self, text: &str) -> String {
        if self.is_answer(text) {
            return "That reads like an answer. Please give it in the form of the question, so that it counts."
                .to_owned();
        }
        let is_about_me = Set("ai bot robot human chatgpt chatbot scripted").is_in(&words(text));
        if is_about_me {
            return "I am a scripted teacher: no AI model is at work, and I say only what was written for this lesson."
                .to_owned();
        }
        self.found(text).unwrap_or_else(|| self.honest())
    }

    /// What the lesson itself says about it. Before the plan is accepted nothing is taught, so it only says where.
    fn found(&self, text: &str) -> Option<String> {
        let quote = quote::find(self.pack, text)?;
        let title = &quote.block.title;
        Some(match self.waiting {
            Waiting::Probe(_) => format!(
                "\"{title}\" is about that, and it comes later. These first questions only show me where you stand, so \"I \
                 don't know\" is a good answer."
            ),
            Waiting::Plan => format!("That is what \"{title}\" is about; I explain it there."),
            Waiting::Quiz { .. } | Waiting::Nothing => {
                format!("This is what my lesson says about it, in \"{title}\":\n\n{}", quoted(quote.text))
            }
        })
    }

    /// True for a text that gives one of the answers that the question knows.
    fn is_answer(&self, text: &str) -> bool {
        let begins = |answer: &str| answer != ANY && begins_with(text, answer);
        match self.waiting {
            Waiting::Probe(options) => options.iter().any(|option| begins(option)),
            Waiting::Quiz { quiz, .. } if quiz.kind == QuizKind::Short => {
                quiz.correct.iter().chain(quiz.remedies.keys()).any(|answer| begins(answer))
            }
            Waiting::Quiz { quiz, .. } => quiz.options.iter().any(|option| begins(option)),
            Waiting::Plan | Waiting::Nothing => false,
        }
    }

    fn honest(&self) -> String {
        let earlier = self.history.entries.iter().filter(|entry| matches!(entry, Entry::Learner(_))).count();
        let honest = match earlier % 3 {
            0 => "My lesson says nothing on that. It was written beforehand, and I only follow it.",
            1 => "That goes beyond my lesson, and being scripted I have no words of my own.",
            _ => "I can't answer that: I am scripted, and I know only what this lesson says.",
        };
        match self.waiting {
            Waiting::Quiz { .. } => format!("{honest} What I can give you is a hint: write \"hint\"."),
            Waiting::Probe(_) | Waiting::Plan | Waiting::Nothing => honest.to_owned(),
        }
    }
}

/// True when `text` is `answer`, perhaps after "I think it is" and before more words.
fn begins_with(text: &str, answer: &str) -> bool {
    let lead = Set("i think it s is the answer maybe be must would say its");
    let lower = text.trim().to_lowercase();
    let led = words(&lower).iter().take_while(|word| lead.has(word)).count();
    let mut rest = lower.as_str();
    for _ in 0..led {
        let word = rest.trim_start_matches(|character: char| !character.is_alphanumeric());
        rest = word.trim_start_matches(char::is_alphanumeric);
    }
    let answer = answer.trim().to_lowercase();
    [lower.as_str(), rest.trim_start()].iter().any(|text| {
        let after = text.strip_prefix(answer.as_str()).map(|after| after.trim_start_matches(['.', '!', ',']));
        after.is_some_and(|after| after.is_empty() || after.starts_with(char::is_whitespace))
    })
}

/// As a quotation.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}
