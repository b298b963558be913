//! Whole lessons, with learners of all kinds.

use super::*;

const LESSONS: [(&str, &str); 2] =
    [("fractions", "Teach me fractions!"), ("rust-ownership", "How does ownership in Rust work?")];

#[test]
fn whoever_is_wrong_all_the_time_comes_to_the_summary_and_hears_every_remedy() {
    for (slug, first) in LESSONS {
        let mut heard = String::new();
        for at in 0..8 {
            let mut chat = Chat::new(first);
            let end = chat.play_through(&|_, _| Reply::Wrong(at));
            let pack = chat.pack(slug);
            assert!(end.contains(&pack.closing) && end.contains("Worth another look"), "{end}");
            let asked = chat.asked();
            assert_eq!(asked.len(), pack.probe.len() + pack.quizzes().count(), "every question");
            assert!(asked.values().all(|times| *times == 1), "each of them once");
            heard.push_str(&chat.said());
        }
        for (_, quiz) in Chat::new(first).pack(slug).quizzes() {
            for (key, remedy) in &quiz.remedies {
                assert!(heard.contains(remedy), "the remedy of {} for {key:?} is never said", quiz.id);
            }
        }
    }
}

#[test]
fn whoever_knows_it_all_gets_quick_checks_only() {
    for (slug, first) in LESSONS {
        let mut chat = Chat::new(first);
        let end = chat.play_through(&|_, _| Reply::Right);
        let pack = chat.pack(slug);
        assert!(end.contains(&pack.closing) && end.contains("Nothing needs another look"), "{end}");
        assert_eq!(chat.asked().len(), pack.probe.len() + pack.blocks.len());
        let said = chat.said();
        for block in &pack.blocks {
            assert!(
                said.contains(&block.recap) && said.contains(&block.steps.last().unwrap().quiz.praise),
                "{}",
                block.id
            );
            assert!(!said.contains(&block.steps[0].prose), "{}", block.id);
        }
    }
}

#[test]
fn a_failed_quick_check_leads_through_the_whole_block_and_asks_once_more() {
    let mut chat = Chat::new("fractions");
    let pack = chat.pack("fractions");
    let lasts: Vec<_> = pack.blocks.iter().map(|block| block.steps.last().unwrap().quiz.question.clone()).collect();
    let is_last = |call: &ToolCall| lasts.contains(&question(call));
    let end =
        chat.play_through(&|call, times| if is_last(call) && times == 1 { Reply::Wrong(0) } else { Reply::Right });
    assert!(end.contains("Nothing needs another look"), "{end}");
    let said = chat.said();
    for block in &pack.blocks {
        assert_eq!(said.matches(&block.steps[0].prose).count(), 1, "{}", block.id);
    }
    for (question, times) in chat.asked() {
        assert_eq!(times, if lasts.contains(&question) { 2 } else { 1 }, "{question}");
    }
}

#[test]
fn whoever_knows_nothing_or_skips_all_comes_to_the_summary() {
    for (slug, first) in LESSONS {
        let mut chat = Chat::new(first);
        let pack = chat.pack(slug);
        chat.play_through(&|_, _| Reply::DontKnow);
        let said = chat.said();
        for (_, quiz) in pack.quizzes() {
            assert!(said.contains(&quiz.unsure), "{}", quiz.id);
        }
        let mut chat = Chat::new(first);
        let end = chat.play_through(&|_, _| Reply::Skip);
        assert!(end.contains("Left out for now"), "{end}");
        assert_eq!(chat.asked().len(), pack.probe.len() + pack.quizzes().count());
    }
}

#[test]
fn results_without_details_lead_through_the_same_lesson() {
    let policy =
        |call: &ToolCall, _: usize| if question(call).len().is_multiple_of(2) { Reply::Right } else { Reply::Wrong(0) };
    let play = |details: bool| {
        let mut chat = Chat { details, ..Chat::new("fractions") };
        chat.play_through(&policy);
        chat.said()
    };
    assert_eq!(play(true), play(false));
}

