//! What a learner's note asks of a plan: a small, careful reader. What it does not understand it hands back, so that it can
//! be said; it never takes a block that was not named.

use super::act::{Act, Found, find, takes_blocks};
use super::name::{Bare, Count, Mention, Names, is_noun, narrow};
use super::note::{Clause, Joint, clauses};
use super::words::{Set, singular};

/// A note as it was understood. Blocks are told by their place in the lesson.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) requests: Vec<Request>,
    pub(super) troubles: Vec<Trouble>,
    /// One of the requests was made in words that can hardly mean anything but the plan.
    pub(super) is_firm: bool,
    /// One of the requests is no more than a word on what the learner knows.
    pub(super) is_claim: bool,
}

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Drop(Vec<usize>),
    /// To leave out everything.
    DropAll,
    /// To leave out what the learner knows, without saying what that is.
    DropKnown,
    Keep(Vec<usize>),
    Only(Vec<usize>),
    First(Vec<usize>),
    Last(Vec<usize>),
    Beside {
        moved: Vec<usize>,
        side: Side,
        anchor: usize,
    },
    Swap(Vec<usize>),
    Brief(Vec<usize>),
    Full(Vec<usize>),
    Reverse,
    Shorter,
    Longer,
    Undo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// Something in a note that can't be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble {
    /// A scripted lesson can't change this part of itself.
    Beyond(&'static str),
    /// These words of the learner's were not understood.
    Unclear(String),
    /// These words ask for something and name no block for it.
    WhichBlock(String),
    /// Several blocks have this in them.
    Several { words: String, blocks: Vec<usize> },
    /// The plan has no block of this number.
    TooFar(usize),
    /// These blocks are not wanted where they are, and no other place is said.
    Elsewhere(Vec<usize>),
    /// These blocks were named, and nothing is said of what to do with them.
    What(Vec<usize>),
}

/// What a scripted lesson can't change, with the words that ask for it.
const BEYOND: [(&str, Set); 6] = [
    ("the questions and exercises", Set("question exercise quiz quizze practice practise homework task test")),
    ("the examples", Set("example story analogy")),
    (
        "the pictures and demos",
        Set("picture image diagram drawing video audio animation demo visual chart graph illustration"),
    ),
    (
        "the language",
        Set("language translate german deutsch french français spanish español italian portuguese dutch russian \
             chinese japanese korean polish turkish arabic hindi english"),
    ),
    ("the level", Set("advanced harder hard difficult easier easy simpler beginner expert level")),
    ("the pace", Set("slow slower slowly fast faster speed pace")),
];
/// How many entries of [`BEYOND`] take the whole clause: "no questions on division" says nothing of division itself.
const WHOLE: usize = 3;
/// Words for how deep something goes. Beside a block they ask for all of it.
const DEPTH: Set = Set("detail details detailed depth deep deeper thorough thoroughly");

/// Words that say of what there is to be more or less, though they name no block.
const MEASURE: Set = Set("detail details detailed depth deep deeper thorough thoroughly time minutes hour hours");

/// Words that ask for nothing.
const IDLE: Set = Set(
    "a an the i you we me us my your it is are am was be been that this there here to of for in on at with by and \
     or so if then well please thanks thank ok okay yes no yeah hello hi hey good great fine nice perfect cool \
     looks look sounds seems otherwise rest everything all else can could would should will may might do does did \
     d s m ll ve re let like want need just maybe perhaps actually really very also too now again think guess \
     hope sorry right already have go what about how sure ones rather bit nope yep change anything got ca wo as \
     planned usual",
);
const PRONOUNS: Set = Set("it which them they those these that this both either ones one");
const ALL: Set = Set("all everything every anything whole entire");
const REST: Set = Set("rest others other else remaining");

