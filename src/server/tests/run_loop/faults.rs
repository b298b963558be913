//! Reported faults that drive the loop (`fixtures/faults`, 19, 37, 39, 40, 42, 43, 44): what hangs, breaks, goes in circles
//! or is stopped, at every event of a run.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use learnharness::app::native::view::Phase;
use learnharness::app::native::{AssistantMessage, ToolCall, Usage};
use learnharness::server::llm::options::Options;
use learnharness::server::llm::{Dialect, Request, StreamEvent};

use super::*;
use crate::support::judge::faults_of;
use crate::support::model::catalog_model;

/// Gives its answers one after the other, at once, and judges what it is asked.
struct Prompt {
    answers: Mutex<VecDeque<AssistantMessage>>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Dialect for Prompt {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| says_text("Well."));
        let (refused, request) = (self.refused.clone(), request.into_owned());
        let judged = async move {
            let faults = faults_of(&request).await;
            refused.lock().unwrap().extend(faults);
        };
        stream::once(judged)
            .flat_map(move |()| {
                let mut answer = answer.clone();
                if cancel.is_cancelled() {
                    answer = AssistantMessage { stop_reason: StopReason::Aborted, ..AssistantMessage::default() };
                }
                let started = AssistantMessage { content: Vec::new(), ..answer.clone() };
                stream::iter([StreamEvent::Start(Box::new(started)), StreamEvent::End(Box::new(answer))])
            })
            .boxed()
    }
}

fn says_text(text: &str) -> AssistantMessage {
    AssistantMessage { content: vec![Block::text(text)], stop_reason: StopReason::Stop, ..AssistantMessage::default() }
}

fn calls(calls: &[(&str, &str, Value)]) -> AssistantMessage {
    let call = |(id, name, args): &(&str, &str, Value)| {
        let (id, name) = ((*id).to_owned(), (*name).to_owned());
        Block::from(ToolCall { id, name, arguments: args.clone(), ..ToolCall::default() })
    };
    let content = calls.iter().map(call).collect();
    AssistantMessage { content, stop_reason: StopReason::ToolUse, ..AssistantMessage::default() }
}

fn fails() -> AssistantMessage {
    let error_message = Some("The provider is down.".to_owned());
    AssistantMessage { stop_reason: StopReason::Error, error_message, ..says_text("Half") }
}

/// Steers as the store keeps them: a poll only looks, and the end of a steer's message takes it out.
#[derive(Default)]
struct Mailbox(Mutex<Vec<Message>>);

#[async_trait]
impl Steering for Mailbox {
    async fn poll(&self) -> Vec<Message> {
        self.0.lock().unwrap().clone()
    }
}

/// What happens at the event of a number, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Never,
    Stop(usize),
    Steer(usize),
    SteerAndStop(usize),
    Refuse(usize),
    /// Steers wait no more when they are to be delivered.
    Withdraw,
}

/// A record with its mailbox: it keeps what a run says, and makes happen what shall happen.
struct Stage {
    mailbox: Arc<Mailbox>,
    record: Vec<Stored>,
    events: Vec<AgentEvent>,
    at: At,
    cancel: CancellationToken,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new(at: At) -> Self {
        let (mailbox, refused) = (Arc::default(), Arc::default());
        Self { mailbox, record: Vec::new(), events: Vec::new(), at, cancel: CancellationToken::new(), refused }
    }

    /// One run; its events are those of the stage.
    async fn run(
        &mut self,
        prompt: &str,
        tools: Vec<Arc<dyn Tool>>,
        answers: &[AssistantMessage],
    ) -> Result<Vec<Message>, Halted> {
        self.cancel = CancellationToken::new();
        self.events.clear();
        let config = Config {
            model: catalog_model(),
            dialect: Arc::new(Prompt {
                answers: Mutex::new(answers.iter().cloned().collect()),
                refused: self.refused.clone(),
            }),
            steering: self.mailbox.clone(),
            max_turns: 6,
            session: String::new(),
            options: Options::default(),
        };
        let context = Context { system: "Teach.".to_owned(), record: self.record.clone(), tools };
        let cancel = self.cancel.clone();
        let prompts = if prompt.is_empty() { Vec::new() } else { vec![Message::user(prompt, 0)] };
        let outcome = soon("the end of the run", run_loop(prompts, context, &config, self, &cancel)).await;
        let refused = self.refused.lock().unwrap();
        assert!(refused.is_empty(), "{:?}: a provider would refuse: {refused:#?}", self.at);
        outcome
    }

