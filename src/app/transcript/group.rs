//! Makes the units of a transcript: one forward pass over the record and the open tail.
//!
//! Assistant and toolResult messages that follow each other are one unit, across runs too: an answered question goes on
//! in the unit that asked it. User messages bound units, and so do the markers that have cards of their own: verdict,
//! handoff, steer, interruption, and custom messages that are not ours. The other markers bound nothing: `plan-block` and
//! `notice` are quiet lines in the unit, `hint`, `objection` and `judgement` belong to their question's card, and `retry`
//! only hides the answer that it replaces.

use serde_json::Value;

use crate::app::native::message::{Block, KnownBlock};
use crate::app::native::plan::PLAN_INIT;
use crate::app::native::question::Question;
use crate::app::native::view::Pending;
use crate::app::native::{
    AssistantMessage, Content, CustomMessage, Marker, Message, Plan, Seq, StopReason, Stored, ToolCall,
    ToolResultMessage,
};
use crate::app::transcript::label::label;
use crate::app::transcript::live::{Execution, RunningTool, Tail};
use crate::app::transcript::scan;
use crate::app::transcript::unit::{
    Body, Judgement, Notice, Part, PartKey, Piece, PlanCard, PlanState, QuestionCard, QuestionState, Steer, ToolLine,
    ToolState, Unit, Who,
};

/// The units of a record and of what its run has said since.
#[must_use]
pub fn group(record: &[Stored], tail: &Tail) -> Vec<Unit> {
    let mut grouping = Grouping::default();
    for stored in record {
        grouping.push(stored.seq, &stored.message);
    }
    if let Some(open) = &tail.open {
        let seq = record.last().map_or(Seq::START, |stored| stored.seq).next();
        grouping.answer(seq, open, Stage::Open);
    }
    grouping.finish(&scan::pending(record), tail)
}

/// Whether an answer is whole or still streams.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Whole,
    Open,
}

/// What is said of a question after it was asked.
enum Remark {
    Hinted,
    Objection(String),
    Judgement(Judgement),
}

/// The state of the pass. A call without a result is a tool line that runs, until [`Grouping::finish`] knows better.
#[derive(Default)]
struct Grouping {
    units: Vec<Unit>,
    /// The last unit is the teacher's and goes on.
    going_on: bool,
    /// The answer whose first part needs a separator before it.
    step: Option<Seq>,
    /// The last answer that no user message has followed.
    batch: Option<Seq>,
    plan: Option<Plan>,
    remarks: Vec<(PartKey, Remark)>,
}

impl Grouping {
    fn push(&mut self, seq: Seq, message: &Message) {
        match message {
            Message::User(user) => {
                self.batch = None;
                let images = images(&user.content);
                self.card(seq, Who::Learner, Body::Said { text: user.content.text(), images });
            }
            Message::Assistant(answer) => self.answer(seq, answer, Stage::Whole),
            Message::ToolResult(result) if result.is_posed_placeholder() => {}
            Message::ToolResult(result) => self.settle(seq, result),
            Message::Custom(custom) => self.mark(seq, custom),
        }
    }

    fn answer(&mut self, seq: Seq, answer: &AssistantMessage, stage: Stage) {
        self.batch = Some(seq);
        self.go_on(seq);
        let said = self.units.last().is_some_and(|unit| !unit.parts.is_empty());
        self.step = said.then_some(seq);
        for index in shown(&answer.content) {
            let key = PartKey { seq, piece: Piece::Block(u32::try_from(index).unwrap_or(u32::MAX)) };
            if let Some(body) = block_body(answer, index, stage) {
                self.part(key, body);
            }
        }
        let words = answer.error_message.clone().unwrap_or_default();
        let end = match answer.stop_reason {
            StopReason::Error => Body::Failed { words, can_retry: false },
            StopReason::Aborted => Body::Stopped { words },
            StopReason::Length => Body::Notice(Notice::Length),
            StopReason::Pending | StopReason::Stop | StopReason::ToolUse => return,
        };
        self.part(PartKey { seq, piece: Piece::End }, end);
    }

