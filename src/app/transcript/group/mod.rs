//! Makes the units of a transcript: one forward pass over the record and the open tail.
//!
//! Assistant and toolResult messages that follow each other are one unit, across runs too: an answered question goes on
//! in the unit that asked it. User messages bound units, and so do the markers that have cards of their own: verdict,
//! handoff, steer, interruption, and custom messages that are not ours. The other markers bound nothing: `plan-block` and
//! `notice` are quiet lines in the unit (the one of an empty answer stands in the place of its failure), `hint`, `objection` and `judgement` belong to their question's card, and `retry`
//! only hides the answer that it replaces.

use serde_json::Value;

use crate::app::native::marker::NoticeKind;
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
    /// How the last answer ended, when there was nothing in it.
    empty: Option<PartKey>,
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
            StopReason::Aborted => Body::Stopped { words, can_retry: false },
            StopReason::Length => Body::Notice(Notice::Length),
            StopReason::Pending | StopReason::Stop | StopReason::ToolUse => return,
        };
        let key = PartKey { seq, piece: Piece::End };
        self.empty = answer.was_empty().then_some(key);
        self.part(key, end);
    }

    /// An empty answer is no failure as long as the model is asked for another one.
    fn fold_empty(&mut self) -> bool {
        let Some(key) = self.empty.take() else { return false };
        let parts = self.units.last_mut().into_iter().flat_map(|unit| &mut unit.parts);
        let Some(part) = parts.last().filter(|part| part.key == key) else { return false };
        part.body = Body::Notice(Notice::EmptyAnswer);
        true
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
            Marker::Notice { kind: NoticeKind::EmptyAnswer } if self.fold_empty() => {}
            Marker::Notice { kind } => self.line(seq, Body::Notice(kind.into())),
            Marker::CutPrompt { counted, estimated } => {
                self.line(seq, Body::Notice(Notice::CutPrompt { counted, estimated }));
            }
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
        self.tell_probe_apart();
        self.attach_remarks();
        self.units.retain(|unit| !unit.parts.is_empty());
        if tail.running {
            // The marker that says so is on its way.
            self.fold_empty();
        } else if let Some(last) = self.units.last_mut() {
            offer_retry(last);
        }
        self.units
    }

    fn tell_probe_apart(&mut self) {
        let is_handoff = |unit: &&Unit| unit.parts.iter().any(|part| matches!(part.body, Body::Handoff(_)));
        let handoff = self.units.iter().find(is_handoff).map(|unit| unit.key);
        for part in self.units.iter_mut().flat_map(|unit| &mut unit.parts) {
            if let Body::Question(card) = &mut part.body {
                card.of_probe = handoff.is_none_or(|handoff| part.key.seq < handoff);
            }
        }
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
        of_probe: false,
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

/// An answer that failed or was stopped can be asked for again while nothing but notices has come after it.
fn offer_retry(unit: &mut Unit) {
    let last = unit.parts.iter_mut().rev().find(|part| !matches!(part.body, Body::Notice(_)));
    if let Some(Body::Failed { can_retry, .. } | Body::Stopped { can_retry, .. }) = last.map(|part| &mut part.body) {
        *can_retry = true;
    }
}

#[cfg(test)]
mod tests;
