//! Changing a plan as the learner's note asks: by simple rules that can be said in a sentence.

use crate::app::native::Plan;
use crate::app::native::plan::PlanBlock;

use super::words::{akin, holds, list, words};

/// A changed plan, and what was changed in words.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) plan: Plan,
    pub(super) said: Vec<String>,
}

/// How the objective of a block begins that the learner seems to know.
pub(super) const QUICK: &str = "Quick check: ";

/// Fewest blocks of a plan.
const FEWEST: usize = 2;
/// Most blocks of a plan that is to be short.
const SHORT: usize = 3;

/// Words that are in everybody's titles and notes and so point at no block.
const EMPTY: [&str; 62] = [
    "a",
    "an",
    "the",
    "of",
    "and",
    "or",
    "to",
    "in",
    "with",
    "at",
    "is",
    "are",
    "it",
    "on",
    "for",
    "i",
    "you",
    "me",
    "my",
    "how",
    "many",
    "which",
    "what",
    "one",
    "part",
    "block",
    "step",
    "section",
    "lesson",
    "thing",
    "stuff",
    "plan",
    "bit",
    "topic",
    "please",
    "this",
    "that",
    "these",
    "those",
    "do",
    "does",
    "can",
    "could",
    "would",
    "want",
    "like",
    "need",
    "about",
    "all",
    "be",
    "we",
    "let",
    "go",
    "everything",
    "anything",
    "else",
    "then",
    "learn",
    "teach",
    "by",
    "from",
    "as",
];

/// What a part of a note asks to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Drop,
    Only,
    First,
    Last,
    Add,
    Shorten,
}

/// Applies a note to `plan`; `all` are the lesson's blocks in their own order, as they would stand in a plan. None when
/// the note holds nothing that these rules understand.
pub(super) fn apply(note: &str, plan: &Plan, all: &[PlanBlock]) -> Option<Change> {
    let mut change = Change { plan: plan.clone(), said: Vec::new() };
    let mut before = None;
    let clauses = clauses(note);
    // Several clauses with "only" name one selection together.
    let mut only: Vec<usize> = Vec::new();
    for clause in &clauses {
        let blocks = named(clause, &change.plan, all);
        let wish = wish(clause, !blocks.is_empty()).or(if blocks.is_empty() { None } else { before });
        before = wish.or(before);
        match wish {
            Some(Wish::Only) => only.extend(blocks),
            Some(Wish::Shorten) => change.shorten(),
            Some(wish) if !blocks.is_empty() => change.carry_out(wish, &blocks, clause, all),
            Some(_) | None => {}
        }
    }
    if !only.is_empty() {
        change.keep_only(&only, all);
    }
    (!change.said.is_empty()).then_some(change)
}

/// An order that is really different: blocks that are not known first, else the last block first.
pub(super) fn another_order(plan: &Plan) -> Plan {
    let (known, mut blocks): (Vec<_>, Vec<_>) =
        plan.blocks.iter().cloned().partition(|block| block.objective.starts_with(QUICK));
    blocks.extend(known);
    if blocks == plan.blocks {
        blocks.rotate_right(1);
    }
    Plan { blocks, ..plan.clone() }
}

impl Change {
    fn carry_out(&mut self, wish: Wish, blocks: &[usize], clause: &[String], all: &[PlanBlock]) {
        match wish {
            Wish::Drop => self.drop(blocks, all),
            Wish::First => self.move_first(blocks, clause, all),
            Wish::Last => {
                let moved = self.take_out(blocks, all);
                self.say(format!("{} now comes last", titles(&moved)));
                self.plan.blocks.extend(moved);
            }
            Wish::Add => self.add(blocks, all),
            Wish::Only | Wish::Shorten => {}
        }
    }

    fn drop(&mut self, blocks: &[usize], all: &[PlanBlock]) {
        let is_meant = |block: &PlanBlock| blocks.iter().any(|&at| all[at].id == block.id);
        let (dropped, mut kept): (Vec<_>, Vec<_>) = self.plan.blocks.iter().cloned().partition(is_meant);
        if dropped.is_empty() {
            self.say(format!("{} was not in the plan any more", titles(&picked(blocks, all))));
            return;
        }
        let spare: Vec<PlanBlock> =
            all.iter().filter(|block| !is_meant(block) && !kept.contains(block)).cloned().collect();
        let filled: Vec<PlanBlock> =
            spare.into_iter().chain(dropped.clone()).take(FEWEST.saturating_sub(kept.len())).collect();
        let gone: Vec<_> = dropped.into_iter().filter(|block| !filled.contains(block)).collect();
        if !gone.is_empty() {
            self.say(format!("I left out {}", titles(&gone)));
        }
        if !filled.is_empty() {
            self.say(format!("a plan needs two blocks at least, so {} is in it", titles(&filled)));
        }
        kept.extend(filled);
        self.plan.blocks = kept;
    }

