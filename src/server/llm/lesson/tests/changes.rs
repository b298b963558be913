//! Notes on a plan, in many words, and what becomes of the plan.

use proptest::prelude::*;

use super::super::change::{Change, QUICK, Setting, apply, is_quick};
use super::*;
use crate::app::native::plan::PlanBlock;

const FRACTIONS: &str = "parts equivalent compare add-subtract multiply divide";
const RUST: &str = "moves copy-clone borrow borrow-mut slices lifetimes";

/// The blocks of a built-in lesson; those of `quick` seem to be known.
fn all(slug: &str, quick: &[&str]) -> Vec<PlanBlock> {
    let (packs, _) = Packs::built_in();
    let pack = packs.all().iter().find(|pack| pack.slug == slug).unwrap();
    let block = |block: &pack::PackBlock| PlanBlock {
        id: block.id.clone(),
        title: block.title.clone(),
        objective: format!("{}{}", if quick.contains(&block.id.as_str()) { QUICK } else { "" }, block.objective),
        concepts: block.concepts.clone(),
    };
    pack.blocks.iter().map(block).collect()
}

fn plan(all: &[PlanBlock], ids: &str) -> Plan {
    let find = |id: &str| all.iter().find(|block| block.id == id).unwrap().clone();
    Plan { blocks: ids.split(' ').map(find).collect(), ..Plan::default() }
}

fn ids(blocks: &[PlanBlock]) -> String {
    blocks.iter().map(|block| block.id.as_str()).collect::<Vec<_>>().join(" ")
}

fn change(slug: &str, before: &str, note: &str) -> Change {
    let all = all(slug, &[]);
    let plan = plan(&all, before);
    apply(note, Setting { plan: &plan, all: &all, done: &[], current: None, previous: None })
}

fn check(before: &str, note: &str, expected: &str) {
    let slug = if RUST.contains(before.split(' ').next().unwrap()) { "rust-ownership" } else { "fractions" };
    let change = change(slug, before, note);
    assert_eq!(ids(&change.blocks), expected, "{note}: {change:?}");
    assert_eq!(change.done.is_empty(), before == expected, "{note}: {change:?}");
    assert!(before != expected || !change.not_done.is_empty() || !change.is_understood, "{note}: {change:?}");
}

#[test]
fn blocks_are_left_out_in_many_words() {
    for note in [
        "Please skip division",
        "skip dividing",
        "drop \"How many fit?\"",
        "leave out how many fit",
        "leave division out, please",
        "I already know division.",
        "I know how to divide",
        "no division",
        "remove the last block",
        "skip the last one",
        "take division out",
        "without division",
        "I don't need division",
        "not division please",
        "skip block 6",
        "drop the sixth block",
        "can we skip dividing fractions?",
        "I'm not interested in division",
        "division can be left out",
        "Division is not needed",
        "the reciprocal is clear to me already",
        "get rid of division",
        "everything except division",
        "all but division",
        "skip the 6th",
        "omit division because it is boring",
        "cut division",
        "don't teach me division",
        "exclude divide",
        "please let us leave division out",
        "I am comfortable with division",
        "no more division",
        "Dividing fractions out",
        "skip everything after multiplication",
        "I have no interest in division",
    ] {
        check(FRACTIONS, note, "parts equivalent compare add-subtract multiply");
    }
    check(FRACTIONS, "skip adding and comparing", "parts equivalent multiply divide");
    check(FRACTIONS, "skip 2, 3 and 4", "parts multiply divide");
    check(FRACTIONS, "1. skip comparing 2. start with division", "divide parts equivalent add-subtract multiply");
    check(FRACTIONS, "all is fine except adding, which I'd drop", "parts equivalent compare multiply divide");
    check(FRACTIONS, "adding is not needed and comparing neither", "parts equivalent multiply divide");
    check(FRACTIONS, "it's too long, skip the second block", "parts compare add-subtract multiply divide");
    check(FRACTIONS, "skip blocks 2 to 4", "parts multiply divide");
    check(FRACTIONS, "skip the first two blocks", "compare add-subtract multiply divide");
    check(FRACTIONS, "leave out the first and the last", "equivalent compare add-subtract multiply");
    check(FRACTIONS, "I know parts of a whole and equal fractions already", "compare add-subtract multiply divide");
    check(FRACTIONS, "skip adding. Comparing too.", "parts equivalent multiply divide");
    check(FRACTIONS, "keep multiplication and division and drop the rest", "multiply divide");
    check(RUST, "drop drop and move semantics", "copy-clone borrow borrow-mut slices lifetimes");
    check(RUST, "skip strings", "moves copy-clone borrow borrow-mut lifetimes");
    check(RUST, "Skip copy and clone and moves", "borrow borrow-mut slices lifetimes");
    check(RUST, "never mind lifetimes", "moves copy-clone borrow borrow-mut slices");
    check(RUST, "Lifetimes? I don't need them!", "moves copy-clone borrow borrow-mut slices");
}

