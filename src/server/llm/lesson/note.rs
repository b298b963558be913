//! A learner's note cut into clauses: small pieces that ask for one thing each. It knows words and punctuation, not plans.

use super::words::{Set, singular};

/// One piece of a note.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'n> {
    pub(super) joint: Joint,
    /// In lower case, with contractions spelled out: "don't" is `do` and `not`, and begins a clause with its `not`.
    pub(super) words: Vec<String>,
    /// As the learner wrote it.
    pub(super) text: &'n str,
}

/// How a clause follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Joint {
    /// It goes on after a comma, "and", "or" or "then".
    GoesOn,
    /// It begins a sentence, or contrasts as after "but".
    Begins,
    /// It gives a reason, as after "because".
    Reason,
}

/// Cuts `note`; a title in `names` (as its [`words`](super::words::words)) is never cut, whatever it contains.
pub(super) fn clauses<'n>(note: &'n str, names: &[Vec<String>]) -> Vec<Clause<'n>> {
    let tokens = tokens(note);
    let (inside, ends) = places_of(&tokens, names);
    let mut clauses: Vec<Clause<'n>> = Vec::new();
    let mut open = Open { joint: Joint::Begins, words: Vec::new(), from: 0, to: 0 };
    for (at, token) in tokens.iter().enumerate() {
        if inside[at] {
            open.take(token);
            continue;
        }
        match token.gap {
            Gap::Mark if ends[at] && CONNECTS.has(&token.word) => {}
            Gap::Stop | Gap::Mark => open.close(Joint::Begins, note, &mut clauses),
            Gap::Comma => open.close(Joint::GoesOn, note, &mut clauses),
            Gap::None => {}
        }
        let before = at.checked_sub(1).map_or("", |before| tokens[before].word.as_str());
        match token.word.as_str() {
            "but" if excepts(&open.words, before, tokens.get(at + 1)) => {
                open.take(&Token { word: "except".to_owned(), ..*token });
            }
            "so" | "as" if is_phrase(&tokens, at) => open.take(token),
            "and" | "or" | "nor" | "then" | "plus" | "so" => open.close(Joint::GoesOn, note, &mut clauses),
            "but" | "however" | "though" => open.close(Joint::Begins, note, &mut clauses),
            "because" | "since" | "as" => open.close(Joint::Reason, note, &mut clauses),
            "not" | "never" if !open.words.is_empty() => {
                open.close(Joint::GoesOn, note, &mut clauses);
                open.take(token);
            }
            _ => open.take(token),
        }
    }
    open.close(Joint::Begins, note, &mut clauses);
    clauses
}

/// A word with what stands before it.
#[derive(Debug)]
struct Token {
    gap: Gap,
    word: String,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    None,
    Comma,
    /// A question mark or an exclamation mark, which a title may end with.
    Mark,
    Stop,
}

/// Words that go on with a sentence after a title, even one with a question mark.
const CONNECTS: Set =
    Set("comes come is are to at last first should can could may out before after already too in instead has goes \
     please");

/// The clause that is being read.
struct Open {
    joint: Joint,
    words: Vec<String>,
    from: usize,
    to: usize,
}

impl Open {
    fn take(&mut self, token: &Token) {
        if self.words.is_empty() {
            self.from = token.from;
        }
        self.to = token.to;
        self.words.push(token.word.clone());
    }

    /// Ends the clause and begins one with `joint`. Of joints with nothing between them, the strongest one counts.
    fn close<'n>(&mut self, joint: Joint, note: &'n str, clauses: &mut Vec<Clause<'n>>) {
        if self.words.is_empty() {
            self.joint = self.joint.max(joint);
            return;
        }
        let words = std::mem::take(&mut self.words);
        clauses.push(Clause { joint: self.joint, words, text: note.get(self.from..self.to).unwrap_or_default() });
        self.joint = joint;
    }
}

/// "so" in "so long" and "as" in "as well" join no clauses.
fn is_phrase(tokens: &[Token], at: usize) -> bool {
    let next = tokens.get(at + 1).map_or("", |token| token.word.as_str());
    let follows_same = at.checked_sub(1).is_some_and(|before| tokens[before].word == "same");
    match tokens[at].word.as_str() {
        "so" => {
            matches!(next, "long" | "much" | "many" | "far" | "short" | "quick" | "quickly" | "brief" | "fast" | "deep")
        }
        _ => follows_same || matches!(next, "well" | "before" | "it" | "they" | "planned" | "is" | "the" | "a"),
    }
}

/// "All but this" makes an exception; "drop it all but keep this" does not.
fn excepts(words: &[String], before: &str, next: Option<&Token>) -> bool {
    let all = Set("all every everything anything nothing");
    let begins = Set("keep skip drop leave start begin put move not please only i we you do let with without make");
    (all.has(before) || all.is_in(words)) && next.is_some_and(|next| !begins.has(&next.word))
}

/// For each token, whether it continues a name that began before it, and whether a name ends just before it.
fn places_of(tokens: &[Token], names: &[Vec<String>]) -> (Vec<bool>, Vec<bool>) {
    let (mut inside, mut ends) = (vec![false; tokens.len()], vec![false; tokens.len() + 1]);
    for name in names.iter().filter(|name| name.len() > 1) {
        for at in 0..(tokens.len() + 1).saturating_sub(name.len()) {
            let window = &tokens[at..at + name.len()];
            if window.iter().zip(name).all(|(token, word)| singular(&token.word) == singular(word)) {
                inside[at + 1..at + name.len()].fill(true);
                ends[at + name.len()] = true;
            }
        }
    }
    (inside, ends)
}

