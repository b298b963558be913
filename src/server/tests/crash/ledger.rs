//! What the clients of a server saw and were told, and what is wrong with a record that does not hold it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use learnharness::app::native::message::KnownBlock;
use learnharness::app::native::{
    Accepted, AssistantMessage, Block, InputEvent, Marker, Message, Seq, StopReason, Stored, ToolResultMessage,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The age of text that must be kept: that of a checkpoint, and what a busy machine adds to it.
const OLDEST_LOST: Duration = Duration::from_millis(2000);

/// A cheap handle; the mutex is held for moments only.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    chats: BTreeMap<String, Chat>,
    faults: Vec<(Fault, String)>,
    figures: Figures,
    /// Counts how often our own hands have taken something from the record; what is told of an earlier epoch comes too late.
    epoch: u32,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) kills: u32,
    pub(super) starts: u32,
    pub(super) recovered: u32,
    pub(super) inputs: u32,
    pub(super) published: u32,
    pub(super) steers: u32,
    pub(super) refused: u32,
    pub(super) retries: u32,
    pub(super) chats: u32,
    pub(super) text_lost: Duration,
    pub(super) took: Duration,
}

/// The kinds of what must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Something that was told is not in the record, or is another.
    Lost,
    /// Something is there twice.
    Doubled,
    /// A provider would have refused a request.
    Invalid,
    /// A reader was sent what makes no sense, or ended with another view than others.
    Reader,
    /// A chat does not go on, or the server does not start.
    Stuck,
    /// The server refused, panicked or answered in a way that it must not.
    Server,
}

/// What is known of one chat from outside.
#[derive(Clone, Default)]
struct Chat {
    inputs: Vec<Sent>,
    /// What readers were sent as stored, byte for byte.
    published: BTreeMap<u32, Arc<str>>,
    /// The record at the last look.
    record: Vec<Arc<str>>,
    sightings: Vec<Sighting>,
    /// Ids of the steers that were written, in order; the last one may be on its way.
    steers: Vec<String>,
    steering: Steering,
    over: bool,
    /// Our own hands have taken it from the record.
    taken: bool,
}

/// Whether steers are written for a chat.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Steering {
    #[default]
    Open,
    /// One is on its way.
    Busy,
    /// There are to be no more.
    Over,
}

#[derive(Clone)]
struct Sent {
    token: String,
    input: InputEvent,
    outcome: Outcome,
}

/// What became of an input as far as its client knows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Unknown,
    Accepted(Accepted),
    Refused,
}

/// An answer that a reader saw when the server was killed.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) kill: u32,
    pub(super) position: Seq,
    pub(super) open: AssistantMessage,
    /// How long before the kill there were this many bytes of it.
    pub(super) steps: Vec<(Duration, usize)>,
}

/// The record of a chat as the server sent it.
#[derive(Deserialize)]
pub(super) struct Shown<'a> {
    #[serde(borrow)]
    messages: Vec<Row<'a>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    seq: u32,
    #[serde(borrow)]
    message: &'a RawValue,
}

