//! Learners of all kinds, at random: whatever they do, each step is sound, nothing is asked more often than needed, and the
//! lesson comes to its end.

use proptest::prelude::*;

use super::*;

/// Free words that change nothing, for any moment.
const TALK: [&str; 16] = [
    "hint",
    "Why?",
    "what is a numerator?",
    "hello",
    "I don't understand",
    "Who are you?",
    "What is a common denominator?",
    "my cat is asleep",
    "help",
    "?",
    "explain again",
    "are you an AI?",
    "what is borrowing?",
    "is this hard?",
    "Rust, please",
    "what else is there",
];
const GO_ON: [&str; 5] = ["go on", "ok", "continue", "next", "thanks"];
const PASS: [&str; 4] = ["skip", "I don't know", "pass", "no idea"];
const STOP: [&str; 3] = ["stop", "enough for today", "I want to end"];
/// Wishes for the plan, for any moment.
const WISHES: [&str; 16] = [
    "skip division",
    "drop the second block",
    "only comparing and adding",
    "start with multiplication",
    "make it shorter",
    "longer",
    "keep everything",
    "put division back",
    "I know adding already, but keep comparing",
    "skip everything",
    "in German, with more pictures",
    "never mind",
    "move block 1 to the end",
    "swap 1 and 2",
    "skip this block",
    "parts in full",
];

/// What a learner does next.
#[derive(Clone, Debug)]
enum Move {
    Right,
    Wrong(usize),
    DontKnow,
    Skip,
    Talk(usize),
    GoOn(usize),
    Pass(usize),
    Stop(usize),
    Wish(usize),
    Accept,
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => Just(Move::Right),
        4 => (0..5_usize).prop_map(Move::Wrong),
        1 => Just(Move::DontKnow),
        1 => Just(Move::Skip),
        5 => (0..TALK.len()).prop_map(Move::Talk),
        2 => (0..GO_ON.len()).prop_map(Move::GoOn),
        1 => (0..PASS.len()).prop_map(Move::Pass),
        1 => (0..STOP.len()).prop_map(Move::Stop),
        4 => (0..WISHES.len()).prop_map(Move::Wish),
        4 => Just(Move::Accept),
    ]
}

/// A learner in a chat, who counts why a question may come again.
struct Learner {
    chat: Chat,
    stop: Stop,
    /// The questions that were posed and have no answer yet.
    open: BTreeMap<String, Open>,
}

/// How often an open question came, and how often there was a reason for it to come.
#[derive(Debug, Default)]
struct Open {
    posed: usize,
    reasons: usize,
    /// Free words have been a reason once since the learner last wanted to go on.
    has_talked: bool,
}

/// Why a question may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Talk,
    GoOn,
    Other,
}

impl Learner {
    fn new(first: &str) -> Self {
        let mut learner = Self { chat: Chat::new(first), stop: Stop::End(String::new()), open: BTreeMap::new() };
        let stop = learner.chat.run();
        learner.settle(stop);
        learner
    }

    fn take(&mut self, choice: &Move) {
        let text = match choice {
            Move::Talk(at) => Some(TALK[*at]),
            Move::GoOn(at) => Some(GO_ON[*at]),
            Move::Pass(at) => Some(PASS[*at]),
            Move::Stop(at) => Some(STOP[*at]),
            Move::Wish(at) => Some(WISHES[*at]),
            Move::Right | Move::Wrong(_) | Move::DontKnow | Move::Skip | Move::Accept => None,
        };
        let stop = std::mem::replace(&mut self.stop, Stop::End(String::new()));
        let text = text.or_else(|| {
            let ends = matches!(stop, Stop::End(_)) && !self.plan_waits();
            ends.then(|| self.way_on())
        });
        if let (Stop::Question(call), None) = (&stop, text) {
            self.open.remove(&question(call));
        }
        self.excuse(match choice {
            Move::Talk(_) | Move::Wish(_) => Reason::Talk,
            _ if text.is_some_and(|text| GO_ON.contains(&text)) => Reason::GoOn,
            _ => Reason::Other,
        });
        let stop = match (stop, choice) {
            (Stop::Question(call), Move::Wrong(at)) => self.chat.reply(&call, &Reply::Wrong(*at)),
            (Stop::Question(call), Move::DontKnow) => self.chat.reply(&call, &Reply::DontKnow),
            (Stop::Question(call), Move::Skip) => self.chat.reply(&call, &Reply::Skip),
            (Stop::Question(call), _) => match text {
                Some(text) => self.chat.reply(&call, &Reply::Text(text.to_owned())),
                None => self.chat.reply(&call, &Reply::Right),
            },
            (Stop::Plan(_), Move::Wish(at)) => self.chat.verdict(false, Some(WISHES[*at])),
            (Stop::Plan(_), Move::Skip) => self.chat.verdict(false, None),
            (Stop::Plan(_), _) if text.is_none() => self.chat.verdict(true, None),
            (Stop::End(_), _) if text.is_none() => self.chat.verdict(true, None),
            (Stop::Plan(_) | Stop::End(_), _) => self.chat.text(text.unwrap_or_default()),
        };
        self.settle(stop);
    }

