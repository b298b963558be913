//! What the loop keeps of its calls before it tells of them, and what it does with calls that were cut off.

use learnharness::app::native::{AssistantMessage, ToolCall};

use super::*;

/// Writes down what is kept, stored and told, in order.
#[derive(Default)]
struct Ledger(Vec<String>, Seq);

#[async_trait]
impl Sink for Ledger {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        let line = shown(&event);
        let is_of_a_result = line.contains("result") || line.starts_with("end");
        self.0.extend(is_of_a_result.then_some(line));
        Ok(matches!(event, AgentEvent::MessageEnd { .. }).then(|| {
            self.1 = self.1.next();
            self.1
        }))
    }

    async fn keep(&mut self, nth: usize, outcome: &[Message]) {
        self.0.push(format!("keep {nth} {}", outcome.iter().map(line).collect::<Vec<_>>().join(", ")));
    }

    async fn store(&mut self, messages: &[Message]) -> Result<(), Halted> {
        self.0.push(format!("store {}", messages.iter().map(line).collect::<Vec<_>>().join(", ")));
        Ok(())
    }
}

#[tokio::test]
async fn an_end_is_kept_before_it_is_told_and_stored_with_its_markers_at_once() {
    let mark = tool("mark", Mode::Parallel, After::StopRun, |call| async move {
        let marker = Marker::PlanBlock { block_id: call.id, status: BlockStatus::Done };
        Ok(Done { markers: vec![marker], ..Done::text("noted") })
    });
    let (model, Models { model: catalog, dialect, options }) = driven();
    let steering = Arc::new(Queue(Mutex::default()));
    let config = Config { model: catalog, dialect, steering, max_turns: 20, session: String::new(), options };
    let context = Context { system: String::new(), record: Vec::new(), tools: vec![mark] };
    let (mut ledger, cancel) = (Ledger::default(), CancellationToken::new());
    let run = run_loop(vec![Message::user("Hi", 0)], context, &config, &mut ledger, &cancel);
    let calls = [("a", "mark", q())];
    let (ended, ()) = tokio::join!(run, model.call(&calls));
    ended.unwrap();
    let expected = [
        "keep 0 result mark#a noted, marker plan-block",
        "end a noted",
        "store result mark#a noted, marker plan-block",
        "message_start result mark#a noted",
        "message_end result mark#a noted",
    ];
    assert_eq!(ledger.0, expected);
}

#[tokio::test]
async fn a_call_whose_effects_nobody_knows_is_not_made_again() {
    let replayed = |replay| async move {
        let again = says("again", Mode::Parallel, After::GoOn, "found");
        let spec = ToolSpec { name: "send".to_owned(), ..again.face().spec.clone() };
        let face = Face { spec, replay, ..again.face().clone() };
        let send = Scripted { face, work: Box::new(|_| Box::pin(async { Ok(Done::text("sent")) })) };
        let mut cut = AssistantMessage { stop_reason: StopReason::ToolUse, ..AssistantMessage::default() };
        let call = ToolCall { id: "a".to_owned(), name: "send".to_owned(), arguments: q(), ..ToolCall::default() };
        cut.content.push(call.into());
        let (model, Models { model: catalog, dialect, options }) = driven();
        let steering = Arc::new(Queue(Mutex::default()));
        let config = Config { model: catalog, dialect, steering, max_turns: 20, session: String::new(), options };
        let record = vec![
            Stored { seq: Seq(1), message: Message::user("Hi", 0) },
            Stored { seq: Seq(2), message: Message::Assistant(cut) },
        ];
        let context = Context { system: String::new(), record, tools: vec![Arc::new(send)] };
        let (mut ledger, cancel) = (Ledger(Vec::new(), Seq(2)), CancellationToken::new());
        let run = run_loop(Vec::new(), context, &config, &mut ledger, &cancel);
        let (ended, ()) = tokio::join!(run, model.reply("Well."));
        ended.unwrap();
        ledger.0.remove(1)
    };
    assert_eq!(replayed(Replay::Again).await, "end a sent");
    assert_eq!(replayed(Replay::Never).await, "end! a Interrupted; effects unknown.");
}
