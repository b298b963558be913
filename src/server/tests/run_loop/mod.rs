//! The agent loop alone: a scripted model, scripted tools, and the events that come of it.

mod faults;
mod kept;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use learnharness::app::native::event::ToolOutput;
use learnharness::app::native::plan::BlockStatus;
use learnharness::app::native::{AgentEvent, Block, Marker, Message, Seq, StopReason, Stored, ToolResultMessage};
use learnharness::server::agent::tool::{After, Call, Done, Face, Mode, Replay};
use learnharness::server::agent::tools::registry;
use learnharness::server::agent::{Config, Context, Halted, Sink, Steering, Tool, ToolError, run_loop};
use learnharness::server::llm::ToolSpec;
use learnharness::server::llm::catalog::Models;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::model::{Hand, driven, line};
use crate::support::soon;

/// A run under way, with everything that a test drives it by.
struct Play {
    model: Hand,
    cancel: CancellationToken,
    steers: Arc<Queue>,
    events: mpsc::UnboundedReceiver<AgentEvent>,
    log: Vec<String>,
    tasks: JoinSet<Result<Vec<Message>, Halted>>,
}

/// What a run starts from; `play` starts it.
struct Setup {
    tools: Vec<Arc<dyn Tool>>,
    record: Vec<Message>,
    steers: Vec<Message>,
    max_turns: usize,
    /// The `message_end` that the record refuses, counted from 1; 0 for none.
    refuses: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { tools: Vec::new(), record: Vec::new(), steers: Vec::new(), max_turns: 20, refuses: 0 }
    }
}

impl Setup {
    fn with(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, ..Self::default() }
    }

    /// Starts the run with the prompt "Hi".
    fn play(self) -> Play {
        let (model, Models { model: catalog, dialect, options }) = driven();
        let (sender, events) = mpsc::unbounded_channel();
        let steers = Arc::new(Queue(Mutex::new(self.steers.into())));
        let cancel = CancellationToken::new();
        let record = self.record.into_iter().zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message });
        let record: Vec<Stored> = record.collect();
        let mut sink = Told { sender, last: Seq(u32::try_from(record.len()).unwrap()), refuses: self.refuses };
        let config = Config {
            model: catalog,
            dialect,
            steering: steers.clone(),
            max_turns: self.max_turns,
            session: "chat".to_owned(),
            options,
        };
        let context = Context { system: "Teach.".to_owned(), record, tools: self.tools };
        let mut tasks = JoinSet::new();
        let stop = cancel.clone();
        tasks.spawn(async move { run_loop(vec![Message::user("Hi", 0)], context, &config, &mut sink, &stop).await });
        Play { model, cancel, steers, events, log: Vec::new(), tasks }
    }
}

impl Play {
    /// Waits for an event whose line begins so.
    async fn until(&mut self, beginning: &str) {
        loop {
            let event = soon(beginning, self.events.recv()).await.expect("the run is over");
            let line = shown(&event);
            let found = line.starts_with(beginning);
            self.log.push(line);
            if found {
                return;
            }
        }
    }

    /// Waits for the end and returns all lines of the run.
    async fn end(mut self) -> (Vec<String>, Result<Vec<Message>, Halted>) {
        let outcome = soon("the end of the run", self.tasks.join_next()).await.unwrap().unwrap();
        while let Some(event) = self.events.recv().await {
            self.log.push(shown(&event));
        }
        (self.log, outcome)
    }

    async fn check(self, expected: &str) {
        let (log, outcome) = self.end().await;
        outcome.unwrap();
        same(&log, expected);
    }
}

/// Compares without the updates of messages.
fn same(log: &[String], expected: &str) {
    let log: Vec<&str> = log.iter().map(|line| line.trim()).filter(|line| *line != "message_update").collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(log, expected, "{log:#?}");
}