    /// Something gives all open questions a reason to come again. Free words do so once.
    fn excuse(&mut self, reason: Reason) {
        for open in self.open.values_mut() {
            if reason != Reason::Talk || !open.has_talked {
                open.reasons += 1;
            }
            open.has_talked = match reason {
                Reason::Talk => true,
                Reason::GoOn => false,
                Reason::Other => open.has_talked,
            };
        }
    }

    fn settle(&mut self, stop: Stop) {
        if let Stop::Question(call) = &stop {
            let open = self.open.entry(question(call)).or_insert(Open { reasons: 1, ..Open::default() });
            open.posed += 1;
            assert!(open.posed <= open.reasons, "{:?} comes again without need: {open:?}", question(call));
        }
        self.stop = stop;
    }

    /// What somebody writes who wants to get through: a lesson's name at the menu, else to go on.
    fn way_on(&self) -> &'static str {
        let is_chosen = self.chat.asked().keys().any(|question| question != "Which lesson would you like?");
        if is_chosen { GO_ON[0] } else { "fractions" }
    }

    /// True when the last plan has no verdict yet.
    fn plan_waits(&self) -> bool {
        let is_plan = |message: &Message| {
            message.as_assistant().is_some_and(|answer| answer.tool_calls().any(|call| call.name == PLAN_INIT))
        };
        let Some(at) = self.chat.messages.iter().rposition(is_plan) else { return false };
        let is_verdict = |message: &Message| match message {
            Message::User(user) => user.content.text().starts_with("The learner accepted the plan"),
            _ => false,
        };
        !self.chat.messages[at..].iter().any(is_verdict)
    }

    fn is_over(&self) -> bool {
        self.chat.said().contains("You have worked through")
    }
}

/// Words that only machines say.
const MACHINE: [&str; 20] = [
    "probe",
    "plan_init",
    "probe_done",
    "plan_progress",
    "ask_user_question",
    "block id",
    "blockid",
    "tool",
    "pack",
    "handoff",
    "handover",
    "json",
    "null",
    "payload",
    "schema",
    "dialect",
    "prober",
    "toolcall",
    "{}",
    "::",
];

/// All that the teacher has said and thought, and what its calls show.
fn shown(chat: &Chat) -> String {
    let mut shown = String::new();
    for answer in chat.messages.iter().filter_map(Message::as_assistant) {
        for block in &answer.content {
            let text = match (block.as_text(), block.as_tool_call()) {
                (Some(text), _) => text.to_owned(),
                (None, Some(call)) if call.name == PLAN_INIT => call.arguments["goal"].to_string(),
                (None, Some(call)) if call.name == JUDGE => call.arguments["reason"].to_string(),
                (None, _) => serde_json::to_value(block).unwrap()["thinking"].as_str().unwrap_or_default().to_owned(),
            };
            shown.push_str(&text);
            shown.push('\n');
        }
    }
    shown
}

/// The prose, with what stands in code taken out.
fn without_code(text: &str) -> String {
    let fenceless: String = text.split("```").step_by(2).collect();
    fenceless.split('`').step_by(2).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_learners_do_the_lesson_ends_and_nothing_is_asked_more_often_than_needed(
        first in prop::sample::select(vec!["Hello", "Teach me fractions", "Rust ownership, but skip slices"]),
        moves in prop::collection::vec(a_move(), 0..60),
    ) {
        let mut learner = Learner::new(first);
        for choice in &moves {
            learner.take(choice);
        }
        // From here on it is somebody who wants to get through.
        for _ in 0..90 {
            if learner.is_over() {
                break;
            }
            learner.take(&Move::Right);
        }
        prop_assert!(learner.is_over(), "{}", learner.chat.last_text());
        let shown = without_code(&shown(&learner.chat)).to_lowercase();
        for word in MACHINE {
            prop_assert!(!shown.contains(word), "{word}: {shown}");
        }
    }
}
