//! The state of a reader who follows a chat: the record so far, and what the open run adds to it.
//!
//! Every event is placed by record position, so a reader may attach at any moment, any number of times, and ends with the
//! same view as one who watched from the start.

use serde_json::Value;

use crate::app::native::error::ErrorBody;
use crate::app::native::event::{AgentEvent, ToolOutput};
use crate::app::native::view::Retry;
use crate::app::native::{AssistantEvent, AssistantMessage, Message, Seq, Stored, fold};

/// A chat as a reader knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// What is stored, without gaps.
    pub record: Vec<Stored>,
    pub tail: Tail,
    /// The jobs as the last `activity` told of them.
    pub jobs: Vec<Value>,
}

/// What a run has said that is not in the record yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// The answer that streams.
    pub open: Option<AssistantMessage>,
    /// The calls of the open batch that have begun and have no stored result, in order.
    pub tools: Vec<RunningTool>,
    /// The run waits to ask its model again.
    pub retry: Option<Retry>,
    /// A run goes on.
    pub running: bool,
    /// Nothing is left to do; false until the stream says so, and while a run goes on.
    pub settled: bool,
    /// What the last run, or the one that goes on, complained of.
    pub error: Option<ErrorBody>,
}

/// A call whose execution has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningTool {
    pub id: String,
    pub name: String,
    pub args: Value,
    pub state: Execution,
}

/// How far an execution is.
#[derive(Clone, Debug, PartialEq)]
pub enum Execution {
    /// It runs; with what it has returned so far.
    Running(Option<ToolOutput>),
    /// It has ended; its message is still to come.
    Done(ToolOutput),
    /// It has failed; its message is still to come.
    Failed(ToolOutput),
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Taken,
    /// The record holds it already, or it is none for the record.
    Ignored,
    /// Messages before it are missing: the reader has to ask for the record after its position.
    Gap,
}

impl Live {
    /// A reader who knows this much of the record, and of no run.
    #[must_use]
    pub fn new(record: Vec<Stored>) -> Self {
        Self { record, ..Self::default() }
    }

    /// The position of the last message that it holds.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.record.last().map_or(Seq::START, |stored| stored.seq)
    }

    /// Takes messages of the record that came by another way than the stream; what it holds already is left alone.
    pub fn extend(&mut self, messages: impl IntoIterator<Item = Stored>) -> Applied {
        let mut applied = Applied::Ignored;
        for Stored { seq, message } in messages {
            match self.append(seq, &message) {
                Applied::Taken => applied = Applied::Taken,
                Applied::Ignored => {}
                Applied::Gap => return Applied::Gap,
            }
        }
        applied
    }

    /// Takes what the server says of the chat as of now, to a reader who does not follow its stream.
    pub fn see(&mut self, messages: impl IntoIterator<Item = Stored>, running: bool, retry: Option<Retry>) {
        self.extend(messages);
        if running {
            (self.tail.running, self.tail.settled, self.tail.retry) = (true, false, retry);
        } else {
            self.apply(None, &AgentEvent::TurnSettled);
        }
    }

    /// Takes one event. `id` is its position: the seq of the last stored message that ends before it or with it.
    pub fn apply(&mut self, id: Option<Seq>, event: &AgentEvent) -> Applied {
        match event {
            AgentEvent::AgentStart => self.tail = Tail { running: true, ..Tail::default() },
            AgentEvent::TurnStart | AgentEvent::TurnEnd { .. } => self.tail.clear(),
            AgentEvent::AgentEnd { .. } => self.tail.rest(),
            AgentEvent::TurnSettled => {
                self.tail.rest();
                self.tail.settled = true;
            }
            AgentEvent::Error(error) => self.tail.error = Some(error.clone()),
            AgentEvent::Activity(activity) => {
                if let Some(jobs) = &activity.jobs {
                    self.jobs.clone_from(jobs);
                }
                self.tail.retry.clone_from(&activity.retry);
            }
            AgentEvent::MessageEnd { message } => return self.end(id, message),
            AgentEvent::MessageStart { .. }
            | AgentEvent::MessageUpdate { .. }
            | AgentEvent::ToolExecutionStart { .. }
            | AgentEvent::ToolExecutionUpdate { .. }
            | AgentEvent::ToolExecutionEnd { .. } => {
                return if self.is_behind(id) { Applied::Ignored } else { self.tail.apply(event) };
            }
        }
        Applied::Taken
    }

    /// True for what is said of a message that the record holds whole: the stream goes over it once more.
    fn is_behind(&self, id: Option<Seq>) -> bool {
        id.is_some_and(|id| id < self.position())
    }

    fn end(&mut self, id: Option<Seq>, message: &Message) -> Applied {
        if let Message::ToolResult(result) = message
            && result.is_posed_placeholder()
        {
            self.tail.forget(&result.tool_call_id);
            return Applied::Ignored;
        }
        match id {
            Some(seq) => self.append(seq, message),
            None => Applied::Ignored,
        }
    }

    fn append(&mut self, seq: Seq, message: &Message) -> Applied {
        if seq <= self.position() {
            return Applied::Ignored;
        }
        if seq != self.position().next() {
            return Applied::Gap;
        }
        match message {
            Message::Assistant(_) => self.tail.open = None,
            Message::ToolResult(result) => self.tail.forget(&result.tool_call_id),
            Message::User(_) | Message::Custom(_) => {}
        }
        self.record.push(Stored { seq, message: message.clone() });
        Applied::Taken
    }
}