#[test]
fn what_is_to_stay_stays() {
    check(RUST, "drop lifetimes, I know them, but keep borrowing", "moves copy-clone borrow borrow-mut slices");
    check(RUST, "Don't drop borrowing, drop lifetimes", "moves copy-clone borrow borrow-mut slices");
    check(RUST, "skip lifetimes but not slices", "moves copy-clone borrow borrow-mut slices");
    check(
        RUST,
        "skip moves, but please keep lifetimes no matter what",
        "copy-clone borrow borrow-mut slices lifetimes",
    );
    check(RUST, "moves: skip; lifetimes: keep", "copy-clone borrow borrow-mut slices lifetimes");
    check(RUST, "skip Copy, clone is fine", RUST);
    check(RUST, "skip lifetimes not slices", "moves copy-clone borrow borrow-mut slices");
    check(RUST, "drop lifetimes, borrowing scares me", "moves copy-clone borrow borrow-mut slices");
    check(RUST, "drop lifetimes and keep everything else", "moves copy-clone borrow borrow-mut slices");
    for note in [
        "do not skip lifetimes",
        "I don't know lifetimes",
        "never leave out lifetimes",
        "keep lifetimes",
        "I want to know lifetimes",
        "I am not good at lifetimes",
        "I can't do lifetimes",
        "you cannot skip lifetimes",
        "no need to drop lifetimes",
        "I have never heard of lifetimes",
        "not only lifetimes",
        "lifetimes are fine",
        "I want to understand lifetimes",
        "is lifetimes hard?",
        "lifetimes",
        "more on lifetimes",
    ] {
        check(RUST, note, RUST);
    }
    check("multiply divide", "put comparing back in", "compare multiply divide");
    check("multiply divide", "add comparing and the parts of a whole", "parts compare multiply divide");
    check("multiply divide", "I'd like addition too", "add-subtract multiply divide");
    check("parts compare", "compare and equal fractions instead of parts", "equivalent compare");
    check(FRACTIONS, "replace adding by multiplication", "parts equivalent compare multiply divide");
}

#[test]
fn only_some_are_kept() {
    check(FRACTIONS, "only adding and comparing", "compare add-subtract");
    check(FRACTIONS, "I only want to learn adding, multiplying and dividing", "add-subtract multiply divide");
    check(FRACTIONS, "keep only adding and comparing", "compare add-subtract");
    check(FRACTIONS, "skip everything except adding and comparing", "compare add-subtract");
    check(FRACTIONS, "drop every block but adding and comparing", "compare add-subtract");
    check(FRACTIONS, "nothing but division and multiplication please", "multiply divide");
    check(FRACTIONS, "just the reciprocal", "multiply divide");
    check("multiply divide", "only comparing and adding", "compare add-subtract");
}