/// What was known of a chat before its record was asked for.
pub(super) struct Known {
    chat: Chat,
    epoch: u32,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn figures(&self) -> Figures {
        self.lock().figures
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.lock().figures);
    }

    pub(super) fn faults(&self) -> Vec<(Fault, String)> {
        self.lock().faults.clone()
    }

    /// Something that must not be; a person reads the words.
    pub(super) fn fault(&self, fault: Fault, words: impl Into<String>) {
        let (mut inner, words) = (self.lock(), words.into());
        let kill = inner.figures.kills;
        // Each look at a record finds the same again.
        if !inner.faults.iter().any(|(_, known)| known.starts_with(&words)) {
            inner.faults.push((fault, format!("{words} (after kill {kill})")));
        }
    }

    pub(super) fn open(&self, chat: &str) {
        self.lock().chats.entry(chat.to_owned()).or_default();
    }

    /// The chat has come to its end.
    pub(super) fn close(&self, chat: &str) {
        let mut inner = self.lock();
        inner.figures.chats += 1;
        inner.chats.entry(chat.to_owned()).or_default().over = true;
    }

    pub(super) fn chats(&self) -> Vec<String> {
        self.lock().chats.keys().cloned().collect()
    }

    /// The chats that have not come to their end.
    pub(super) fn open_chats(&self) -> Vec<String> {
        self.lock().chats.iter().filter(|(_, chat)| !chat.over).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn send(&self, chat: &str, token: &str, input: &InputEvent) {
        let sent = Sent { token: token.to_owned(), input: input.clone(), outcome: Outcome::Unknown };
        self.lock().chats.entry(chat.to_owned()).or_default().inputs.push(sent);
    }

    /// What was said to an input; a second acceptance must be the first one again.
    pub(super) fn settle(&self, epoch: u32, chat: &str, token: &str, outcome: &Outcome) {
        let mut inner = self.lock();
        if inner.epoch != epoch {
            return;
        }
        let sent = inner.chats.get_mut(chat).and_then(|chat| chat.inputs.iter_mut().find(|sent| sent.token == token));
        let Some(sent) = sent else { return };
        let known = std::mem::replace(&mut sent.outcome, outcome.clone());
        let (was_accepted, is_accepted) =
            (matches!(known, Outcome::Accepted(_)), matches!(outcome, Outcome::Accepted(_)));
        inner.figures.inputs += u32::from(is_accepted && !was_accepted);
        drop(inner);
        if was_accepted && known != *outcome {
            self.fault(Fault::Doubled, format!("{chat}: input {token} was {known:?} and then {outcome:?}"));
        }
    }

    /// The id of a steer that is written from now on; none when the chat takes no more.
    pub(super) fn begin_steer(&self, chat: &str) -> Option<String> {
        let mut inner = self.lock();
        let known = inner.chats.get_mut(chat).filter(|chat| chat.steering == Steering::Open)?;
        known.steering = Steering::Busy;
        let id = format!("{chat}-{}", known.steers.len());
        known.steers.push(id.clone());
        Some(id)
    }

    /// The last steer of the chat is written.
    pub(super) fn end_steer(&self, chat: &str) {
        let mut inner = self.lock();
        inner.figures.steers += 1;
        if let Some(chat) = inner.chats.get_mut(chat) {
            chat.steering = Steering::Open;
        }
    }

    /// Lets no more steers be written for the chat, and counts them; none while one is on its way.
    pub(super) fn no_more_steers(&self, chat: &str) -> Option<usize> {
        let mut inner = self.lock();
        let chat = inner.chats.get_mut(chat).filter(|chat| chat.steering != Steering::Busy)?;
        chat.steering = Steering::Over;
        Some(chat.steers.len())
    }

    /// One try of an input could not be stored; another one of the same id may have been meanwhile.
    pub(super) fn postpone(&self, chat: &str, token: &str, outcome: Outcome) {
        let mut inner = self.lock();
        let sent = inner.chats.get_mut(chat).and_then(|chat| chat.inputs.iter_mut().find(|sent| sent.token == token));
        if let Some(sent) = sent.filter(|sent| !matches!(sent.outcome, Outcome::Accepted(_))) {
            sent.outcome = outcome;
        }
    }

    /// A reader was told that this is stored.
    pub(super) fn publish(&self, epoch: u32, chat: &str, seq: Seq, raw: &str) {
        let mut inner = self.lock();
        if inner.epoch != epoch {
            return;
        }
        let published = &mut inner.chats.entry(chat.to_owned()).or_default().published;
        match published.get(&seq.0) {
            Some(known) if &**known == raw => {}
            Some(known) => {
                let words = format!("{chat}: two readers got other messages at {seq}: {known} and {raw}");
                drop(inner);
                self.fault(Fault::Doubled, words);
            }
            None => {
                published.insert(seq.0, raw.into());
                inner.figures.published += 1;
            }
        }
    }

    pub(super) fn see(&self, epoch: u32, chat: &str, sighting: Sighting) {
        let mut inner = self.lock();
        if inner.epoch != epoch {
            return;
        }
        inner.chats.entry(chat.to_owned()).or_default().sightings.push(sighting);
    }

    pub(super) fn epoch(&self) -> u32 {
        self.lock().epoch
    }

    /// Our own hands take something from the record, and that of each chat is cut or taken next.
    pub(super) fn begin_epoch(&self) {
        self.lock().epoch += 1;
    }

    /// Forgets what was told of a chat after its first `length` messages: our own hands have taken it away.
    pub(super) fn cut(&self, chat: &str, length: usize) {
        let mut inner = self.lock();
        let chat = inner.chats.entry(chat.to_owned()).or_default();
        chat.record.truncate(length);
        chat.published.retain(|seq, _| *seq as usize <= length);
        chat.sightings.clear();
        for sent in &mut chat.inputs {
            if matches!(&sent.outcome, Outcome::Accepted(accepted) if accepted.seq.0 as usize > length) {
                sent.outcome = Outcome::Unknown;
            }
        }
    }

    /// What is known now; to be asked for before the record is.
    pub(super) fn known(&self, chat: &str) -> Known {
        let inner = self.lock();
        Known { chat: inner.chats.get(chat).cloned().unwrap_or_default(), epoch: inner.epoch }
    }

    /// Holds a chat's record against all that was known of it.
    pub(super) fn audit(&self, chat: &str, known: &Known, shown: &Shown) {
        if known.epoch != self.epoch() {
            return;
        }
        let raws: Vec<Arc<str>> = shown.messages.iter().map(|row| row.message.get().into()).collect();
        let record: Vec<Stored> = shown.messages.iter().filter_map(Row::read).collect();
        let mut faults = Vec::new();
        if record.len() != raws.len() || shown.messages.iter().zip(1..).any(|(row, seq)| row.seq != seq) {
            faults.push((Fault::Lost, "the record has gaps, or messages that cannot be read".to_owned()));
        }
        if !raws.starts_with(&known.chat.record) {
            faults.push((Fault::Lost, "the record has changed".to_owned()));
        }
        faults.extend(
            known
                .chat
                .published
                .iter()
                .filter(|(seq, raw)| raws.get(**seq as usize - 1) != Some(raw))
                .map(|(seq, raw)| (Fault::Lost, format!("what was published at {seq} is not stored as it was: {raw}"))),
        );
        let refused = |token: &str| self.outcome(chat, token) == Some(Outcome::Refused);
        faults.extend(known.chat.inputs.iter().flat_map(|sent| sent.faults(&record, refused)));
        let steers = arrived(&record);
        // One more may have been written since we asked what is known.
        if !steers.iter().zip(&known.chat.steers).all(|(there, written)| there == written) {
            faults.push((Fault::Doubled, format!("the steers are {steers:?}, and not {:?}", known.chat.steers)));
        }
        faults.extend(doubled(&record).into_iter().map(|words| (Fault::Doubled, words)));
        for (fault, words) in faults {
            self.fault(fault, format!("{chat}: {words}"));
        }
        if let Some(known) = self.lock().chats.get_mut(chat)
            && raws.len() > known.record.len()
        {
            known.record = raws;
        }
    }

    /// Holds the text that readers had seen, and all steers that were written, against the record at its end.
    pub(super) fn audit_text(&self, chat: &str, shown: &Shown) {
        let record: Vec<Stored> = shown.messages.iter().filter_map(Row::read).collect();
        let written = self.lock().chats.get(chat).map(|chat| chat.steers.clone()).unwrap_or_default();
        if arrived(&record) != written {
            self.fault(Fault::Lost, format!("{chat}: the steers are {:?}, and not {written:?}", arrived(&record)));
        }
        let sightings = self.lock().chats.get_mut(chat).map(|chat| std::mem::take(&mut chat.sightings));
        let mut lost = BTreeMap::new();
        for sighting in sightings.unwrap_or_default() {
            match sighting.lost(&record) {
                Ok(ago) => {
                    let most: &mut Duration = lost.entry(sighting.kill).or_default();
                    *most = ago.max(*most);
                }
                Err(words) => self.fault(Fault::Lost, format!("{chat}: {words}, kill {}", sighting.kill)),
            }
        }
        for (kill, ago) in lost {
            self.count(|figures| figures.text_lost = figures.text_lost.max(ago));
            if ago > OLDEST_LOST {
                let words = format!("text that was seen {} ms before kill {kill} is gone", ago.as_millis());
                self.fault(Fault::Lost, format!("{chat}: {words}"));
            }
        }
    }

    /// Our own hands have taken the whole chat away.
    pub(super) fn take(&self, chat: &str) {
        let mut inner = self.lock();
        let chat = inner.chats.entry(chat.to_owned()).or_default();
        (chat.over, chat.taken) = (true, true);
    }

    pub(super) fn is_taken(&self, chat: &str) -> bool {
        self.lock().chats.get(chat).is_some_and(|chat| chat.taken)
    }

    fn outcome(&self, chat: &str, token: &str) -> Option<Outcome> {
        let inner = self.lock();
        let sent = inner.chats.get(chat)?.inputs.iter().find(|sent| sent.token == token)?;
        Some(sent.outcome.clone())
    }
}

