//! A teacher behind a provider's API who plays a small course from what each request holds and from nothing else: the same
//! conversation gets the same answer, so that a run that was cut goes on where it stood.

use std::collections::HashMap;

use serde_json::{Value, json};

/// What a request says of the conversation, in either API.
pub(super) struct Heard {
    /// The tools are the prober's.
    pub(super) probes: bool,
    pub(super) turns: Vec<Said>,
}

pub(super) enum Said {
    Learner(String),
    Teacher { text: String, calls: Vec<Call> },
    Result { id: String, text: String },
}

pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: Value,
}

/// What the teacher says next.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) thought: Option<String>,
    pub(super) sentences: Vec<String>,
    /// The sentences come one by one, and not all at once.
    pub(super) slow: bool,
    /// Names and arguments.
    pub(super) calls: Vec<(&'static str, Value)>,
}

/// Sentences of a slow answer.
const LONG: usize = 60;
const BLOCKS: [&str; 2] = ["first", "second"];
/// What comes in the place of an answer when there is none.
const NO_ANSWER: [&str; 2] = ["Not answered", "interrupted"];

/// The teacher's next words and calls.
pub(super) fn play(heard: &Heard) -> Answer {
    let course = Course::of(heard);
    let mut answer = if heard.probes { course.probe() } else { course.teach() };
    answer.sentences = rest(heard, &answer);
    answer
}

/// The sentences of an answer that are not said yet: one that was cut off is gone on with.
fn rest(heard: &Heard, answer: &Answer) -> Vec<String> {
    let total = if answer.slow { LONG } else { 2 };
    let mut said = 0;
    for turn in heard.turns.iter().rev() {
        match turn {
            Said::Teacher { text, calls } if calls.is_empty() => said = said.max(sentences(text)),
            Said::Learner(text) if text.contains("You were cut off") || text == "Go on." => {}
            Said::Learner(_) | Said::Teacher { .. } | Said::Result { .. } => break,
        }
    }
    // Whoever has said all says something all the same: an answer without words is none.
    let from = said.min(total - 1);
    (from + 1..=total).map(|nth| format!("Sentence {nth} says more than the one before it. ")).collect()
}

/// The number of the last whole sentence.
fn sentences(text: &str) -> usize {
    let whole = text.match_indices("Sentence ").filter(|(at, _)| text[*at..].contains("before it."));
    whole.filter_map(|(at, word)| text[at + word.len()..].split(' ').next()?.parse().ok()).max().unwrap_or(0)
}

/// How far a conversation is.
#[derive(Default)]
struct Course<'a> {
    /// Quizzes by their concept, each with its id and its answer.
    quizzes: HashMap<&'a str, (&'a str, Option<&'a str>)>,
    judged: Vec<&'a str>,
    /// Blocks with their status.
    progress: Vec<(&'a str, &'a str)>,
    planned: bool,
    accepted: bool,
}

impl<'a> Course<'a> {
    fn of(heard: &'a Heard) -> Self {
        let mut course = Self::default();
        let mut calls: HashMap<&str, &Call> = HashMap::new();
        for turn in &heard.turns {
            match turn {
                Said::Teacher { calls: made, .. } => calls.extend(made.iter().map(|call| (call.id.as_str(), call))),
                Said::Result { id, text } => {
                    if let Some(call) = calls.get(id.as_str()) {
                        course.settle(call, text);
                    }
                }
                Said::Learner(text) => course.hear(text),
            }
        }
        course
    }

    fn hear(&mut self, text: &str) {
        if text.contains("asks for changes to the plan") {
            self.planned = false;
        }
        self.accepted |= text.contains("The learner accepted the plan");
    }

    fn settle(&mut self, call: &'a Call, text: &'a str) {
        let arg = |name: &str| call.args[name].as_str().unwrap_or_default();
        let is_answer = !NO_ANSWER.iter().any(|words| text.contains(words));
        match call.name.as_str() {
            "quiz" => {
                let answer = is_answer.then_some(text);
                let known = self.quizzes.entry(arg("concept")).or_insert((&call.id, answer));
                if known.1.is_none() {
                    *known = (&call.id, answer);
                }
            }
            "judge" if text.contains("is judged") => self.judged.push(arg("toolCallId")),
            "plan_init" if text.contains("The plan is shown") => self.planned = true,
            "plan_progress" if text.contains("is started") || text.contains("is done") => {
                self.progress.push((arg("blockId"), arg("status")));
            }
            _ => {}
        }
    }