    /// Makes the call's line what its result says. A result whose call is not there has a line of its own.
    fn settle(&mut self, seq: Seq, result: &ToolResultMessage) {
        let Some((unit, part)) = self.waiting(&result.tool_call_id) else {
            self.go_on(seq);
            let (id, name) = (result.tool_call_id.clone(), result.tool_name.clone());
            let call = ToolCall { id, name, arguments: Value::Null, ..ToolCall::default() };
            let line = tool_line(&call, ToolState::Running);
            return self.part(PartKey { seq, piece: Piece::Block(0) }, Body::Tool(Box::new(settled(line, result))));
        };
        let Body::Tool(line) = &self.units[unit].parts[part].body else { return };
        let body = if result.is_error {
            None
        } else if let Some(plan) = proposed(line) {
            self.supersede();
            self.plan = Some(plan.clone());
            let tool_call_id = result.tool_call_id.clone();
            Some(Body::Plan(Box::new(PlanCard { tool_call_id, plan, state: PlanState::Waiting })))
        } else {
            question_card(line, || answered(result)).map(|card| Body::Question(Box::new(card)))
        };
        let place = &mut self.units[unit].parts[part].body;
        match (body, place) {
            (Some(body), place) => *place = body,
            (None, Body::Tool(line)) => **line = settled((**line).clone(), result),
            (None, _) => {}
        }
    }

    /// A later plan takes the place of the one that waits or holds.
    fn supersede(&mut self) {
        for card in self.plan_cards() {
            if matches!(card.state, PlanState::Waiting | PlanState::Accepted) {
                card.state = PlanState::Superseded;
            }
        }
    }

    fn mark(&mut self, seq: Seq, custom: &CustomMessage) {
        let Some(marker) = Marker::read(custom) else {
            let text = custom.content.text();
            if custom.display && !text.trim().is_empty() {
                self.card(seq, Who::Lesson, Body::Note { text });
            }
            return;
        };
        match marker {
            Marker::ProbeHandoff { assessment } => self.card(seq, Who::Lesson, Body::Handoff(assessment)),
            Marker::PlanVerdict { accepted, note } => {
                self.decide(if accepted { PlanState::Accepted } else { PlanState::SentBack });
                self.card(seq, Who::Lesson, Body::Verdict { accepted, note });
            }
            Marker::PlanBlock { block_id, status } => {
                let blocks = self.plan.iter().flat_map(|plan| &plan.blocks);
                let title = blocks.filter(|block| block.id == block_id).map(|block| block.title.clone()).next();
                self.line(seq, Body::Progress { block_id, title, status });
            }
            Marker::Steer { job_id, kind, outcome, artifact_id, summary } => {
                self.card(seq, Who::Lesson, Body::Steer(Steer { job_id, kind, outcome, artifact_id, summary }));
            }
            Marker::Interrupted => self.interrupt(seq),
            Marker::Retry { replaces } => self.hide(replaces),
            Marker::Notice { kind } => self.line(seq, Body::Notice(kind.into())),
            Marker::Hint { tool_call_id } => self.remark(&tool_call_id, Remark::Hinted),
            Marker::Objection { tool_call_id, reason } => self.remark(&tool_call_id, Remark::Objection(reason)),
            Marker::Judgement { tool_call_id, verdict, reason } => {
                self.remark(&tool_call_id, Remark::Judgement(Judgement { verdict, reason }));
            }
        }
    }

    fn decide(&mut self, state: PlanState) {
        if let Some(card) = self.plan_cards().filter(|card| card.state == PlanState::Waiting).last() {
            card.state = state;
        }
    }

    /// The answer that was cut says so itself; it was not the learner who stopped it.
    fn interrupt(&mut self, seq: Seq) {
        let last = self.units.last_mut().filter(|_| self.going_on).and_then(|unit| unit.parts.last_mut());
        match last {
            Some(part) if matches!(part.body, Body::Stopped { .. }) => {
                part.body = Body::Notice(Notice::Interrupted);
                self.going_on = false;
            }
            _ => self.card(seq, Who::Lesson, Body::Notice(Notice::Interrupted)),
        }
    }

