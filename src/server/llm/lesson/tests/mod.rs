//! A chat that is played against the teacher by hand, and the tests that use it: `course` (whole lessons), `learners` (of
//! all kinds, at random), `listening` (free words) and `stream` (the dialect). `changes` has notes on a plan, `packs` files.

mod changes;
mod course;
mod learners;
mod listening;
mod packs;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::app::native::marker::Assessment;
use crate::app::native::plan::{PLAN_INIT, PLAN_PROGRESS, PROBE_DONE};
use crate::app::native::question::{ASK, QUIZ, Question, QuizKind, Verdict, grade, unanswered};
use crate::app::native::{Answer, Marker, Message, Plan, ToolCall, ToolResultMessage};

use super::super::ToolSpec;
use super::judge::JUDGE;
use super::pack::{ANY, PackQuiz};
use super::*;

/// What a learner does with a question.
#[derive(Clone, Debug)]
enum Reply {
    Right,
    /// The wrong option of this place, going round; for short answers the remedy of this place.
    Wrong(usize),
    Options(Vec<String>),
    Words(String),
    DontKnow,
    Skip,
    /// Writes this instead of answering.
    Text(String),
}

/// A chat that is played by hand, as the server would run it.
struct Chat {
    packs: Arc<Packs>,
    messages: Vec<Message>,
    is_probe: bool,
    /// Results carry their details; else only their text.
    details: bool,
}

/// Where a run stops.
#[derive(Debug)]
enum Stop {
    Question(ToolCall),
    Plan(Plan),
    End(String),
}

