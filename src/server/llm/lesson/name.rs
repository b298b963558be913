//! Which blocks of a lesson some words name: by title, by a part of it, by id, by concept, or by number.

use std::collections::BTreeSet;

use crate::app::native::Plan;
use crate::app::native::plan::PlanBlock;

use super::words::{Set, akin, singular, words};

/// The names of a lesson's blocks. Blocks are told by their place in the lesson.
pub(super) struct Names {
    names: Vec<Name>,
    /// The blocks of the plan that the learner sees, in its order.
    shown: Vec<usize>,
    /// The ids of all blocks of the lesson.
    ids: Vec<String>,
}

/// One name of one block.
struct Name {
    block: usize,
    kind: Kind,
    /// In singular.
    words: Vec<String>,
}

/// Titles and ids count for more than concepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Title,
    Id,
    Concept,
}

/// Words that name something.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mention {
    /// Where its first word stands.
    pub(super) at: usize,
    pub(super) blocks: Vec<usize>,
    /// The words fit each of the blocks, and may mean one of them.
    pub(super) is_choice: bool,
    pub(super) words: String,
}

/// What a number in a note counts to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Count {
    Blocks(Mention),
    /// The plan has no block of this number.
    TooFar(usize),
}

/// Words that stand in everybody's titles and notes and so tell no block from another.
const COMMON: Set =
    Set("a an the of and or to in with at is are it on for i you me my how many which what one block step section \
     lesson chapter thing stuff plan bit topic please this that these those do does can could would want like \
     need about all be we let go everything anything else then learn teach by from as some other your not no so \
     too also them they if there when up");

/// Words that never name a block alone, though a title may hold them.
const WEAK: Set =
    Set("whole multiple number single simple simplest large larger more end last first second third mean time size \
     long short new part fit rest form");

/// Nouns for any block.
const BLOCK: Set = Set("block step part section chapter topic number lesson");

const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
];

/// Words that may follow a bare number which names a block.
const AROUND: Set = Set("to through until before after first last out please instead too comes should at");

impl Names {
    /// The names of the blocks `all`, of which `plan` has some.
    pub(super) fn of(plan: &Plan, all: &[PlanBlock]) -> Self {
        let mut names = Vec::new();
        for (block, of) in all.iter().enumerate() {
            let own = [(Kind::Title, &of.title), (Kind::Id, &of.id)];
            for (kind, text) in own.into_iter().chain(of.concepts.iter().map(|concept| (Kind::Concept, concept))) {
                let words = words(text);
                let words = words.iter().skip_while(|word| matches!(word.as_str(), "a" | "an" | "the"));
                names.push(Name { block, kind, words: words.map(|word| singular(word)).collect() });
            }
        }
        let place = |block: &PlanBlock| all.iter().position(|other| other.id == block.id);
        let shown = plan.blocks.iter().filter_map(place).collect();
        Self { names, shown, ids: all.iter().map(|block| block.id.clone()).collect() }
    }

    /// Titles of several words, for [`clauses`](super::note::clauses).
    pub(super) fn titles(&self) -> Vec<Vec<String>> {
        self.names
            .iter()
            .filter(|name| name.kind == Kind::Title && name.words.len() > 1)
            .map(|name| name.words.clone())
            .collect()
    }

    /// The blocks of the plan in its order.
    pub(super) fn shown(&self) -> &[usize] {
        &self.shown
    }

    /// Names of two words or more, or such parts of them, that stand in `words` letter for letter or in the plural.
    /// What they take up is marked in `taken`.
    pub(super) fn phrases(&self, words: &[String], taken: &mut [bool]) -> Vec<Mention> {
        let longest = self.names.iter().map(|name| name.words.len()).max().unwrap_or(0);
        let mut mentions = Vec::new();
        for length in (2..=longest.min(words.len())).rev() {
            for at in 0..=words.len() - length {
                let window = at..at + length;
                if taken[window.clone()].iter().any(|taken| *taken) {
                    continue;
                }
                let blocks = self.having(&words[window.clone()]);
                if !blocks.is_empty() {
                    taken[window.clone()].fill(true);
                    mentions.push(Mention { at, is_choice: blocks.len() > 1, blocks, words: words[window].join(" ") });
                }
            }
        }
        mentions
    }

