//! The first questions: which lesson the learner wants, what they know of it already, and the handing over.

use std::collections::BTreeSet;

use serde_json::json;

use crate::app::native::marker::Assessment;
use crate::app::native::plan::PROBE_DONE;
use crate::app::native::question::{ASK, Verdict};

use super::heard::{Heard, heard};
use super::history::{Answered, Entry, History, Outcome};
use super::pack::{Pack, ProbeItem, ProbeQuiz};
use super::plan::Planner;
use super::reply::{Again, Listener, WAITS, Waiting, again};
use super::shelf::{Packs, score};
use super::step::Step;
use super::words::{Set, list, words};

/// The question that offers the lessons.
pub(super) const OFFER: &str = "Which lesson would you like?";

/// How a probe's question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Known,
    Shaky,
    Unknown,
}

/// The lesson that this chat is about, as far as it has been chosen: by a text, by an answer to the offer, or because
/// its questions are being asked. Until the handoff a text that asks for another one changes it.
pub(super) fn chosen<'p>(packs: &'p Packs, history: &History<'_>) -> Option<&'p Pack> {
    let mut chosen: Option<&Pack> = None;
    let mut is_settled = false;
    for entry in &history.entries {
        let found = match entry {
            Entry::Learner(text) => packs
                .find(text)
                .filter(|_| !is_settled || chosen.is_none())
                .filter(|found| chosen.is_none_or(|current| current.slug == found.slug || score(current, text) == 0)),
            Entry::Call(call) => match (&call.outcome, call.question()) {
                (Outcome::Answered(answered), Some(OFFER)) if chosen.is_none() => named(packs, answered),
                (_, Some(question)) => packs.all().iter().find(|pack| asks(pack, question)),
                (_, None) => None,
            },
            Entry::Handoff(assessment) => {
                is_settled = true;
                chosen.is_none().then(|| packs.find(&about(assessment))).flatten()
            }
            Entry::Accepted(_) | Entry::Changes(_) => {
                is_settled = true;
                None
            }
            Entry::Hint | Entry::Objection | Entry::Steer(_) | Entry::Aside | Entry::Said => None,
        };
        chosen = found.or(chosen);
    }
    chosen
}

/// The lesson that an answer to an offer names.
pub(super) fn named<'p>(packs: &'p Packs, answered: &Answered) -> Option<&'p Pack> {
    let answer = &answered.answer;
    let words = answer.values.iter().map(String::as_str).chain(answer.other.as_deref()).chain(answer.text.as_deref());
    words.into_iter().find_map(|words| packs.titled(words).or_else(|| packs.find(words)))
}

fn asks(pack: &Pack, question: &str) -> bool {
    pack.probe.iter().any(|item| item.question() == question)
        || pack.quizzes().any(|(_, quiz)| quiz.question == question)
}

fn about(assessment: &Assessment) -> String {
    let concepts = assessment.known.iter().chain(&assessment.shaky).chain(&assessment.unknown);
    let mut text = assessment.goal.clone();
    for concept in concepts {
        text.push_str(". ");
        text.push_str(concept);
    }
    text
}