    fn lines(&self) -> Vec<String> {
        self.record.iter().map(|stored| line(&stored.message)).collect()
    }

    /// A run begins and ends once, all that begins in it ends in it, and nothing comes after the end.
    fn check_grammar(&self, is_whole: bool) {
        let kinds: Vec<String> = self.events.iter().map(shown).collect();
        let count = |kind: &str| kinds.iter().filter(|line| line.starts_with(kind)).count();
        let why = || format!("{:?}: {kinds:#?}", self.at);
        assert_eq!((count("agent_start"), kinds[0].as_str()), (1, "agent_start"), "{}", why());
        assert_eq!(count("agent_end"), usize::from(is_whole), "{}", why());
        let mut open: Option<&str> = None;
        for line in &kinds {
            match line.split(' ').next().unwrap() {
                "message_start" => assert_eq!(open.replace(line), None, "{}", why()),
                "message_end" => assert!(open.take().is_some(), "{}", why()),
                "message_update" => assert!(open.is_some(), "{}", why()),
                _ => assert_eq!(open, None, "{}", why()),
            }
        }
        if is_whole {
            assert!(kinds.last().unwrap().starts_with("agent_end"), "{}", why());
            assert_eq!(count("turn_start"), count("turn_end"), "{}", why());
            assert_eq!(count("start "), count("end ") + count("end! "), "{}", why());
        }
    }
}

#[async_trait]
impl Sink for Stage {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        let number = self.events.len() + 1;
        match self.at {
            At::Stop(at) if at == number => self.cancel.cancel(),
            At::Steer(at) if at == number => self.mailbox.0.lock().unwrap().push(Message::user("use metres", 0)),
            At::SteerAndStop(at) if at == number => {
                self.mailbox.0.lock().unwrap().push(Message::user("use metres", 0));
                self.cancel.cancel();
            }
            At::Refuse(at) if at <= number => return Err(Halted("the disk is full".to_owned())),
            At::Never | At::Stop(_) | At::Steer(_) | At::SteerAndStop(_) | At::Refuse(_) | At::Withdraw => {}
        }
        self.events.push(event.clone());
        let AgentEvent::MessageEnd { message } = event else { return Ok(None) };
        if message.as_tool_result().is_some_and(ToolResultMessage::is_posed_placeholder) {
            return Ok(None);
        }
        self.mailbox.0.lock().unwrap().retain(|waiting| *waiting != message);
        let seq = Seq(u32::try_from(self.record.len()).unwrap() + 1);
        self.record.push(Stored { seq, message });
        Ok(Some(seq))
    }

    async fn deliver(&mut self, steer: &Message) -> Result<bool, Halted> {
        if self.at == At::Withdraw {
            self.mailbox.0.lock().unwrap().retain(|waiting| waiting != steer);
        }
        Ok(self.at != At::Withdraw)
    }
}

fn boom() -> Arc<dyn Tool> {
    tool("boom", Mode::Parallel, After::GoOn, |call| async move {
        assert!(call.args.is_null(), "boom");
        Ok(Done::text("never"))
    })
}

/// Two calls, one of which breaks, then a text.
fn script() -> Vec<AssistantMessage> {
    vec![calls(&[("c1", "look", q()), ("c2", "boom", q())]), says_text("Done.")]
}

type Tools = Vec<Arc<dyn Tool>>;

fn tools() -> Tools {
    vec![look(), boom()]
}