#[test]
fn the_order_is_changed_as_it_is_said() {
    check(FRACTIONS, "start with division", "divide parts equivalent compare add-subtract multiply");
    check(FRACTIONS, "no adding, start with division", "divide parts equivalent compare multiply");
    check(FRACTIONS, "Multiplication before comparing please", "parts equivalent multiply compare add-subtract divide");
    check(FRACTIONS, "put division before adding", "parts equivalent compare divide add-subtract multiply");
    check(FRACTIONS, "start with the third block", "compare parts equivalent add-subtract multiply divide");
    check(FRACTIONS, "move block 4 first", "add-subtract parts equivalent compare multiply divide");
    check(FRACTIONS, "first division, then multiplication", "divide multiply parts equivalent compare add-subtract");
    check(FRACTIONS, "skip to division", "divide parts equivalent compare add-subtract multiply");
    check(FRACTIONS, "first block 3, then block 1", "compare parts equivalent add-subtract multiply divide");
    check(FRACTIONS, "division earlier, before comparing", "parts equivalent divide compare add-subtract multiply");
    check(FRACTIONS, "division before anything else", "divide parts equivalent compare add-subtract multiply");
    check(FRACTIONS, "make division the first block", "divide parts equivalent compare add-subtract multiply");
    check(FRACTIONS, "comparing comes last", "parts equivalent add-subtract multiply divide compare");
    check(FRACTIONS, "move comparing to the end", "parts equivalent add-subtract multiply divide compare");
    check(FRACTIONS, "move 2 and 3 to the end", "parts add-subtract multiply divide equivalent compare");
    check(FRACTIONS, "comparing and adding at the end", "parts equivalent multiply divide compare add-subtract");
    check(FRACTIONS, "comparing after division", "parts equivalent add-subtract multiply divide compare");
    check(FRACTIONS, "before adding, do division", "parts equivalent compare divide add-subtract multiply");
    check(FRACTIONS, "swap adding and division", "parts equivalent compare divide multiply add-subtract");
    check(FRACTIONS, "reverse the order", "divide multiply add-subtract compare equivalent parts");
    check(FRACTIONS, "not division yet, multiplication first", "multiply parts equivalent compare add-subtract divide");
    check(FRACTIONS, "parts before division", FRACTIONS);
    check(FRACTIONS, "don't start with division", FRACTIONS);
}

#[test]
fn the_length_is_changed() {
    for note in [
        "Make it shorter",
        "too long",
        "I have no time",
        "not so long please",
        "I only have 20 minutes",
        "less",
        "cut it down a bit",
    ] {
        check(FRACTIONS, note, "parts equivalent compare add-subtract");
    }
    check(FRACTIONS, "shorter, but keep division", "parts equivalent compare add-subtract divide");
    check("multiply divide", "shorter", "multiply divide");
    for note in ["longer", "too short", "more blocks", "I want it all", "the whole lesson in full please"] {
        check("multiply divide", note, FRACTIONS);
    }
    check(FRACTIONS, "longer", FRACTIONS);
}

#[test]
fn a_block_is_taught_in_full_or_checked_quickly() {
    let all = all("fractions", &["parts", "divide"]);
    let plan = plan(&all, FRACTIONS);
    let check = |note: &str, expected: &str, quick: &str| {
        let change = apply(note, Setting { plan: &plan, all: &all, done: &[], current: None, previous: None });
        assert_eq!(ids(&change.blocks), expected, "{note}: {change:?}");
        let found: Vec<PlanBlock> = change.blocks.iter().filter(|block| is_quick(block)).cloned().collect();
        assert_eq!(ids(&found), quick, "{note}: {change:?}");
    };
    check("division in full", FRACTIONS, "parts");
    check("I don't know division", FRACTIONS, "parts");
    check("more on division", FRACTIONS, "parts");
    check("only a quick check of adding", FRACTIONS, "parts add-subtract divide");
    check("keep comparing short", FRACTIONS, "parts compare divide");
    check("shorter", "equivalent compare add-subtract multiply", "");
    check("skip what I know already", "equivalent compare add-subtract multiply", "");
    check("skip the parts that I know", "equivalent compare add-subtract multiply", "");
    check("longer", FRACTIONS, "");
}