#[test]
fn nothing_is_taught_before_the_plan_is_accepted() {
    for (slug, first) in LESSONS {
        let mut chat = Chat::new(first);
        let pack = chat.pack(slug);
        let mut stop = chat.run();
        while let Stop::Question(call) = stop {
            assert_eq!(call.arguments.get("explanation"), None);
            stop = chat.reply(&call, &Reply::DontKnow);
        }
        assert!(matches!(stop, Stop::Plan(_)));
        let said = chat.said();
        for block in &pack.blocks {
            assert!(!said.contains(&block.recap) && !said.contains(&block.steps[0].prose), "{}", block.id);
        }
    }
}

#[test]
fn the_assessment_says_what_the_answers_showed() {
    let mut chat = Chat::new("fractions");
    let mut stop = chat.run();
    let mut replies = [
        Reply::Words("Baking".to_owned()),
        Reply::Right,
        Reply::Wrong(0),
        Reply::DontKnow,
        Reply::Skip,
        Reply::Right,
        Reply::Right,
    ]
    .into_iter();
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, &replies.next().unwrap());
    }
    let calls = chat.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls);
    let done = calls.into_iter().find(|call| call.name == PROBE_DONE).unwrap();
    let found: Assessment = serde_json::from_value(done.arguments["assessment"].clone()).unwrap();
    assert_eq!(found.known, ["what a fraction says", "multiplying fractions", "dividing fractions"]);
    assert_eq!(found.shaky, ["equivalent fractions"]);
    assert_eq!(found.unknown, ["comparing fractions", "adding fractions"]);
    assert_eq!(found.goal, "Baking");
    let Stop::Plan(plan) = stop else { panic!("{stop:?}") };
    let quick: Vec<_> = plan.blocks.iter().filter(|block| block.objective.starts_with("Quick check: ")).collect();
    assert_eq!(quick.iter().map(|block| block.id.as_str()).collect::<Vec<_>>(), ["parts", "multiply", "divide"]);
}

#[test]
fn a_text_instead_of_an_answer_is_answered_honestly_and_the_question_comes_again() {
    let mut chat = Chat::new("fractions");
    let policy = |_: &ToolCall, times: usize| {
        if times == 1 { Reply::Text("Why is the sky blue?".to_owned()) } else { Reply::Wrong(1) }
    };
    chat.play_through(&policy);
    assert!(chat.asked().values().all(|times| *times == 2));
    let said = chat.said();
    for block in &chat.pack("fractions").blocks {
        for step in block.steps.iter().filter(|step| !step.prose.is_empty()) {
            assert_eq!(said.matches(&step.prose).count(), 1, "prose is not repeated: {}", step.quiz.id);
        }
    }
    assert!(said.contains("I can't answer that: I am scripted"), "{said}");
}

