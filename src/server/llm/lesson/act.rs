//! What the words of one clause ask to do, whatever it is done to: a verb or an adverb, and whether it is negated.

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
const DROP: [&str; 16] = [
    "skip", "drop", "omit", "remov", "delet", "exclud", "cut", "discard", "ignor", "eliminat", "scrap", "ditch",
    "avoid", "without", "minus", "forget",
];
const KEEP: [&str; 8] = ["keep", "keeping", "retain", "stay", "stays", "remain", "remains", "leave"];
const MOVE: [&str; 7] = ["move", "put", "take", "bring", "shift", "place", "push"];
const FIRST: [&str; 12] = [
    "first", "start", "starting", "begin", "beginning", "front", "top", "earlier", "upfront", "forward", "initially",
    "firstly",
];
const LAST: [&str; 10] =
    ["last", "lastly", "end", "later", "finally", "bottom", "postpone", "finish", "afterwards", "back"];
const KNOW: [&str; 13] = [
    "know", "knew", "known", "knows", "understand", "understood", "familiar", "master", "mastered", "comfortable",
    "confident", "fluent", "aware",
];
/// Words that say that something is known only beside "already" and the like, or in the negative.
const DONE: [&str; 16] = [
    "done", "did", "had", "have", "seen", "heard", "learned", "learnt", "studied", "covered", "read", "used", "good",
    "clear", "sure", "idea",
];
const ALREADY: [&str; 5] = ["already", "before", "enough", "school", "past"];
const WANT: [&str; 33] = [
    "want", "need", "needed", "like", "love", "prefer", "include", "including", "add", "teach", "learn", "show",
    "cover", "study", "focus", "concentrate", "interested", "interest", "restore", "explain", "discuss", "see",
    "necessary", "important", "relevant", "useful", "required", "do", "have", "instead", "wish", "with", "continue",
];
/// Those of them that are firm, as they ask for a block to be in the plan.
const ADD: [&str; 3] = ["include", "add", "restore"];
const SHORT: [&str; 18] = [
    "short", "shorter", "shorten", "shortly", "quick", "quickly", "quicker", "brief", "briefly", "briefer", "recap",
    "less", "fewer", "condensed", "trim", "shrink", "reduce", "down",
];
const LONG: [&str; 16] = [
    "long", "longer", "full", "fully", "detail", "details", "detailed", "depth", "deep", "deeper", "more", "thorough",
    "thoroughly", "properly", "extend", "complete",
];
const APPROVE: [&str; 8] = ["fine", "good", "great", "ok", "okay", "right", "nice", "perfect"];
/// Words before a verb that make it a request.
const LEAD: [&str; 21] = [
    "to", "please", "can", "could", "you", "we", "i", "d", "let", "us", "s", "would", "should", "may", "will", "just",
    "rather", "only", "not", "never", "also",
];

/// What a clause asks to do. The words that say so are marked in `taken`, as are those before it that only lead to it.
pub(super) fn find(words: &[String], taken: &mut [bool]) -> Option<Found> {
    let mut clause = Clause { words, taken };
    let moved = clause.command(&MOVE);
    let is_negative = is_negative(words);
    let found = clause.drops(is_negative);
    let found = found.or_else(|| clause.orders(is_negative, moved));
    let found = found.or_else(|| clause.rearranges());
    let found = found.or_else(|| clause.hurries());
    let found = found.or_else(|| clause.knows(is_negative));
    let found = found.or_else(|| clause.keeps(is_negative));
    let found = found.or_else(|| clause.measures(is_negative));
    let found = found.or_else(|| clause.wants(is_negative));
    let placed = if is_negative { Act::Keep } else { Act::Move };
    let found = found.or_else(|| Some(Found { act: placed, is_firm: true, at: moved? }));
    // "But not this" turns around what was asked for; "no such thing" always leaves it out.
    let denied = if words.iter().any(|word| word == "no") { Act::Drop } else { Act::Not };
    let not = is_negative.then_some(Found { act: denied, is_firm: false, at: 0 });
    let found = found.or(not).or_else(|| clause.approves())?;
    Some(Found { at: found.at.min(moved.unwrap_or(found.at)), ..found })
}