    /// Takes an answer out of view that was asked for again. The unit goes on without it.
    fn hide(&mut self, seq: Seq) {
        let Some(unit) = self.units.iter_mut().rev().find(|unit| unit.parts.iter().any(|part| part.key.seq == seq))
        else {
            return;
        };
        unit.parts.retain(|part| part.key.seq != seq);
        if self.units.last().is_some_and(|unit| unit.parts.is_empty()) {
            self.units.pop();
            self.going_on = false;
        }
    }

    fn remark(&mut self, call: &str, remark: Remark) {
        let mut parts = self.units.iter().rev().flat_map(|unit| unit.parts.iter().rev());
        if let Some(key) = parts.find(|part| part.body.tool_call_id() == Some(call)).map(|part| part.key) {
            self.remarks.push((key, remark));
        }
    }

    /// Opens the teacher's unit, if none goes on.
    fn go_on(&mut self, seq: Seq) {
        if !self.going_on {
            self.units.push(Unit { key: seq, who: Who::Teacher, parts: Vec::new() });
            self.going_on = true;
            self.step = None;
        }
    }

    /// A part of the unit that goes on.
    fn part(&mut self, key: PartKey, body: Body) {
        let Some(unit) = self.units.last_mut() else { return };
        if let Some(seq) = self.step.take() {
            unit.parts.push(Part { key: PartKey { seq, piece: Piece::Separator }, body: Body::Separator });
        }
        unit.parts.push(Part { key, body });
    }

    /// A quiet line in the unit that goes on; alone where none does.
    fn line(&mut self, seq: Seq, body: Body) {
        let part = Part { key: PartKey { seq, piece: Piece::Block(0) }, body };
        match self.units.last_mut() {
            Some(unit) if self.going_on => unit.parts.push(part),
            _ => self.units.push(Unit { key: seq, who: Who::Lesson, parts: vec![part] }),
        }
    }

    /// A unit of one part, which bounds the one before.
    fn card(&mut self, seq: Seq, who: Who, body: Body) {
        let part = Part { key: PartKey { seq, piece: Piece::Block(0) }, body };
        self.units.push(Unit { key: seq, who, parts: vec![part] });
        self.going_on = false;
    }

    /// The place of the last call of this id that has no result. Providers use ids again, so the search goes backwards.
    fn waiting(&self, call: &str) -> Option<(usize, usize)> {
        let waits = |part: &Part| matches!(&part.body, Body::Tool(line) if line.tool_call_id == call && line.state == ToolState::Running);
        let mut units = self.units.iter().enumerate().rev();
        units.find_map(|(index, unit)| unit.parts.iter().rposition(waits).map(|part| (index, part)))
    }

    fn plan_cards(&mut self) -> impl Iterator<Item = &mut PlanCard> {
        self.units.iter_mut().flat_map(|unit| &mut unit.parts).filter_map(|part| match &mut part.body {
            Body::Plan(card) => Some(&mut **card),
            _ => None,
        })
    }

    /// Settles what only the end of the record tells: who still waits, what runs, what can be retried.
    fn finish(mut self, pending: &[Pending], tail: &Tail) -> Vec<Unit> {
        let batch = self.batch;
        let runs = tail.running && self.going_on && tail.open.is_none();
        for part in self.units.iter_mut().flat_map(|unit| &mut unit.parts) {
            if let Body::Tool(line) = &mut part.body
                && line.state == ToolState::Running
            {
                let is_last = batch == Some(part.key.seq);
                let waits = is_last && pending.iter().any(|question| question.tool_call_id == line.tool_call_id);
                let state = || if waits { QuestionState::Pending } else { QuestionState::Closed };
                match question_card(line, state) {
                    Some(card) => part.body = Body::Question(Box::new(card)),
                    None if is_last && runs => execute(line, &tail.tools),
                    None => line.state = ToolState::Cut,
                }
            }
        }
        self.attach_remarks();
        self.units.retain(|unit| !unit.parts.is_empty());
        if !tail.running
            && let Some(last) = self.units.last_mut()
        {
            offer_retry(last);
        }
        self.units
    }