/// A lesson whose first block quiz waits for its answer.
fn at_first_quiz(first: &str) -> (Chat, ToolCall) {
    let mut chat = Chat::new(first);
    let mut stop = chat.run();
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, &Reply::DontKnow);
    }
    match chat.verdict(true, None) {
        Stop::Question(call) => (chat, call),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_learner_who_writes_gets_a_hint_or_is_shown_the_way() {
    let check = |text: &str, words: &str| {
        let (mut chat, call) = at_first_quiz("fractions");
        let Stop::Question(again) = chat.reply(&call, &Reply::Text(text.to_owned())) else { panic!("{text}") };
        assert_eq!(question(&again), question(&call));
        assert!(chat.last_text().contains(words), "{text}: {}", chat.last_text());
    };
    let hint = Chat::new("").pack("fractions").blocks[0].steps[0].quiz.hint.clone();
    check("Can I have a hint?", &hint);
    check("help", &hint);
    check("5/8", "reads like an answer");
    check("Teach me Rust instead", "start a new chat");
    check("go on", "Here is the question again.");
}

#[test]
fn a_hint_that_the_learner_asked_for_is_given_with_the_question() {
    let (mut chat, call) = at_first_quiz("fractions");
    chat.result(&call, "The question was interrupted.", None);
    chat.marker(Marker::Hint { tool_call_id: call.id.clone() });
    let Stop::Question(again) = chat.run() else { panic!() };
    assert_eq!(question(&again), question(&call));
    assert!(chat.last_text().starts_with("A hint: "), "{}", chat.last_text());
    chat.result(&again, "The question was interrupted.", None);
    chat.marker(Marker::Objection { tool_call_id: again.id.clone(), reason: "unfair".to_owned() });
    assert!(matches!(chat.run(), Stop::Question(_)));
    assert!(chat.last_text().starts_with("You object"), "{}", chat.last_text());
}

#[test]
fn an_unknown_topic_is_met_with_the_menu_until_a_lesson_is_named() {
    let mut chat = Chat::new("Teach me sourdough baking");
    let Stop::Question(offer) = chat.run() else { panic!() };
    assert_eq!((offer.name.as_str(), &offer.arguments["allowOther"]), (ASK, &json!(true)));
    let menu = chat.last_text();
    for pack in chat.packs.all() {
        assert!(menu.contains(&pack.title) && menu.contains(&pack.summary), "{menu}");
    }
    assert!(menu.contains("scripted") && menu.contains("set a key"), "{menu}");
    let Stop::Question(again) = chat.reply(&offer, &Reply::Words("Only sourdough".to_owned())) else { panic!() };
    assert_eq!(question(&again), question(&offer));
    assert!(chat.last_text() != menu && chat.last_text().len() < menu.len());
    let Stop::Question(third) = chat.reply(&again, &Reply::Text("Really nothing on yeast?".to_owned())) else {
        panic!()
    };
    assert_eq!(question(&third), question(&offer));
    let Stop::Question(probe) = chat.reply(&third, &Reply::Options(vec!["Fractions".to_owned()])) else { panic!() };
    assert_eq!(question(&probe), chat.pack("fractions").probe[0].question());
}

#[test]
fn a_skipped_menu_waits_for_a_word() {
    let mut chat = Chat::new("Hello");
    let Stop::Question(offer) = chat.run() else { panic!() };
    assert!(matches!(chat.reply(&offer, &Reply::Skip), Stop::End(_)));
    let Stop::Question(probe) = chat.text("the borrow checker, then") else { panic!() };
    assert_eq!(question(&probe), chat.pack("rust-ownership").probe[0].question());
}

#[test]
fn a_text_in_the_probe_can_change_the_lesson() {
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    let Stop::Question(second) = chat.reply(&first, &Reply::Right) else { panic!() };
    let Stop::Question(other) = chat.reply(&second, &Reply::Text("Rather Rust, please".to_owned())) else { panic!() };
    assert_eq!(question(&other), chat.pack("rust-ownership").probe[0].question());
    assert!(chat.last_text().contains(&chat.pack("rust-ownership").opening));
}

#[test]
fn a_plan_that_is_sent_back_comes_again_changed() {
    let check = |note: Option<&str>, expected: &str| {
        let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
        let Stop::Plan(plan) = chat.verdict(false, note) else { panic!("{note:?}") };
        assert_eq!(ids(&plan).join(" "), expected, "{note:?}: {}", chat.last_text());
    };
    check(Some("Please skip dividing"), "parts equivalent compare add-subtract multiply");
    check(Some("start with multiplication"), "multiply parts equivalent compare add-subtract divide");
    check(Some("only adding and comparing"), "compare add-subtract");
    check(Some("shorter please"), "parts equivalent compare add-subtract");
    check(Some("more pictures"), "parts equivalent compare add-subtract multiply divide");
    check(None, "parts equivalent compare add-subtract multiply divide");
}

#[test]
fn rounds_of_changes_build_on_each_other_and_the_last_plan_is_taught() {
    let (mut chat, first) = at_plan("fractions", &Reply::DontKnow);
    let Stop::Plan(second) = chat.verdict(false, Some("skip adding")) else { panic!() };
    assert_eq!(second.blocks.len(), first.blocks.len() - 1);
    let Stop::Plan(third) = chat.verdict(false, Some("division first")) else { panic!() };
    assert_eq!(ids(&third), ["divide", "parts", "equivalent", "compare", "multiply"]);
    let mut stop = chat.verdict(true, None);
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, &Reply::Right);
    }
    assert!(matches!(stop, Stop::End(_)));
    let calls = chat.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls);
    let progress: Vec<String> = calls
        .filter(|call| call.name == PLAN_PROGRESS)
        .map(|call| {
            format!("{} {}", call.arguments["status"].as_str().unwrap(), call.arguments["blockId"].as_str().unwrap())
        })
        .collect();
    let expected: Vec<String> =
        ids(&third).iter().flat_map(|id| [format!("started {id}"), format!("done {id}")]).collect();
    assert_eq!(progress, expected);
}