    fn move_first(&mut self, blocks: &[usize], clause: &[String], all: &[PlanBlock]) {
        if let Some((early, late)) = halves(clause, &self.plan, all) {
            let moved = self.take_out(&early, all);
            let is_late = |block: &PlanBlock| late.iter().any(|&at| all[at].id == block.id);
            let at = self.plan.blocks.iter().position(is_late).unwrap_or(0);
            self.say(format!("{} now comes before {}", titles(&moved), titles(&picked(&late, all))));
            self.plan.blocks.splice(at..at, moved);
            return;
        }
        let moved = self.take_out(blocks, all);
        self.say(format!("{} now comes first", titles(&moved)));
        self.plan.blocks.splice(0..0, moved);
    }

    fn add(&mut self, blocks: &[usize], all: &[PlanBlock]) {
        let new: Vec<PlanBlock> = picked(blocks, all)
            .into_iter()
            .filter(|block| self.plan.blocks.iter().all(|old| old.id != block.id))
            .collect();
        if new.is_empty() {
            self.say(format!("{} was in the plan already", titles(&picked(blocks, all))));
            return;
        }
        let place = |id: &str| all.iter().position(|block| block.id == id);
        for block in &new {
            let later = self.plan.blocks.iter().position(|old| place(&old.id) > place(&block.id));
            let at = later.unwrap_or(self.plan.blocks.len());
            self.plan.blocks.insert(at, block.clone());
        }
        self.say(format!("I put {} in", titles(&new)));
    }

    fn keep_only(&mut self, blocks: &[usize], all: &[PlanBlock]) {
        let mut kept = picked(blocks, all);
        kept.dedup();
        self.say(format!("the plan has only {} now", titles(&kept)));
        let spare = self.plan.blocks.iter().chain(all).filter(|block| !kept.iter().any(|old| old.id == block.id));
        let filled: Vec<PlanBlock> = spare.take(FEWEST.saturating_sub(kept.len())).cloned().collect();
        if !filled.is_empty() {
            self.say(format!("a plan needs two blocks at least, so {} comes after that", titles(&filled)));
        }
        kept.extend(filled);
        self.plan.blocks = kept;
    }

    fn shorten(&mut self) {
        let length = self.plan.blocks.len();
        if length <= FEWEST {
            self.say("the plan has two blocks, and it can't be shorter than that");
            return;
        }
        let (known, open): (Vec<_>, Vec<_>) =
            self.plan.blocks.iter().cloned().partition(|block| block.objective.starts_with(QUICK));
        let most = SHORT.min(length - 1);
        let kept: Vec<String> =
            open.iter().chain(&known).take(most.min(open.len().max(FEWEST))).map(|block| block.id.clone()).collect();
        let (kept, gone) = self.plan.blocks.drain(..).partition(|block| kept.contains(&block.id));
        self.plan.blocks = kept;
        self.say(format!("the plan is shorter now, without {}", titles(&gone)));
    }

    /// Takes the blocks out of the plan, to be put elsewhere; those that were not in it come from the lesson.
    fn take_out(&mut self, blocks: &[usize], all: &[PlanBlock]) -> Vec<PlanBlock> {
        let moved = picked(blocks, all);
        self.plan.blocks.retain(|block| !moved.iter().any(|other| other.id == block.id));
        moved
    }

    fn say(&mut self, what: impl Into<String>) {
        self.said.push(what.into());
    }
}

fn picked(blocks: &[usize], all: &[PlanBlock]) -> Vec<PlanBlock> {
    blocks.iter().map(|&at| all[at].clone()).collect()
}

fn titles(blocks: &[PlanBlock]) -> String {
    list(&blocks.iter().map(|block| format!("\"{}\"", block.title)).collect::<Vec<_>>())
}

/// The note cut at punctuation and at "and", "but" and "then".
fn clauses(note: &str) -> Vec<Vec<String>> {
    let sentences = note.split(|character: char| ",.;:!?\n".contains(character));
    let parts = sentences.flat_map(|sentence| {
        words(sentence)
            .split(|word| matches!(word.as_str(), "and" | "but" | "then"))
            .map(<[String]>::to_vec)
            .collect::<Vec<_>>()
    });
    parts.filter(|clause| !clause.is_empty()).collect()
}

fn wish(clause: &[String], names_a_block: bool) -> Option<Wish> {
    let has = |any: &[&str]| clause.iter().any(|word| any.contains(&word.as_str()));
    if !names_a_block {
        let short = [
            "shorter", "short", "less", "quick", "quicker", "quickly", "time", "brief", "briefer", "fewer", "long",
            "hurry",
        ];
        return if has(&short) { Some(Wish::Shorten) } else { verb(&has, clause) }.filter(|wish| *wish != Wish::Add);
    }
    verb(&has, clause).or_else(|| has(&["shorter", "less", "fewer"]).then_some(Wish::Drop))
}

