//! Finding what a lesson's own prose says about something that the learner asks.

use super::name::is_common;
use super::pack::{Pack, PackBlock};
use super::words::{Set, akin, singular, words};

/// A passage of a lesson.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quote<'p> {
    /// The block that is about it.
    pub(super) block: &'p PackBlock,
    pub(super) text: &'p str,
}

/// Longest paragraph that is quoted whole, in characters.
const SHORT: usize = 320;

/// Words of questions that say nothing of what is asked for.
const ASKING: Set =
    Set("wrong right correct answer what why how when where who which mean means meaning explain define definition \
     tell know understand say again word exactly difference between use used work works call called has have was \
     did get just");

/// What the lesson says about a term in `text`, or about the one or two words that a question is about.
pub(super) fn find<'p>(pack: &'p Pack, text: &str) -> Option<Quote<'p>> {
    let asked = words(text);
    let terms = terms(pack);
    let holds = |term: &&Vec<String>| {
        term.len() <= asked.len()
            && asked.windows(term.len()).any(|window| window.iter().zip(*term).all(|(word, part)| akin(word, part)))
    };
    let longest = terms.iter().filter(holds).map(Vec::len).max();
    let found = terms.iter().filter(holds).filter(|term| Some(term.len()) == longest);
    // Of terms of one length, the one that is in the text letter for letter comes first.
    let exact = |term: &&Vec<String>| {
        asked.windows(term.len()).any(|window| window.iter().map(|word| singular(word)).eq(term.iter().cloned()))
    };
    let found: Vec<&Vec<String>> = found.collect();
    if let Some(term) = found.iter().find(|term| exact(term)).or(found.first()) {
        return about(pack, term);
    }
    let content = content(&asked);
    // Only what asks for a meaning: "who made this?" is no question about "made".
    let begins = |at: usize, any: Set| asked.get(at).is_some_and(|word| any.has(word));
    let is_question = begins(0, Set("what whats")) && begins(1, Set("is are s does do a an the"))
        || begins(0, Set("explain define definition meaning"));
    let is_short = (1..=2).contains(&content.len());
    if is_question && is_short {
        mentioning(pack, |words| content.iter().all(|word| words.contains(word)))
    } else {
        None
    }
}

/// True when a text asks of something, and does not only say "why?" or "how is that?".
pub(super) fn asks_of_something(text: &str) -> bool {
    !content(&words(text)).is_empty()
}

/// The words of a question that say what it is about, in singular.
fn content(asked: &[String]) -> Vec<String> {
    let is_telling = |word: &&String| {
        word.len() > 2 && word.chars().any(char::is_alphabetic) && !is_common(word) && !ASKING.has(word)
    };
    asked.iter().filter(is_telling).map(|word| singular(word)).collect()
}

/// The terms that the lesson explains: its concepts, and what it prints in bold.
fn terms(pack: &Pack) -> Vec<Vec<String>> {
    let concepts = pack.blocks.iter().flat_map(|block| &block.concepts);
    let concepts = concepts.chain(pack.propositions.iter().map(|proposition| &proposition.concept));
    let concepts = concepts.chain(pack.quizzes().map(|(_, quiz)| &quiz.concept)).map(String::as_str);
    let bold = pack.blocks.iter().flat_map(prose).flat_map(bold);
    let mut terms: Vec<Vec<String>> = concepts.chain(bold).map(stems).collect();
    terms.retain(|term| !term.is_empty() && !term.iter().all(|word| is_common(word)));
    terms
}

/// The best passage about a term: where a recap defines it, what is to be known of it, where it is defined, where it
/// stands, or the recap of the block that has it.
fn about<'p>(pack: &'p Pack, term: &[String]) -> Option<Quote<'p>> {
    let defines = |text: &&str| bold(text).any(|bold| stems(bold) == term);
    for block in &pack.blocks {
        if let Some(text) = sentences(&block.recap).into_iter().find(defines) {
            return Some(Quote { block, text });
        }
    }
    let concerns = |block: &&PackBlock| {
        block.concepts.iter().any(|concept| stems(concept) == term)
            || block.steps.iter().any(|step| stems(&step.quiz.concept) == term)
    };
    let block = pack.blocks.iter().find(concerns);
    let known = pack.propositions.iter().find(|proposition| stems(&proposition.concept) == term);
    if let Some((proposition, block)) = known.zip(block) {
        return Some(Quote { block, text: &proposition.statement });
    }
    for block in &pack.blocks {
        if let Some(paragraph) = prose(block).find(defines) {
            let sentence = sentences(paragraph).into_iter().find(defines).unwrap_or(paragraph);
            let is_short = paragraph.chars().count() <= SHORT && !paragraph.ends_with(':');
            return Some(Quote { block, text: if is_short { paragraph } else { sentence } });
        }
    }
    let has_run = |words: &[String]| words.windows(term.len()).any(|window| window == term);
    mentioning(pack, has_run).or_else(|| block.map(|block| Quote { block, text: &block.recap }))
}

