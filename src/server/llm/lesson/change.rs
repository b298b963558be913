//! Changing a plan as the learner's note asks, and saying in plain words what was done and what was not.

use crate::app::native::Plan;
use crate::app::native::plan::PlanBlock;

use super::name::Names;
use super::request::{Reading, Request, Side, Trouble, read};
use super::words::list;

/// How the objective of a block begins that the learner seems to know.
pub(super) const QUICK: &str = "Quick check: ";

/// Fewest blocks of a plan.
const FEWEST: usize = 2;

/// What can be asked for, in a sentence.
pub(super) const CAN: &str = "With the plan I can do this: leave blocks out or put them back, keep only some, change their \
     order, make one a quick check or teach it in full, and make the whole shorter or longer. Name a block by its title, by a \
     word of it, or by its number.";

/// All that a change depends on beside the note.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    /// The plan that the learner sees.
    pub(super) plan: &'a Plan,
    /// The lesson's blocks in their own order, as they would stand in a plan.
    pub(super) all: &'a [PlanBlock],
    /// Ids of the blocks that have been taught.
    pub(super) done: &'a [String],
    /// The id of the block that is being taught.
    pub(super) current: Option<&'a str>,
    /// The plan before this one, for taking a change back.
    pub(super) previous: Option<&'a Plan>,
}

/// A note, carried out.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) blocks: Vec<PlanBlock>,
    /// What was done, as parts of a sentence; empty when the plan is as it was.
    pub(super) done: Vec<String>,
    /// What was not done and why, in sentences.
    pub(super) not_done: Vec<String>,
    /// Something was asked for that is beyond the rules; then they are worth saying.
    pub(super) has_trouble: bool,
    /// All words of the note were understood, also those that ask for what can't be done.
    pub(super) is_clear: bool,
    /// Something was understood.
    pub(super) is_understood: bool,
    /// It was asked for in words that can hardly mean anything but the plan.
    pub(super) is_firm: bool,
}

/// Carries a note out.
pub(super) fn apply(note: &str, setting: Setting<'_>) -> Change {
    let names = Names::of(setting.plan, setting.all);
    let current = setting.current.and_then(|id| setting.all.iter().position(|block| block.id == id));
    let Reading { requests, troubles, is_firm } = read(note, &names, current);
    let mut editor = Editor {
        setting,
        blocks: setting.plan.blocks.clone(),
        kept: Vec::new(),
        orders: Vec::new(),
        notes: Vec::new(),
    };
    for request in &requests {
        editor.take(request);
    }
    let done = editor.done();
    let mut not_done = std::mem::take(&mut editor.notes);
    if done.is_empty() && not_done.is_empty() && !editor.kept.is_empty() {
        not_done.push(format!("{}.", editor.stays()));
    }
    not_done.extend(told(&troubles, setting));
    Change {
        done,
        not_done,
        is_clear: troubles.iter().all(|trouble| !matches!(trouble, Trouble::Unclear(_) | Trouble::What(_))),
        has_trouble: !troubles.is_empty(),
        is_understood: !requests.is_empty(),
        is_firm,
        blocks: editor.blocks,
    }
}

/// A plan that is being changed.
struct Editor<'a> {
    setting: Setting<'a>,
    blocks: Vec<PlanBlock>,
    /// Ids of the blocks that are to stay, whatever else the note says.
    kept: Vec<String>,
    /// What was moved, as parts of a sentence.
    orders: Vec<String>,
    /// What was not done, in sentences.
    notes: Vec<String>,
}