#[tokio::test]
async fn of_a_batch_what_ended_is_kept_what_broke_says_so_and_what_hangs_is_interrupted() {
    let sleepy = tool("sleepy", Mode::Parallel, After::GoOn, |_| futures::future::pending());
    let mut play = Setup::with(vec![look(), boom(), sleepy]).play();
    play.model.call(&[("c1", "look", q()), ("c2", "boom", q()), ("c3", "sleepy", q())]).await;
    play.until("end c1").await;
    play.until("end! c2").await;
    let stopped = std::time::Instant::now();
    play.cancel.cancel();
    let (log, outcome) = play.end().await;
    assert!(stopped.elapsed() < std::time::Duration::from_secs(1), "{:?}", stopped.elapsed());
    let kept = outcome.unwrap();
    let results: Vec<String> = kept.iter().filter(|message| message.as_tool_result().is_some()).map(line).collect();
    assert_eq!(
        results,
        [
            "result look#c1 found",
            "result! boom#c2 boom broke; its effects are unknown.",
            "result! sleepy#c3 Interrupted; effects unknown."
        ]
    );
    assert_eq!(log.iter().filter(|line| line.starts_with("agent_end")).count(), 1);
    // The next request is judged, and has them in the order of their calls.
    let play = Setup { record: kept, ..Setup::default() }.play();
    let asked = play.model.request().await;
    assert_eq!(asked.texts()[2..5], results);
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn a_call_that_ends_or_breaks_leaves_its_siblings_alone() {
    let gate = Arc::new(Notify::new());
    let waits = gate.clone();
    let slow = tool("slow", Mode::Parallel, After::GoOn, move |_| {
        let gate = waits.clone();
        async move {
            gate.notified().await;
            Ok(Done::text("rested"))
        }
    });
    let mut play = Setup::with(vec![look(), boom(), slow]).play();
    play.model.call(&[("c1", "look", q()), ("c2", "boom", q()), ("c3", "slow", q())]).await;
    play.until("end! c2").await;
    gate.notify_one();
    let asked = play.model.request().await;
    assert_eq!(asked.texts()[4], "result slow#c3 rested");
    asked.end(StopReason::Stop);
    play.end().await.1.unwrap();
}

#[tokio::test]
async fn a_tool_that_does_not_listen_is_left_behind_and_what_had_not_begun_does_not_begin() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let began = Arc::new(Mutex::new(false));
    let slow = tool("slow_fetch", Mode::Sequential, After::GoOn, move |_| {
        let blocked = blocked.clone();
        async move {
            let work = tokio::task::spawn_blocking(move || blocked.lock().unwrap().recv());
            let _ = work.await;
            Ok(Done::text("too late"))
        }
    });
    let flag = began.clone();
    let next = tool("next", Mode::Sequential, After::GoOn, move |_| {
        *flag.lock().unwrap() = true;
        async { Ok(Done::text("ran")) }
    });
    let mut play = Setup::with(vec![slow, next]).play();
    play.model.call(&[("c1", "slow_fetch", q()), ("c2", "next", q())]).await;
    play.until("start c1").await;
    let stopped = std::time::Instant::now();
    play.cancel.cancel();
    let (log, outcome) = play.end().await;
    assert!(stopped.elapsed() < std::time::Duration::from_millis(500), "{:?}", stopped.elapsed());
    drop(release);
    let kept: Vec<String> = outcome.unwrap().iter().map(line).collect();
    assert_eq!(kept[2..], ["result! slow_fetch#c1 Interrupted; effects unknown.", "assistant[Aborted] "]);
    assert_eq!(log.last().unwrap(), "agent_end 4");
    assert!(!*began.lock().unwrap());
}

/// How many events the script has when nothing happens.
async fn length() -> usize {
    let mut stage = Stage::new(At::Never);
    stage.run("Hi", tools(), &script()).await.unwrap();
    stage.check_grammar(true);
    stage.events.len()
}

#[tokio::test]
async fn a_run_has_one_end_at_whatever_event_it_is_stopped() {
    for at in 1..=length().await {
        let mut stage = Stage::new(At::Stop(at));
        stage.run("Hi", tools(), &script()).await.unwrap();
        stage.check_grammar(true);
        // The chat goes on, with a request that is judged.
        stage.at = At::Never;
        stage.run("Again", tools(), &[says_text("Yes.")]).await.unwrap();
        assert_eq!(stage.lines().last().unwrap(), "assistant[Stop] Yes.", "stopped at {at}");
    }
}