impl Chat {
    fn new(first: &str) -> Self {
        static PACKS: LazyLock<Arc<Packs>> = LazyLock::new(|| Arc::new(Packs::built_in().0));
        let packs = PACKS.clone();
        Self { packs, messages: vec![Message::user(first, 0)], is_probe: true, details: true }
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let names: &[&str] =
            if self.is_probe { &[QUIZ, ASK, PROBE_DONE] } else { &[QUIZ, ASK, PLAN_INIT, PLAN_PROGRESS, JUDGE] };
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: json!({}),
            ..ToolSpec::default()
        };
        names.iter().map(tool).collect()
    }

    fn next(&self) -> AssistantMessage {
        let content = play(&self.packs, &self.messages, &self.tools());
        assert_eq!(content, play(&self.packs, &self.messages, &self.tools()), "the same request, the same answer");
        let has_calls = content.iter().any(|block| block.as_tool_call().is_some());
        let stop_reason = if has_calls { StopReason::ToolUse } else { StopReason::Stop };
        AssistantMessage { content, stop_reason, ..AssistantMessage::default() }
    }

    /// Plays until the learner is asked something, or nothing follows.
    fn run(&mut self) -> Stop {
        for _ in 0..20 {
            let answer = self.next();
            assert!(!answer.text().trim().is_empty(), "an answer says something");
            let calls: Vec<ToolCall> = answer.tool_calls().cloned().collect();
            self.check_ids(&calls);
            self.messages.push(Message::Assistant(answer.clone()));
            for call in &calls {
                match call.name.as_str() {
                    QUIZ | ASK => {
                        Question::from_args(&call.name, &call.arguments).unwrap();
                        return Stop::Question(call.clone());
                    }
                    PLAN_INIT => {
                        let plan = Plan::from_args(&call.arguments).unwrap();
                        self.result(call, "The plan is up.", None);
                        return Stop::Plan(plan);
                    }
                    PROBE_DONE => {
                        self.result(call, "Handed over.", None);
                        let assessment = serde_json::from_value(call.arguments["assessment"].clone()).unwrap();
                        self.is_probe = false;
                        self.marker(Marker::ProbeHandoff { assessment });
                    }
                    PLAN_PROGRESS | JUDGE => self.result(call, "Noted.", None),
                    other => panic!("there is no tool {other}"),
                }
            }
            if calls.is_empty() {
                return Stop::End(answer.text());
            }
        }
        panic!("a run of more than 20 turns")
    }

    fn check_ids(&self, calls: &[ToolCall]) {
        let made = self.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls);
        let mut seen: BTreeSet<&str> = made.map(|call| call.id.as_str()).collect();
        for call in calls {
            assert!(call.id.len() <= 55 && seen.insert(&call.id), "{}", call.id);
        }
    }

    fn result(&mut self, call: &ToolCall, text: &str, details: Option<Value>) {
        self.messages.push(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Block::text(text)],
            details,
            usage: None,
            is_error: false,
            timestamp: 0,
            extra: Map::new(),
        }));
    }

    fn refuse(&mut self, call: &ToolCall, text: &str) {
        self.result(call, text, None);
        let Some(Message::ToolResult(result)) = self.messages.last_mut() else { unreachable!() };
        result.is_error = true;
    }

    fn marker(&mut self, marker: Marker) {
        let Message::Custom(custom) = marker.into_message(String::new(), 0) else { unreachable!() };
        self.messages.push(Message::user(custom.content.text(), 0));
    }

    fn verdict(&mut self, accepted: bool, note: Option<&str>) -> Stop {
        self.marker(Marker::PlanVerdict { accepted, note: note.map(str::to_owned) });
        self.run()
    }

    fn text(&mut self, text: &str) -> Stop {
        self.messages.push(Message::user(text, 0));
        self.run()
    }

    fn reply(&mut self, call: &ToolCall, reply: &Reply) -> Stop {
        let question = Question::from_args(&call.name, &call.arguments).unwrap();
        let graded = match reply {
            Reply::Text(_) => unanswered(&question, Verdict::NotAnswered),
            Reply::Skip => unanswered(&question, Verdict::Skipped),
            Reply::Right | Reply::Wrong(_) | Reply::Options(_) | Reply::Words(_) | Reply::DontKnow => {
                grade(&question, &self.answer(&question, reply))
            }
        };
        let details = self.details.then(|| serde_json::to_value(&graded).unwrap());
        self.result(call, &graded.for_model(), details);
        match reply {
            Reply::Text(text) => self.text(text),
            _ => self.run(),
        }
    }

    fn answer(&self, question: &Question, reply: &Reply) -> Answer {
        let options = |values: Vec<String>| Answer { values, ..Answer::default() };
        let words = |text: String| Answer { text: Some(text), ..Answer::default() };
        match (question, reply) {
            (_, Reply::DontKnow) => Answer { dont_know: true, ..Answer::default() },
            (_, Reply::Options(values)) => options(values.clone()),
            (_, Reply::Words(text)) => words(text.clone()),
            (Question::Ask(ask), _) => options(vec![ask.options[0].clone()]),
            (Question::Quiz(quiz), Reply::Wrong(at)) => {
                let wrong: Vec<_> = quiz.options.iter().filter(|option| !quiz.correct.contains(option)).collect();
                if quiz.kind == QuizKind::Short {
                    let remedies = self.quiz(&quiz.question).map(|quiz| quiz.remedies).unwrap_or_default();
                    let keys: Vec<_> = remedies.keys().filter(|key| *key != ANY).collect();
                    let key = keys.get(at % (keys.len() + 1)).map_or("something else", |key| key.as_str());
                    return words(key.to_owned());
                }
                let mut chosen = vec![wrong[at % wrong.len()].clone()];
                if quiz.kind == QuizKind::Multi && at % 2 == 1 {
                    chosen.extend(quiz.correct.clone());
                }
                options(chosen)
            }
            (Question::Quiz(quiz), _) if quiz.kind == QuizKind::Short => words(quiz.correct[0].clone()),
            (Question::Quiz(quiz), _) => options(quiz.correct.clone()),
        }
    }

    fn quiz(&self, question: &str) -> Option<PackQuiz> {
        let all = self.packs.all().iter().flat_map(Pack::quizzes).map(|(_, quiz)| quiz);
        all.into_iter().find(|quiz| quiz.question == question).cloned()
    }

    fn pack(&self, slug: &str) -> Pack {
        self.packs.all().iter().find(|pack| pack.slug == slug).unwrap().clone()
    }

    /// Plays to the end with one policy, accepting the first plan.
    fn play_through(&mut self, policy: &dyn Fn(&ToolCall, usize) -> Reply) -> String {
        let mut stop = self.run();
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            stop = match stop {
                Stop::End(text) => return text,
                Stop::Plan(_) => self.verdict(true, None),
                Stop::Question(call) => {
                    let times = asked.entry(question(&call)).or_default();
                    *times += 1;
                    let reply = policy(&call, *times);
                    self.reply(&call, &reply)
                }
            };
            assert!(self.messages.len() < 1000, "an endless lesson");
        }
    }

    fn said(&self) -> String {
        let texts = self.messages.iter().filter_map(Message::as_assistant).map(AssistantMessage::text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// How often each question was asked.
    fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        let calls = self.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls);
        for call in calls.filter(|call| Question::is_question(&call.name)) {
            *asked.entry(question(call)).or_default() += 1;
        }
        asked
    }

    fn last_text(&self) -> String {
        self.messages.iter().rev().find_map(Message::as_assistant).map(AssistantMessage::text).unwrap_or_default()
    }
}

fn question(call: &ToolCall) -> String {
    call.arguments["question"].as_str().unwrap().to_owned()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.blocks.iter().map(|block| block.id.as_str()).collect()
}

/// A chat whose first plan waits for its verdict.
fn at_plan(first: &str, reply: &Reply) -> (Chat, Plan) {
    let mut chat = Chat::new(first);
    let mut stop = chat.run();
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, reply);
    }
    match stop {
        Stop::Plan(plan) => (chat, plan),
        other => panic!("{other:?}"),
    }
}