    fn attach_remarks(&mut self) {
        for (key, remark) in std::mem::take(&mut self.remarks) {
            let mut parts = self.units.iter_mut().rev().flat_map(|unit| unit.parts.iter_mut().rev());
            let Some(Body::Question(card)) = parts.find(|part| part.key == key).map(|part| &mut part.body) else {
                continue;
            };
            match remark {
                Remark::Hinted => card.hinted = true,
                Remark::Objection(reason) => card.objection = Some(reason),
                Remark::Judgement(judgement) => card.judgement = Some(judgement),
            }
        }
    }
}

fn images(content: &Content) -> usize {
    match content {
        Content::Text(_) => 0,
        Content::Blocks(blocks) => {
            blocks.iter().filter(|block| matches!(block, Block::Known(KnownBlock::Image(_)))).count()
        }
    }
}

/// The indices of the blocks that show, in the order in which they show. Some providers send one block of text and one of
/// thought, in either order: a thought that nothing follows goes before the text that it led to.
fn shown(content: &[Block]) -> Vec<usize> {
    let is_text = |&&index: &&usize| matches!(&content[index], Block::Known(KnownBlock::Text(_)));
    let is_thought = |&&index: &&usize| matches!(&content[index], Block::Known(KnownBlock::Thinking(_)));
    let shows = |&index: &usize| match &content[index] {
        Block::Known(KnownBlock::Text(block)) => !block.text.trim().is_empty(),
        Block::Known(KnownBlock::Thinking(block)) => !block.thinking.trim().is_empty(),
        Block::Known(KnownBlock::ToolCall(_)) => true,
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => false,
    };
    let mut order: Vec<usize> = (0..content.len()).filter(shows).collect();
    let thoughts = order.iter().rev().take_while(is_thought).count();
    let texts = order.iter().rev().skip(thoughts).take_while(is_text).count();
    let moved = order.len() - thoughts - texts;
    order[moved..].rotate_left(texts);
    order
}

fn block_body(answer: &AssistantMessage, index: usize, stage: Stage) -> Option<Body> {
    let open = stage == Stage::Open;
    let later = &answer.content[index + 1..];
    match &answer.content[index] {
        Block::Known(KnownBlock::Text(block)) => {
            let goes_on = later.iter().all(|block| matches!(block, Block::Known(KnownBlock::Thinking(_))));
            Some(Body::Prose { text: block.text.clone(), open: open && goes_on })
        }
        Block::Known(KnownBlock::Thinking(block)) => {
            Some(Body::Thinking { text: block.thinking.clone(), open: open && later.is_empty() })
        }
        Block::Known(KnownBlock::ToolCall(call)) => {
            let state = match answer.stop_reason {
                _ if open => ToolState::Writing,
                StopReason::Error | StopReason::Aborted => ToolState::Cut,
                StopReason::Pending | StopReason::Stop | StopReason::ToolUse | StopReason::Length => ToolState::Running,
            };
            Some(Body::Tool(Box::new(tool_line(call, state))))
        }
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => None,
    }
}

fn tool_line(call: &ToolCall, state: ToolState) -> ToolLine {
    ToolLine {
        tool_call_id: call.id.clone(),
        name: call.name.clone(),
        label: label(&call.name),
        args: call.arguments.clone(),
        state,
        text: String::new(),
    }
}

fn settled(line: ToolLine, result: &ToolResultMessage) -> ToolLine {
    let state = if result.is_error { ToolState::Failed } else { ToolState::Done };
    ToolLine { state, text: result.text(), ..line }
}

/// The card of a question call; none for other tools, and for arguments that make no question.
fn question_card(line: &ToolLine, state: impl FnOnce() -> QuestionState) -> Option<QuestionCard> {
    if !Question::is_question(&line.name) {
        return None;
    }
    let question = Question::from_args(&line.name, &line.args).ok()?;
    Some(QuestionCard {
        tool_call_id: line.tool_call_id.clone(),
        question,
        state: state(),
        hinted: false,
        objection: None,
        judgement: None,
    })
}

fn answered(result: &ToolResultMessage) -> QuestionState {
    let graded = result.details.as_ref().and_then(|details| serde_json::from_value(details.clone()).ok());
    graded.map_or_else(|| QuestionState::Told(result.text()), QuestionState::Answered)
}

fn proposed(line: &ToolLine) -> Option<Plan> {
    if line.name == PLAN_INIT { Plan::from_args(&line.args).ok() } else { None }
}

