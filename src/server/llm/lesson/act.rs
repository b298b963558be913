//! What the words of one clause ask to do, whatever it is done to: a verb or an adverb, and whether it is negated.

use super::words::Set;

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Drop,
    /// The learner says that they know it.
    Know,
    Keep,
    Only,
    First,
    Last,
    Swap,
    /// To be put somewhere else, and the place is not said yet.
    Move,
    Brief,
    Full,
    /// In negative clauses without a verb, such as "but not the second".
    Not,
    /// An order that is not wanted, such as "don't start with".
    Elsewhere,
    Reverse,
    Undo,
}

/// An act as it was found in a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) act: Act,
    /// Said with a verb that can hardly mean anything but the plan.
    pub(super) is_firm: bool,
    /// Where the first word stands that says so.
    pub(super) at: usize,
}

/// Verbs that leave something out, without their endings.
const DROP: Set =
    Set("skip drop omit remov delet exclud cut discard ignor eliminat scrap ditch avoid without minus forget");
const KEEP: Set = Set("keep keeping retain stay stays remain remains leave");
const MOVE: Set = Set("move put take bring shift place push");
const FIRST: Set = Set("first start starting begin beginning front top earlier upfront forward initially firstly");
const LAST: Set = Set("last lastly end later finally bottom postpone finish afterwards back");
const KNOW: Set =
    Set("know knew known knows understand understood familiar master mastered comfortable confident fluent aware");
/// Words that say that something is known only beside "already" and the like, or in the negative.
const DONE: Set = Set("done did had have seen heard learned learnt studied covered read used good clear sure idea");
const ALREADY: Set = Set("already before enough school past");
const WANT: Set =
    Set("want need needed like love prefer include including add teach learn show cover study focus concentrate \
     interested interest restore explain discuss see necessary important relevant useful required do have instead \
     wish with continue");
/// Those of them that are firm, as they ask for a block to be in the plan.
const ADD: Set = Set("include add restore");
const SHORT: Set =
    Set("short shorter shorten shortly quick quickly quicker brief briefly briefer recap less fewer condensed trim \
     shrink reduce down");
const LONG: Set =
    Set("long longer full fully detail details detailed depth deep deeper more thorough thoroughly properly extend \
     complete");
/// Words before a verb that make it a request.
const LEAD: Set = Set("to please can could you we i d let us s would should may will just rather only not never also");

/// What a clause asks to do. The words that say so are marked in `taken`.
pub(super) fn find(words: &[String], taken: &mut [bool]) -> Option<Found> {
    let mut clause = Clause { words, taken, is_negative: is_negative(words), moved: None };
    clause.moved = clause.command(MOVE);
    let found = clause.drops();
    let found = found.or_else(|| clause.orders());
    let found = found.or_else(|| clause.rearranges());
    let found = found.or_else(|| clause.hurries());
    let found = found.or_else(|| clause.knows());
    let found = found.or_else(|| clause.keeps());
    let found = found.or_else(|| clause.measures());
    let found = found.or_else(|| clause.wants());
    let found = found.or_else(|| clause.places());
    let found = found.or_else(|| clause.denies());
    let found = found.or_else(|| clause.approves())?;
    Some(Found { at: found.at.min(clause.moved.unwrap_or(found.at)), ..found })
}

/// True when a clause has a verb that blocks are the object of, so that "the last" in it is a block and no order.
pub(super) fn takes_blocks(words: &[String]) -> bool {
    Set("only out know").is_in(words) || words.iter().any(|word| DROP.has(stem(word)) || KEEP.has(word))
}

/// True when a clause denies what it says.
fn is_negative(words: &[String]) -> bool {
    let denies = |at: usize| {
        let next = words.get(at + 1).map_or("", String::as_str);
        match words[at].as_str() {
            "not" | "never" | "neither" | "hardly" | "cannot" => true,
            "no" if at > 0 => Set("have has ve got see is i we").has(&words[at - 1]),
            // "No, keep it" denies nothing, whatever became of the comma.
            "no" => words.len() < 3 || !(KEEP.has(next) || DROP.has(next) || next == "only"),
            "nothing" => Set("about on of with").has(next),
            _ => false,
        }
    };
    (0..words.len()).any(denies) && !has_no_trouble(words)
}

/// "no problem with …" says that something is known.
fn has_no_trouble(words: &[String]) -> bool {
    words.windows(2).any(|pair| pair[0] == "no" && Set("problem problems trouble difficulty").has(&pair[1]))
}

struct Clause<'c> {
    words: &'c [String],
    taken: &'c mut [bool],
    is_negative: bool,
    /// Where a verb stands that puts something somewhere.
    moved: Option<usize>,
}

