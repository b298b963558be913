//! Inputs: decided against the record as it is now, appended, announced, and run.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Runs;
use crate::app::native::input::{LONGEST_TEXT, is_blank, too_long};
use crate::app::native::marker::Assessment;
use crate::app::native::plan::PROBE_DONE;
use crate::app::native::question::{Graded, Verdict, check_answer, grade, unanswered};
use crate::app::native::view::{Next, Pending};
use crate::app::native::{
    Accepted, AgentEvent, Answer, AssistantMessage, Block, ErrorBody, ErrorDetail, ErrorKind, InputEvent, Marker,
    Message, Question, Seq, StopReason, Stored, ToolResultMessage,
};
use crate::app::transcript::scan::hinted;
use crate::app::transcript::scan::next::{next, pending};
use crate::server::clock::now_ms;
use crate::server::store::{Acceptance, Decision, Offer, Wakes};

/// Bytes that the id of an input may have.
const LONGEST_ID: usize = 200;

/// Why a question was closed without an answer, for the model.
pub(super) const WROTE: &str = "Not answered; the learner wrote instead.";
pub(super) const STOPPED: &str = "Not answered; the learner stopped here.";
const OBJECTED: &str = "Not answered; the learner objects to the question.";

impl Runs {
    /// Takes an input: once by its id, appended before anything runs.
    ///
    /// # Errors
    /// `not-found`, `busy`, `answered`, `invalid`, `no-key` or `storage`; the record is as before.
    pub async fn accept(&self, chat: &str, input_id: Option<String>, input: InputEvent) -> Result<Accepted, ErrorBody> {
        self.inner.models.ready()?;
        if input_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > LONGEST_ID) {
            return Err(invalid(format!("An inputId has 1 to {LONGEST_ID} bytes.")));
        }
        let (runs, chat) = (self.clone(), chat.to_owned());
        self.finish(async move { runs.take(&chat, input_id, input).await }).await
    }

    async fn take(&self, chat: &str, input_id: Option<String>, input: InputEvent) -> Result<Accepted, ErrorBody> {
        let feed = self.feed(chat).await?;
        let _gate = feed.gate.lock().await;
        let now = now_ms();
        let input = Arc::new(input);
        let offer = || {
            let input = input.clone();
            Offer {
                chat: chat.to_owned(),
                input_id: input_id.clone(),
                run_id: uuid::Uuid::now_v7().simple().to_string(),
                now,
                wakes: Wakes::Free,
                decide: Box::new(move |record| decide(record, &input, now)),
            }
        };
        match self.offer(&feed, offer).await? {
            Acceptance::Known(accepted) => Ok(accepted),
            Acceptance::New { accepted, appended } => {
                match &accepted.run_id {
                    Some(run) => self.start(&feed, chat, run, appended, accepted.seq),
                    None => super::stop::announce(&feed, appended),
                }
                Ok(accepted)
            }
        }
    }
}

/// What becomes of `input`; `now` is Unix time in ms.
pub(super) fn decide(record: &[Stored], input: &InputEvent, now: i64) -> Result<Decision, ErrorBody> {
    bounded(input)?;
    let mut decision = match input {
        InputEvent::Text { text, note } => say(record, text, note.as_deref(), now),
        InputEvent::Answer { tool_call_id, answer, dismissed } => {
            answer_question(record, tool_call_id, answer, *dismissed, now)
        }
        InputEvent::Verdict { accepted, note } => judge_plan(record, *accepted, note.clone(), now),
        InputEvent::Retry => retry(record, now),
        InputEvent::Hint { tool_call_id } => hint(record, tool_call_id, now),
        InputEvent::Objection { tool_call_id, reason } => object(record, tool_call_id, reason, now),
    }?;
    if decision.run {
        hand_over(record, &mut decision.append, now);
    }
    Ok(decision)
}