impl Row<'_> {
    fn read(&self) -> Option<Stored> {
        let message = serde_json::from_str(self.message.get()).ok()?;
        Some(Stored { seq: Seq(self.seq), message })
    }
}

impl Sent {
    /// `refused` tells of an input that it is still refused.
    fn faults(&self, record: &[Stored], refused: impl Fn(&str) -> bool) -> Vec<(Fault, String)> {
        let places: Vec<Seq> =
            record.iter().filter(|stored| self.is_in(&stored.message)).map(|stored| stored.seq).collect();
        let token = &self.token;
        let mut faults = Vec::new();
        if places.len() > 1 {
            faults.push((Fault::Doubled, format!("input {token} stands at {places:?}")));
        }
        match &self.outcome {
            Outcome::Accepted(accepted) if !self.leaves_a_trace() || self.is_at(record, &places, accepted.seq) => {}
            Outcome::Accepted(accepted) => {
                faults.push((Fault::Lost, format!("input {token} was accepted as {accepted:?} and is at {places:?}")));
            }
            Outcome::Refused if !places.is_empty() && refused(token) => {
                faults.push((Fault::Doubled, format!("input {token} was refused and is at {places:?}")));
            }
            Outcome::Refused | Outcome::Unknown => {}
        }
        faults
    }

