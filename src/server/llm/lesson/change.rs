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
    /// Part of it is no more than a word on what the learner knows.
    pub(super) is_claim: bool,
}

/// Carries a note out.
pub(super) fn apply(note: &str, setting: Setting<'_>) -> Change {
    let names = Names::of(setting.plan, setting.all);
    let current = setting.current.and_then(|id| setting.all.iter().position(|block| block.id == id));
    let Reading { requests, troubles, is_firm, is_claim } = read(note, &names, current);
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
        is_claim,
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
        let absent: Vec<PlanBlock> = open
            .iter()
            .filter(|block| !holds(&self.setting.plan.blocks, block) && !self.is_in(block))
            .cloned()
            .collect();
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
        let stays =
            |block: &PlanBlock| holds(&left, block) || whole.get(other).is_some_and(|other| other.id == block.id);
        let mut blocks: Vec<PlanBlock> = whole.iter().filter(|block| stays(block)).cloned().collect();
        blocks.extend(left.iter().filter(|block| !holds(&whole, block)).cloned());
        blocks
    }

    fn drop_known(&mut self) {
        let known: Vec<PlanBlock> = self.blocks.iter().filter(|block| is_quick(block)).cloned().collect();
        if known.is_empty() {
            return self
                .note("Your answers don't show me which of the blocks you know; name them, and I leave them out.");
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
        let stays = |block: &PlanBlock| holds(blocks, block) || self.is_done(block) || self.kept.contains(&block.id);
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
        self.say_order(&before, &format!("{} {}", titles(&moved), plural(&moved, one, several)));
    }

    /// Notes what an order has changed, or that it was so before.
    fn say_order(&mut self, before: &[PlanBlock], what: &str) {
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
        let what = format!(
            "{} {} {word} {}",
            titles(&moved),
            plural(&moved, "comes", "come"),
            titles(std::slice::from_ref(&anchor))
        );
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
        self.say_order(&before, &what);
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
        let quick: Vec<PlanBlock> =
            self.blocks.iter().filter(|block| is_quick(block) && !self.is_done(block)).cloned().collect();
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
            Some(previous)
                if self.setting.done.iter().all(|id| previous.blocks.iter().any(|block| block.id == *id)) =>
            {
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
        let old = |block: &&&PlanBlock| before.iter().find(|old| old.id == block.id).map(is_quick);
        let brief: Vec<&PlanBlock> =
            self.blocks.iter().filter(|block| is_quick(block) && old(&block) == Some(false)).collect();
        let full: Vec<&PlanBlock> =
            self.blocks.iter().filter(|block| !is_quick(block) && old(&block) == Some(true)).collect();
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
    let picked =
        |blocks: &[usize]| -> Vec<PlanBlock> { blocks.iter().filter_map(|&at| setting.all.get(at)).cloned().collect() };
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
            Trouble::Elsewhere(blocks) => {
                said.push(format!("Say where {} should go instead, such as \"to the end\".", titles(&picked(blocks))))
            }
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