impl Editor<'_> {
    fn take(&mut self, request: &Request) {
        match request {
            Request::Drop(blocks) => self.drop(&self.picked(blocks)),
            Request::DropAll => self.note(format!("I can't leave out everything: {AT_LEAST}. {END}")),
            Request::DropKnown => self.drop_known(),
            Request::Keep(blocks) => self.keep(&self.picked(blocks)),
            Request::Only(blocks) => self.keep_only(&self.picked(blocks)),
            Request::First(blocks) => self.rearrange(blocks, Self::first_open, "comes first", "come first"),
            Request::Last(blocks) => self.rearrange(blocks, |editor| editor.blocks.len(), "comes last", "come last"),
            Request::Beside { moved, side, anchor } => self.move_beside(moved, *side, *anchor),
            Request::Swap(blocks) => self.swap(&self.picked(blocks)),
            Request::Brief(blocks) => self.measure(&self.picked(blocks), Length::Brief),
            Request::Full(blocks) => self.measure(&self.picked(blocks), Length::Full),
            Request::Reverse => self.reverse(),
            Request::Shorter => self.shorten(),
            Request::Longer => self.lengthen(),
            Request::Undo => self.undo(),
        }
    }

    fn picked(&self, blocks: &[usize]) -> Vec<PlanBlock> {
        let all = self.setting.all;
        let as_planned = |block: &PlanBlock| self.blocks.iter().find(|old| old.id == block.id).unwrap_or(block).clone();
        blocks.iter().filter_map(|&at| all.get(at)).map(as_planned).collect()
    }

    fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }

    fn is_in(&self, block: &PlanBlock) -> bool {
        holds(&self.blocks, block)
    }

    fn is_done(&self, block: &PlanBlock) -> bool {
        self.setting.done.contains(&block.id)
    }

    /// The blocks that have not been taught yet; says so of the others.
    fn open(&mut self, blocks: &[PlanBlock]) -> Vec<PlanBlock> {
        let (done, open): (Vec<_>, Vec<_>) = blocks.iter().cloned().partition(|block| self.is_done(block));
        if !done.is_empty() {
            self.note(format!("{} {} behind us already.", titles(&done), plural(&done, "is", "are")));
        }
        open
    }

    fn drop(&mut self, blocks: &[PlanBlock]) {
        let open = self.open(blocks);
        let absent: Vec<PlanBlock> = open.iter().filter(|block| !holds(&self.setting.plan.blocks, block) && !self.is_in(block)).cloned().collect();
        if !absent.is_empty() {
            self.note(format!("{} {} not in the plan.", titles(&absent), plural(&absent, "is", "are")));
        }
        self.kept.retain(|id| !open.iter().any(|block| block.id == *id));
        let (gone, left): (Vec<_>, Vec<_>) = self.blocks.iter().cloned().partition(|block| holds(&open, block));
        if gone.is_empty() {
            return;
        }
        if left.is_empty() {
            return self.note(format!("I can't leave out all of them: {AT_LEAST}. {END}"));
        }
        self.blocks = self.filled(left);
    }

    /// At least two of the plan's blocks: those of `left`, and if need be the one that leads to them.
    fn filled(&mut self, left: Vec<PlanBlock>) -> Vec<PlanBlock> {
        if left.len() >= FEWEST {
            return left;
        }
        let whole = if self.blocks.len() >= FEWEST { self.blocks.clone() } else { self.setting.plan.blocks.clone() };
        let at = whole.iter().position(|block| holds(&left, block)).unwrap_or(0);
        let other = at.checked_sub(1).unwrap_or(at + 1);
        if let Some(other) = whole.get(other) {
            self.note(format!("{} stays in it, because {AT_LEAST}.", titles(std::slice::from_ref(other))));
        }
        let stays = |block: &PlanBlock| holds(&left, block) || whole.get(other).is_some_and(|other| other.id == block.id);
        let mut blocks: Vec<PlanBlock> = whole.iter().filter(|block| stays(block)).cloned().collect();
        blocks.extend(left.iter().filter(|block| !holds(&whole, block)).cloned());
        blocks
    }

    fn drop_known(&mut self) {
        let known: Vec<PlanBlock> = self.blocks.iter().filter(|block| is_quick(block)).cloned().collect();
        if known.is_empty() {
            return self.note("Your answers don't show me which of the blocks you know; name them, and I leave them out.");
        }
        self.drop(&known);
    }

    fn keep(&mut self, blocks: &[PlanBlock]) {
        for block in blocks {
            self.put_in(block);
            self.kept.push(block.id.clone());
        }
    }

    /// Puts a block in where it was, or where the lesson has it.
    fn put_in(&mut self, block: &PlanBlock) {
        if self.is_in(block) {
            return;
        }
        let was_there = holds(&self.setting.plan.blocks, block);
        let order = if was_there { &self.setting.plan.blocks[..] } else { self.setting.all };
        let block = order.iter().find(|other| other.id == block.id).unwrap_or(block).clone();
        let place = |id: &str| order.iter().position(|other| other.id == id);
        let own = place(&block.id);
        let before = self.blocks.iter().rposition(|other| place(&other.id).is_some_and(|place| Some(place) < own));
        let at = before.map_or(0, |before| before + 1).max(self.first_open());
        self.blocks.insert(at, block);
    }

    fn keep_only(&mut self, blocks: &[PlanBlock]) {
        for block in blocks {
            self.put_in(block);
        }
        let stays = |block: &PlanBlock| {
            holds(blocks, block) || self.is_done(block) || self.kept.contains(&block.id)
        };
        let left: Vec<PlanBlock> = self.blocks.iter().filter(|block| stays(block)).cloned().collect();
        self.blocks = self.filled(left);
    }

    /// Where the blocks begin that are not taught yet.
    fn first_open(&self) -> usize {
        self.blocks.iter().rposition(|block| self.is_done(block)).map_or(0, |last| last + 1)
    }

    /// Takes blocks out of the order and puts them together at `place`.
    fn rearrange(&mut self, blocks: &[usize], place: impl Fn(&Self) -> usize, one: &str, several: &str) {
        let moved = self.open(&self.picked(blocks));
        if moved.is_empty() {
            return;
        }
        let before = self.blocks.clone();
        self.blocks.retain(|block| !holds(&moved, block));
        let at = place(self);
        self.blocks.splice(at..at, moved.clone());
        self.say_order(&before, format!("{} {}", titles(&moved), plural(&moved, one, several)));
    }

    /// Notes what an order has changed, or that it was so before.
    fn say_order(&mut self, before: &[PlanBlock], what: String) {
        if before == self.blocks {
            self.note(format!("{what} already."));
        } else {
            self.orders.push(format!("{what} now"));
        }
    }

    fn move_beside(&mut self, moved: &[usize], side: Side, anchor: usize) {
        let Some(anchor) = self.picked(&[anchor]).pop() else { return };
        if !self.is_in(&anchor) {
            return self.note(format!("{} is not in the plan, so nothing can come beside it.", titles(&[anchor])));
        }
        let word = match side {
            Side::Before => "before",
            Side::After => "after",
        };
        let moved = self.open(&self.picked(moved));
        if moved.is_empty() {
            return;
        }
        let what = format!("{} {} {word} {}", titles(&moved), plural(&moved, "comes", "come"), titles(&[anchor.clone()]));
        let place = |of: &PlanBlock| self.blocks.iter().position(|block| block.id == of.id);
        let is_there = |block: &PlanBlock| match side {
            Side::Before => place(block).is_some_and(|at| Some(at) < place(&anchor)),
            Side::After => place(block) > place(&anchor),
        };
        if moved.iter().all(is_there) {
            return self.note(format!("{what} already."));
        }
        let before = self.blocks.clone();
        self.blocks.retain(|block| !holds(&moved, block));
        let at = self.blocks.iter().position(|block| block.id == anchor.id).unwrap_or(0);
        let at = (if side == Side::Before { at } else { at + 1 }).max(self.first_open());
        self.blocks.splice(at..at, moved);
        self.say_order(&before, what);
    }

    fn swap(&mut self, blocks: &[PlanBlock]) {
        let open = self.open(blocks);
        let [one, other] = open.as_slice() else {
            return self.note("To swap, I need two blocks that are still to come.");
        };
        let place = |id: &str| self.blocks.iter().position(|block| block.id == id);
        let (Some(from), Some(to)) = (place(&one.id), place(&other.id)) else {
            return self.note("Only blocks that are in the plan can change places.");
        };
        self.blocks.swap(from, to);
        self.orders.push(format!("{} have changed places", titles(&open)));
    }

    fn reverse(&mut self) {
        let from = self.first_open();
        self.blocks[from..].reverse();
        self.orders.push("the order is turned around".to_owned());
    }

    fn measure(&mut self, blocks: &[PlanBlock], length: Length) {
        for block in self.open(blocks) {
            self.put_in(&block);
            let Some(own) = self.blocks.iter_mut().find(|own| own.id == block.id) else { continue };
            let title = titles(std::slice::from_ref(&block));
            match (length, is_quick(own)) {
                (Length::Brief, true) => self.note(format!("{title} is a quick check already; it can't be shorter.")),
                (Length::Brief, false) => own.objective.insert_str(0, QUICK),
                (Length::Full, true) => own.objective = own.objective[QUICK.len()..].to_owned(),
                (Length::Full, false) => {
                    if holds(&self.setting.plan.blocks, &block) {
                        self.note(format!("{title} is in the plan in full, with all that my lesson has on it."));
                    }
                }
            }
        }
    }

    /// Leaves out what seems known, or else the last third.
    fn shorten(&mut self) {
        let fixed = |block: &PlanBlock| {
            self.is_done(block) || self.setting.current == Some(block.id.as_str()) || self.kept.contains(&block.id)
        };
        let open: Vec<PlanBlock> = self.blocks.iter().filter(|block| !fixed(block)).cloned().collect();
        let known: Vec<PlanBlock> = open.iter().filter(|block| is_quick(block)).cloned().collect();
        let spare = self.blocks.len().saturating_sub(FEWEST);
        let gone: Vec<PlanBlock> = if known.is_empty() {
            let third = (open.len() / 3).max(1).min(spare);
            open.iter().rev().take(third).cloned().collect()
        } else {
            known.into_iter().rev().take(spare).collect()
        };
        if gone.is_empty() {
            return self.note(format!("The plan can't be shorter: {AT_LEAST}."));
        }
        self.blocks.retain(|block| !holds(&gone, block));
    }

    /// Puts back what was left out; if nothing was, teaches in full what is a quick check.
    fn lengthen(&mut self) {
        let missing: Vec<PlanBlock> = self.setting.all.iter().filter(|block| !self.is_in(block)).cloned().collect();
        let quick: Vec<PlanBlock> = self.blocks.iter().filter(|block| is_quick(block) && !self.is_done(block)).cloned().collect();
        if !missing.is_empty() {
            return self.keep(&missing);
        }
        if quick.is_empty() {
            return self.note("The plan has all the blocks of my lesson; there are no more.");
        }
        self.measure(&quick, Length::Full);
    }

    fn undo(&mut self) {
        match self.setting.previous {
            Some(previous) if self.setting.done.iter().all(|id| previous.blocks.iter().any(|block| block.id == *id)) => {
                self.blocks.clone_from(&previous.blocks);
            }
            Some(_) | None => self.note("There is no earlier plan to go back to."),
        }
    }

    /// What is different now, as parts of a sentence.
    fn done(&self) -> Vec<String> {
        let before = &self.setting.plan.blocks;
        if *before == self.blocks {
            return Vec::new();
        }
        let gone: Vec<&PlanBlock> = before.iter().filter(|block| !self.is_in(block)).collect();
        let new: Vec<&PlanBlock> = self.blocks.iter().filter(|block| !holds(before, block)).collect();
        let old = |block: &&&PlanBlock| before.iter().find(|old| old.id == block.id).map(|old| is_quick(old));
        let brief: Vec<&PlanBlock> = self.blocks.iter().filter(|block| is_quick(block) && old(&block) == Some(false)).collect();
        let full: Vec<&PlanBlock> = self.blocks.iter().filter(|block| !is_quick(block) && old(&block) == Some(true)).collect();
        let mut said = Vec::new();
        let mut say = |blocks: &[&PlanBlock], words: &dyn Fn(&str) -> String| {
            if !blocks.is_empty() {
                said.push(words(&titles_of(blocks)));
            }
        };
        say(&gone, &|titles| format!("I left out {titles}"));
        say(&new, &|titles| format!("I put in {titles}"));
        say(&brief, &|titles| format!("of {titles} there is a quick check only"));
        say(&full, &|titles| format!("I teach {titles} in full"));
        said.extend(self.orders.iter().cloned());
        if self.kept.iter().any(|id| before.iter().any(|block| block.id == *id)) {
            said.push(self.stays());
        }
        if said.is_empty() {
            said.push("the blocks are as they were before".to_owned());
        }
        said
    }

    /// Which blocks the learner wanted to stay.
    fn stays(&self) -> String {
        let stays = |block: &&PlanBlock| self.kept.contains(&block.id) && holds(&self.setting.plan.blocks, block);
        let stays: Vec<&PlanBlock> = self.blocks.iter().filter(stays).collect();
        format!("{} {}", titles_of(&stays), plural(&stays, "stays", "stay"))
    }
}