    /// Whether it is where its acceptance said: there, or right before the handoff that it brought about.
    fn is_at(&self, record: &[Stored], places: &[Seq], seq: Seq) -> bool {
        let [place] = places else { return false };
        let is_handoff = |stored: &Stored| match &stored.message {
            Message::Custom(custom) => matches!(Marker::read(custom), Some(Marker::ProbeHandoff { .. })),
            Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => false,
        };
        *place == seq || (place.next() == seq && record.get(seq.0 as usize - 1).is_some_and(is_handoff))
    }

    /// A hint and a retry carry no words of their learner.
    fn leaves_a_trace(&self) -> bool {
        !matches!(self.input, InputEvent::Hint { .. } | InputEvent::Retry)
    }

    /// True for the message that the input became.
    fn is_in(&self, message: &Message) -> bool {
        let found = match (&self.input, message) {
            (InputEvent::Text { .. }, Message::User(user)) => user.content.text(),
            (InputEvent::Answer { .. }, Message::ToolResult(result)) => {
                result.details.as_ref().map(ToString::to_string).unwrap_or_default()
            }
            (InputEvent::Verdict { .. } | InputEvent::Objection { .. }, Message::Custom(custom)) => {
                custom.details.to_string()
            }
            _ => return false,
        };
        found.contains(&self.token)
    }
}

/// The ids of the steers in a record.
pub(super) fn arrived(record: &[Stored]) -> Vec<String> {
    let ids = record.iter().filter_map(|stored| match &stored.message {
        Message::Custom(custom) if matches!(Marker::read(custom), Some(Marker::Steer { .. })) => {
            Some(custom.id.clone())
        }
        Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) => None,
    });
    ids.collect()
}

/// What stands in a record twice without any look at what was told.
fn doubled(record: &[Stored]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut calls: HashMap<&str, u32> = HashMap::new();
    let mut results: HashMap<&str, u32> = HashMap::new();
    let mut answers = HashSet::new();
    for Stored { seq, message } in record {
        match message {
            Message::Assistant(answer) => {
                answer.tool_calls().for_each(|call| *calls.entry(&call.id).or_default() += 1);
                let text = flat(answer);
                if !text.is_empty() && !answers.insert((answer.timestamp, text)) {
                    faults.push(format!("the answer at {seq} stands there twice"));
                }
            }
            Message::ToolResult(result) if result.is_posed_placeholder() => {
                faults.push(format!("a placeholder is stored at {seq}"));
            }
            Message::ToolResult(ToolResultMessage { tool_call_id, .. }) => {
                let count = results.entry(tool_call_id).or_default();
                *count += 1;
                if *count > calls.get(tool_call_id.as_str()).copied().unwrap_or(0) {
                    faults.push(format!("the result at {seq} is one too many of {tool_call_id}"));
                }
            }
            Message::User(_) | Message::Custom(_) => {}
        }
    }
    faults
}