#[tokio::test]
async fn a_record_that_refuses_at_any_event_ends_the_run_there_and_the_chat_goes_on() {
    for at in 1..=length().await {
        let mut stage = Stage::new(At::Refuse(at));
        assert!(stage.run("Hi", tools(), &script()).await.is_err(), "refused at {at}");
        assert_eq!(stage.events.len(), at - 1, "an event after the refusal");
        stage.at = At::Never;
        stage.run("Again", tools(), &[says_text("Yes.")]).await.unwrap();
        stage.check_grammar(true);
    }
}

#[tokio::test]
async fn whatever_ends_a_run_ends_it_once_and_leaves_a_record_that_goes_on() {
    let quiz =
        json!({"question": "2 + 2?", "kind": "single", "options": ["3", "4"], "correct": ["4"], "concept": "sums"});
    let forever: Vec<AssistantMessage> =
        (0..9).map(|turn| calls(&[("c", "look", json!({"q": turn.to_string()}))])).collect();
    let endings: [(&str, Vec<AssistantMessage>, Tools, &str); 5] = [
        ("a failed request", vec![fails()], tools(), "assistant[Error] Half"),
        ("a failure in mid-answer", vec![script()[0].clone(), fails()], tools(), "assistant[Error] Half"),
        ("a tool that panics", script(), tools(), "assistant[Stop] Done."),
        ("the limit of turns", forever, tools(), "marker notice"),
        ("a question", vec![calls(&[("a", "quiz", quiz)])], registry(Phase::Probe), "assistant[ToolUse]  quiz#a"),
    ];
    for (what, answers, tools, last) in endings {
        let mut stage = Stage::new(At::Never);
        stage.run("Hi", tools, &answers).await.unwrap();
        stage.check_grammar(true);
        assert_eq!(stage.lines().last().unwrap(), last, "{what}");
        stage.run("Again", Vec::new(), &[says_text("Yes.")]).await.unwrap();
        stage.check_grammar(true);
    }
}

#[tokio::test]
async fn a_steer_that_comes_at_any_event_is_delivered_once_in_this_run_or_the_next() {
    let length = length().await;
    for at in 1..=length {
        let mut stage = Stage::new(At::Steer(at));
        stage.run("Hi", tools(), &script()).await.unwrap();
        stage.check_grammar(true);
        stage.at = At::Never;
        let waits = !stage.mailbox.0.lock().unwrap().is_empty();
        if waits {
            stage.run("", tools(), &[says_text("In metres.")]).await.unwrap();
        }
        let count = stage.lines().iter().filter(|line| *line == "user use metres").count();
        assert_eq!(count, 1, "at {at}: {:#?}", stage.lines());
        let asked = stage.lines().iter().rposition(|line| line == "user use metres").unwrap();
        assert!(stage.lines()[asked..].len() > 1, "at {at}: nobody answered: {:#?}", stage.lines());
    }
}