/// Puts the handoff before everything that a run is about to begin with, but after the results that complete a batch:
/// the run that follows a finished probe is the teacher's.
fn hand_over(record: &[Stored], append: &mut Vec<Message>, now: i64) {
    // Nothing that is appended can make a handoff due that neither is due now nor waits behind a question.
    if !matches!(next(record), Next::Handoff | Next::Answer(_)) {
        return;
    }
    let results = append.iter().take_while(|message| message.as_tool_result().is_some()).count();
    let mut whole = record.to_vec();
    for message in &append[..results] {
        let seq = whole.last().map_or(Seq::START, |last| last.seq).next();
        whole.push(Stored { seq, message: message.clone() });
    }
    if next(&whole) == Next::Handoff {
        append.insert(results, handoff(record, now));
    }
}

/// No text of an input is longer than a message may be.
fn bounded(input: &InputEvent) -> Result<(), ErrorBody> {
    let texts = match input {
        InputEvent::Text { text, note } => vec![Some(text), note.as_ref()],
        InputEvent::Answer { answer, .. } => vec![answer.text.as_ref(), answer.other.as_ref(), answer.note.as_ref()],
        InputEvent::Verdict { note, .. } => vec![note.as_ref()],
        InputEvent::Objection { reason, .. } => vec![Some(reason)],
        InputEvent::Retry | InputEvent::Hint { .. } => Vec::new(),
    };
    if texts.into_iter().flatten().any(|text| text.chars().count() > LONGEST_TEXT) {
        return Err(invalid(too_long()));
    }
    Ok(())
}

/// The marker that hands the lesson to the teacher, with the prober's assessment.
pub(super) fn handoff(record: &[Stored], now: i64) -> Message {
    let assessment = record
        .iter()
        .rev()
        .filter_map(|stored| stored.message.as_assistant())
        .flat_map(AssistantMessage::tool_calls)
        .find(|call| call.name == PROBE_DONE)
        .and_then(|call| serde_json::from_value::<Assessment>(call.arguments["assessment"].clone()).ok())
        .unwrap_or_default();
    mark(Marker::ProbeHandoff { assessment }, now)
}

fn say(record: &[Stored], text: &str, note: Option<&str>, now: i64) -> Result<Decision, ErrorBody> {
    if is_blank(text) {
        return Err(invalid("The message is empty."));
    }
    let note = note.map(str::trim).filter(|note| !is_blank(note));
    if note.is_some() && !matches!(next(record), Next::Verdict(_)) {
        return Err(invalid("No plan waits for this note."));
    }
    let mut append = close_all(record, WROTE, now);
    let text = match note {
        Some(note) => format!("{text}\n\nOn the plan: {note}"),
        None => text.to_owned(),
    };
    append.push(Message::user(text, now));
    Ok(Decision { append, run: true })
}

fn answer_question(
    record: &[Stored],
    id: &str,
    answer: &Answer,
    dismissed: bool,
    now: i64,
) -> Result<Decision, ErrorBody> {
    let waiting = pending(record);
    let Some(asked) = waiting.iter().find(|asked| asked.tool_call_id == id) else {
        return Err(not_waiting(record, id));
    };
    let question = read_question(asked)?;
    let bare = Answer { note: answer.note.clone(), ..Answer::default() };
    let graded = if answer.dont_know && !dismissed {
        grade(&question, &Answer { dont_know: true, ..bare })
    } else if dismissed {
        Graded { answer: bare, ..unanswered(&question, Verdict::Skipped) }
    } else {
        check_answer(&question, answer).map_err(invalid)?;
        grade(&question, answer)
    };
    Ok(Decision { append: vec![result(asked, &graded, graded.for_model(), now)], run: waiting.len() == 1 })
}

/// Why an answer to `id` cannot be taken.
fn not_waiting(record: &[Stored], id: &str) -> ErrorBody {
    let result = record
        .iter()
        .filter_map(|stored| stored.message.as_tool_result())
        .find(|result| result.tool_call_id == id && Question::is_question(&result.tool_name));
    let Some(result) = result else { return invalid("There is no such question.") };
    let details = result.details.clone().unwrap_or(Value::Null);
    if details["verdict"] == json!(Verdict::NotAnswered) || result.is_error {
        return invalid("This question was closed without an answer.");
    }
    let body = ErrorBody::new(ErrorKind::Answered, "This question has its answer already.");
    ErrorBody { error: ErrorDetail { accepted: Some(details), ..body.error } }
}