/// How much of a block is taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Brief,
    Full,
}

const AT_LEAST: &str = "a plan needs two blocks at least";
const END: &str = "If you want to end here, write \"stop\".";

/// What could not be done, in sentences; what is beyond a scripted lesson comes in one of them.
fn told(troubles: &[Trouble], setting: Setting<'_>) -> Vec<String> {
    let picked = |blocks: &[usize]| -> Vec<PlanBlock> { blocks.iter().filter_map(|&at| setting.all.get(at)).cloned().collect() };
    let (mut beyond, mut unclear, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for trouble in troubles {
        match trouble {
            Trouble::Beyond(what) => beyond.push(*what),
            Trouble::Unclear(words) => unclear.push(format!("\"{words}\"")),
            Trouble::WhichBlock(words) => said.push(format!("I don't see which block you mean by \"{words}\".")),
            Trouble::Several { words, blocks } => {
                said.push(format!("\"{words}\" fits {}; say which of them you mean.", titles(&picked(blocks))));
            }
            Trouble::TooFar(number) => {
                said.push(format!("There is no block {number}: the plan has {}.", setting.plan.blocks.len()));
            }
            Trouble::Elsewhere(blocks) => said.push(format!(
                "Say where {} should go instead, such as \"to the end\".",
                titles(&picked(blocks))
            )),
            Trouble::What(blocks) => {
                said.push(format!("Say what I should do with {}: leave it out, for example.", titles(&picked(blocks))));
            }
        }
    }
    if !unclear.is_empty() {
        said.push(format!("I did not understand {}.", list(&unclear)));
    }
    if !beyond.is_empty() {
        said.push(format!(
            "I can't change {} of this lesson: I am scripted, and it was written beforehand.",
            list(&beyond)
        ));
    }
    said
}

fn holds(blocks: &[PlanBlock], block: &PlanBlock) -> bool {
    blocks.iter().any(|other| other.id == block.id)
}

/// True for a block of which there is a quick check only.
pub(super) fn is_quick(block: &PlanBlock) -> bool {
    block.objective.starts_with(QUICK)
}

fn plural<'w, T>(items: &[T], one: &'w str, several: &'w str) -> &'w str {
    if items.len() == 1 { one } else { several }
}

fn titles(blocks: &[PlanBlock]) -> String {
    titles_of(&blocks.iter().collect::<Vec<_>>())
}

fn titles_of(blocks: &[&PlanBlock]) -> String {
    list(&blocks.iter().map(|block| format!("\"{}\"", block.title)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::shelf::Packs;
    use super::*;

    const FRACTIONS: &str = "parts equivalent compare add-subtract multiply divide";
    const RUST: &str = "moves copy-clone borrow borrow-mut slices lifetimes";

    /// The blocks of a built-in lesson; those of `quick` seem to be known.
    fn all(slug: &str, quick: &[&str]) -> Vec<PlanBlock> {
        let (packs, _) = Packs::built_in();
        let pack = packs.all().iter().find(|pack| pack.slug == slug).unwrap();
        let block = |block: &super::super::pack::PackBlock| PlanBlock {
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
            "Please skip division", "skip dividing", "drop \"How many fit?\"", "leave out how many fit", "leave division out, please",
            "I already know division.", "I know how to divide", "no division", "remove the last block", "skip the last one",
            "take division out", "without division", "I don't need division", "not division please", "skip block 6", "drop the sixth block",
            "can we skip dividing fractions?", "I'm not interested in division", "division can be left out", "Division is not needed",
            "the reciprocal is clear to me already", "get rid of division", "everything except division", "all but division",
            "skip the 6th", "omit division because it is boring", "cut division", "don't teach me division", "exclude divide",
            "please let us leave division out", "I am comfortable with division", "no more division", "Dividing fractions out",
            "skip everything after multiplication", "I have no interest in division",
        ] {
            check(FRACTIONS, note, "parts equivalent compare add-subtract multiply");
        }
        check(FRACTIONS, "skip adding and comparing", "parts equivalent multiply divide");
        check(FRACTIONS, "skip 2, 3 and 4", "parts multiply divide");
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
        check(RUST, "skip moves, but please keep lifetimes no matter what", "copy-clone borrow borrow-mut slices lifetimes");
        check(RUST, "moves: skip; lifetimes: keep", "copy-clone borrow borrow-mut slices lifetimes");
        check(RUST, "skip Copy, clone is fine", RUST);
        check(RUST, "skip lifetimes not slices", "moves copy-clone borrow borrow-mut slices");
        check(RUST, "drop lifetimes, borrowing scares me", "moves copy-clone borrow borrow-mut slices");
        check(RUST, "drop lifetimes and keep everything else", "moves copy-clone borrow borrow-mut slices");
        for note in [
            "do not skip lifetimes", "I don't know lifetimes", "never leave out lifetimes", "keep lifetimes", "I want to know lifetimes",
            "I am not good at lifetimes", "no need to drop lifetimes", "I have never heard of lifetimes", "not only lifetimes",
            "lifetimes are fine", "I want to understand lifetimes", "is lifetimes hard?", "lifetimes", "more on lifetimes",
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
        for note in ["Make it shorter", "too long", "I have no time", "not so long please", "I only have 20 minutes", "less", "cut it down a bit"] {
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
        check(FRACTIONS, "skip parts, equal fractions, comparing, adding, multiplication and division", "I can't leave out all of them");
        check("multiply divide", "skip dividing", "\"How many fit?\" stays in it");
        check("multiply divide", "skip comparing", "\"Which fraction is larger?\" is not in the plan");
        check(FRACTIONS, "Use more pictures", "I can't change the pictures and demos of this lesson");
        check(FRACTIONS, "in German please, and with other exercises", "can't change the language and the questions and exercises");
        check(FRACTIONS, "more depth", "I can't change the level");
        check(FRACTIONS, "no additional exercises, no multiple choice questions", "the questions and exercises");
        check(FRACTIONS, "skip block 9", "There is no block 9: the plan has 6");
        check(FRACTIONS, "skip the common denominator", "\"common denominator\" fits \"Which fraction is larger?\" and \"Adding and subtracting\"");
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
        for note in ["", "thanks", "ok", "Looks good!", "the rest is fine", "please", "let's start", "yes, no, maybe", "keep it all", "don't change anything", "leave everything as it is"] {
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
        check("borrow slices", "only lifetimes", "I left out \"Borrowing with `&`\"; I put in \"Lifetimes in signatures\". \
             \"`String` and `&str`\" stays in it, because a plan needs two blocks at least.");
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
            prop_assert!(change.blocks.len() >= FEWEST);
            let ids: std::collections::BTreeSet<_> = change.blocks.iter().map(|block| &block.id).collect();
            prop_assert_eq!(ids.len(), change.blocks.len());
        }
    }
}
