//! What a text of the learner's is, as far as a scripted teacher can hear it: a word to go on, a wish to stop, a question.

use super::words::{Set, words};

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It only asks to go on, or agrees.
    GoOn,
    /// To end the lesson.
    Stop,
    /// To leave the question out.
    Skip,
    DontKnow,
    Hint,
    Greeting,
    /// It was not understood and should be said once more.
    Again,
    Why,
    Other,
}

/// Words around those that count.
const AROUND: Set =
    Set("i m am ve a an the it this that thats these is are was so please really just sorry to be me you your can \
     could we let lets s us d ll would like want do now here there for of my at all well oh hm hmm um and but \
     with some any one question quiz answer then think maybe if very much too will may im id teacher also dear \
     have");

const GO_ON: Set =
    Set("continue go on ok okay yes yep yeah ready next resume sure fine thanks thank proceed carry again alright \
     right great good cool nice got see understood understand k move start begin perfect awesome ahead going keep \
     interesting up no aha ah");
const STOP: Set =
    Set("stop enough quit end finish finished done exit bye goodbye pause tired tomorrow later break cancel abort");
/// Words that a wish to stop may have beside it.
const STOPPING: Set = Set("lesson session today need take see get no more time go leave ok okay thanks thank us day");
const GREETINGS: Set = Set("hello hi hey hiya howdy greetings morning evening afternoon");
const AGAIN: Set =
    Set("understand get follow explain repeat rephrase differently confused confusing unclear huh lost what pardon \
     elaborate");
const AGAINST: Set = Set("don dont t not didn cannot again once more way in other words mean does simpler");
const DONT_KNOW: Set = Set("don dont t know not no idea sure clue idk dunno");

/// Hears a text.
pub(super) fn heard(text: &str) -> Heard {
    let words = words(text);
    let all = |sets: &[Set]| words.iter().all(|word| AROUND.has(word) || sets.iter().any(|set| set.has(word)));
    let any = |set: Set| set.is_in(&words);
    let phrase = |phrases: &[&str]| {
        let text = format!(" {} ", words.join(" "));
        phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")))
    };
    if words.is_empty() {
        return if text.contains('?') { Heard::Again } else { Heard::GoOn };
    }
    let skips = any(Set("skip pass")) || phrase(&["next question", "next one"]);
    if skips && all(&[Set("skip pass next on")]) {
        return Heard::Skip;
    }
    let does_not_know = ["don t know", "dont know", "do not know", "no idea", "not sure", "no clue", "idk", "dunno"];
    if phrase(&does_not_know) && all(&[DONT_KNOW]) {
        return Heard::DontKnow;
    }
    if any(GREETINGS) && all(&[GREETINGS, Set("how nice meet good")]) {
        return Heard::Greeting;
    }
    let leaves =
        ["have to go", "need to go", "got to go", "must go", "see you", "no more", "skip the rest", "that s it"];
    if (any(STOP) || phrase(&leaves)) && all(&[STOP, STOPPING, Set("got must skip rest here")]) {
        return Heard::Stop;
    }
    let asks_for_help = any(Set("help stuck clue")) && all(&[Set("help stuck clue give need get on")]);
    if any(Set("hint hints")) || asks_for_help {
        return Heard::Hint;
    }
    if all(&[GO_ON]) && !all(&[]) {
        return Heard::GoOn;
    }
    let is_too_hard = phrase(&["too hard", "too difficult"]) && all(&[Set("hard difficult")]);
    if is_too_hard || any(AGAIN) && all(&[AGAIN, AGAINST]) {
        return Heard::Again;
    }
    if words.first().is_some_and(|word| word == "why") || phrase(&["how come"]) {
        return Heard::Why;
    }
    Heard::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_heard_by_the_words_that_count() {
        let check = |expected: Heard, texts: &[&str]| {
            for text in texts {
                assert_eq!(heard(text), expected, "{text}");
            }
        };
        check(
            Heard::GoOn,
            &[
                "go on",
                "Continue!",
                "next",
                "ok",
                "Okay, thanks",
                "yes please",
                "I see",
                "got it",
                "👍",
                "Let's move on",
            ],
        );
        check(
            Heard::Stop,
            &["stop", "Enough.", "I want to end", "I have to go", "that's enough for today", "bye", "I'm done"],
        );
        check(Heard::Skip, &["skip", "Skip this question, please", "pass", "next question"]);
        check(Heard::DontKnow, &["I don't know", "no idea", "not sure", "I really don’t know the answer", "idk"]);
        check(Heard::Hint, &["Can I have a hint?", "help", "I'm stuck", "hint about the numerator"]);
        check(Heard::Greeting, &["hello", "Hi there!", "Good morning", "hey, how are you?"]);
        check(
            Heard::Again,
            &["?", "I don't understand", "what?", "Explain again", "can you explain it in other words", "too hard"],
        );
        check(Heard::Why, &["why?", "Why is it 5?", "how come"]);
        check(
            Heard::Other,
            &[
                "what is a numerator?",
                "I don't know what a numerator is",
                "when does the borrow end?",
                "skip division",
                "5/8",
                "a denominator",
                "this",
                "is this hard?",
            ],
        );
    }
}