#[test]
fn what_can_not_be_done_is_said() {
    let check = |before: &str, note: &str, words: &str| {
        let change = change("fractions", before, note);
        assert_eq!(ids(&change.blocks), before, "{note}: {change:?}");
        assert!(change.not_done.join(" ").contains(words), "{note}: {change:?}");
    };
    check(FRACTIONS, "skip everything", "I can't leave out everything: a plan needs two blocks");
    check(
        FRACTIONS,
        "skip parts, equal fractions, comparing, adding, multiplication and division",
        "I can't leave out all of them",
    );
    check("multiply divide", "skip dividing", "\"How many fit?\" stays in it");
    check("multiply divide", "skip comparing", "\"Which fraction is larger?\" is not in the plan");
    check(FRACTIONS, "Use more pictures", "I can't change the pictures and demos of this lesson");
    check(
        FRACTIONS,
        "in German please, and with other exercises",
        "can't change the language and the questions and exercises",
    );
    check(FRACTIONS, "more depth", "I can't change the level");
    check(FRACTIONS, "no additional exercises, no multiple choice questions", "the questions and exercises");
    check(FRACTIONS, "skip block 9", "There is no block 9: the plan has 6");
    check(
        FRACTIONS,
        "skip the common denominator",
        "\"common denominator\" fits \"Which fraction is larger?\" and \"Adding and subtracting\"",
    );
    check(FRACTIONS, "skip percentages", "I don't see which block you mean by \"skip percentages\"");
    check(FRACTIONS, "skip the second half", "which block you mean");
    check(FRACTIONS, "Division scares me", "Say what I should do with \"How many fit?\"");
    check(FRACTIONS, "My exam is on Friday", "I did not understand \"My exam is on Friday\"");
    check(FRACTIONS, "don't start with parts of a whole", "Say where \"Parts of a whole\" should go instead");
    check(FRACTIONS, "more on division", "in full, with all that my lesson has on it");
    check(FRACTIONS, "undo", "no earlier plan");
}

#[test]
fn a_note_without_a_wish_changes_nothing_and_needs_no_words() {
    for note in [
        "",
        "thanks",
        "ok",
        "Looks good!",
        "the rest is fine",
        "please",
        "let's start",
        "yes, no, maybe",
        "keep it all",
        "don't change anything",
        "leave everything as it is",
    ] {
        let change = change("fractions", FRACTIONS, note);
        assert!(change.done.is_empty() && change.not_done.is_empty() && !change.is_understood, "{note}: {change:?}");
    }
}

#[test]
fn what_was_done_is_said_in_plain_words() {
    let check = |before: &str, note: &str, expected: &str| {
        let change = change("rust-ownership", before, note);
        assert_eq!(format!("{}. {}", change.done.join("; "), change.not_done.join(" ")).trim(), expected, "{note}");
    };
    check(
        RUST,
        "drop lifetimes, I know them, but keep borrowing",
        "I left out \"Lifetimes in signatures\"; \"Borrowing with `&`\" stays.",
    );
    check(
        RUST,
        "Start with slices, skip moves and copy, and more videos",
        "I left out \"One owner, and moves\" and \"Copy and clone\"; \"`String` and `&str`\" comes first now. I can't \
         change the pictures and demos of this lesson: I am scripted, and it was written beforehand.",
    );
    check(
        "borrow slices",
        "only lifetimes",
        "I left out \"Borrowing with `&`\"; I put in \"Lifetimes in signatures\". \
         \"`String` and `&str`\" stays in it, because a plan needs two blocks at least.",
    );
}

#[test]
fn in_the_middle_of_a_lesson_what_is_taught_stays_taught() {
    let all = all("fractions", &[]);
    let (whole, before) = (plan(&all, FRACTIONS), plan(&all, "parts equivalent compare"));
    let done = ["parts".to_owned()];
    let setting =
        Setting { plan: &whole, all: &all, done: &done, current: Some("equivalent"), previous: Some(&before) };
    let check = |note: &str, expected: &str| assert_eq!(ids(&apply(note, setting).blocks), expected, "{note}");
    check("skip this block", "parts compare add-subtract multiply divide");
    check("skip parts", FRACTIONS);
    check("division first", "parts divide equivalent compare add-subtract multiply");
    check("only division", "parts divide");
    check("shorter", "parts equivalent compare add-subtract multiply");
    check("parts to the end", FRACTIONS);
    check("reverse the order", "parts divide multiply add-subtract compare equivalent");
    check("undo that", "parts equivalent compare");
    check("never mind", "parts equivalent compare");
}