    /// The blocks that have a name with this run of words in it, if it tells blocks apart: whole names first.
    fn having(&self, run: &[String]) -> Vec<usize> {
        let run: Vec<String> = run.iter().map(|word| singular(word)).collect();
        let holds = |name: &&Name| name.words.windows(run.len()).any(|window| window == run);
        let found: Vec<&Name> = self.names.iter().filter(holds).collect();
        let blocks = |found: &[&Name]| found.iter().map(|name| name.block).collect::<BTreeSet<_>>();
        let is_telling = run.iter().any(|word| !is_common(word) && !WEAK.has(word) && !self.is_everywhere(word));
        let whole: Vec<&Name> = found.iter().copied().filter(|name| name.words == run).collect();
        let own: Vec<&Name> = whole.iter().copied().filter(|name| name.kind != Kind::Concept).collect();
        let best =
            [own, whole, if is_telling { found } else { Vec::new() }].into_iter().find(|names| !names.is_empty());
        best.map(|names| blocks(&names).into_iter().collect()).unwrap_or_default()
    }

    /// Single words that name a block, among those that are not taken. A word that most blocks share names none.
    pub(super) fn single_words(&self, words: &[String], taken: &mut [bool]) -> Vec<Mention> {
        let mut mentions: Vec<Mention> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if taken[at] || is_common(word) || WEAK.has(&singular(word)) {
                continue;
            }
            let blocks = self.akin_to(word);
            if !blocks.is_empty() {
                taken[at] = true;
                mentions.push(Mention { at, is_choice: blocks.len() > 1, blocks, words: word.clone() });
            }
        }
        mentions
    }

    /// A block whose id is a common word, such as "parts", letter for letter: counts only when nothing else is named.
    pub(super) fn plain_id(&self, words: &[String], taken: &mut [bool]) -> Option<Mention> {
        let id = |word: &String| self.ids.iter().position(|id| id == word);
        let at = (0..words.len()).find(|&at| !taken[at] && id(&words[at]).is_some())?;
        taken[at] = true;
        Some(Mention { at, is_choice: false, blocks: vec![id(&words[at])?], words: words[at].clone() })
    }

    fn akin_to(&self, word: &str) -> Vec<usize> {
        let telling = |name: &Name| name.words.iter().filter(|part| !is_common(part)).count();
        let has = |name: &&Name| name.words.iter().any(|part| !is_common(part) && akin(word, part));
        let found: Vec<&Name> = self.names.iter().filter(has).collect();
        // A name that is this word and no more comes before one that only holds it.
        let alone: BTreeSet<usize> = found.iter().filter(|name| telling(name) == 1).map(|name| name.block).collect();
        let blocks = if alone.is_empty() { found.iter().map(|name| name.block).collect() } else { alone };
        if blocks.len() * 2 > self.ids.len().max(3) { Vec::new() } else { blocks.into_iter().collect() }
    }

    fn is_everywhere(&self, word: &str) -> bool {
        let has = |name: &&Name| name.words.iter().any(|part| part == word);
        let blocks: BTreeSet<usize> = self.names.iter().filter(has).map(|name| name.block).collect();
        blocks.len() * 2 > self.ids.len().max(3)
    }

    /// The blocks that numbers name, as in "block 3", "2 to 4", "the second one" and "the last two". `bare` says whether
    /// "first" and "last" without a noun count as well.
    pub(super) fn numbers(&self, words: &[String], taken: &mut [bool], bare: Bare) -> Vec<Count> {
        let mut counts = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let found = if taken[at] { None } else { self.number(words, at, bare) };
            match found {
                Some((count, length)) => {
                    taken[at..at + length].fill(true);
                    counts.push(count);
                    at += length;
                }
                None => at += 1,
            }
        }
        counts
    }

    /// The number that begins at `at`, with how many words it takes.
    fn number(&self, words: &[String], at: usize, bare: Bare) -> Option<(Count, usize)> {
        let word = |offset: usize| words.get(at + offset).map_or("", String::as_str);
        let noun = |offset: usize| usize::from(is_noun(word(offset)) || word(offset) == "one");
        if let Some(first) = digits(word(1)).or_else(|| amount(word(1))).filter(|_| is_noun(word(0))) {
            return Some(self.range(words, at, first, 2));
        }
        if let Some(first) = digits(word(0)) {
            let stands_alone = at + 1 == words.len() || AROUND.has(word(1));
            return stands_alone.then(|| self.range(words, at, first, 1));
        }
        let is_last = word(0) == "last";
        if let Some(many) = amount(word(1)).filter(|_| is_last || word(0) == "first") {
            let many = many.min(self.shown.len());
            let from = if is_last { self.shown.len() - many } else { 0 };
            return Some((self.slice(words, at, from..from + many), 2 + noun(2)));
        }
        // "First block 3" and "make it the first block" are orders.
        let is_made = at > 1 && matches!(word(0), "first" | "last") && Set("make be become as").is_in(&words[..at]);
        if is_made || noun(1) == 1 && digits(word(2)).is_some() {
            return None;
        }
        let place = ordinal(word(0)).or_else(|| is_last.then(|| self.shown.len().saturating_sub(1)))?;
        let ends = at + 1 == words.len() && at > 0 && words[at - 1] == "the";
        let is_bare = match bare {
            Bare::Counts => ends || !matches!(word(0), "first" | "last") && at + 1 == words.len(),
            Bare::IsOrder => ends && !matches!(word(0), "first" | "last"),
        };
        (noun(1) == 1 || is_bare).then(|| (self.slice(words, at, place..place + 1), 1 + noun(1)))
    }

    /// `first` alone, or a range when "to" and a number follow.
    fn range(&self, words: &[String], at: usize, first: usize, length: usize) -> (Count, usize) {
        let until = words.get(at + length).filter(|word| matches!(word.as_str(), "to" | "through" | "until"));
        let last = until.and_then(|_| digits(words.get(at + length + 1)?));
        let length = length + if last.is_some() { 2 } else { 0 };
        let last = last.unwrap_or(first);
        (self.slice(words, at, first.saturating_sub(1)..last), length)
    }

    /// The blocks of these places in the plan, from 0.
    fn slice(&self, words: &[String], at: usize, places: std::ops::Range<usize>) -> Count {
        match self.shown.get(places.clone()) {
            Some(blocks) if !blocks.is_empty() => {
                Count::Blocks(Mention { at, is_choice: false, blocks: blocks.to_vec(), words: words[at].clone() })
            }
            Some(_) | None => Count::TooFar(places.end),
        }
    }
}