fn judge_plan(record: &[Stored], accepted: bool, note: Option<String>, now: i64) -> Result<Decision, ErrorBody> {
    match next(record) {
        Next::Verdict(_) => Ok(Decision { append: vec![mark(Marker::PlanVerdict { accepted, note }, now)], run: true }),
        Next::Answer(_) => Err(invalid("A question waits for its answer first.")),
        Next::Idle | Next::Reply | Next::Handoff => Err(invalid("No plan waits for a verdict.")),
    }
}

fn retry(record: &[Stored], now: i64) -> Result<Decision, ErrorBody> {
    let failed = record.iter().rev().find(|stored| !matches!(stored.message, Message::Custom(_)));
    if let Some(Stored { seq, message: Message::Assistant(answer) }) = failed
        && matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
    {
        return Ok(Decision { append: vec![mark(Marker::Retry { replaces: *seq }, now)], run: true });
    }
    match next(record) {
        Next::Reply | Next::Handoff => Ok(Decision { append: Vec::new(), run: true }),
        Next::Idle | Next::Answer(_) | Next::Verdict(_) => Err(invalid("There is nothing to try again.")),
    }
}

fn hint(record: &[Stored], id: &str, now: i64) -> Result<Decision, ErrorBody> {
    let asked = waiting(record, id)?;
    match read_question(&asked)? {
        Question::Quiz(quiz) if quiz.hint.is_some() => {
            // Looking at it again, on another page for instance, is nothing new.
            let is_new = !hinted(record).iter().any(|known| known == id);
            let marker = is_new.then(|| mark(Marker::Hint { tool_call_id: id.to_owned() }, now));
            Ok(Decision { append: marker.into_iter().collect(), run: false })
        }
        Question::Quiz(_) | Question::Ask(_) => Err(invalid("This question has no hint.")),
    }
}

fn object(record: &[Stored], id: &str, reason: &str, now: i64) -> Result<Decision, ErrorBody> {
    let asked = waiting(record, id)?;
    if is_blank(reason) {
        return Err(invalid("Say what is wrong with the question."));
    }
    let closed = result(&asked, &unanswered(&read_question(&asked)?, Verdict::NotAnswered), OBJECTED, now);
    let marker = mark(Marker::Objection { tool_call_id: id.to_owned(), reason: reason.to_owned() }, now);
    Ok(Decision { append: vec![closed, marker], run: pending(record).len() == 1 })
}

/// Results that close every pending question without an answer, and say why.
pub(super) fn close_all(record: &[Stored], why: &str, now: i64) -> Vec<Message> {
    pending(record)
        .iter()
        .filter_map(|asked| {
            let question = read_question(asked).ok()?;
            Some(result(asked, &unanswered(&question, Verdict::NotAnswered), why, now))
        })
        .collect()
}

fn waiting(record: &[Stored], id: &str) -> Result<Pending, ErrorBody> {
    pending(record)
        .into_iter()
        .find(|asked| asked.tool_call_id == id)
        .ok_or_else(|| invalid("There is no such question waiting."))
}

fn read_question(asked: &Pending) -> Result<Question, ErrorBody> {
    Question::from_args(&asked.tool_name, &asked.args)
        .map_err(|error| invalid(format!("The question cannot be read: {error}")))
}

fn result(asked: &Pending, graded: &Graded, text: impl Into<String>, now: i64) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: asked.tool_call_id.clone(),
        tool_name: asked.tool_name.clone(),
        content: vec![Block::text(text)],
        details: serde_json::to_value(graded).ok(),
        usage: None,
        is_error: false,
        timestamp: now,
        extra: Map::new(),
    })
}

fn mark(marker: Marker, now: i64) -> Message {
    marker.into_message(uuid::Uuid::now_v7().to_string(), now)
}

fn invalid(words: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorKind::Invalid, words)
}

/// The events that announce a message appended outside of a run.
pub(super) fn announcement(message: Message) -> [AgentEvent; 2] {
    [AgentEvent::MessageStart { message: message.clone() }, AgentEvent::MessageEnd { message }]
}