    fn probe(&self) -> Answer {
        for (nth, step) in [&["purpose"][..], &["sums", "products"], &["words"]].into_iter().enumerate() {
            let open: Vec<_> = step.iter().filter(|concept| !self.is_answered(concept)).collect();
            if !open.is_empty() {
                let calls = open.into_iter().map(|concept| ("quiz", quiz(concept))).collect();
                return Answer { slow: nth == 0, calls, ..Answer::default() };
            }
        }
        let assessment = json!({"known": ["sums"], "shaky": ["products"], "unknown": ["words"], "goal": "To go on."});
        Answer { calls: vec![("probe_done", json!({"assessment": assessment}))], ..Answer::default() }
    }

    fn teach(&self) -> Answer {
        if !self.planned {
            let block = |id: &&str| json!({"id": id, "title": id, "objective": "To know it.", "concepts": [id]});
            let blocks: Vec<Value> = BLOCKS.iter().map(block).collect();
            let plan = json!({"title": "A plan", "goal": "To go on.", "blocks": blocks});
            let thought = Some("What comes first, and what comes then?".to_owned());
            return Answer { thought, slow: true, calls: vec![("plan_init", plan)], ..Answer::default() };
        }
        if !self.accepted {
            return Answer::default();
        }
        let next = BLOCKS.iter().position(|block| !self.has("done", block));
        next.map_or_else(Answer::default, |nth| self.block(nth))
    }

    fn block(&self, nth: usize) -> Answer {
        let block = BLOCKS[nth];
        if !self.has("started", block) {
            let calls = vec![("plan_progress", json!({"blockId": block, "status": "started"}))];
            return Answer { calls, ..Answer::default() };
        }
        if nth == 0 && !self.quizzes.contains_key("broken") {
            let mut broken = quiz("broken");
            broken["options"] = json!(["same", "same"]);
            return Answer { calls: vec![("quiz", broken)], ..Answer::default() };
        }
        match self.quizzes.get(block) {
            Some((id, Some(answer))) if answer.contains("Judge it") && !self.judged.contains(id) => {
                let judgement = json!({"toolCallId": id, "verdict": "correct", "reason": "It means the same."});
                Answer { calls: vec![("judge", judgement)], ..Answer::default() }
            }
            Some((_, Some(_))) => {
                let mut calls = vec![("plan_progress", json!({"blockId": block, "status": "done"}))];
                let begin = |block: &&str| ("plan_progress", json!({"blockId": block, "status": "started"}));
                calls.extend(BLOCKS.get(nth + 1).map(begin));
                Answer { calls, ..Answer::default() }
            }
            Some((_, None)) | None => {
                let thought = Some("An example before the rule.".to_owned());
                Answer { thought, slow: true, calls: vec![("quiz", quiz(block))], ..Answer::default() }
            }
        }
    }

    fn is_answered(&self, concept: &str) -> bool {
        self.quizzes.get(concept).is_some_and(|(_, answer)| answer.is_some())
    }

    fn has(&self, status: &str, block: &str) -> bool {
        self.progress.contains(&(block, status))
    }
}

/// A question about a concept: short ones where an answer may be open, else one of three.
fn quiz(concept: &str) -> Value {
    let question = format!("What is right about {concept}?");
    if ["words", BLOCKS[1]].contains(&concept) {
        return json!({"question": question, "kind": "short", "correct": ["right"], "concept": concept});
    }
    json!({"question": question, "kind": "single", "options": ["right", "wrong", "neither"], "correct": ["right"], "concept": concept})
}

#[test]
fn a_teacher_who_was_cut_off_goes_on_behind_the_last_whole_sentence() {
    let learner = |text: &str| Said::Learner(text.to_owned());
    let cut = "Sentence 1 says more than the one before it. Sentence 2 says more than the one before it. Sentence 3 sa";
    let turns = vec![
        learner("Hi"),
        Said::Teacher { text: cut.to_owned(), calls: Vec::new() },
        learner("You were cut off after the words above; go on from there."),
    ];
    let answer = play(&Heard { probes: true, turns });
    assert!(answer.sentences[0].starts_with("Sentence 3 "), "{answer:?}");
    assert_eq!((answer.sentences.len(), answer.calls.len()), (LONG - 2, 1));
}

#[test]
fn a_question_that_was_closed_is_asked_again_and_one_with_an_answer_is_not() {
    let asked = |id: &str, concept: &str| Said::Teacher {
        text: String::new(),
        calls: vec![Call { id: id.to_owned(), name: "quiz".to_owned(), args: quiz(concept) }],
    };
    let result = |id: &str, text: &str| Said::Result { id: id.to_owned(), text: text.to_owned() };
    let mut heard = Heard { probes: true, turns: vec![asked("a", "purpose"), result("a", "Not answered; …")] };
    assert_eq!(play(&heard).calls[0].1["concept"], "purpose");
    heard.turns.extend([asked("b", "purpose"), result("b", "The learner answered: right")]);
    let concepts: Vec<_> = play(&heard).calls.into_iter().map(|(_, args)| args["concept"].clone()).collect();
    assert_eq!(concepts, ["sums", "products"]);
}