impl Clause<'_> {
    fn has(&self, any: Set) -> bool {
        self.words.iter().zip(&*self.taken).any(|(word, taken)| !taken && any.has(word))
    }

    fn position(&self, is: impl Fn(usize, &str) -> bool) -> Option<usize> {
        (0..self.words.len()).find(|&at| !self.taken[at] && is(at, &self.words[at]))
    }

    fn take(&mut self, is: impl Fn(usize, &str) -> bool) -> Option<usize> {
        let at = self.position(is)?;
        self.taken[at] = true;
        Some(at)
    }

    fn take_any(&mut self, any: Set) -> Option<usize> {
        self.take(|_, word| any.has(word))
    }

    /// Takes one of these verbs where it is a request and no noun, as "move" may be either.
    fn command(&mut self, verbs: Set) -> Option<usize> {
        let words = self.words;
        self.take(|at, word| verbs.has(word) && is_command(words, at))
    }

    fn drops(&mut self) -> Option<Found> {
        let words = self.words;
        let next = |at: usize| words.get(at + 1).map_or("", String::as_str);
        let drops = |at: usize, word: &str| match stem(word) {
            // "Skip to this" starts with it, "cut it down" makes it shorter, "forget it" takes a wish back.
            "skip" => !Set("to ahead straight right").has(next(at)),
            "cut" if Set("down short shorter").is_in(words) => false,
            "forget" => next(at) != "it",
            "drop" | "cut" if !word.ends_with("ing") && !word.ends_with("ed") => is_command(words, at),
            stem => DROP.has(stem),
        };
        let verb = self.take(drops).or_else(|| self.leaves_out()).or_else(|| self.take_any(Set("rid")));
        let act = if self.is_negative { Act::Keep } else { Act::Drop };
        Some(Found { act, is_firm: true, at: verb? })
    }

    /// "Leave … out", "take … out", or "out" at the end; or for another day.
    fn leaves_out(&mut self) -> Option<usize> {
        let verbs = Set("leave leaving left take taken throw kick keep stay let");
        if self.has(Set("another")) {
            return self.take_any(Set("leave leaving"));
        }
        let words = self.words;
        let is_verb_there = self.has(verbs) || self.moved.is_some();
        let out = self.position(|at, word| word == "out" && (is_verb_there || at + 1 == words.len()))?;
        self.taken[out] = true;
        Some(self.take_any(verbs).unwrap_or(out))
    }

    /// An order: what comes first or last. "The first" that counts a block has been taken before.
    fn orders(&mut self) -> Option<Found> {
        let words = self.words;
        let is_postponed = self.is_negative && !self.has(DONE) && !self.has(KNOW);
        if let Some(at) = if is_postponed { self.take_any(Set("yet now")) } else { None } {
            return Some(Found { act: Act::Last, is_firm: false, at });
        }
        // "Back" is a place in "to the back" only.
        let is_place = |at: usize, word: &str| word != "back" || at > 0 && words[at - 1] == "the";
        let jumps = Set("skip jump ahead straight directly");
        let is_jump = |at: usize, word: &str| word == "to" && at > 0 && jumps.has(&words[at - 1]);
        let last = self.position(|at, word| LAST.has(word) && is_place(at, word));
        let first = self.position(|at, word| FIRST.has(word) || is_jump(at, word));
        let (act, at) = match (first, last) {
            // "Begin … at the end" is no order of anything.
            (Some(_), Some(_)) | (None, None) => return None,
            (Some(at), None) => (Act::First, at),
            (None, Some(at)) => (Act::Last, at),
        };
        self.taken[at] = true;
        let is_verb = Set("start starting begin beginning postpone finish to").has(&words[at]);
        let leads = Set("do teach want like have let keep leave come comes");
        let is_firm = is_verb || self.moved.is_some() || self.has(leads);
        self.take_any(Set("do teach keep leave have let"));
        Some(Found { act: if self.is_negative { Act::Elsewhere } else { act }, is_firm, at })
    }

    fn rearranges(&mut self) -> Option<Found> {
        let firm = |act: Act, at: usize| Some(Found { act, is_firm: true, at });
        if let Some(at) = self.take_any(Set("swap switch exchange")) {
            return firm(Act::Swap, at);
        }
        if let Some(at) = self.take_any(Set("reverse reversed backwards")) {
            return firm(Act::Reverse, at);
        }
        let text = self.words.join(" ");
        if let Some(rest) = text.strip_prefix("never mind ").filter(|rest| !Set("it that this").has(rest)) {
            let at = self.words.len() - rest.split(' ').count();
            return firm(Act::Drop, at - 1);
        }
        let old = ["old plan", "original", "previous", "never mind", "as it was", "forget it"];
        let takes_back = old.iter().any(|phrase| text.contains(phrase));
        if takes_back || self.has(Set("undo nevermind reset revert")) { firm(Act::Undo, 0) } else { None }
    }

    /// There is little time.
    fn hurries(&mut self) -> Option<Found> {
        let is_little = self.has(Set("no not little only few less minutes hour hurry limited"));
        let at = if is_little { self.take_any(Set("time minutes hour hours hurry"))? } else { return None };
        Some(Found { act: Act::Brief, is_firm: false, at })
    }

    fn knows(&mut self) -> Option<Found> {
        let words = self.words;
        if has_no_trouble(words) {
            return Some(Found { act: Act::Know, is_firm: false, at: 0 });
        }
        if let Some(at) = self.take_any(Set("cannot")) {
            return Some(Found { act: Act::Full, is_firm: false, at });
        }
        let wishes = Set("want like need get love have wish how hope").is_in(words);
        if let Some(at) = self.take_any(KNOW) {
            let is_wish = wishes && at > 0 && words[at - 1] == "to";
            let act = if self.is_negative || is_wish { Act::Full } else { Act::Know };
            let is_firm = act == Act::Know && Set("already").is_in(words);
            return Some(Found { act, is_firm, at });
        }
        if Set("want need like").is_in(words) || !(ALREADY.is_in(words) || self.is_negative) {
            return None;
        }
        // "I do not have …" denies no knowledge, but "I have not done …" does.
        let is_negative = self.is_negative;
        let at = self.take(|_, word| DONE.has(word) && (!is_negative || word != "have"))?;
        Some(Found { act: if is_negative { Act::Full } else { Act::Know }, is_firm: false, at })
    }

    fn keeps(&mut self) -> Option<Found> {
        if self.has(SHORT) {
            return None;
        }
        let count = self.words.len();
        let kept = self.take_any(KEEP).or_else(|| self.take(|at, word| word == "in" && at > 0 && at + 1 == count));
        if let Some(at) = self.take_any(Set("only just solely exclusively alone")) {
            let act = if self.is_negative { Act::Keep } else { Act::Only };
            let verb = self.take_any(Set("teach want need do learn cover like add include"));
            return Some(Found { act, is_firm: kept.or(verb).is_some(), at: kept.unwrap_or(at).min(at) });
        }
        let act = if self.is_negative { Act::Drop } else { Act::Keep };
        Some(Found { act, is_firm: self.is_negative || self.moved.is_some(), at: kept? })
    }

    /// Shorter or longer, of the plan or of one block.
    fn measures(&mut self) -> Option<Found> {
        let words = self.words;
        let is_too = self.is_negative || Set("too so").is_in(words);
        let is_firm = self.has(Set("shorter shorten longer make")) || Set("too").is_in(words);
        if let Some(at) = self.take_any(SHORT) {
            return Some(Found { act: if is_too { Act::Full } else { Act::Brief }, is_firm, at });
        }
        let at = self.take_any(LONG).or_else(|| if is_too { self.take_any(Set("much many")) } else { None })?;
        let act = match words[at].as_str() {
            // "No more of it" leaves it out.
            "more" if self.is_negative => Act::Drop,
            _ if is_too => Act::Brief,
            _ => Act::Full,
        };
        Some(Found { act, is_firm, at })
    }

    fn wants(&mut self) -> Option<Found> {
        let add = self.command(ADD).or_else(|| self.take_any(Set("back")));
        let at = add.or_else(|| self.take_any(WANT))?;
        while self.take_any(Set("want need like do have teach with learn")).is_some() {}
        let act = if self.is_negative { Act::Drop } else { Act::Keep };
        Some(Found { act, is_firm: self.is_negative || add.is_some(), at })
    }

    /// Something is put somewhere, and it is not said where.
    fn places(&self) -> Option<Found> {
        let act = if self.is_negative { Act::Keep } else { Act::Move };
        Some(Found { act, is_firm: true, at: self.moved? })
    }

    /// "But not this" turns around what was asked for; "no such thing" always leaves it out.
    fn denies(&self) -> Option<Found> {
        let act = if Set("no neither").is_in(self.words) { Act::Drop } else { Act::Not };
        self.is_negative.then_some(Found { act, is_firm: false, at: 0 })
    }

    /// "… is fine" keeps it.
    fn approves(&mut self) -> Option<Found> {
        let at = self.take_any(Set("fine good great ok okay right nice perfect"))?;
        Some(Found { act: Act::Keep, is_firm: false, at })
    }
}

/// True for a word that asks for something; "move" in "move comes last" names a block.
fn is_command(words: &[String], at: usize) -> bool {
    if at + 1 == words.len() {
        return at > 0 && Set("d would will could should may").has(&words[at - 1]);
    }
    let after_noun = Set("comes come goes is are was can should may could too already");
    let leads = at == 0 || LEAD.has(&words[at - 1]);
    leads && !after_noun.has(&words[at + 1])
}

/// A verb without its ending: `skipping`, `skipped` and `skip` are `skip`.
fn stem(verb: &str) -> &str {
    let bare = ["ing", "ed", "e"].into_iter().find_map(|ending| verb.strip_suffix(ending)).unwrap_or(verb);
    let mut letters = bare.chars().rev();
    match (letters.next(), letters.next()) {
        (Some(last), Some(before)) if bare != verb && last == before => &bare[..bare.len() - last.len_utf8()],
        _ => bare,
    }
}