/// Offers the lessons, as no word of the learner named one yet.
pub(super) fn offer(packs: &Packs, history: &History<'_>, can_ask: bool) -> Step {
    let offers: Vec<_> = history.posed(OFFER).collect();
    let titles: Vec<&str> = packs.all().iter().map(|pack| pack.title.as_str()).collect();
    if titles.is_empty() {
        return Step::thinking("There is no lesson that I could play.").say(
            "I am a scripted teacher, and there is no lesson here that I could play. Put a lesson into the folder \
             for lessons, or set a key for a real model; the README says how.",
        );
    }
    let new = history.new_texts();
    let skipped = offers.last().and_then(|call| call.answered()).is_some_and(|last| last.verdict == Verdict::Skipped);
    let stops = new.last().is_some_and(|text| heard(text) == Heard::Stop);
    if skipped && new.is_empty() || stops {
        return Step::thinking("The learner wants none of the lessons now, so I wait for a word from them.")
            .say(format!("All right, no lesson for now. When you want one, write its name: {}.", list(&titles)));
    }
    let greets = history.entries.iter().all(|entry| match entry {
        Entry::Learner(text) => heard(text) != Heard::Other,
        _ => true,
    });
    let step = if offers.is_empty() {
        let menu: Vec<String> =
            packs.all().iter().map(|pack| format!("- **{}**: {}", pack.title, pack.summary)).collect();
        let missing = if greets { "" } else { ", and I don't find your topic among them" };
        Step::thinking("Nothing the learner wrote names one of my lessons. I say what I am and offer what I have.")
            .say(format!(
                "{}I am learnharness's built-in teacher, and I am scripted: no AI model is at work. I teach only what my \
                 lessons hold{missing}. These are the lessons:",
                if greets { "Hello! " } else { "" }
            ))
            .say(menu.join("\n"))
            .say("For any other topic a real model is needed: set a key for one, as the README describes.")
    } else {
        Step::thinking("That names none of my lessons either, so I offer them again.").say(format!(
            "That isn't one of my lessons, and I can't make up a new one. What I have: {}. A real model (set a key; see \
             the README) can teach anything.",
            list(&titles)
        ))
    };
    if !can_ask || again(history, OFFER) == Again::Wait {
        return step.say("Write the name of the one that you want.");
    }
    step.call("offer", ASK, json!({"question": OFFER, "options": titles, "multiSelect": false, "allowOther": true}))
}

/// The next step of the probe of the chosen lesson.
pub(super) fn next(planner: Planner<'_>) -> Step {
    let Planner { pack, history, .. } = planner;
    let open = pack.probe.iter().enumerate().find(|(_, item)| history.answers(item.question()).is_empty());
    match open {
        Some((at, item)) if !wants_no_more(history) => pose(planner, at, item),
        Some(_) | None => finish(pack, history),
    }
}

/// True when the learner has asked to be spared the rest of these questions.
fn wants_no_more(history: &History<'_>) -> bool {
    let mut was_asked = false;
    history.entries.iter().any(|entry| match entry {
        Entry::Call(call) => {
            was_asked |= call.question().is_some_and(|question| question != OFFER);
            false
        }
        Entry::Learner(text) => was_asked && declines_questions(text),
        _ => false,
    })
}

fn declines_questions(text: &str) -> bool {
    let words = words(text);
    let declines = Set("skip no without enough stop").is_in(&words) && Set("questions quiz quizzes").is_in(&words);
    let begins = Set("just straight simply directly").is_in(&words) && Set("start begin teach").is_in(&words);
    (declines || begins) && words.len() <= 10
}

fn pose(planner: Planner<'_>, at: usize, item: &ProbeItem) -> Step {
    let Planner { packs, pack, history } = planner;
    let has_begun = pack.probe.iter().any(|item| history.posed(item.question()).next().is_some());
    if !has_begun {
        return Step::thinking(format!("The learner wants \"{}\". First I find out what they know already.", pack.title))
            .say(format!(
                "**{}** it is. One thing beforehand: I am a scripted teacher and follow a written lesson; no AI model is at \
                 work.",
                pack.title
            ))
            .say(&pack.opening)
            .call(item.id(), item.tool(), item.args());
    }
    let options: &[String] = match item {
        ProbeItem::Ask(wish) => &wish.options,
        ProbeItem::Quiz(quiz) => &quiz.options,
    };
    let is_open = history.is_open(item.question());
    let reply = || {
        if planner.early_wishes(&history.new_texts()).is_some() {
            return Some("I have noted that for the plan.".to_owned());
        }
        let waiting = if is_open { Waiting::Probe(options) } else { Waiting::Nothing };
        Listener { history, packs, pack, waiting }.reply()
    };
    if is_open {
        let step = Step::thinking("The question has no answer yet.");
        return match again(history, item.question()) {
            Again::Stop => step.say("All right, we stop here. When you want to take it up again, write \"go on\"."),
            Again::Wait => step.maybe_say(reply()).say(WAITS),
            Again::Pose => {
                step.maybe_say(reply()).say("Here is the question again.").call(item.id(), item.tool(), item.args())
            }
        };
    }
    let last = history.fresh_answer().map(|(_, answered)| answered.verdict);
    let left = pack.probe.len() - at;
    Step::thinking("I note the answer without a word on right or wrong; the teaching comes after the plan.")
        .maybe_say(reply())
        .say(format!("{} {}", respect(last, at), ahead(left)))
        .call(item.id(), item.tool(), item.args())
}