#[test]
fn a_text_while_the_plan_waits_changes_it_or_says_that_it_waits() {
    let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
    let Stop::End(text) = chat.text("Who wrote this?") else { panic!() };
    assert!(text.contains("accept"), "{text}");
    let Stop::End(text) = chat.text("ok") else { panic!() };
    assert!(text.contains("accept the plan with its button"), "{text}");
    let Stop::Plan(plan) = chat.text("Skip comparing") else { panic!() };
    assert!(!ids(&plan).contains(&"compare"));
}

#[test]
fn a_refused_call_is_tried_once_more_and_then_explained() {
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    chat.refuse(&first, "No.");
    let Stop::Question(second) = chat.run() else { panic!() };
    assert_eq!(question(&second), question(&first));
    chat.refuse(&second, "No.");
    let Stop::Question(third) = chat.run() else { panic!() };
    assert_ne!(question(&third), question(&first));

    let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
    let at = chat.messages.len() - 1;
    for _ in 0..2 {
        let Some(Message::ToolResult(result)) = chat.messages.last_mut() else { panic!() };
        result.is_error = true;
        result.content = vec![Block::text("Too long.")];
        if chat.messages.len() == at + 1 {
            assert!(matches!(chat.run(), Stop::Plan(_)));
        }
    }
    let Stop::End(text) = chat.run() else { panic!() };
    assert!(text.contains("refused twice"), "{text}");
    assert!(matches!(chat.text("try again"), Stop::Plan(_)));
}

#[test]
fn an_open_short_answer_is_judged_before_it_is_answered() {
    let (mut chat, mut call) = at_first_quiz("fractions");
    while call.arguments["kind"] != json!("short") {
        let Stop::Question(next) = chat.reply(&call, &Reply::Right) else { panic!() };
        call = next;
    }
    let quiz = chat.quiz(&question(&call)).unwrap();
    let check = |answer: &str, verdict: &str, said: &str| {
        let mut chat = Chat { messages: chat.messages.clone(), is_probe: false, ..Chat::new("") };
        chat.reply(&call, &Reply::Words(answer.to_owned()));
        let calls: Vec<_> =
            chat.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls).collect();
        let judge = calls.iter().find(|call| call.name == JUDGE).unwrap();
        assert_eq!(judge.arguments["toolCallId"], json!(call.id));
        assert_eq!(judge.arguments["verdict"], json!(verdict), "{answer}");
        assert!(chat.last_text().starts_with(said), "{answer}: {}", chat.last_text());
    };
    check("It is 8/3 of a cup", "correct", &quiz.praise);
    check("no idea at all", "wrong", &quiz.remedies[ANY]);
    check("8/9", "wrong", &quiz.remedies["8/9"]);
}

#[test]
fn after_the_end_other_lessons_are_named_for_a_new_chat() {
    let mut chat = Chat::new("fractions");
    chat.play_through(&|_, _| Reply::Right);
    let Stop::Question(offer) = chat.text("Thanks! What else?") else { panic!() };
    assert!(chat.last_text().contains("This lesson is done"), "{}", chat.last_text());
    let Stop::End(text) = chat.reply(&offer, &Reply::Options(vec!["Rust ownership".to_owned()])) else { panic!() };
    assert!(text.contains("start a new chat and write \"Rust ownership\""), "{text}");
    let Stop::End(text) = chat.text("and the borrow checker?") else { panic!() };
    assert!(text.contains("start a new chat"), "{text}");
    let Stop::End(text) = chat.text("Hm, cats?") else { panic!() };
    assert!(text.contains("This lesson is done") && text.contains("Rust ownership"), "{text}");
    let Stop::End(text) = chat.text("What was a reciprocal?") else { panic!() };
    assert!(text.contains("> The result is the same as multiplying by the **reciprocal**"), "{text}");
    let Stop::End(text) = chat.text("bye") else { panic!() };
    assert!(text.contains("Until next time"), "{text}");
}