impl Sighting {
    /// For how long before the kill a reader had seen what the record does not have.
    fn lost(&self, record: &[Stored]) -> Result<Duration, String> {
        let later = record.iter().filter(|stored| stored.seq > self.position);
        let found = later.filter_map(|stored| Some((stored.seq, stored.message.as_assistant()?)));
        let kept = found.into_iter().find(|(_, answer)| answer.timestamp == self.open.timestamp);
        let length = kept.map_or(0, |(_, answer)| common(&flat(answer), &flat(&self.open)));
        if let Some((seq, answer)) = kept
            && answer.stop_reason == StopReason::Aborted
            && !record.get(seq.0 as usize).is_some_and(tells_of_a_cut)
        {
            return Err(format!("the answer at {seq} was cut off, and nothing says so"));
        }
        Ok(self.steps.iter().filter(|(_, seen)| *seen > length).map(|(ago, _)| *ago).max().unwrap_or_default())
    }
}

/// The marker of an interruption, or the notice of one that is left to the learner's Retry.
fn tells_of_a_cut(stored: &Stored) -> bool {
    match &stored.message {
        Message::Custom(custom) => {
            matches!(Marker::read(custom), Some(Marker::Interrupted | Marker::Notice { .. }))
        }
        Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => false,
    }
}

/// All words of an answer in their order, thoughts included.
pub(super) fn flat(answer: &AssistantMessage) -> String {
    let words = answer.content.iter().map(|block| match block {
        Block::Known(KnownBlock::Text(text)) => text.text.as_str(),
        Block::Known(KnownBlock::Thinking(thought)) => thought.thinking.as_str(),
        Block::Known(KnownBlock::ToolCall(_) | KnownBlock::Image(_)) | Block::Other(_) => "",
    });
    words.collect()
}