/// How far the run is with a call of its batch; it may not have come to it yet.
fn execute(line: &mut ToolLine, tools: &[RunningTool]) {
    let Some(tool) = tools.iter().find(|tool| tool.id == line.tool_call_id) else {
        return;
    };
    let (state, output) = match &tool.state {
        Execution::Running(output) => (ToolState::Running, output.as_ref()),
        Execution::Done(output) => (ToolState::Done, Some(output)),
        Execution::Failed(output) => (ToolState::Failed, Some(output)),
    };
    line.state = state;
    let texts = output.iter().flat_map(|output| &output.content).filter_map(Block::as_text);
    line.text = texts.collect::<Vec<_>>().join("\n");
}

/// An answer that failed can be asked for again while nothing but notices has come after it.
fn offer_retry(unit: &mut Unit) {
    let last = unit.parts.iter_mut().rev().find(|part| !matches!(part.body, Body::Notice(_)));
    if let Some(Body::Failed { can_retry, .. }) = last.map(|part| &mut part.body) {
        *can_retry = true;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::app::transcript::sample::{self, record};

    const QUIZ: &str = r#"{"question":"2 + 2?","kind":"single","options":["3","4"],"correct":["4"],"concept":"sums"}"#;
    const RIGHT: &str = r#"{"kind":"quiz","verdict":"correct","answer":{"values":["4"]},"correct":["4"]}"#;

    fn shown_as(record: &[Stored], tail: &Tail) -> String {
        group(record, tail).iter().map(ToString::to_string).collect()
    }

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&shown_as(&record(text), &Tail::default()));
    }

    #[test]
    fn calls_and_results_are_one_unit_with_a_line_between_the_steps() {
        check(
            "user hi\nteacher[toolUse] ~hm | Let me look. | ls#a {} | read#b {}\nresult ls#a notes.md\n\
             result! read#b No such file.\nteacher There it is.\nuser thanks\nteacher Gladly.",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: ~ hm
                  2-1: Let me look.
                  2-2: List a folder {} [Done] notes.md
                  2-3: Read a file {} [Failed] No such file.
                  5-step: ---
                  5-0: There it is.
                Learner 6
                  6-0: thanks
                Teacher 7
                  7-0: Gladly.
            "#]],
        );
    }

    #[test]
    fn a_result_finds_its_call_across_other_messages_and_the_last_one_of_its_id() {
        check(
            "teacher[toolUse] ls#a {\"path\":\"1\"}\nresult ls#a one\nteacher[toolUse] ls#a {\"path\":\"2\"}\n\
             marker notice {\"kind\":\"storage\"}\nuser wait\nresult ls#a two\nresult ls#z nobody's",
            &expect![[r#"
                Teacher 1
                  1-0: List a folder {"path":"1"} [Done] one
                  3-step: ---
                  3-0: List a folder {"path":"2"} [Done] two
                  4-0: notice Storage
                Learner 5
                  5-0: wait
                Teacher 7
                  7-0: List a folder null [Done] nobody's
            "#]],
        );
    }

    #[test]
    fn a_question_waits_and_its_answer_goes_on_in_the_same_unit() {
        let asked = format!("user hi\nteacher[toolUse] Try this. | quiz#q {QUIZ}");
        check(
            &asked,
            &expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: Try this.
              2-1: ? 2 + 2? [Pending]
        "#]],
        );
        check(
            &format!("{asked}\nresult quiz#q Right. @ {RIGHT}\nteacher Well done."),
            &expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: Try this.
              2-1: ? 2 + 2? [Correct: 4]
              4-step: ---
              4-0: Well done.
        "#]],
        );
    }

    #[test]
    fn a_question_that_was_not_posed_is_no_card() {
        check(
            "user hi\nteacher[toolUse] quiz#q {\"question\":7}\nresult! quiz#q No kind.\nteacher Sorry.",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: Quiz {"question":7} [Failed] No kind.
                  4-step: ---
                  4-0: Sorry.
            "#]],
        );
        check(
            &format!("user hi\nteacher[aborted] quiz#q {QUIZ}"),
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: Quiz {"question":"2 + 2?","kind":"single","options":["3","4"],"correct":["4"],"concept":"sums"} [Cut]
                  2-end: stopped ""
            "#]],
        );
    }

    #[test]
    fn a_question_that_was_overtaken_or_left_open_is_closed() {
        let unanswered = r#"{"kind":"quiz","verdict":"notAnswered","answer":{}}"#;
        check(
            &format!(
                "teacher[toolUse] quiz#q {QUIZ} | quiz#r {QUIZ}\nresult quiz#q Not answered. @ {unanswered}\nuser no"
            ),
            &expect![[r#"
                Teacher 1
                  1-0: ? 2 + 2? [NotAnswered: ]
                  1-1: ? 2 + 2? [Closed]
                Learner 3
                  3-0: no
            "#]],
        );
    }

    #[test]
    fn a_placeholder_is_no_answer() {
        check(
            &format!("teacher[toolUse] quiz#q {QUIZ}\nresult quiz#q Waiting. @ {{\"posed\":true}}"),
            &expect![[r#"
                Teacher 1
                  1-0: ? 2 + 2? [Pending]
            "#]],
        );
    }

    #[test]
    fn remarks_on_a_question_belong_to_its_card() {
        check(
            &format!(
                "teacher[toolUse] quiz#q {QUIZ}\nmarker hint {{\"toolCallId\":\"q\"}}\n\
                 marker objection {{\"toolCallId\":\"q\",\"reason\":\"unfair\"}}\nresult quiz#q Right. @ {RIGHT}\n\
                 teacher[toolUse] judge#j {{}}\nresult judge#j Noted.\n\
                 marker judgement {{\"toolCallId\":\"q\",\"verdict\":\"wrong\",\"reason\":\"units\"}}\nteacher Well."
            ),
            &expect![[r#"
                Teacher 1
                  1-0: ? 2 + 2? [Correct: 4] hinted objection: unfair judged wrong: units
                  5-step: ---
                  5-0: Judge an answer {} [Done] Noted.
                  8-step: ---
                  8-0: Well.
            "#]],
        );
    }

    #[test]
    fn a_plan_is_a_card_that_knows_its_verdict() {
        let proposed = |id| format!("{}\nresult plan_init#{id} Shown.", sample::plan_call(id, &["a", "b"]));
        check(
            &format!(
                "{}\nmarker plan-verdict {{\"accepted\":false,\"note\":\"shorter\"}}\n{}\n\
                 marker plan-verdict {{\"accepted\":true}}\nteacher[toolUse] plan_progress#s {{\"blockId\":\"a\"}}\n\
                 result plan_progress#s Noted.\nmarker plan-block {{\"blockId\":\"a\",\"status\":\"started\"}}\n\
                 teacher So:\n{}",
                proposed("p"),
                proposed("q"),
                proposed("r"),
            ),
            &expect![[r#"
                Teacher 1
                  1-0: plan "Fractions" [SentBack]
                Lesson 3
                  3-0: sent back shorter
                Teacher 4
                  4-0: plan "Fractions" [Superseded]
                Lesson 6
                  6-0: accepted 
                Teacher 7
                  7-0: Mark progress {"blockId":"a"} [Done] Noted.
                  9-0: block Block a [Started]
                  10-step: ---
                  10-0: So:
                  11-step: ---
                  11-0: plan "Fractions" [Waiting]
            "#]],
        );
    }

    #[test]
    fn handoff_steer_and_foreign_markers_are_cards_of_their_own() {
        check(
            "user hi\nteacher[toolUse] probe_done#p {\"goal\":\"g\"}\nresult probe_done#p Done.\n\
             marker probe-handoff {\"assessment\":{\"goal\":\"add\"}}\nteacher Hello.\n\
             marker steer {\"jobId\":\"j\",\"kind\":\"demo\",\"outcome\":\"done\",\"summary\":\"A slider.\"}\n\
             marker somebody-elses {\"silent\":true}\nteacher Look.",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: Finish the probe {"goal":"g"} [Done] Done.
                Lesson 4
                  4-0: handoff, goal "add"
                Teacher 5
                  5-0: Hello.
                Lesson 6
                  6-0: demo done: A slider.
                Teacher 8
                  8-0: Look.
            "#]],
        );
    }

    #[test]
    fn how_an_answer_ended_is_said_in_its_place() {
        check(
            "user hi\nteacher[aborted] Hel\nuser go\nteacher[length] Hello wor",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: Hel
                  2-end: stopped ""
                Learner 3
                  3-0: go
                Teacher 4
                  4-0: Hello wor
                  4-end: notice Length
            "#]],
        );
        check(
            "user hi\nteacher[aborted] Hel\nmarker interrupted\nteacher lo.",
            &expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: Hel
              2-end: notice Interrupted
            Teacher 4
              4-0: lo.
        "#]],
        );
        check(
            "user hi\nmarker interrupted\nteacher lo.",
            &expect![[r#"
            Learner 1
              1-0: hi
            Lesson 2
              2-0: notice Interrupted
            Teacher 3
              3-0: lo.
        "#]],
        );
        check(
            "user hi\nteacher[toolUse] ls#a {}",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: List a folder {} [Cut]
            "#]],
        );
    }

    #[test]
    fn only_the_last_failure_can_be_retried_and_a_retried_one_is_out_of_view() {
        check(
            "user hi\nteacher[error] Hel\nuser again\nteacher[error] He",
            &expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: Hel
              2-end: failed: The provider broke off.
            Learner 3
              3-0: again
            Teacher 4
              4-0: He
              4-end: failed: The provider broke off. [retry]
        "#]],
        );
        check(
            "user hi\nteacher[error] Hel\nmarker retry {\"replaces\":2}\nteacher Hello.",
            &expect![[r#"
            Learner 1
              1-0: hi
            Teacher 4
              4-0: Hello.
        "#]],
        );
        check(
            "user hi\nteacher[toolUse] ls#a {}\nresult ls#a x\nteacher[error] So\nmarker retry {\"replaces\":4}\n\
             teacher So it is.",
            &expect![[r#"
                Learner 1
                  1-0: hi
                Teacher 2
                  2-0: List a folder {} [Done] x
                  6-step: ---
                  6-0: So it is.
            "#]],
        );
    }

    #[test]
    fn a_thought_never_shows_after_the_text_it_led_to() {
        check(
            "teacher Four. | ~two and two",
            &expect![[r#"
            Teacher 1
              1-1: ~ two and two
              1-0: Four.
        "#]],
        );
        check(
            "teacher One. | ~then | Two. | ls#a {} | Three. | ~so",
            &expect![[r#"
                Teacher 1
                  1-0: One.
                  1-1: ~ then
                  1-2: Two.
                  1-3: List a folder {} [Cut]
                  1-5: ~ so
                  1-4: Three.
            "#]],
        );
    }

    #[test]
    fn an_open_answer_shows_with_the_keys_that_it_will_keep() {
        let record = record("user hi\nteacher[toolUse] ls#a {}\nresult ls#a x");
        let Message::Assistant(open) = sample::message("teacher[pending] ~hm | So | ls#b {}", 0) else { panic!() };
        let tail = Tail { open: Some(open), running: true, ..Tail::default() };
        expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: List a folder {} [Done] x
              4-step: ---
              4-0: ~ hm
              4-1: So
              4-2: List a folder {} [Writing]
        "#]]
        .assert_eq(&shown_as(&record, &tail));
    }

    #[test]
    fn a_running_batch_shows_how_far_each_call_is() {
        let record = record("user hi\nteacher[toolUse] ls#a {} | ls#b {} | ls#c {}");
        let tool = |id: &str, state| RunningTool { id: id.to_owned(), name: "ls".to_owned(), args: Value::Null, state };
        let output = |text| crate::app::native::event::ToolOutput { content: vec![Block::text(text)], details: None };
        let tools =
            vec![tool("a", Execution::Done(output("done"))), tool("b", Execution::Running(Some(output("so far"))))];
        let tail = Tail { tools, running: true, ..Tail::default() };
        expect![[r#"
            Learner 1
              1-0: hi
            Teacher 2
              2-0: List a folder {} [Done] done
              2-1: List a folder {} [Running] so far
              2-2: List a folder {} [Running]
        "#]]
        .assert_eq(&shown_as(&record, &tail));
    }
}