/// The first sentence whose words, in singular, pass: of a recap, else of the prose.
fn mentioning<'p>(pack: &'p Pack, passes: impl Fn(&[String]) -> bool) -> Option<Quote<'p>> {
    let recaps = pack.blocks.iter().map(|block| (block, block.recap.as_str()));
    let prose = pack.blocks.iter().flat_map(|block| prose(block).map(move |paragraph| (block, paragraph)));
    let sentences =
        recaps.chain(prose).flat_map(|(block, text)| sentences(text).into_iter().map(move |text| (block, text)));
    sentences.into_iter().find(|(_, text)| passes(&stems(text))).map(|(block, text)| Quote { block, text })
}

/// The paragraphs of a block's prose that are plain sentences: no code, tables, lists or displayed formulas.
fn prose(block: &PackBlock) -> impl Iterator<Item = &str> {
    let texts = block.steps.iter().map(|step| step.prose.as_str()).chain([block.after.as_str()]);
    texts.flat_map(|text| {
        let mut is_code = false;
        text.split("\n\n").filter(move |paragraph| {
            let was_code = is_code;
            is_code ^= paragraph.matches("```").count() % 2 == 1;
            let opens = ["|", "$$", "- ", "1. ", "#", "```"].iter().any(|mark| paragraph.starts_with(mark));
            !was_code && !is_code && !opens && !paragraph.trim().is_empty()
        })
    })
}

/// What stands between two asterisks on each side.
fn bold(text: &str) -> impl Iterator<Item = &str> {
    text.split("**").skip(1).step_by(2)
}

fn stems(text: &str) -> Vec<String> {
    words(text).iter().map(|word| singular(word)).collect()
}

/// Cuts a paragraph after full stops, question marks and exclamation marks that are outside of code and formulas.
fn sentences(text: &str) -> Vec<&str> {
    let (mut sentences, mut from) = (Vec::new(), 0);
    let (mut is_code, mut is_formula) = (false, false);
    let ends =
        |is_inside: bool, next: Option<&(usize, char)>| !is_inside && next.is_none_or(|(_, next)| next.is_whitespace());
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '`' => is_code = !is_code,
            '$' => is_formula = !is_formula && !is_code,
            '.' | '?' | '!' if ends(is_code || is_formula, characters.peek()) => {
                sentences.push(text[from..=at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    sentences.push(text[from..].trim());
    // What leads to a formula or to code says nothing without it.
    sentences.retain(|sentence| !sentence.is_empty() && !sentence.ends_with(':'));
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::shelf::Packs;
    use super::*;

    fn check(slug: &str, question: &str, expected: Option<(&str, &str)>) {
        let (packs, _) = Packs::built_in();
        let pack = packs.all().iter().find(|pack| pack.slug == slug).unwrap();
        let found = find(pack, question);
        match (found, expected) {
            (Some(found), Some((block, words))) => {
                assert_eq!(found.block.id, block, "{question}: {}", found.text);
                assert!(found.text.contains(words), "{question}: {}", found.text);
            }
            (found, expected) => {
                assert_eq!(found.map(|found| found.text), expected.map(|(_, words)| words), "{question}")
            }
        }
    }

    #[test]
    fn a_question_about_a_term_finds_the_sentence_that_defines_it() {
        check("fractions", "what is a numerator?", Some(("parts", "The **numerator** (above the line) counts")));
        check("fractions", "Denominators?", Some(("parts", "The **denominator** (below the line)")));
        check("fractions", "I don't know what a reciprocal is", Some(("divide", "**reciprocal**")));
        check("fractions", "What does simplest form mean?", Some(("equivalent", "**simplest form**")));
        check("fractions", "explain mixed numbers", Some(("parts", "**mixed number**")));
        check("rust-ownership", "what's borrowing?", Some(("borrow", "**borrowing**")));
        check("rust-ownership", "What is a lifetime", Some(("lifetimes", "**lifetime**")));
        check("rust-ownership", "what is the heap?", Some(("moves", "heap")));
        check("rust-ownership", "what does E0502 mean?", Some(("borrow-mut", "E0502")));
    }

    #[test]
    fn what_the_lesson_does_not_speak_of_is_not_found() {
        for question in [
            "Why is the sky blue?",
            "who are you?",
            "who made this?",
            "what is love?",
            "hello",
            "why?",
            "what is 3/4?",
            "",
        ] {
            check("fractions", question, None);
        }
    }

    #[test]
    fn a_paragraph_is_cut_into_sentences_outside_of_code_and_formulas() {
        assert_eq!(sentences("One `a. b`. Is $1. 2$ two? Yes, 3.5"), ["One `a. b`.", "Is $1. 2$ two?", "Yes, 3.5"]);
        assert_eq!(sentences(""), [""; 0]);
    }
}