/// Bytes that both begin with.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The kinds of what a ledger finds wrong with a record, after `tell` has told it what clients know.
    fn check(record: &Value, tell: impl Fn(&Ledger), expected: &[Fault]) {
        let ledger = Ledger::default();
        ledger.open("chat");
        tell(&ledger);
        let rows: Vec<Value> = record
            .as_array()
            .unwrap()
            .iter()
            .zip(1..)
            .map(|(message, seq)| json!({"seq": seq, "message": message}))
            .collect();
        let body = json!({"messages": rows}).to_string();
        ledger.audit("chat", &ledger.known("chat"), &serde_json::from_str(&body).unwrap());
        ledger.audit_text("chat", &serde_json::from_str(&body).unwrap());
        let found: Vec<Fault> = ledger.faults().into_iter().map(|(fault, _)| fault).collect();
        assert_eq!(found, expected, "{record} {:?}", ledger.faults());
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text, "timestamp": 1})
    }

    fn accepted(ledger: &Ledger, seq: u32) {
        ledger.send("chat", "‹•›", &InputEvent::Text { text: "Hi ‹•›".to_owned(), note: None });
        ledger.settle(0, "chat", "‹•›", &Outcome::Accepted(Accepted { run_id: None, seq: Seq(seq) }));
    }

    #[test]
    fn an_accepted_input_is_there_once_and_where_it_was_said_to_be() {
        let told = |ledger: &Ledger| accepted(ledger, 1);
        check(&json!([user("Hi ‹•›")]), told, &[]);
        check(&json!([user("Hi ‹•·›")]), told, &[Fault::Lost]);
        check(&json!([user("Ho"), user("Hi ‹•›")]), told, &[Fault::Lost]);
        check(&json!([user("Hi ‹•›"), user("Hi ‹•›")]), told, &[Fault::Doubled, Fault::Lost]);
        let refused = |ledger: &Ledger| {
            ledger.send("chat", "‹•›", &InputEvent::Text { text: "Hi ‹•›".to_owned(), note: None });
            ledger.settle(0, "chat", "‹•›", &Outcome::Refused);
        };
        check(&json!([user("Hi ‹•›")]), refused, &[Fault::Doubled]);
        let twice = |ledger: &Ledger| {
            accepted(ledger, 1);
            accepted(ledger, 2);
        };
        check(&json!([user("Hi ‹•›")]), twice, &[Fault::Doubled, Fault::Lost]);
    }

    #[test]
    fn what_was_published_is_there_byte_for_byte() {
        let told = |ledger: &Ledger| ledger.publish(0, "chat", Seq(1), &user("Hi").to_string());
        check(&json!([user("Hi")]), told, &[]);
        check(&json!([]), told, &[Fault::Lost]);
        check(&json!([user("Ho")]), told, &[Fault::Lost]);
        let others = |ledger: &Ledger| {
            told(ledger);
            ledger.publish(0, "chat", Seq(1), &user("Ho").to_string());
        };
        check(&json!([user("Hi")]), others, &[Fault::Doubled]);
    }

    #[test]
    fn every_steer_is_there_once_and_in_its_order() {
        let steer = |nth: u32| {
            let details = json!({"jobId": "j", "kind": "demo", "outcome": "done", "summary": "s"});
            json!({"role": "custom", "customType": "steer", "content": "", "details": details, "id": format!("chat-{nth}")})
        };
        let told = |ledger: &Ledger| {
            for _ in 0..2 {
                ledger.begin_steer("chat").unwrap();
                assert_eq!(ledger.no_more_steers("chat"), None);
                ledger.end_steer("chat");
            }
            assert_eq!(ledger.no_more_steers("chat"), Some(2));
            assert_eq!(ledger.begin_steer("chat"), None);
        };
        check(&json!([steer(0), steer(1)]), told, &[]);
        check(&json!([steer(0)]), told, &[Fault::Lost]);
        check(&json!([steer(1), steer(0)]), told, &[Fault::Doubled]);
        check(&json!([steer(0), steer(0), steer(1)]), told, &[Fault::Doubled]);
    }

    #[test]
    fn no_result_and_no_answer_stands_there_twice() {
        let asks = json!({"role": "assistant", "timestamp": 1, "content": [{"type": "text", "text": "Well."}, {"type": "toolCall", "id": "a", "name": "quiz", "arguments": {}}]});
        let result = json!({"role": "toolResult", "toolCallId": "a", "toolName": "quiz", "content": []});
        check(&json!([asks, result]), |_| {}, &[]);
        check(&json!([asks, result, result]), |_| {}, &[Fault::Doubled]);
        check(&json!([asks, asks, result]), |_| {}, &[Fault::Doubled]);
        let placeholder = json!({"role": "toolResult", "toolCallId": "a", "toolName": "quiz", "content": [], "details": {"posed": true}});
        check(&json!([asks, placeholder]), |_| {}, &[Fault::Doubled]);
    }

    #[test]
    fn text_that_was_seen_long_before_a_kill_is_kept_and_marked_as_cut_off() {
        let said = |text: &str, reason: &str| json!({"role": "assistant", "timestamp": 5, "stopReason": reason, "content": [{"type": "text", "text": text}]});
        let mark = json!({"role": "custom", "customType": "interrupted", "content": "", "id": "i"});
        let told = |ledger: &Ledger| {
            let open = serde_json::from_value(said("One. Two.", "pending")).unwrap();
            let steps = vec![(Duration::from_secs(5), 4), (Duration::from_secs(1), 9)];
            ledger.see(0, "chat", Sighting { kill: 1, position: Seq(1), open, steps });
        };
        check(&json!([user("Hi"), said("One. Two. Three.", "stop")]), told, &[]);
        check(&json!([user("Hi"), said("One.", "aborted"), mark]), told, &[]);
        check(&json!([user("Hi"), said("One.", "aborted")]), told, &[Fault::Lost]);
        check(&json!([user("Hi"), said("On", "aborted"), mark]), told, &[Fault::Lost]);
        check(&json!([user("Hi")]), told, &[Fault::Lost]);
    }
}