fn tokens(note: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut gap = Gap::None;
    let mut characters = note.char_indices().peekable();
    let mut word: Option<(usize, String)> = None;
    // The number that the next point of a list has; a list begins with the note.
    let mut point = note.trim_start().starts_with("1.").then_some(1_usize);
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let is_digit = |side: Option<char>| side.is_some_and(|side| side.is_ascii_digit());
        let last = word.as_ref().and_then(|(_, word)| word.chars().last());
        let joins = match character {
            '\'' | '’' => last.is_some() && next.is_some_and(char::is_alphabetic),
            '/' | '.' => is_digit(last) && is_digit(next),
            _ => character.is_alphanumeric(),
        };
        if joins {
            let (_, letters) = word.get_or_insert_with(|| (at, String::new()));
            letters.extend(character.to_lowercase().map(|letter| if letter == '’' { '\'' } else { letter }));
            continue;
        }
        if let (Some(number), '.', Some((_, digits))) = (point, character, &word)
            && digits.parse() == Ok(number)
        {
            (word, gap, point) = (None, Gap::Stop, Some(number + 1));
            continue;
        }
        let is_range = matches!(character, '-' | '–') && is_digit(last) && is_digit(next);
        push(&mut tokens, &mut gap, word.take(), at);
        if is_range {
            push(&mut tokens, &mut gap, Some((at, "to".to_owned())), at + character.len_utf8());
        }
        gap = match character {
            '.' | '\n' => Gap::Stop,
            '!' | '?' if gap != Gap::Stop => Gap::Mark,
            ',' | ';' | '(' | ')' | '–' | '—' if gap != Gap::Stop && !is_range => Gap::Comma,
            _ => gap,
        };
    }
    push(&mut tokens, &mut gap, word, note.len());
    tokens
}

/// Contractions as they are written in haste.
const NEGATED: Set = Set("dont doesnt didnt wont isnt arent neednt shouldnt wouldnt");

/// Adds a word, with a contraction spelled out.
fn push(tokens: &mut Vec<Token>, gap: &mut Gap, word: Option<(usize, String)>, to: usize) {
    let Some((from, word)) = word else { return };
    let parts = match word.strip_suffix("n't") {
        _ if Set("can't cant cannot").has(&word) => vec!["cannot".to_owned()],
        Some(verb) => vec![verb.to_owned(), "not".to_owned()],
        None if NEGATED.has(&word) => vec!["do".to_owned(), "not".to_owned()],
        None => word.split('\'').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
    };
    for word in parts {
        tokens.push(Token { gap: std::mem::replace(gap, Gap::None), word, from, to });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(note: &str, expected: &[&str]) {
        let name = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let names = [name("copy and clone"), name("how many fit")];
        let shown = |clause: &Clause<'_>| {
            let joint = match clause.joint {
                Joint::Begins => ".",
                Joint::GoesOn => ",",
                Joint::Reason => "because",
            };
            format!("{joint} {}", clause.words.join(" "))
        };
        let found: Vec<String> = clauses(note, &names).iter().map(shown).collect();
        assert_eq!(found, expected, "{note}");
    }

    #[test]
    fn a_note_is_cut_at_punctuation_and_conjunctions() {
        check(
            "Drop lifetimes, I know them, but keep borrowing.",
            &[". drop lifetimes", ", i know them", ". keep borrowing"],
        );
        check("skip two and then three. Keep four", &[". skip two", ", three", ". keep four"]);
        check("skip it because it is hard", &[". skip it", "because it is hard"]);
        check("all but two", &[". all except two"]);
        check("drop every block but two", &[". drop every block except two"]);
        check("drop it all but keep two", &[". drop it all", ". keep two"]);
        check("1. skip two 2. keep three", &[". skip two", ". keep three"]);
        check("keep block 2. Skip 3.", &[". keep block 2", ". skip 3"]);
        check("keep it as it is, not so long", &[". keep it as it is", ", not so long"]);
        check(", and.\nBut this!", &[". this"]);
        check("", &[]);
    }

    #[test]
    fn a_negation_begins_a_clause_and_contractions_are_spelled_out() {
        check("Don’t drop it", &[". do", ", not drop it"]);
        check("keep two not three", &[". keep two", ", not three"]);
        check("I'd like 3.5 or 1/2", &[". i d like 3.5", ", 1/2"]);
        check("blocks 2-4 wont stay, I can't", &[". blocks 2 to 4 do", ", not stay", ", i cannot"]);
    }

    #[test]
    fn a_name_is_never_cut() {
        check("skip Copy and clone and moves", &[". skip copy and clone", ", moves"]);
        check("How many fit? comes last", &[". how many fit comes last"]);
        check("skip \"How many fit?\" Keep two", &[". skip how many fit", ". keep two"]);
        check("skip How many fit?, keep two", &[". skip how many fit", ", keep two"]);
    }

    #[test]
    fn a_clause_keeps_what_the_learner_wrote() {
        let texts: Vec<&str> = clauses("No `&str`, please! It's HARD.", &[]).iter().map(|clause| clause.text).collect();
        assert_eq!(texts, ["No `&str", "please", "It's HARD"]);
    }
}