/// Reads a note on the plan that `names` shows. `current` is the block that is being taught, for "this block".
pub(super) fn read(note: &str, names: &Names, current: Option<usize>) -> Reading {
    let mut reader = Reader {
        names,
        current,
        reading: Reading::default(),
        carried: None,
        latest: None,
        waiting: Vec::new(),
        anchor: None,
        last: Vec::new(),
        seen: Vec::new(),
    };
    for clause in clauses(note, &names.titles()) {
        reader.take(&clause);
    }
    reader.give_up_waiting();
    // "Too long, skip this one" says itself what makes it shorter.
    let says_what = |is: fn(&Request) -> bool| reader.reading.requests.iter().any(is);
    let is_said = (
        says_what(|request| {
            matches!(request, Request::Drop(_) | Request::DropKnown | Request::Only(_) | Request::Brief(_))
        }),
        says_what(|request| matches!(request, Request::Keep(_) | Request::Full(_))),
    );
    reader.reading.requests.retain(|request| match request {
        Request::Shorter => !is_said.0,
        Request::Longer => !is_said.1,
        _ => true,
    });
    reader.reading
}

/// Where the reading of a note is.
struct Reader<'a> {
    names: &'a Names,
    current: Option<usize>,
    reading: Reading,
    /// What the clauses of a sentence so far ask for, which a clause that only names blocks asks for as well.
    carried: Option<Act>,
    /// The last act of the note, which "but not …" turns around.
    latest: Option<Act>,
    /// Blocks that were named before it was said what is to become of them.
    waiting: Vec<usize>,
    /// Of "before …, do …": the block beside which the next one goes.
    anchor: Option<(Side, usize)>,
    /// The blocks that "it" and "them" mean.
    last: Vec<usize>,
    /// All blocks that the note has named.
    seen: Vec<usize>,
}

/// What some words hold.
struct Parsed {
    found: Option<Found>,
    blocks: Vec<usize>,
    /// Where the first block is named.
    at: usize,
    /// Nothing is said beside that.
    is_bare: bool,
    troubles: Vec<Trouble>,
}