fn verb(has: &impl Fn(&[&str]) -> bool, clause: &[String]) -> Option<Wish> {
    let text = clause.join(" ");
    let is_unsure =
        ["don t know", "do not know", "dont know", "not know", "never"].iter().any(|phrase| holds(&text, phrase));
    if is_unsure {
        return None;
    }
    let knows = has(&["know", "knew"]) || has(&["known"]);
    let drops = ["skip", "without", "drop", "no", "not", "remove", "omit", "out", "delete", "cut", "don", "dont"];
    if knows || has(&drops) {
        Some(Wish::Drop)
    } else if has(&["start", "starting", "first", "before", "begin", "earlier", "beginning"]) {
        Some(Wish::First)
    } else if has(&["only", "just"]) {
        Some(Wish::Only)
    } else if has(&["last", "later", "end", "after"]) {
        Some(Wish::Last)
    } else {
        has(&["add", "include", "back", "also", "with"]).then_some(Wish::Add)
    }
}

/// For "this before that": the blocks on both sides of the word.
fn halves(clause: &[String], plan: &Plan, all: &[PlanBlock]) -> Option<(Vec<usize>, Vec<usize>)> {
    let at = clause.iter().position(|word| word == "before")?;
    let (early, late) = (named(&clause[..at], plan, all), named(&clause[at + 1..], plan, all));
    (!early.is_empty() && !late.is_empty() && early != late).then_some((early, late))
}