#[tokio::test]
async fn a_steer_that_was_looked_at_and_not_taken_waits_for_the_next_run() {
    for at in 1..=length().await + 6 {
        let mut stage = Stage::new(At::Stop(at));
        stage.mailbox.0.lock().unwrap().push(Message::user("use metres", 0));
        stage.run("Hi", tools(), &script()).await.unwrap();
        stage.check_grammar(true);
        stage.at = At::Never;
        stage.run("Again", tools(), &[says_text("In metres.")]).await.unwrap();
        let count = stage.lines().iter().filter(|line| *line == "user use metres").count();
        assert_eq!(count, 1, "stopped at {at}: {:#?}", stage.lines());
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_at_the_end_of_its_last_turn_takes_no_steer_and_says_no_more() {
    let mut undisturbed = Stage::new(At::Never);
    undisturbed.run("Hi", tools(), &[says_text("Yes.")]).await.unwrap();
    // `agent_end` is the last event, `turn_end` the one before.
    let mut stage = Stage::new(At::SteerAndStop(undisturbed.events.len() - 1));
    stage.run("Hi", tools(), &[says_text("Yes.")]).await.unwrap();
    assert_eq!(stage.lines(), ["user Hi", "assistant[Stop] Yes."]);
}

#[tokio::test]
async fn a_steer_that_waits_no_more_is_neither_shown_nor_said_to_the_model() {
    let mut stage = Stage::new(At::Withdraw);
    stage.mailbox.0.lock().unwrap().push(Message::user("use metres", 0));
    stage.run("Hi", tools(), &[says_text("Yes.")]).await.unwrap();
    stage.check_grammar(true);
    assert_eq!(stage.lines(), ["user Hi", "assistant[Stop] Yes."]);
    assert!(!stage.events.iter().any(|event| serde_json::to_string(event).unwrap().contains("use metres")));
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_stopped_with_a_notice_and_one_that_gets_on_is_not() {
    let look_at = |turn: usize, args: Value| calls(&[(&format!("c{turn}"), "look", args)]);
    let keys = |turn: usize| match turn % 2 {
        0 => look_at(turn, json!({"q": "a", "limit": 5})),
        _ => look_at(turn, json!({"limit": 5, "q": "a"})),
    };
    let pairs = |turn: usize| look_at(turn, json!({"q": if turn.is_multiple_of(2) { "k" } else { "." }}));
    let on = |turn: usize| match turn {
        3 => says_text("end"),
        _ => look_at(turn, json!({"q": "a", "offset": turn * 100})),
    };
    let unknown = |turn: usize| calls(&[(&format!("c{turn}"), "gone", q())]);
    type Turn<'a> = &'a dyn Fn(usize) -> AssistantMessage;
    let cases: [(&str, Turn, Tools, usize, &str); 4] = [
        ("two calls in turn", &pairs, tools(), 6, "marker notice"),
        ("keys in another order", &keys, tools(), 3, "marker notice"),
        ("a file read on", &on, tools(), 4, "assistant[Stop] end"),
        ("a call of what is not there", &unknown, Vec::new(), 3, "marker notice"),
    ];
    for (what, turn, tools, turns, last) in cases {
        let mut stage = Stage::new(At::Never);
        let answers: Vec<AssistantMessage> = (0..20).map(turn).collect();
        stage.run("Hi", tools, &answers).await.unwrap();
        stage.check_grammar(true);
        assert_eq!(stage.lines().last().unwrap(), last, "{what}");
        let answered = stage.record.iter().filter(|stored| stored.message.as_assistant().is_some()).count();
        assert_eq!(answered, turns, "{what}");
        if let Message::Custom(notice) = &stage.record.last().unwrap().message {
            assert_eq!(notice.details, json!({"kind": "loop"}), "{what}");
        }
        stage.run("Again", Vec::new(), &[says_text("Yes.")]).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_reads_only_the_end_of_a_request_is_told_of_once() {
    let counted =
        |input| AssistantMessage { usage: Usage { input, ..Usage::default() }, ..says_text("I have no tools.") };
    let mut stage = Stage::new(At::Never);
    let long = "a word ".repeat(9_200);
    stage.run(&long, tools(), &[counted(2051)]).await.unwrap();
    stage.check_grammar(true);
    stage.run("And now?", tools(), &[counted(2051)]).await.unwrap();
    let told: Vec<&Stored> =
        stage.record.iter().filter(|stored| matches!(stored.message, Message::Custom(_))).collect();
    let [Stored { message: Message::Custom(warning), .. }] = told[..] else { panic!("{told:#?}") };
    assert_eq!((warning.custom_type.as_str(), &warning.details["counted"]), ("cut-prompt", &json!(2051)));
    assert!(warning.details["estimated"].as_u64().unwrap() > 16_000, "{:?}", warning.details);
}

#[tokio::test]
async fn a_call_that_was_written_as_text_runs_nothing_and_leaves_a_notice() {
    let call = "Let me look.\n<tool_call>{\"name\":\"boom\",\"arguments\":{\"q\":\"a\"}}</tool_call>";
    let quoted = "To call a tool, models write `<tool_call>{\"name\":\"ls\"}</tool_call>`.";
    for (text, notices) in [(call, 1), (quoted, 0)] {
        let mut stage = Stage::new(At::Never);
        stage.run("Hi", tools(), &[says_text(text)]).await.unwrap();
        stage.check_grammar(true);
        let lines = stage.lines();
        assert_eq!(lines.iter().filter(|line| *line == "marker notice").count(), notices, "{lines:#?}");
        assert_eq!(lines[1], format!("assistant[Stop] {text}"));
    }
}