impl Reader<'_> {
    fn take(&mut self, clause: &Clause<'_>) {
        if clause.joint == Joint::Begins && !Set("too also").is_in(&clause.words) {
            self.carried = None;
        }
        if clause.words.iter().all(|word| IDLE.has(word) || is_noun(word) || word == "plan") {
            if ALL.is_in(&clause.words) && Set("want need like").is_in(&clause.words) {
                join(&mut self.reading.requests, Request::Longer);
            }
            return;
        }
        let beyond = beyond(&clause.words);
        if let Some((what, _)) = beyond {
            self.trouble(Trouble::Beyond(what));
        }
        let is_told = match beyond {
            Some((_, Extent::Clause)) => return,
            Some((_, Extent::Word)) => true,
            None => false,
        };
        if !self.excepts(clause) && !self.replaces(clause) && !self.places(clause) {
            let parsed = self.parse(&clause.words);
            self.carry_out(clause, parsed, is_told);
        }
    }

    fn parse(&self, words: &[String]) -> Parsed {
        let mut taken = vec![false; words.len()];
        let mut mentions = self.names.phrases(words, &mut taken);
        let mut counts = self.names.numbers(words, &mut taken, Bare::IsOrder);
        let takes_more = words.len() <= 3 && self.carried.is_some_and(|act| !matches!(act, Act::First | Act::Last));
        if takes_blocks(words) || takes_more {
            counts.extend(self.names.numbers(words, &mut taken, Bare::Counts));
        }
        let found = find(words, &mut taken);
        mentions.extend(self.names.single_words(words, &mut taken));
        let mut troubles = Vec::new();
        for count in counts {
            match count {
                Count::Blocks(mention) => mentions.push(mention),
                Count::TooFar(number) => troubles.push(Trouble::TooFar(number)),
            }
        }
        // In "skip the parts that I know", the parts are no name.
        let is_relative = Set("know").is_in(words) && found.is_some_and(|found| found.act != Act::Know);
        if mentions.is_empty() && troubles.is_empty() && !is_relative {
            mentions.extend(self.names.plain_id(words, &mut taken));
        }
        narrow(&mut mentions);
        mentions.sort_by_key(|mention| mention.at);
        let mut blocks = Vec::new();
        for Mention { blocks: named, words, is_choice, .. } in &mentions {
            // What all stays anyway need not be told apart.
            if *is_choice && found.is_none_or(|found| found.act != Act::Keep) {
                troubles.push(Trouble::Several { words: words.clone(), blocks: named.clone() });
            } else {
                add(&mut blocks, named);
            }
        }
        let at = mentions.first().map_or(words.len(), |mention| mention.at);
        let is_idle = |(at, word): (usize, &String)| taken[at] || IDLE.has(word) || is_noun(word) || word == "not";
        Parsed { found, blocks, at, is_bare: words.iter().enumerate().all(is_idle), troubles }
    }

    fn carry_out(&mut self, clause: &Clause<'_>, parsed: Parsed, is_told: bool) {
        let Parsed { found, blocks: named, at, is_bare, troubles } = parsed;
        let is_told = is_told || !troubles.is_empty();
        let is_vague =
            !is_bare && Set("less fewer more many much").is_in(&clause.words) && !MEASURE.is_in(&clause.words);
        self.reading.troubles.extend(troubles);
        if let Some((side, anchor)) = self.anchor.take() {
            if !named.is_empty() && found.is_none_or(|found| matches!(found.act, Act::Keep | Act::Move | Act::First)) {
                return self.push_beside(named, side, anchor);
            }
            self.trouble(Trouble::What(vec![anchor]));
        }
        let Some(found) = found else {
            return match self.carried {
                _ if named.is_empty() && (is_told || clause.joint == Joint::Reason) => {}
                _ if named.is_empty() => self.trouble(Trouble::Unclear(clause.text.to_owned())),
                Some(act) if is_bare => self.push(act, named),
                Some(_) | None => self.wait(&named),
            };
        };
        let act = match found.act {
            Act::Not => self.turned_around(),
            act => act,
        };
        let comes_before = named.is_empty() || at < found.at;
        let mut blocks = if comes_before { std::mem::take(&mut self.waiting) } else { Vec::new() };
        add(&mut blocks, &named);
        if blocks.is_empty() {
            blocks = self.meant_by_pronoun(&clause.words);
        }
        if blocks.is_empty() {
            // "More of something" that is no block, or "not that".
            return match is_vague || found.act == Act::Not {
                true if is_bare || is_told => {}
                true => self.trouble(Trouble::Unclear(clause.text.to_owned())),
                false => self.without_block(act, clause, found.is_firm, is_told),
            };
        }
        self.give_up_waiting();
        self.reading.is_firm |= found.is_firm;
        self.reading.is_claim |= act == Act::Know && !found.is_firm;
        self.push(act, blocks);
    }

    /// What "not" alone asks for.
    fn turned_around(&self) -> Act {
        match self.latest {
            // "Start with this one, not that one" leaves that one where it is.
            Some(Act::Drop | Act::Know | Act::First | Act::Last | Act::Swap | Act::Brief) => Act::Keep,
            Some(
                Act::Keep | Act::Only | Act::Full | Act::Move | Act::Not | Act::Elsewhere | Act::Reverse | Act::Undo,
            )
            | None => Act::Drop,
        }
    }

    fn meant_by_pronoun(&self, words: &[String]) -> Vec<usize> {
        let this =
            words.windows(2).any(|pair| matches!(pair[0].as_str(), "this" | "current" | "the") && is_noun(&pair[1]));
        match self.current {
            Some(current) if this => vec![current],
            Some(_) | None if PRONOUNS.is_in(words) => self.last.clone(),
            Some(_) | None => Vec::new(),
        }
    }

    /// An act with no block to it: it may be about the whole plan.
    fn without_block(&mut self, act: Act, clause: &Clause<'_>, is_firm: bool, is_told: bool) {
        let words = &clause.words;
        let rest: Vec<usize> = self.names.shown().iter().copied().filter(|block| !self.seen.contains(block)).collect();
        let is_rest = REST.is_in(words) && !self.seen.is_empty();
        let knows = Set("know knew known understand right").is_in(words);
        let request = match act {
            Act::Keep | Act::Only | Act::Full if is_rest => return,
            Act::Drop if is_rest => Request::Drop(rest),
            Act::Drop if knows => Request::DropKnown,
            Act::Drop | Act::Know if ALL.is_in(words) => Request::DropAll,
            // "Keep all of it" and "don't skip anything" want nothing changed.
            Act::Keep if ALL.is_in(words) && (Set("keep leave").is_in(words) || Set("not never").is_in(words)) => {
                return;
            }
            Act::Keep | Act::Full if ALL.is_in(words) => Request::Longer,
            Act::Full if DEPTH.is_in(words) => return self.trouble(Trouble::Beyond("the level")),
            Act::Brief => Request::Shorter,
            Act::Full if !knows => Request::Longer,
            Act::Reverse => Request::Reverse,
            Act::Undo => Request::Undo,
            _ if is_told || clause.joint == Joint::Reason => return,
            Act::First if words.iter().all(|word| IDLE.has(word) || is_start(word)) => return,
            Act::Drop | Act::Know | Act::Only | Act::First | Act::Last | Act::Swap | Act::Elsewhere => {
                return self.trouble(Trouble::WhichBlock(clause.text.to_owned()));
            }
            Act::Keep | Act::Full | Act::Move | Act::Not => {
                return self.trouble(Trouble::Unclear(clause.text.to_owned()));
            }
        };
        self.reading.is_firm |= is_firm;
        self.carried = None;
        self.latest = Some(act);
        if !self.reading.requests.contains(&request) {
            self.reading.requests.push(request);
        }
    }

    /// "… except …": the one side gets what the other does not.
    fn excepts(&mut self, clause: &Clause<'_>) -> bool {
        let words = &clause.words;
        let is_border = |word: &str| matches!(word, "except" | "excepting" | "besides" | "apart");
        let than = || words.windows(2).position(|pair| pair[0] == "other" && pair[1] == "than");
        let Some(at) = words.iter().position(|word| is_border(word)).or_else(than) else { return false };
        let (left, right) = (self.parse(&words[..at]), self.parse(&words[at + 1..]));
        if right.blocks.is_empty() {
            return false;
        }
        self.reading.troubles.extend(left.troubles.into_iter().chain(right.troubles));
        let act = left.found.map(|found| found.act).or(self.latest);
        self.reading.is_firm |= left.found.is_some_and(|found| found.is_firm);
        let drops = matches!(act, Some(Act::Drop | Act::Know));
        if Set("nothing").is_in(&words[..at]) || drops && ALL.is_in(&words[..at]) {
            self.push(Act::Only, right.blocks);
        } else if drops && self.reading.requests.last() == Some(&Request::DropAll) {
            self.reading.requests.pop();
            self.push(Act::Only, right.blocks);
        } else {
            if let Some(act) = act.filter(|_| !left.blocks.is_empty()) {
                self.push(act, left.blocks);
            }
            self.push(if drops { Act::Keep } else { Act::Drop }, right.blocks);
        }
        true
    }

    /// "… instead of …", "… rather than …" and "replace … by …".
    fn replaces(&mut self, clause: &Clause<'_>) -> bool {
        let words = &clause.words;
        let pair = |first: &str, second: &str| words.windows(2).position(|pair| pair[0] == first && pair[1] == second);
        let (new, old, old_is_last) = if let Some(at) = pair("instead", "of").or_else(|| pair("rather", "than")) {
            (self.parse(&words[..at]).blocks, self.parse(&words[at + 2..]).blocks, at > 0)
        } else if let Some(at) = words.iter().position(|word| matches!(word.as_str(), "replace" | "substitute")) {
            let Some(with) = words.iter().position(|word| matches!(word.as_str(), "with" | "by")) else { return false };
            let old = words.get(at + 1..with).unwrap_or_default();
            (self.parse(&words[with + 1..]).blocks, self.parse(old).blocks, false)
        } else {
            return false;
        };
        if old.is_empty() {
            return false;
        }
        let mut kept = std::mem::take(&mut self.waiting);
        add(&mut kept, &new);
        self.reading.is_firm = true;
        let mut acts = [(Act::Drop, old), (Act::Keep, kept)];
        if old_is_last {
            acts.reverse();
        }
        for (act, blocks) in acts {
            self.push(act, blocks);
            self.carried = Some(act);
        }
        true
    }

    /// "… before …" and "… after …"; with "everything" on the left it is about all blocks on that side.
    fn places(&mut self, clause: &Clause<'_>) -> bool {
        let words = &clause.words;
        let Some(at) = words.iter().position(|word| matches!(word.as_str(), "before" | "after")) else { return false };
        let side = if words[at] == "before" { Side::Before } else { Side::After };
        let (left_words, right_words) = (&words[..at], &words[at + 1..]);
        let (left, right) = (self.parse(left_words), self.parse(right_words));
        let anchors = if right.blocks.is_empty() { self.meant_by_pronoun(right_words) } else { right.blocks };
        let anchor = match side {
            Side::Before => anchors.first(),
            Side::After => anchors.last(),
        };
        let Some(&anchor) = anchor else {
            // "Before everything else" is first of all.
            let is_extreme = (ALL.is_in(right_words) || REST.is_in(right_words)) && !left.blocks.is_empty();
            if is_extreme {
                self.push(if side == Side::Before { Act::First } else { Act::Last }, left.blocks);
            }
            return is_extreme;
        };
        let is_clear = left.troubles.is_empty();
        self.reading.troubles.extend(left.troubles);
        self.reading.is_firm |= left.found.is_some_and(|found| found.is_firm);
        let is_range = ALL.is_in(left_words) || left.blocks.is_empty() && left_words.iter().any(|word| is_noun(word));
        let blocks = if is_range { self.beside(side, anchor) } else { left.blocks };
        match left.found.map(|found| found.act) {
            Some(act) if is_range && act != Act::Not => self.push(act, blocks),
            Some(Act::Drop | Act::Know | Act::Only | Act::Brief | Act::Full) if blocks.is_empty() => {
                self.trouble(Trouble::WhichBlock(clause.text.to_owned()));
            }
            Some(act @ (Act::Drop | Act::Know | Act::Only | Act::Brief | Act::Full)) => self.push(act, blocks),
            Some(Act::Not | Act::Elsewhere) => self.place(clause.joint, left_words, &blocks, side.other(), anchor),
            Some(_) | None if is_clear => self.place(clause.joint, left_words, &blocks, side, anchor),
            Some(_) | None => {}
        }
        true
    }

    /// Puts blocks beside another one: those that are named, that were named before, or that the next clause names.
    fn place(&mut self, joint: Joint, words: &[String], named: &[usize], side: Side, anchor: usize) {
        let mut moved = std::mem::take(&mut self.waiting);
        add(&mut moved, named);
        if moved.is_empty() {
            moved = self.meant_by_pronoun(words);
        }
        let is_order = matches!(self.reading.requests.last(), Some(Request::First(_) | Request::Last(_)));
        if moved.is_empty() && joint == Joint::GoesOn && is_order {
            // "Earlier, before that one" says more exactly where.
            self.reading.requests.pop();
            moved.clone_from(&self.last);
        }
        if moved.is_empty() {
            self.anchor = Some((side, anchor));
        } else {
            self.push_beside(moved, side, anchor);
        }
    }

    /// The blocks of the plan on this side of one of them.
    fn beside(&self, side: Side, anchor: usize) -> Vec<usize> {
        let shown = self.names.shown();
        let Some(at) = shown.iter().position(|&block| block == anchor) else { return Vec::new() };
        match side {
            Side::Before => shown[..at].to_vec(),
            Side::After => shown[at + 1..].to_vec(),
        }
    }

    fn push_beside(&mut self, moved: Vec<usize>, side: Side, anchor: usize) {
        let moved: Vec<usize> = moved.into_iter().filter(|&block| block != anchor).collect();
        if moved.is_empty() {
            return;
        }
        self.remember(&[anchor]);
        self.remember(&moved);
        self.carried = None;
        self.latest = Some(Act::First);
        self.reading.requests.push(Request::Beside { moved, side, anchor });
    }

    fn push(&mut self, act: Act, blocks: Vec<usize>) {
        if blocks.is_empty() {
            return;
        }
        self.remember(&blocks);
        self.carried = Some(act);
        self.latest = Some(act);
        let request = match act {
            Act::Drop | Act::Know => Request::Drop(blocks),
            Act::Keep => Request::Keep(blocks),
            Act::Only => Request::Only(blocks),
            Act::First => Request::First(blocks),
            Act::Last => Request::Last(blocks),
            Act::Swap => Request::Swap(blocks),
            Act::Brief => Request::Brief(blocks),
            Act::Full => Request::Full(blocks),
            Act::Reverse => Request::Reverse,
            Act::Undo => Request::Undo,
            Act::Elsewhere => return self.trouble(Trouble::Elsewhere(blocks)),
            Act::Move | Act::Not => {
                self.carried = None;
                self.waiting = blocks;
                return;
            }
        };
        join(&mut self.reading.requests, request);
    }

    fn wait(&mut self, blocks: &[usize]) {
        self.remember(blocks);
        add(&mut self.waiting, blocks);
    }

    fn give_up_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.extend(self.anchor.take().map(|(_, anchor)| anchor));
        if !waiting.is_empty() {
            self.trouble(Trouble::What(waiting));
        }
    }

    fn remember(&mut self, blocks: &[usize]) {
        self.last = blocks.to_vec();
        add(&mut self.seen, blocks);
    }

    fn trouble(&mut self, trouble: Trouble) {
        if !self.reading.troubles.contains(&trouble) {
            self.reading.troubles.push(trouble);
        }
    }
}