/// An event in one line.
fn shown(event: &AgentEvent) -> String {
    let texts = |output: &ToolOutput| output.content.iter().filter_map(Block::as_text).collect::<String>();
    match event {
        AgentEvent::MessageStart { message: Message::Assistant(_) } => "message_start assistant".to_owned(),
        AgentEvent::MessageStart { message } => format!("message_start {}", line(message)),
        AgentEvent::MessageUpdate { .. } => "message_update".to_owned(),
        AgentEvent::MessageEnd { message } => format!("message_end {}", line(message)),
        AgentEvent::ToolExecutionStart { tool_call_id, .. } => format!("start {tool_call_id}"),
        AgentEvent::ToolExecutionUpdate { tool_call_id, partial_result, .. } => {
            format!("update {tool_call_id} {}", texts(partial_result))
        }
        AgentEvent::ToolExecutionEnd { tool_call_id, result, is_error, .. } => {
            format!("end{} {tool_call_id} {}", if *is_error { "!" } else { "" }, texts(result))
        }
        AgentEvent::TurnEnd { tool_results, .. } => format!("turn_end {}", tool_results.len()),
        AgentEvent::AgentEnd { messages } => format!("agent_end {}", messages.len()),
        other => serde_json::to_value(other).unwrap()["type"].as_str().unwrap().to_owned(),
    }
}

/// Numbers the messages as a record does.
struct Told {
    sender: mpsc::UnboundedSender<AgentEvent>,
    last: Seq,
    refuses: usize,
}

#[async_trait]
impl Sink for Told {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        let mut seq = None;
        if let AgentEvent::MessageEnd { message } = &event
            && !message.as_tool_result().is_some_and(ToolResultMessage::is_posed_placeholder)
        {
            self.last = self.last.next();
            if self.last.0 as usize == self.refuses {
                return Err(Halted("the disk is full".to_owned()));
            }
            seq = Some(self.last);
        }
        let _ = self.sender.send(event);
        Ok(seq)
    }
}

/// Messages that wait to join.
struct Queue(Mutex<VecDeque<Message>>);

impl Queue {
    fn push(&self, text: &str) {
        self.0.lock().unwrap().push_back(Message::user(text, 0));
    }
}

#[async_trait]
impl Steering for Queue {
    async fn poll(&self) -> Vec<Message> {
        self.0.lock().unwrap().drain(..).collect()
    }
}

type Work = Box<dyn Fn(Call) -> futures::future::BoxFuture<'static, Result<Done, ToolError>> + Send + Sync>;

/// A tool that does what a test says.
struct Scripted {
    face: Face,
    work: Work,
}

#[async_trait]
impl Tool for Scripted {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        (self.work)(call).await
    }
}