impl Tail {
    /// Takes an event that leaves the record as it is.
    fn apply(&mut self, event: &AgentEvent) -> Applied {
        match event {
            AgentEvent::MessageStart { message: Message::Assistant(answer) } => {
                self.open = Some(answer.clone());
                self.retry = None;
            }
            AgentEvent::MessageUpdate { message, assistant_message_event } => {
                return self.update(message.as_deref(), assistant_message_event);
            }
            AgentEvent::ToolExecutionStart { tool_call_id, tool_name, args } => {
                self.execute(tool_call_id, tool_name, args, Execution::Running(None));
            }
            AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, args, partial_result } => {
                self.execute(tool_call_id, tool_name, args, Execution::Running(Some(partial_result.clone())));
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result, is_error: false } => {
                self.execute(tool_call_id, tool_name, &Value::Null, Execution::Done(result.clone()));
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result, is_error: true } => {
                self.execute(tool_call_id, tool_name, &Value::Null, Execution::Failed(result.clone()));
            }
            AgentEvent::MessageStart { .. }
            | AgentEvent::MessageEnd { .. }
            | AgentEvent::AgentStart
            | AgentEvent::AgentEnd { .. }
            | AgentEvent::TurnStart
            | AgentEvent::TurnEnd { .. }
            | AgentEvent::TurnSettled
            | AgentEvent::Error(_)
            | AgentEvent::Activity(_) => return Applied::Ignored,
        }
        Applied::Taken
    }

    /// A whole message replaces the open one, even by a shorter one.
    fn update(&mut self, message: Option<&Message>, event: &AssistantEvent) -> Applied {
        match (message, &mut self.open) {
            (Some(Message::Assistant(answer)), _) => self.open = Some(answer.clone()),
            (None, Some(open)) => fold(open, event),
            _ => return Applied::Ignored,
        }
        Applied::Taken
    }

    fn execute(&mut self, id: &str, name: &str, args: &Value, state: Execution) {
        match self.tools.iter_mut().find(|tool| tool.id == id) {
            Some(tool) => tool.state = state,
            None => {
                self.tools.push(RunningTool { id: id.to_owned(), name: name.to_owned(), args: args.clone(), state });
            }
        }
    }

    fn forget(&mut self, id: &str) {
        self.tools.retain(|tool| tool.id != id);
    }

    fn clear(&mut self) {
        self.open = None;
        self.retry = None;
        self.tools.clear();
    }

    fn rest(&mut self) {
        self.clear();
        self.running = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::app::transcript::group;
    use crate::app::transcript::sample::{self, record};
    use crate::app::transcript::script::{attach, events};
    use crate::app::transcript::unit::Unit;

    fn view(live: &Live) -> Vec<Unit> {
        group(&live.record, &live.tail)
    }

    fn event(json: serde_json::Value) -> AgentEvent {
        serde_json::from_value(json).unwrap()
    }

    fn end(line: &str) -> AgentEvent {
        AgentEvent::MessageEnd { message: sample::message(line, 0) }
    }

    #[test]
    fn a_message_is_appended_at_its_position_only() {
        let mut live = Live::new(record("user hi"));
        assert_eq!(live.apply(Some(Seq(1)), &end("user hi")), Applied::Ignored);
        assert_eq!(live.apply(Some(Seq(3)), &end("teacher Later.")), Applied::Gap);
        assert_eq!(live.apply(None, &end("teacher Nowhere.")), Applied::Ignored);
        assert_eq!(live.apply(Some(Seq(2)), &end("teacher Hello.")), Applied::Taken);
        assert_eq!(live.record.len(), 2);
        assert_eq!(live.position(), Seq(2));
    }

    #[test]
    fn a_placeholder_moves_nothing() {
        let mut live = Live::new(record("user hi\nteacher[toolUse] quiz#q {}"));
        let before = live.clone();
        assert_eq!(live.apply(Some(Seq(2)), &end("result quiz#q Waiting. @ {\"posed\":true}")), Applied::Ignored);
        assert_eq!(live, before);
    }

    #[test]
    fn an_open_message_is_replaced_even_by_a_shorter_one() {
        let mut live = Live::new(record("user hi"));
        let start =
            |text: &str| AgentEvent::MessageStart { message: sample::message(&format!("teacher[pending] {text}"), 0) };
        live.apply(Some(Seq(1)), &event(json!({"type": "agent_start"})));
        live.apply(Some(Seq(1)), &start("A long answer"));
        live.apply(Some(Seq(1)), &start("A"));
        assert_eq!(live.tail.open.as_ref().map(AssistantMessage::text).as_deref(), Some("A"));
        let delta = json!({"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "nother"}});
        live.apply(Some(Seq(1)), &event(delta));
        assert_eq!(live.tail.open.as_ref().map(AssistantMessage::text).as_deref(), Some("Another"));
    }

    #[test]
    fn a_run_goes_on_from_its_start_to_its_end() {
        let mut live = Live::default();
        let mut check = |json: serde_json::Value, running: bool, settled: bool| {
            live.apply(Some(Seq::START), &event(json));
            assert_eq!((live.tail.running, live.tail.settled), (running, settled));
        };
        check(json!({"type": "agent_start"}), true, false);
        check(json!({"type": "agent_end", "messages": []}), false, false);
        check(json!({"type": "turn-settled"}), false, true);
        check(json!({"type": "agent_start"}), true, false);
    }

    #[test]
    fn a_reader_who_only_looks_sees_the_run_its_wait_and_its_end() {
        let mut live = Live::new(record("user hi"));
        let retry = Retry { attempt: 1, wait_ms: 3_000, reason: "Busy.".to_owned() };
        live.see(Vec::new(), true, Some(retry.clone()));
        assert_eq!((live.tail.running, live.tail.settled, &live.tail.retry), (true, false, &Some(retry)));
        live.see(Vec::new(), true, None);
        assert_eq!((live.tail.running, &live.tail.retry), (true, &None));
        live.see(record("user hi\nteacher Hello."), false, None);
        assert_eq!((live.tail.running, live.tail.settled, live.record.len()), (false, true, 2));
    }

    #[test]
    fn what_a_turn_left_unfinished_ends_with_it() {
        let start = json!({"type": "tool_execution_start", "toolCallId": "a", "toolName": "ls", "args": {}});
        let turn_end = json!({"type": "turn_end", "message": {"role": "assistant"}, "toolResults": []});
        for ending in [turn_end, json!({"type": "turn_start"}), json!({"type": "agent_end", "messages": []})] {
            let mut live = Live::default();
            live.apply(Some(Seq::START), &event(json!({"type": "agent_start"})));
            live.apply(
                Some(Seq::START),
                &AgentEvent::MessageStart { message: sample::message("teacher[pending] A", 0) },
            );
            live.apply(Some(Seq::START), &event(start.clone()));
            live.apply(Some(Seq::START), &event(ending));
            assert_eq!((live.tail.open, live.tail.tools), (None, Vec::new()));
        }
    }

    #[test]
    fn what_a_run_complains_of_is_kept_until_the_next_run() {
        let mut live = Live::default();
        live.apply(
            None,
            &event(json!({"type": "error", "error": {"kind": "storage", "message": "The disk is full."}})),
        );
        live.apply(None, &event(json!({"type": "agent_end", "messages": []})));
        assert_eq!(live.tail.error.as_ref().map(|body| body.error.message.as_str()), Some("The disk is full."));
        live.apply(None, &event(json!({"type": "agent_start"})));
        assert_eq!(live.tail.error, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_record_cut_anywhere_and_the_events_of_the_rest_are_the_whole(text in sample::lesson(), cut in 0usize..40) {
            let whole = record(&text);
            let cut = cut.min(whole.len());
            let mut live = Live::new(whole[..cut].to_vec());
            for (id, event) in events(&whole, cut) {
                live.apply(Some(id), &event);
            }
            prop_assert_eq!(view(&live), view(&Live::new(whole.clone())));
            prop_assert_eq!(live.record, whole);
        }

        #[test]
        fn whoever_attaches_late_or_again_sees_what_one_sees_who_watched_all_along(
            text in sample::lesson(),
            cut in 0usize..40,
            at in 0usize..400,
            behind in 0usize..6,
        ) {
            let whole = record(&text);
            let cut = cut.min(whole.len());
            let script = events(&whole, cut);
            let at = at.min(script.len());
            let mut watched = Live::new(whole[..cut].to_vec());
            let mut again = watched.clone();
            for (id, event) in &script[..at] {
                watched.apply(Some(*id), event);
                again.apply(Some(*id), event);
            }
            let known = watched.record.len().saturating_sub(behind);
            let mut late = Live::new(watched.record[..known].to_vec());
            for (id, event) in attach(&watched, late.position()) {
                late.apply(Some(id), &event);
            }
            // One who lost the stream and asks for more than it needs.
            for (id, event) in attach(&watched, late.record.first().map_or(Seq::START, |first| first.seq)) {
                again.apply(Some(id), &event);
            }
            prop_assert_eq!(view(&late), view(&watched));
            prop_assert_eq!(view(&again), view(&watched));
            for (id, event) in &script[at..] {
                watched.apply(Some(*id), event);
                late.apply(Some(*id), event);
                again.apply(Some(*id), event);
                prop_assert_eq!(view(&late), view(&watched));
                prop_assert_eq!(view(&again), view(&watched));
            }
        }

        #[test]
        fn units_and_parts_have_keys_of_their_own(text in sample::lesson()) {
            let units = view(&Live::new(record(&text)));
            let keys: Vec<_> = units.iter().map(|unit| unit.key).collect();
            prop_assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
            let mut parts: Vec<_> = units.iter().flat_map(|unit| &unit.parts).map(|part| part.key).collect();
            let count = parts.len();
            parts.sort_unstable();
            parts.dedup();
            prop_assert_eq!(parts.len(), count);
        }
    }
}