/// True when a clause has a verb that blocks are the object of, so that "the last" in it is a block and no order.
pub(super) fn takes_blocks(words: &[String]) -> bool {
    let is_verb = |word: &String| DROP.contains(&stem(word)) || KEEP.contains(&word.as_str());
    words.iter().any(|word| is_verb(word) || matches!(word.as_str(), "only" | "out" | "know"))
}

/// True when a clause denies what it says.
fn is_negative(words: &[String]) -> bool {
    let denies = |at: usize| {
        let next = words.get(at + 1).map_or("", String::as_str);
        match words[at].as_str() {
            "not" | "never" | "neither" | "hardly" => true,
            "no" if at > 0 => matches!(words[at - 1].as_str(), "have" | "has" | "ve" | "got" | "see" | "is" | "i" | "we"),
            // "No, keep it" denies nothing, whatever became of the comma.
            "no" => words.len() < 3 || !(KEEP.contains(&next) || DROP.contains(&next) || next == "only"),
            "nothing" => matches!(next, "about" | "on" | "of" | "with"),
            _ => false,
        }
    };
    (0..words.len()).any(denies) && !has_no_trouble(words)
}

/// "no problem with …" says that something is known.
fn has_no_trouble(words: &[String]) -> bool {
    words.windows(2).any(|pair| pair[0] == "no" && matches!(pair[1].as_str(), "problem" | "problems" | "trouble" | "difficulty"))
}

struct Clause<'c> {
    words: &'c [String],
    taken: &'c mut [bool],
}