/// Whether "the first" without a noun counts blocks, or says in which order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Counts,
    IsOrder,
}

/// True for a word that tells no block from another.
pub(super) fn is_common(word: &str) -> bool {
    COMMON.has(word) || COMMON.has(&singular(word))
}

/// True for "block", "parts" and the like.
pub(super) fn is_noun(word: &str) -> bool {
    BLOCK.has(&singular(word))
}

/// Where one mention leaves a choice between blocks of which another names one, that other decides.
pub(super) fn narrow(mentions: &mut Vec<Mention>) {
    let clear: Vec<usize> =
        mentions.iter().filter(|mention| !mention.is_choice).flat_map(|mention| mention.blocks.clone()).collect();
    mentions.retain(|mention| !mention.is_choice || !mention.blocks.iter().any(|block| clear.contains(block)));
}

fn digits(word: &str) -> Option<usize> {
    word.parse().ok().filter(|number| *number > 0)
}

fn amount(word: &str) -> Option<usize> {
    let words = ["two", "three", "four", "five", "six", "seven", "eight"];
    let written = words.iter().position(|amount| *amount == word).map(|at| at + 2);
    digits(word).filter(|many| *many > 1).or(written).or_else(|| (word == "couple").then_some(2))
}

fn ordinal(word: &str) -> Option<usize> {
    let number = ["st", "nd", "rd", "th"].into_iter().find_map(|ending| digits(word.strip_suffix(ending)?));
    ORDINALS.iter().position(|ordinal| *ordinal == word).or_else(|| number.map(|number| number - 1))
}