/// The blocks that a clause names, by their place in `all`: whole names first, the longest of them foremost, then words
/// that only one block has; or by number, as in "block 3".
fn named(clause: &[String], plan: &Plan, all: &[PlanBlock]) -> Vec<usize> {
    let mut found: Vec<usize> = numbered(clause, plan, all).into_iter().collect();
    let mut left: Vec<&String> = clause.iter().filter(|word| !EMPTY.contains(&word.as_str())).collect();
    // "move" and "add" at the beginning say what to do; further on they may be words of a title.
    if left.len() >= 2 && matches!(left[0].as_str(), "move" | "add") {
        left.remove(0);
    }
    let names = names(all);
    loop {
        let fits = |name: &[String]| name.iter().all(|part| left.iter().any(|word| akin(word, part)));
        let longest = names.iter().filter(|(_, name)| fits(name)).map(|(_, name)| name.len()).max();
        let Some(longest) = longest else { break };
        let matching: Vec<_> = names.iter().filter(|(_, name)| name.len() == longest && fits(name)).collect();
        found.extend(matching.iter().map(|(at, _)| *at));
        left.retain(|word| !matching.iter().any(|(_, name)| name.iter().any(|part| akin(word, part))));
    }
    let having = |word: &str| -> Vec<usize> {
        let holds = |at: usize| names.iter().any(|(of, name)| *of == at && name.iter().any(|part| akin(word, part)));
        (0..all.len()).filter(|at| holds(*at)).collect()
    };
    let by_word: Vec<Vec<usize>> = left.iter().map(|word| having(word)).collect();
    found.extend(by_word.iter().filter(|blocks| blocks.len() == 1).flatten());
    if found.is_empty() {
        let fewest = by_word.into_iter().filter(|blocks| !blocks.is_empty() && blocks.len() < all.len());
        found = fewest.min_by_key(Vec::len).unwrap_or_default();
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The titles, ids and concepts of the blocks as words, without the empty ones; a name of words that most blocks share
/// tells none of them apart and is left out.
fn names(all: &[PlanBlock]) -> Vec<(usize, Vec<String>)> {
    let full = |text: &str| -> Vec<String> {
        let mut words = words(text);
        words.retain(|word| !EMPTY.iter().any(|empty| akin(empty, word)));
        words.dedup();
        words
    };
    let mut names: Vec<(usize, Vec<String>)> = Vec::new();
    for (at, block) in all.iter().enumerate() {
        let texts = [&block.title, &block.id].into_iter().chain(&block.concepts);
        names.extend(texts.map(|text| (at, full(text))));
    }
    let blocks_with = |word: &String| {
        let has = |at: usize| names.iter().any(|(of, name)| *of == at && name.iter().any(|part| akin(part, word)));
        (0..all.len()).filter(|at| has(*at)).count()
    };
    let is_telling = |name: &[String]| name.iter().any(|word| blocks_with(word) * 2 < all.len().max(3));
    names.iter().filter(|(_, name)| is_telling(name)).cloned().collect()
}

/// The block of "block 3", "step 3", "the third block" or "the last step", counted in the plan.
fn numbered(clause: &[String], plan: &Plan, all: &[PlanBlock]) -> Option<usize> {
    let at = clause.iter().position(|word| matches!(word.as_str(), "block" | "step" | "part" | "number"))?;
    let counted = clause.get(at + 1).and_then(|word| word.parse::<usize>().ok()?.checked_sub(1));
    let place = counted.or_else(|| ordinal(&clause[..at], plan.blocks.len()))?;
    let id = &plan.blocks.get(place)?.id;
    all.iter().position(|block| block.id == *id)
}

/// The place, from 0, that the last word of `before` counts to.
fn ordinal(before: &[String], count: usize) -> Option<usize> {
    let words =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"];
    let word = before.last()?;
    if word == "last" { count.checked_sub(1) } else { words.iter().position(|ordinal| ordinal == word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: &str, title: &str, concepts: &[&str], objective: &str) -> PlanBlock {
        PlanBlock {
            id: id.to_owned(),
            title: title.to_owned(),
            objective: objective.to_owned(),
            concepts: concepts.iter().map(|&concept| concept.to_owned()).collect(),
        }
    }

    fn all() -> Vec<PlanBlock> {
        vec![
            block("parts", "Parts of a whole", &["numerator", "denominator"], "Quick check: read them."),
            block("equivalent", "Equal fractions and simplest form", &["equivalent fractions"], "Make them."),
            block("compare", "Which fraction is larger?", &["comparing fractions", "common denominator"], "Compare."),
            block("add-subtract", "Adding and subtracting", &["adding fractions", "common denominator"], "Add."),
            block("multiply", "A fraction of a fraction", &["multiplying fractions"], "Multiply."),
            block("divide", "How many fit?", &["dividing fractions", "reciprocal"], "Divide."),
        ]
    }

    fn ids(plan: &Plan) -> String {
        plan.blocks.iter().map(|block| block.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn plan(blocks: &str) -> Plan {
        let find = |id: &str| all().into_iter().find(|block| block.id == id).unwrap();
        Plan { blocks: blocks.split(' ').map(find).collect(), ..Plan::default() }
    }

    const WHOLE: &str = "parts equivalent compare add-subtract multiply divide";

    #[test]
    fn a_note_changes_the_plan_as_it_says() {
        let check = |before: &str, note: &str, expected: &str| {
            let change = apply(note, &plan(before), &all()).unwrap_or_else(|| panic!("{note:?} was not understood"));
            assert_eq!(ids(&change.plan), expected, "{note}: {:?}", change.said);
        };
        check(WHOLE, "Please skip division", "parts equivalent compare add-subtract multiply");
        check(WHOLE, "skip adding and comparing", "parts equivalent multiply divide");
        check(WHOLE, "I already know how to compare fractions.", "parts equivalent add-subtract multiply divide");
        check(WHOLE, "no adding, start with division", "divide parts equivalent compare multiply");
        check(WHOLE, "Multiplication before comparing please", "parts equivalent multiply compare add-subtract divide");
        check(WHOLE, "skip the first block", "equivalent compare add-subtract multiply divide");
        check(WHOLE, "Please leave out the last step", "parts equivalent compare add-subtract multiply");
        check(WHOLE, "start with the third block", "compare parts equivalent add-subtract multiply divide");
        check(WHOLE, "move block 4 first", "add-subtract parts equivalent compare multiply divide");
        check(WHOLE, "only adding and multiplying", "add-subtract multiply");
        check(WHOLE, "just the reciprocal", "divide parts");
        check(WHOLE, "Make it shorter", "equivalent compare add-subtract");
        check(WHOLE, "I have no time", "equivalent compare add-subtract");
        check("parts equivalent compare", "too long", "equivalent compare");
        check("multiply divide", "shorter", "multiply divide");
        check("multiply divide", "skip dividing", "multiply parts");
        check("multiply divide", "add comparing back", "compare multiply divide");
        check(WHOLE, "comparing comes last", "parts equivalent add-subtract multiply divide compare");
        check(WHOLE, "don't teach me division", "parts equivalent compare add-subtract multiply");
    }

    #[test]
    fn a_note_beyond_the_rules_is_not_guessed_at() {
        for note in ["Use more pictures", "", "skip", "I don't know division", "Is this hard?", "start!"] {
            assert_eq!(apply(note, &plan(WHOLE), &all()), None, "{note}");
        }
    }

    #[test]
    fn another_order_is_always_another_one() {
        let check = |before: &str, expected: &str| assert_eq!(ids(&another_order(&plan(before))), expected);
        check(WHOLE, "equivalent compare add-subtract multiply divide parts");
        check("equivalent compare parts", "parts equivalent compare");
        check("multiply divide", "divide multiply");
    }
}