/// A request with `{}` for a block, and whether it moves the block or leaves it out.
const REQUESTS: [(&str, Kind); 22] = [
    ("skip {}", Kind::Drop),
    ("drop {}", Kind::Drop),
    ("leave out {}", Kind::Drop),
    ("please remove {}", Kind::Drop),
    ("I know {} already", Kind::Drop),
    ("no {}", Kind::Drop),
    ("I don't need {}", Kind::Drop),
    ("leave {} out", Kind::Drop),
    ("without {}", Kind::Drop),
    ("don't keep {}", Kind::Drop),
    ("keep {}", Kind::Keep),
    ("don't drop {}", Kind::Keep),
    ("do not leave out {}", Kind::Keep),
    ("I want {}", Kind::Keep),
    ("I don't know {}", Kind::Keep),
    ("{} is fine", Kind::Keep),
    ("start with {}", Kind::Move),
    ("move {} to the end", Kind::Move),
    ("{} comes last", Kind::Move),
    ("begin with {}", Kind::Move),
    ("more pictures", Kind::Nothing),
    ("my exam is on Friday", Kind::Nothing),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Drop,
    Keep,
    Move,
    Nothing,
}

/// The names by which block `at` can be called: its title, its id, its concepts and its number.
fn names_of(all: &[PlanBlock], at: usize) -> Vec<String> {
    let others = |concept: &&String| all.iter().filter(|block| block.concepts.contains(concept)).count() == 1;
    let ordinals = ["first", "second", "third", "fourth", "fifth", "sixth"];
    let mut names = vec![all[at].title.clone(), format!("\"{}\"", all[at].title), format!("block {}", at + 1)];
    names.push(format!("the {} block", ordinals[at]));
    names.extend(all[at].concepts.iter().filter(others).cloned());
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn blocks_that_a_note_does_not_name_stay_in_their_order(
        slug in prop::sample::select(vec!["fractions", "rust-ownership"]),
        parts in prop::collection::vec((0..REQUESTS.len(), 0..6_usize, 0..9_usize, 0..5_usize), 1..6),
    ) {
        let all = all(slug, &[]);
        let joints = [", ", " and ", ". ", ", but ", " but "];
        let mut note = String::new();
        let mut fates: Vec<Vec<Kind>> = vec![Vec::new(); all.len()];
        for (request, at, name, joint) in parts {
            let (text, kind) = REQUESTS[request];
            let names = names_of(&all, at);
            if !note.is_empty() {
                note.push_str(joints[joint]);
            }
            note.push_str(&text.replace("{}", &names[name % names.len()]));
            if kind != Kind::Nothing {
                fates[at].push(kind);
            }
        }
        let whole = Plan { blocks: all.clone(), ..Plan::default() };
        let change = apply(&note, Setting { plan: &whole, all: &all, done: &[], current: None, previous: None });
        let is_in = |block: &PlanBlock| change.blocks.iter().any(|other| other.id == block.id);
        for (block, fates) in all.iter().zip(&fates) {
            let is_dropped = fates.contains(&Kind::Drop);
            prop_assert!(is_dropped || is_in(block), "{note}: {} is gone: {change:?}", block.id);
            let ends_dropped = fates.last() == Some(&Kind::Drop);
            prop_assert!(!ends_dropped || !is_in(block) || change.blocks.len() == 2 || !change.not_done.is_empty(),
                "{note}: {} is there still: {change:?}", block.id);
            let ends_kept = fates.last().is_some_and(|fate| *fate != Kind::Drop);
            prop_assert!(!ends_kept || is_in(block), "{note}: {} was wanted: {change:?}", block.id);
        }
        let unmoved = |blocks: &[PlanBlock]| -> Vec<String> {
            let is_free = |block: &&PlanBlock| {
                all.iter().zip(&fates).any(|(other, fates)| other.id == block.id && fates.is_empty())
            };
            blocks.iter().filter(is_free).map(|block| block.id.clone()).collect()
        };
        prop_assert_eq!(unmoved(&all), unmoved(&change.blocks), "{}: {:?}", note, change);
        prop_assert!(change.blocks.len() >= 2);
        let ids: std::collections::BTreeSet<_> = change.blocks.iter().map(|block| &block.id).collect();
        prop_assert_eq!(ids.len(), change.blocks.len());
    }
}