fn tool<F>(name: &str, mode: Mode, after: After, work: impl Fn(Call) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
where
    F: Future<Output = Result<Done, ToolError>> + Send + 'static,
{
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let spec =
        ToolSpec { name: name.to_owned(), description: format!("Runs {name}"), parameters, ..ToolSpec::default() };
    let face = Face { spec, label: "Scripted", snippet: "does what a test says", mode, after, replay: Replay::Again };
    Arc::new(Scripted { face, work: Box::new(move |call| Box::pin(work(call))) })
}

fn says(name: &str, mode: Mode, after: After, text: &'static str) -> Arc<dyn Tool> {
    tool(name, mode, after, move |_| async move { Ok(Done::text(text)) })
}

fn look() -> Arc<dyn Tool> {
    says("look", Mode::Parallel, After::GoOn, "found")
}

fn q() -> Value {
    json!({"q": "x"})
}

#[tokio::test]
async fn a_text_is_one_turn() {
    let play = Setup::default().play();
    play.model.reply("Hello.").await;
    play.check(
        "agent_start
        turn_start
        message_start user Hi
        message_end user Hi
        message_start assistant
        message_end assistant[Stop] Hello.
        turn_end 0
        agent_end 2",
    )
    .await;
}

#[tokio::test]
async fn calls_run_side_by_side_and_their_results_come_in_the_models_order() {
    let gate = Arc::new(Notify::new());
    let (opens, waits) = (gate.clone(), gate);
    let slow = tool("slow", Mode::Parallel, After::GoOn, move |_| {
        let gate = waits.clone();
        async move {
            gate.notified().await;
            Ok(Done::text("slow done"))
        }
    });
    let mut play = Setup::with(vec![slow, look()]).play();
    play.model.call(&[("a", "slow", q()), ("b", "look", q())]).await;
    play.until("end b").await;
    opens.notify_one();
    play.model.reply("Done.").await;
    play.check(
        "agent_start
        turn_start
        message_start user Hi
        message_end user Hi
        message_start assistant
        message_end assistant[ToolUse]  slow#a look#b
        start a
        start b
        end b found
        end a slow done
        message_start result slow#a slow done
        message_end result slow#a slow done
        message_start result look#b found
        message_end result look#b found
        turn_end 2
        turn_start
        message_start assistant
        message_end assistant[Stop] Done.
        turn_end 0
        agent_end 5",
    )
    .await;
}

#[tokio::test]
async fn one_sequential_tool_makes_its_batch_run_one_by_one() {
    let play = Setup::with(vec![look(), says("ask", Mode::Sequential, After::GoOn, "asked")]).play();
    play.model.call(&[("a", "look", q()), ("b", "ask", q())]).await;
    play.model.reply("Done.").await;
    let (log, _) = play.end().await;
    let last = log.iter().rposition(|line| line == "turn_start").unwrap();
    same(
        &log[log.iter().position(|line| line == "start a").unwrap()..=last],
        "start a
        end a found
        message_start result look#a found
        message_end result look#a found
        start b
        end b asked
        message_start result ask#b asked
        message_end result ask#b asked
        turn_end 2
        turn_start",
    );
}

#[tokio::test]
async fn a_tool_gets_arguments_in_the_form_of_its_schema_and_the_record_keeps_what_the_model_wrote() {
    let got = Arc::new(Mutex::new(Value::Null));
    let keeps = {
        let got = got.clone();
        tool("look", Mode::Parallel, After::GoOn, move |call| {
            *got.lock().unwrap() = call.args;
            async { Ok(Done::text("found")) }
        })
    };
    let mut play = Setup::with(vec![keeps]).play();
    play.model.call(&[("a", "look", json!({"q": 7}))]).await;
    play.until("start a").await;
    let asked = play.model.request().await;
    let call = asked.request.messages[1].as_assistant().unwrap().tool_calls().next().unwrap().clone();
    asked.end(StopReason::Stop);
    assert_eq!((got.lock().unwrap().clone(), call.arguments), (json!({"q": "7"}), json!({"q": 7})));
}

#[tokio::test]
async fn an_unknown_tool_and_bad_arguments_come_back_as_errors_that_a_model_can_act_on() {
    let play = Setup::with(vec![look()]).play();
    play.model.call(&[("a", "nope", q()), ("b", "look", json!({"q": [7]})), ("c", "look", json!({}))]).await;
    let asked = play.model.request().await;
    let texts = asked.texts();
    assert_eq!(texts[2], "result! nope#a Tool nope not found");
    assert!(texts[3].starts_with("result! look#b Validation failed for tool \"look\":\n  - q: "), "{texts:?}");
    assert!(texts[3].contains("Received arguments:\n{\n  \"q\": [\n    7\n  ]\n}"), "{texts:?}");
    assert!(texts[4].contains("\"q\" is a required property"), "{texts:?}");
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn no_call_of_an_answer_that_was_cut_runs() {
    let ran = Arc::new(Mutex::new(false));
    let flag = ran.clone();
    let touch = tool("touch", Mode::Parallel, After::StopRun, move |_| {
        *flag.lock().unwrap() = true;
        async { Ok(Done::text("touched")) }
    });
    let play = Setup::with(vec![touch]).play();
    let mut asked = play.model.request().await;
    asked.call("a", "touch", &q());
    asked.end(StopReason::Length);
    let again = play.model.request().await;
    assert!(
        again.texts()[2].starts_with("result! touch#a Tool call \"touch\" was not executed"),
        "{:?}",
        again.texts()
    );
    again.end(StopReason::Stop);
    play.end().await.1.unwrap();
    assert!(!*ran.lock().unwrap());
}

#[tokio::test]
async fn a_failed_request_ends_the_run_before_steering_is_polled() {
    let play = Setup::default().play();
    let asked = play.model.request().await;
    play.steers.push("later");
    asked.fail("The provider is down.");
    let steers = play.steers.clone();
    play.check(
        "agent_start
        turn_start
        message_start user Hi
        message_end user Hi
        message_start assistant
        message_end assistant[Error]
        turn_end 0
        agent_end 2",
    )
    .await;
    assert_eq!(steers.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_as_a_turn_of_its_own_and_what_waits_joins_it() {
    let play = Setup::default().play();
    let mut asked = play.model.request().await;
    play.steers.push("wait");
    asked.upstream("Novita");
    asked.think("Now");
    asked.end_as_it_is(StopReason::Stop);
    let mut again = play.model.request().await;
    assert_eq!(again.texts(), ["user Hi", "user wait"]);
    assert_eq!(again.request.options.avoid, ["Novita"], "not from there again");
    again.say("Hello.");
    again.end(StopReason::Stop);
    play.check(
        "agent_start
        turn_start
        message_start user Hi
        message_end user Hi
        message_start assistant
        message_end assistant[Error]
        turn_end 0
        turn_start
        message_start user wait
        message_end user wait
        message_start marker notice
        message_end marker notice
        message_start assistant
        message_end assistant[Stop] Hello.
        turn_end 0
        agent_end 5",
    )
    .await;
}

#[tokio::test]
async fn a_second_empty_answer_ends_the_run_and_one_after_a_call_is_a_first_one_again() {
    let play = Setup::with(vec![look()]).play();
    play.model.request().await.end_as_it_is(StopReason::Stop);
    play.model.call(&[("a", "look", q())]).await;
    play.model.request().await.end_as_it_is(StopReason::Stop);
    play.model.request().await.end_as_it_is(StopReason::Length);
    let (log, outcome) = play.end().await;
    let messages = outcome.unwrap();
    let words = messages.last().unwrap().as_assistant().unwrap().error_message.clone();
    assert_eq!(words.as_deref(), Some("The model used up its limit of tokens before it came to an answer."));
    assert_eq!(log.iter().filter(|line| *line == "message_end marker notice").count(), 2);
}

#[tokio::test]
async fn nobody_is_asked_again_after_a_stop_or_beyond_the_last_turn() {
    let play = Setup { max_turns: 1, ..Setup::default() }.play();
    play.model.request().await.end_as_it_is(StopReason::Stop);
    let messages = play.end().await.1.unwrap();
    let Some(Message::Custom(notice)) = messages.last() else { panic!("{messages:?}") };
    assert_eq!(notice.details, json!({"kind": "turn-cap"}));
    let play = Setup::default().play();
    let asked = play.model.request().await;
    asked.end_as_it_is(StopReason::Stop);
    play.cancel.cancel();
    assert_eq!(play.end().await.1.unwrap().len(), 2, "the user's and the empty one");
}

#[tokio::test]
async fn stopping_in_mid_text_keeps_what_was_said() {
    let mut play = Setup::default().play();
    let mut asked = play.model.request().await;
    asked.say("Half a sen");
    play.until("message_update").await;
    play.until("message_update").await;
    play.cancel.cancel();
    play.check(
        "agent_start
        turn_start
        message_start user Hi
        message_end user Hi
        message_start assistant
        message_end assistant[Aborted] Half a sen
        turn_end 0
        agent_end 2",
    )
    .await;
    drop(asked);
}

#[tokio::test]
async fn stopping_while_tools_run_gives_them_their_grace_and_makes_no_other_request() {
    let tidy = tool("tidy", Mode::Parallel, After::GoOn, |call| async move {
        call.cancel.cancelled().await;
        Ok(Done::text("tidied up"))
    });
    let deaf = tool("deaf", Mode::Parallel, After::GoOn, |_| futures::future::pending());
    let mut play = Setup::with(vec![tidy, deaf]).play();
    play.model.call(&[("a", "tidy", q()), ("b", "deaf", q())]).await;
    play.until("start b").await;
    play.cancel.cancel();
    let (log, outcome) = play.end().await;
    outcome.unwrap();
    same(
        &log[log.iter().position(|line| line == "start b").unwrap()..],
        "start b
        end a tidied up
        end! b Interrupted; effects unknown.
        message_start result tidy#a tidied up
        message_end result tidy#a tidied up
        message_start result! deaf#b Interrupted; effects unknown.
        message_end result! deaf#b Interrupted; effects unknown.
        turn_end 2
        turn_start
        message_start assistant
        message_end assistant[Aborted]
        turn_end 0
        agent_end 5",
    );
}

#[tokio::test]
async fn what_waits_at_the_start_goes_into_the_first_request() {
    let play = Setup { steers: vec![Message::user("one", 0), Message::user("two", 0)], ..Setup::default() }.play();
    let asked = play.model.request().await;
    assert_eq!(asked.texts(), ["user Hi", "user one", "user two"]);
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn what_comes_during_a_turn_waits_for_its_results_and_starts_another_one() {
    let play = Setup::with(vec![look()]).play();
    let mut asked = play.model.request().await;
    play.steers.push("wait");
    asked.call("a", "look", &q());
    asked.end(StopReason::ToolUse);
    let mut again = play.model.request().await;
    assert_eq!(again.texts(), ["user Hi", "assistant[ToolUse]  look#a", "result look#a found", "user wait"]);
    play.steers.push("and");
    again.say("I wait.");
    again.end(StopReason::Stop);
    let last = play.model.request().await;
    assert_eq!(last.texts().last().unwrap(), "user and");
    last.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn a_tool_that_stops_the_run_stops_it_before_steering_and_keeps_its_siblings_results() {
    for mode in [Mode::Parallel, Mode::Sequential] {
        let play = Setup::with(vec![look(), says("halt", mode, After::StopRun, "halted")]).play();
        let mut asked = play.model.request().await;
        play.steers.push("later");
        asked.call("a", "halt", &q());
        asked.call("b", "look", &q());
        asked.end(StopReason::ToolUse);
        let steers = play.steers.clone();
        let (log, outcome) = play.end().await;
        let kept: Vec<String> = outcome.unwrap().iter().map(line).collect();
        assert_eq!(kept[2..], ["result halt#a halted", "result look#b found"]);
        assert_eq!(log.last().unwrap(), "agent_end 4");
        assert_eq!(steers.0.lock().unwrap().len(), 1, "a steer was taken");
    }
}

#[tokio::test]
async fn a_stopping_tool_that_fails_stops_nothing() {
    let halt = tool("halt", Mode::Parallel, After::StopRun, |_| async { Err(ToolError("Not yet.".to_owned())) });
    let play = Setup::with(vec![halt]).play();
    play.model.call(&[("a", "halt", q())]).await;
    let asked = play.model.request().await;
    assert_eq!(asked.texts().last().unwrap(), "result! halt#a Not yet.");
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn the_last_turn_of_a_run_leaves_a_notice() {
    let play = Setup { max_turns: 2, ..Setup::with(vec![look()]) }.play();
    play.model.call(&[("a", "look", q())]).await;
    play.model.call(&[("b", "look", q())]).await;
    let (log, outcome) = play.end().await;
    let messages = outcome.unwrap();
    let Some(Message::Custom(notice)) = messages.last() else { panic!("{messages:?}") };
    assert_eq!((notice.custom_type.as_str(), &notice.details), ("notice", &json!({"kind": "turn-cap"})));
    assert_eq!(log.iter().filter(|line| *line == "turn_start").count(), 2);
}

#[tokio::test]
async fn a_run_that_ends_with_its_last_turn_leaves_no_notice() {
    let play = Setup { max_turns: 1, ..Setup::default() }.play();
    play.model.reply("Hello.").await;
    assert_eq!(play.end().await.1.unwrap().len(), 2);
}

#[tokio::test]
async fn markers_follow_the_result_that_they_belong_to() {
    let mark = tool("mark", Mode::Parallel, After::GoOn, |call| async move {
        let marker = Marker::PlanBlock { block_id: call.id, status: BlockStatus::Done };
        Ok(Done { markers: vec![marker], ..Done::text("noted") })
    });
    let play = Setup::with(vec![mark, look()]).play();
    play.model.call(&[("a", "mark", q()), ("b", "look", q())]).await;
    let asked = play.model.request().await;
    assert_eq!(asked.texts()[2..], ["result mark#a noted", "result look#b found"], "a display-only marker was sent");
    asked.end(StopReason::Stop);
    let (log, _) = play.end().await;
    let after = log.iter().position(|line| line == "message_end result mark#a noted").unwrap();
    let expected = "message_start marker plan-block\nmessage_end marker plan-block\nmessage_start result look#b found";
    same(&log[after + 1..after + 4], expected);
}

#[tokio::test]
async fn a_posed_question_ends_the_run_with_a_placeholder_in_five_events() {
    let mut play = Setup::with(registry(learnharness::app::native::view::Phase::Probe)).play();
    let quiz =
        json!({"question": "2 + 2?", "kind": "single", "options": ["3", "4"], "correct": ["4"], "concept": "sums"});
    play.model.call(&[("a", "quiz", quiz)]).await;
    let mut holders = Vec::new();
    while let Some(event) = soon("an event", play.events.recv()).await {
        let json = serde_json::to_value(&event).unwrap();
        if json.to_string().contains("\"posed\":true") {
            holders.push(json["type"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(holders, ["tool_execution_end", "message_start", "message_end", "turn_end", "agent_end"]);
}

#[tokio::test]
async fn a_question_that_cannot_be_posed_is_an_error_and_the_model_goes_on() {
    let play = Setup::with(registry(learnharness::app::native::view::Phase::Probe)).play();
    let quiz =
        json!({"question": "2 + 2?", "kind": "single", "options": ["3", "4"], "correct": ["5"], "concept": "sums"});
    play.model.call(&[("a", "quiz", quiz)]).await;
    let asked = play.model.request().await;
    assert!(asked.texts()[2].contains("not among the options"), "{:?}", asked.texts());
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn intermediate_results_are_shown_in_order_and_never_after_the_end() {
    let late = Arc::new(Mutex::new(None));
    let keep = late.clone();
    let job = tool("job", Mode::Parallel, After::GoOn, move |call| {
        let keep = keep.clone();
        async move {
            for text in ["10%", "50%"] {
                call.updates.send(Done::text(text).output);
            }
            *keep.lock().unwrap() = Some(call.updates);
            Ok(Done::text("100%"))
        }
    });
    let play = Setup::with(vec![job]).play();
    play.model.call(&[("a", "job", q())]).await;
    let asked = play.model.request().await;
    late.lock().unwrap().take().unwrap().send(Done::text("late").output);
    asked.end(StopReason::Stop);
    let (log, _) = play.end().await;
    let begun = log.iter().position(|line| line == "start a").unwrap();
    same(&log[begun..begun + 4], "start a\nupdate a 10%\nupdate a 50%\nend a 100%");
}

#[tokio::test]
async fn a_record_that_refuses_ends_the_run_without_another_event() {
    for refuses in 1..=3 {
        let play = Setup { refuses, ..Setup::with(vec![look()]) }.play();
        if refuses > 1 {
            play.model.call(&[("a", "look", q())]).await;
        }
        let (log, outcome) = play.end().await;
        assert_eq!(outcome.unwrap_err().to_string(), "the record could not be written: the disk is full");
        assert!(!log.iter().any(|line| line.starts_with("agent_end")), "{log:?}");
        assert_eq!(log.iter().filter(|line| line.starts_with("message_end")).count(), refuses - 1, "{log:?}");
    }
}