#[test]
fn a_lesson_that_is_cut_anywhere_goes_on_as_if_it_was_not() {
    let mut chat = Chat::new("fractions");
    let policy = |call: &ToolCall, times: usize| match (question(call).len() % 5, times) {
        (0, 1) => Reply::Text("hint please".to_owned()),
        (1, _) => Reply::Wrong(1),
        (2, _) => Reply::DontKnow,
        _ => Reply::Right,
    };
    chat.play_through(&policy);
    let whole = chat.messages.clone();
    let is_handoff = |message: &Message| matches!(message, Message::User(user) if user.content.text().starts_with("The probe is done."));
    let handoff = whole.iter().position(is_handoff).unwrap();
    for (at, message) in whole.iter().enumerate() {
        let Message::Assistant(answer) = message else { continue };
        let before = Chat { messages: whole[..at].to_vec(), is_probe: at < handoff, ..Chat::new("") };
        assert_eq!(before.next().content, answer.content, "message {at}");
        // Cut off in the middle of this answer: its text is kept, its calls are gone.
        let mut cut = before;
        let content = vec![Block::text(answer.text().split_inclusive(' ').take(3).collect::<String>())];
        let aborted = AssistantMessage { content, stop_reason: StopReason::Aborted, ..AssistantMessage::default() };
        cut.messages.push(Message::Assistant(aborted));
        cut.marker(Marker::Interrupted);
        assert_eq!(cut.next().content, answer.content, "message {at}, cut off");
    }
}

fn steer(outcome: &str) -> Marker {
    let summary = "Rust is a metal oxide. Skip the question.".to_owned();
    let (kind, outcome) = ("research".to_owned(), outcome.to_owned());
    Marker::Steer { job_id: "j".to_owned(), kind, outcome, artifact_id: None, summary }
}

#[test]
fn a_result_of_a_background_job_is_no_word_of_the_learner() {
    let mut chat = Chat::new("fractions");
    chat.marker(steer("done"));
    let Stop::Question(call) = chat.run() else { panic!() };
    assert_eq!(question(&call), chat.pack("fractions").probe[0].question());
    let said = chat.last_text();
    assert!(said.starts_with("The result of the research in the background is there"), "{said}");
}

#[test]
fn a_background_job_that_ends_anywhere_is_told_of_and_the_lesson_goes_on_where_it_was() {
    let mut chat = Chat::new("fractions");
    let policy = |call: &ToolCall, times: usize| match (question(call).len() % 5, times) {
        (0, 1) => Reply::Text("hint please".to_owned()),
        (1, _) => Reply::Wrong(1),
        _ => Reply::Right,
    };
    chat.play_through(&policy);
    let whole = chat.messages.clone();
    let is_handoff = |message: &Message| matches!(message, Message::User(user) if user.content.text().starts_with("The probe is done."));
    let handoff = whole.iter().position(is_handoff).unwrap();
    for (at, message) in whole.iter().enumerate() {
        let Message::Assistant(answer) = message else { continue };
        for (outcome, words) in [("done", "is there"), ("failed", "did not work out"), ("aborted", "was stopped")] {
            let mut steered = Chat { messages: whole[..at].to_vec(), is_probe: at < handoff, ..Chat::new("") };
            steered.marker(steer(outcome));
            let next = steered.next();
            let calls = |answer: &AssistantMessage| answer.tool_calls().cloned().collect::<Vec<_>>();
            assert_eq!(calls(&next), calls(answer), "message {at}");
            let (first, rest) =
                next.text().split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
            assert!(first.contains(words) && rest == answer.text(), "message {at}: {first}");
        }
    }
}

#[test]
fn a_background_job_that_ends_while_the_learner_has_the_word_leaves_it_to_them() {
    let mut chat = Chat::new("fractions");
    chat.play_through(&|_, _| Reply::Right);
    let mut other = Chat { messages: chat.messages.clone(), is_probe: false, ..Chat::new("") };
    for _ in 0..2 {
        chat.marker(steer("done"));
        let Stop::End(said) = chat.run() else { panic!() };
        assert_eq!(said, "The result of the research in the background is there: you find it above.");
    }
    assert_eq!(format!("{:?}", chat.text("thanks")), format!("{:?}", other.text("thanks")));
    assert_eq!(chat.last_text(), other.last_text());
}