/// How much of a clause is about what can't be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Clause,
    Word,
}

fn beyond(words: &[String]) -> Option<(&'static str, Extent)> {
    let at = BEYOND.iter().position(|(_, any)| words.iter().any(|word| any.has(&singular(word))))?;
    Some((BEYOND[at].0, if at < WHOLE { Extent::Clause } else { Extent::Word }))
}

fn is_start(word: &str) -> bool {
    matches!(word, "start" | "begin" | "first")
}

/// Adds what is not there yet.
fn add(blocks: &mut Vec<usize>, more: &[usize]) {
    for block in more {
        if !blocks.contains(block) {
            blocks.push(*block);
        }
    }
}

/// Adds a request, as one with the last if both ask for the same.
fn join(requests: &mut Vec<Request>, request: Request) {
    match (requests.last_mut(), &request) {
        (Some(Request::Drop(blocks)), Request::Drop(more))
        | (Some(Request::Keep(blocks)), Request::Keep(more))
        | (Some(Request::Only(blocks)), Request::Only(more))
        | (Some(Request::First(blocks)), Request::First(more))
        | (Some(Request::Last(blocks)), Request::Last(more))
        | (Some(Request::Swap(blocks)), Request::Swap(more))
        | (Some(Request::Brief(blocks)), Request::Brief(more))
        | (Some(Request::Full(blocks)), Request::Full(more)) => add(blocks, more),
        _ => requests.push(request),
    }
}