impl Clause<'_> {
    fn has(&self, any: &[&str]) -> bool {
        self.words.iter().zip(&*self.taken).any(|(word, taken)| !taken && any.contains(&word.as_str()))
    }

    fn position(&self, is: impl Fn(usize, &str) -> bool) -> Option<usize> {
        (0..self.words.len()).find(|&at| !self.taken[at] && is(at, &self.words[at]))
    }

    fn take(&mut self, is: impl Fn(usize, &str) -> bool) -> Option<usize> {
        let at = self.position(is)?;
        self.taken[at] = true;
        Some(at)
    }

    fn take_any(&mut self, any: &[&str]) -> Option<usize> {
        self.take(|_, word| any.contains(&word))
    }

    /// Takes one of these verbs where it is a request and no noun, as "move" may be either.
    fn command(&mut self, verbs: &[&str]) -> Option<usize> {
        let words = self.words;
        self.take(|at, word| verbs.contains(&word) && is_command(words, at))
    }

    fn drops(&mut self, is_negative: bool) -> Option<Found> {
        let words = self.words;
        let is_noun_too = |word: &str| matches!(word, "drop" | "cut");
        let next = |at: usize| words.get(at + 1).map_or("", String::as_str);
        let drops = |at: usize, word: &str| match stem(word) {
            // "Skip to this" starts with it, "cut it down" makes it shorter, "forget it" takes a wish back.
            "skip" => !matches!(next(at), "to" | "ahead" | "straight" | "right"),
            "cut" if words.iter().any(|word| matches!(word.as_str(), "down" | "short" | "shorter")) => false,
            "forget" => next(at) != "it",
            stem => DROP.contains(&stem) && (!is_noun_too(word) || is_command(words, at)),
        };
        let verb = self.take(drops).or_else(|| {
            let goes_out = self.has(&["leave", "leaving", "left", "take", "taken", "throw", "kick", "keep", "stay", "let"]);
            let out = self.position(|at, word| word == "out" && (goes_out || at + 1 == words.len() || at > 0 && words[at - 1] == "put"))?;
            let verb = self.take_any(&["leave", "leaving", "left", "take", "taken", "throw", "kick", "keep", "stay", "let"]);
            self.taken[out] = true;
            Some(verb.unwrap_or(out))
        });
        let at = verb.or_else(|| self.take_any(&["rid"]))?;
        let act = if is_negative { Act::Keep } else { Act::Drop };
        Some(Found { act, is_firm: true, at })
    }

    /// An order: what comes first or last. "The first" that counts a block has been taken before.
    fn orders(&mut self, is_negative: bool, moved: Option<usize>) -> Option<Found> {
        let words = self.words;
        let is_postponed = is_negative && self.has(&["yet", "now"]);
        if is_postponed && !self.has(&DONE) && !self.has(&KNOW) {
            let at = self.take_any(&["yet", "now"])?;
            return Some(Found { act: Act::Last, is_firm: false, at });
        }
        let is_place = |at: usize, word: &str| match word {
            // "back" is a place in "to the back" only.
            "back" => at > 0 && words[at - 1] == "the",
            _ => true,
        };
        let jumps = ["skip", "jump", "ahead", "straight", "directly"];
        let is_jump = |at: usize, word: &str| word == "to" && at > 0 && jumps.contains(&words[at - 1].as_str());
        let last = self.position(|at, word| LAST.contains(&word) && is_place(at, word));
        let first = self.position(|at, word| FIRST.contains(&word) && is_place(at, word) || is_jump(at, word));
        let (act, at) = match (first, last) {
            // "Begin … at the end" is no order of anything.
            (Some(_), Some(_)) | (None, None) => return None,
            (Some(at), None) => (Act::First, at),
            (None, Some(at)) => (Act::Last, at),
        };
        self.taken[at] = true;
        let verb = ["start", "starting", "begin", "beginning", "postpone", "finish", "to"].contains(&words[at].as_str());
        let leads = ["do", "teach", "want", "like", "have", "let", "keep", "leave", "come", "comes"];
        let is_firm = verb || moved.is_some() || self.has(&leads);
        self.take_any(&["do", "teach", "keep", "leave", "have", "let"]);
        Some(Found { act: if is_negative { Act::Elsewhere } else { act }, is_firm, at })
    }

    fn rearranges(&mut self) -> Option<Found> {
        let firm = |act: Act, at: usize| Some(Found { act, is_firm: true, at });
        if let Some(at) = self.take_any(&["swap", "switch", "exchange"]) {
            return firm(Act::Swap, at);
        }
        if let Some(at) = self.take_any(&["reverse", "reversed", "backwards"]) {
            return firm(Act::Reverse, at);
        }
        let text = self.words.join(" ");
        if let Some(rest) = text.strip_prefix("never mind ").filter(|rest| !matches!(*rest, "it" | "that" | "this")) {
            let at = self.words.len() - rest.split(' ').count();
            return firm(Act::Drop, at.saturating_sub(1));
        }
        let old = ["old plan", "original", "previous", "never mind", "as it was", "forget it"];
        if old.iter().any(|phrase| text.contains(phrase)) || self.has(&["undo", "nevermind", "reset", "revert"]) {
            return firm(Act::Undo, 0);
        }
        None
    }

    fn knows(&mut self, is_negative: bool) -> Option<Found> {
        let words = self.words;
        if has_no_trouble(words) {
            return Some(Found { act: Act::Know, is_firm: false, at: 0 });
        }
        let wants = ["want", "like", "need", "get", "love", "have", "wish", "how", "hope"];
        let is_wish = |at: usize| at > 0 && words[at - 1] == "to" && words.iter().any(|word| wants.contains(&word.as_str()));
        if let Some(at) = self.take_any(&KNOW) {
            let act = if is_negative || is_wish(at) { Act::Full } else { Act::Know };
            let is_firm = act == Act::Know && words.iter().any(|word| word == "already");
            return Some(Found { act, is_firm, at });
        }
        let is_known = words.iter().any(|word| ALREADY.contains(&word.as_str()));
        // "I do not have …" denies no knowledge, but "I have not done …" does.
        let at = self.position(|_, word| DONE.contains(&word) && (!is_negative || word != "have"))?;
        let wanted = words.iter().any(|word| matches!(word.as_str(), "want" | "need" | "like"));
        if wanted || !(is_known || is_negative) {
            return None;
        }
        self.taken[at] = true;
        Some(Found { act: if is_negative { Act::Full } else { Act::Know }, is_firm: false, at })
    }

    fn keeps(&mut self, is_negative: bool) -> Option<Found> {
        let words = self.words;
        let stays_in = |at: usize, word: &str| word == "in" && at > 0 && at + 1 == words.len();
        if self.has(&SHORT) {
            return None;
        }
        let kept = self.take_any(&KEEP).or_else(|| self.take(stays_in));
        if let Some(at) = self.take_any(&["only", "just", "solely", "exclusively", "alone"]) {
            let act = if is_negative { Act::Keep } else { Act::Only };
            let verbs = self.take_any(&["teach", "want", "need", "do", "learn", "cover", "like", "add", "include"]);
            return Some(Found { act, is_firm: kept.is_some() || verbs.is_some(), at: kept.unwrap_or(at).min(at) });
        }
        let act = if is_negative { Act::Drop } else { Act::Keep };
        Some(Found { act, is_firm: is_negative, at: kept? })
    }

    /// There is little time.
    fn hurries(&mut self) -> Option<Found> {
        let times = ["time", "minutes", "hour", "hours", "hurry"];
        let is_little = ["no", "not", "little", "only", "few", "less", "minutes", "hour", "hurry", "limited"];
        let at = if self.has(&is_little) { self.take_any(&times)? } else { return None };
        Some(Found { act: Act::Brief, is_firm: false, at })
    }

    /// Shorter or longer, of the plan or of one block.
    fn measures(&mut self, is_negative: bool) -> Option<Found> {
        let words = self.words;
        let is_too = words.iter().any(|word| matches!(word.as_str(), "too" | "so")) || is_negative;
        let is_firm = self.has(&["shorter", "shorten", "longer", "make"]) || words.iter().any(|word| word == "too");
        if let Some(at) = self.take_any(&SHORT) {
            return Some(Found { act: if is_too { Act::Full } else { Act::Brief }, is_firm, at });
        }
        let at = self.take_any(&LONG).or_else(|| if is_too { self.take_any(&["much", "many"]) } else { None })?;
        // "No more of it" leaves it out.
        let act = match words[at].as_str() {
            "more" if is_negative => Act::Drop,
            _ if is_too => Act::Brief,
            _ => Act::Full,
        };
        Some(Found { act, is_firm, at })
    }

    fn wants(&mut self, is_negative: bool) -> Option<Found> {
        let add = self.command(&ADD);
        let back = self.take(|_, word| word == "back");
        let at = add.or(back).or_else(|| self.take_any(&WANT))?;
        while self.take_any(&["want", "need", "like", "do", "have", "teach", "with", "learn"]).is_some() {}
        let act = if is_negative { Act::Drop } else { Act::Keep };
        Some(Found { act, is_firm: is_negative || add.is_some() || back.is_some(), at })
    }

    /// "… is fine" keeps it.
    fn approves(&mut self) -> Option<Found> {
        let at = self.take_any(&APPROVE)?;
        Some(Found { act: Act::Keep, is_firm: false, at })
    }
}

/// True for a word that asks for something; "move" in "move comes last" names a block.
fn is_command(words: &[String], at: usize) -> bool {
    let after_noun = ["comes", "come", "goes", "is", "are", "was", "can", "should", "may", "could", "too", "already"];
    let leads = at == 0 || LEAD.contains(&words[at - 1].as_str());
    leads && words.get(at + 1).is_some_and(|next| !after_noun.contains(&next.as_str()))
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