/// A word on the answer that gives nothing away.
fn respect(verdict: Option<Verdict>, at: usize) -> &'static str {
    match verdict {
        Some(Verdict::DontKnow) if at.is_multiple_of(2) => "Thank you for saying so; that tells me where to begin.",
        Some(Verdict::DontKnow) => "That is a useful answer.",
        Some(Verdict::Skipped) => "Skipped, no problem.",
        Some(Verdict::Noted) => "Thank you, good to know.",
        Some(Verdict::Correct | Verdict::Wrong | Verdict::Open) if at.is_multiple_of(2) => {
            "Thank you, I have noted that."
        }
        Some(Verdict::Correct | Verdict::Wrong | Verdict::Open) => "Noted.",
        Some(Verdict::NotAnswered) | None => "Let us go on.",
    }
}

fn ahead(left: usize) -> String {
    match left {
        1 => "The last of these questions:".to_owned(),
        2 => "Two questions are left:".to_owned(),
        _ => "The next question:".to_owned(),
    }
}

fn finish(pack: &Pack, history: &History<'_>) -> Step {
    if history.calls().any(|call| call.name == PROBE_DONE && call.outcome == Outcome::Done) {
        return Step::thinking("The first questions are over already.")
            .say("The questions are done; the plan comes next.");
    }
    let (refusals, reason) = history.refusals(PROBE_DONE);
    if refusals >= 2 {
        return Step::thinking(format!("The plan can't begin: {}", reason.unwrap_or("no reason was given.")))
            .say("I can't go on to the plan, because that was refused twice. Write anything to let me try again.");
    }
    let assessment = assess(pack, history);
    let is_cut_short = pack.probe.iter().any(|item| history.answers(item.question()).is_empty());
    let said = if is_cut_short {
        "All right, no more of these questions. I make a plan from what I have."
    } else {
        "Thank you, that was the last of these questions. Next I make a plan from your answers."
    };
    Step::thinking("I sum up what the answers showed and go on to the plan.").say(said).call(
        "probe-done",
        PROBE_DONE,
        json!({"assessment": assessment}),
    )
}

/// What the probe found about one of its questions; from the handoff when the answer itself is not at hand.
pub(super) fn finding(probe: &ProbeQuiz, history: &History<'_>) -> Finding {
    if let Some(last) = history.answers(&probe.question).last() {
        return match last.verdict {
            Verdict::Correct => Finding::Known,
            Verdict::Wrong | Verdict::Open | Verdict::Noted => Finding::Shaky,
            Verdict::DontKnow | Verdict::Skipped | Verdict::NotAnswered => Finding::Unknown,
        };
    }
    let holds = |list: &[String]| list.contains(&probe.concept);
    match history.assessment() {
        Some(assessment) if holds(&assessment.known) => Finding::Known,
        Some(assessment) if holds(&assessment.shaky) => Finding::Shaky,
        Some(_) | None => Finding::Unknown,
    }
}

/// Sums up the probe. A concept of several questions counts as its weakest answer.
pub(super) fn assess(pack: &Pack, history: &History<'_>) -> Assessment {
    let mut seen = BTreeSet::new();
    let mut concepts = |wanted: Finding| -> Vec<String> {
        let found = pack.probes().filter(|probe| finding(probe, history) == wanted);
        found.map(|probe| probe.concept.clone()).filter(|concept| seen.insert(concept.clone())).collect()
    };
    let (unknown, shaky) = (concepts(Finding::Unknown), concepts(Finding::Shaky));
    let known = concepts(Finding::Known);
    Assessment { known, shaky, unknown, goal: purpose(pack, history).unwrap_or_else(|| pack.goal.clone()) }
}

/// What the learner said that they want the lesson for.
fn purpose(pack: &Pack, history: &History<'_>) -> Option<String> {
    let wishes = pack.probe.iter().filter_map(|item| match item {
        ProbeItem::Ask(wish) => Some(wish.question.as_str()),
        ProbeItem::Quiz(_) => None,
    });
    let shown: Vec<String> = wishes
        .filter_map(|question| Some(history.answers(question).last()?.answer.shown()))
        .filter(|shown| !shown.trim().is_empty())
        .collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}
