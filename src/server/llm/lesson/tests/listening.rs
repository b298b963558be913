//! What the teacher makes of free words: answers that follow from its lesson, plans that follow from the learner.

use super::*;

/// A lesson on fractions whose first block waits for the answer to its first quiz.
fn at_first_quiz() -> (Chat, ToolCall) {
    let (mut chat, _) = at_plan("Teach me fractions", &Reply::DontKnow);
    match chat.verdict(true, None) {
        Stop::Question(call) => (chat, call),
        other => panic!("{other:?}"),
    }
}

/// Goes on with right answers until something else than a question comes.
fn answered(chat: &mut Chat, mut stop: Stop) -> Stop {
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, &Reply::Right);
    }
    stop
}

#[test]
fn a_term_that_the_lesson_explains_is_explained_in_its_words_and_the_question_comes_again() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Question(again) = chat.reply(&call, &Reply::Text("what is a numerator?".to_owned())) else { panic!() };
    assert_eq!(question(&again), question(&call));
    let text = chat.last_text();
    assert!(text.contains("> The **numerator** (above the line) counts how many"), "{text}");
    assert!(text.ends_with("Here is the question again."), "{text}");
    assert!(!text.contains("Take a bar of chocolate"), "{text}");
}

#[test]
fn more_texts_in_a_row_are_answered_without_posing_the_question_again() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Question(again) = chat.reply(&call, &Reply::Text("hello".to_owned())) else { panic!() };
    assert!(chat.last_text().starts_with("Hello!"), "{}", chat.last_text());
    let Stop::End(text) = chat.reply(&again, &Reply::Text("what is a denominator?".to_owned())) else { panic!() };
    assert!(text.contains("> The **denominator**") && text.contains("Write \"go on\""), "{text}");
    let Stop::End(first) = chat.text("Who wrote this?") else { panic!() };
    let Stop::End(second) = chat.text("And when?") else { panic!() };
    assert_ne!(first, second);
    assert_eq!(chat.asked()[&question(&call)], 2);
    let Stop::Question(third) = chat.text("go on") else { panic!() };
    assert_eq!(question(&third), question(&call));
    assert_eq!(chat.last_text(), "Here is the question again.");
    assert!(matches!(chat.reply(&third, &Reply::Right), Stop::Question(next) if question(&next) != question(&call)));
}

#[test]
fn a_wish_to_go_on_just_goes_on_and_a_second_one_goes_past_the_question() {
    for text in ["go on", "continue", "Next!", "ok"] {
        let (mut chat, call) = at_first_quiz();
        let Stop::Question(again) = chat.reply(&call, &Reply::Text(text.to_owned())) else { panic!("{text}") };
        assert_eq!((question(&again), chat.last_text()), (question(&call), "Here is the question again.".to_owned()));
        let Stop::Question(next) = chat.reply(&again, &Reply::Text(text.to_owned())) else { panic!("{text}") };
        assert_ne!(question(&next), question(&call), "{text}");
        assert!(chat.last_text().starts_with("Skipped, no problem."), "{}", chat.last_text());
    }
}

#[test]
fn words_that_skip_or_do_not_know_are_taken_as_such() {
    let check = |text: &str, words: &str| {
        let (mut chat, call) = at_first_quiz();
        let Stop::Question(next) = chat.reply(&call, &Reply::Text(text.to_owned())) else { panic!("{text}") };
        assert_ne!(question(&next), question(&call), "{text}");
        assert!(chat.last_text().starts_with(words), "{text}: {}", chat.last_text());
        let asked = chat.asked();
        assert_eq!(asked[&question(&call)], 1);
    };
    check("skip this question", "Skipped, no problem.");
    check("pass", "Skipped, no problem.");
    check("I don't know", "Put the two counts in their places");
    check("no idea, sorry", "Put the two counts in their places");
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    let Stop::Question(second) = chat.reply(&first, &Reply::Text("skip".to_owned())) else { panic!() };
    let Stop::Question(third) = chat.reply(&second, &Reply::Text("not sure".to_owned())) else { panic!() };
    assert!(question(&third) != question(&second) && question(&second) != question(&first));
}

#[test]
fn who_does_not_understand_hears_it_in_short_and_then_gets_a_hint() {
    let (mut chat, call) = at_first_quiz();
    let quiz = chat.quiz(&question(&call)).unwrap();
    let Stop::Question(again) = chat.reply(&call, &Reply::Text("I don't understand".to_owned())) else { panic!() };
    let recap = &chat.pack("fractions").blocks[0].recap;
    assert!(chat.last_text().contains(&format!("In short, it is this:\n\n> {recap}")), "{}", chat.last_text());
    chat.reply(&again, &Reply::Text("explain again".to_owned()));
    assert!(chat.last_text().contains(&quiz.hint), "{}", chat.last_text());
}

#[test]
fn why_is_answered_with_the_explanation_of_the_answer_before() {
    let (mut chat, call) = at_first_quiz();
    let quiz = chat.quiz(&question(&call)).unwrap();
    let Stop::Question(next) = chat.reply(&call, &Reply::Wrong(0)) else { panic!() };
    chat.reply(&next, &Reply::Text("why?".to_owned()));
    assert!(chat.last_text().contains(&quiz.explanation), "{}", chat.last_text());
    let (mut chat, call) = at_first_quiz();
    chat.reply(&call, &Reply::Text("why is the sky blue?".to_owned()));
    assert!(chat.last_text().contains("I can't answer that"), "{}", chat.last_text());
}

#[test]
fn a_question_that_is_objected_to_twice_is_left_out() {
    let (mut chat, call) = at_first_quiz();
    let object = |chat: &mut Chat, call: &ToolCall| {
        let closed = unanswered(&Question::from_args(QUIZ, &call.arguments).unwrap(), Verdict::NotAnswered);
        chat.result(call, &closed.for_model(), serde_json::to_value(&closed).ok());
        chat.marker(Marker::Objection { tool_call_id: call.id.clone(), reason: "unfair".to_owned() });
        chat.run()
    };
    let Stop::Question(again) = object(&mut chat, &call) else { panic!() };
    assert_eq!(question(&again), question(&call));
    assert!(chat.last_text().starts_with("You object"), "{}", chat.last_text());
    let Stop::Question(next) = object(&mut chat, &again) else { panic!() };
    assert_ne!(question(&next), question(&call));
}

#[test]
fn a_hint_from_the_button_does_not_stand_in_for_the_answer_to_a_text() {
    let (mut chat, call) = at_first_quiz();
    chat.marker(Marker::Hint { tool_call_id: call.id.clone() });
    chat.reply(&call, &Reply::Text("what is a numerator?".to_owned()));
    assert!(chat.last_text().contains("> The **numerator**"), "{}", chat.last_text());
}

#[test]
fn before_the_plan_is_accepted_a_question_is_told_where_its_answer_comes() {
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    chat.reply(&first, &Reply::Text("what is a numerator?".to_owned()));
    let text = chat.last_text();
    assert!(text.starts_with("\"Parts of a whole\" is about that") && !text.contains("**numerator**"), "{text}");
    let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
    let Stop::End(text) = chat.text("what is a numerator?") else { panic!() };
    assert!(text.contains("That is what \"Parts of a whole\" is about"), "{text}");
    let Stop::End(text) = chat.text("what is a reciprocal?") else { panic!() };
    assert_eq!(text, "That is what \"How many fit?\" is about; I explain it there.");
}

#[test]
fn a_wish_to_stop_leads_to_the_offer_of_a_short_summary() {
    for text in ["stop", "enough", "I want to end", "I have to go"] {
        let (mut chat, call) = at_first_quiz();
        let Stop::Question(second) = chat.reply(&call, &Reply::Right) else { panic!() };
        let Stop::Question(offer) = chat.reply(&second, &Reply::Text(text.to_owned())) else { panic!("{text}") };
        assert_eq!(question(&offer), "Shall we end the lesson here?");
        let Stop::End(summary) = chat.reply(&offer, &Reply::Right) else { panic!("{text}") };
        assert!(summary.starts_with("### Summary so far\n\nYou can now\n\n- read a fraction"), "{summary}");
        assert!(summary.contains("Still to come: \"Equal fractions") && !summary.contains("divide by"), "{summary}");
        let Stop::End(thanks) = chat.text("thanks") else { panic!("{text}") };
        assert!(thanks.contains("write \"go on\""), "{thanks}");
        let Stop::Question(back) = chat.text("go on") else { panic!("{text}") };
        assert_eq!(question(&back), question(&second));
    }
}

#[test]
fn without_a_way_to_ask_the_short_summary_comes_at_once() {
    let (mut chat, call) = at_first_quiz();
    let closed = unanswered(&Question::from_args(QUIZ, &call.arguments).unwrap(), Verdict::NotAnswered);
    chat.result(&call, &closed.for_model(), serde_json::to_value(&closed).ok());
    chat.messages.push(Message::user("stop", 0));
    let tools: Vec<ToolSpec> = chat.tools().into_iter().filter(|tool| tool.name != ASK).collect();
    let blocks = play(&chat.packs, &chat.messages, &tools);
    assert!(blocks.iter().all(|block| block.as_tool_call().is_none()));
    let text = blocks.iter().find_map(Block::as_text).unwrap();
    assert!(text.starts_with("### Summary so far"), "{text}");
}

#[test]
fn who_does_not_want_to_stop_after_all_goes_on_where_they_were() {
    for (reply, ends) in [
        (Reply::Options(vec!["Go on with the lesson".to_owned()]), false),
        (Reply::Skip, false),
        (Reply::Text("no, go on".to_owned()), false),
        (Reply::Text("yes".to_owned()), true),
        (Reply::Text("stop".to_owned()), true),
    ] {
        let (mut chat, call) = at_first_quiz();
        let Stop::Question(offer) = chat.reply(&call, &Reply::Text("stop".to_owned())) else { panic!() };
        match chat.reply(&offer, &reply) {
            Stop::Question(again) => assert!(!ends && question(&again) == question(&call), "{reply:?}"),
            Stop::End(text) => assert!(ends && text.contains("### Summary so far"), "{reply:?}: {text}"),
            other => panic!("{other:?}"),
        }
    }
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    assert!(matches!(chat.reply(&first, &Reply::Text("stop".to_owned())), Stop::End(_)));
    assert!(matches!(chat.text("go on"), Stop::Question(again) if question(&again) == question(&first)));
}

#[test]
fn a_plan_is_changed_in_the_middle_of_the_lesson_and_the_lesson_follows_it() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Plan(plan) = chat.reply(&call, &Reply::Text("Skip multiplication, please".to_owned())) else { panic!() };
    assert_eq!(ids(&plan), ["parts", "equivalent", "compare", "add-subtract", "divide"]);
    assert!(chat.last_text().contains("I left out \"A fraction of a fraction\""), "{}", chat.last_text());
    assert!(!plan.goal.contains("multiplying straight") && plan.goal.contains("reciprocal"), "{}", plan.goal);
    let stop = chat.verdict(true, None);
    assert!(matches!(&stop, Stop::Question(again) if question(again) == question(&call)), "{stop:?}");
    let Stop::End(end) = answered(&mut chat, stop) else { panic!() };
    let said = chat.said();
    assert!(!said.contains("Next comes multiplication") && !said.contains("From multiplying it is one step"), "{said}");
    assert!(said.contains("The common denominator is also the key to adding."), "{said}");
    assert!(said.contains("Block 5 of 5"), "{said}");
    assert!(end.contains("Left out of it: \"A fraction of a fraction\"."), "{end}");
    assert!(!end.contains("- take a fraction of an amount") && end.contains("- divide by a fraction"), "{end}");
}

#[test]
fn a_lesson_without_a_block_speaks_of_it_nowhere_and_the_whole_one_of_all() {
    let (mut chat, plan) = at_plan("fractions", &Reply::DontKnow);
    let pack = chat.pack("fractions");
    assert_eq!(plan.goal, pack.goal);
    let Stop::Plan(plan) = chat.verdict(false, Some("only comparing and division")) else { panic!() };
    assert_eq!(
        plan.goal,
        "You will be able to compare fractions by giving them a common denominator, and to divide by a fraction by \
         multiplying with its reciprocal."
    );
    let stop = chat.verdict(true, None);
    let Stop::End(end) = answered(&mut chat, stop) else { panic!() };
    for block in &pack.blocks {
        let is_taught = ["compare", "divide"].contains(&block.id.as_str());
        assert_eq!(end.contains(&format!("- {}", block.can)), is_taught, "{}: {end}", block.id);
        assert!(block.bridge.is_empty() || !chat.said().contains(&block.bridge), "{}", block.id);
    }
    let mut chat = Chat::new("fractions");
    let end = chat.play_through(&|_, _| Reply::Wrong(0));
    assert!(end.contains("You have worked through the whole of it."), "{end}");
    for block in &pack.blocks {
        assert!(chat.said().contains(&block.bridge), "{}", block.id);
    }
}

#[test]
fn a_block_that_another_one_interrupts_is_taken_up_again() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Plan(plan) = chat.reply(&call, &Reply::Text("put division first".to_owned())) else { panic!() };
    assert_eq!(ids(&plan)[..2], ["divide", "parts"]);
    let mut stop = chat.verdict(true, None);
    while let Stop::Question(next) = &stop {
        if question(next) == question(&call) {
            break;
        }
        let next = next.clone();
        stop = chat.reply(&next, &Reply::Right);
    }
    let text = chat.last_text();
    assert!(text.contains("### Parts of a whole\n\nNow back to this block."), "{text}");
    assert!(!text.contains("Take a bar of chocolate"), "{text}");
}

#[test]
fn a_text_in_the_lesson_that_is_not_about_the_plan_changes_nothing() {
    for text in [
        "I know what a numerator is",
        "I want to learn division",
        "first I count the slices that are left and then all of them",
        "what comes first, division or multiplication?",
        "only 3",
        "why did you skip division?",
        "is it the last one?",
    ] {
        let (mut chat, call) = at_first_quiz();
        let stop = chat.reply(&call, &Reply::Text(text.to_owned()));
        assert!(matches!(&stop, Stop::Question(again) if question(again) == question(&call)), "{text}: {stop:?}");
    }
}

#[test]
fn what_can_not_be_changed_in_the_middle_of_a_lesson_is_said_with_the_question() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Question(again) = chat.reply(&call, &Reply::Text("skip everything".to_owned())) else { panic!() };
    assert_eq!(question(&again), question(&call));
    assert!(chat.last_text().starts_with("I can't leave out everything"), "{}", chat.last_text());
}

#[test]
fn wishes_from_before_the_plan_are_in_the_first_one() {
    let (chat, plan) = at_plan("Teach me fractions, but skip division", &Reply::Right);
    assert!(!ids(&plan).contains(&"divide"));
    assert!(chat.last_text().contains("As you asked: I left out \"How many fit?\"."), "{}", chat.last_text());
    let mut chat = Chat::new("fractions");
    let Stop::Question(first) = chat.run() else { panic!() };
    let mut stop = chat.reply(&first, &Reply::Text("start with multiplication, please".to_owned()));
    assert!(chat.last_text().starts_with("I have noted that for the plan."), "{}", chat.last_text());
    while let Stop::Question(call) = stop {
        stop = chat.reply(&call, &Reply::Right);
    }
    assert!(matches!(&stop, Stop::Plan(plan) if ids(plan)[0] == "multiply"), "{stop:?}");
}

#[test]
fn who_wants_no_first_questions_gets_the_plan_at_once() {
    for text in ["no more questions please", "just start", "skip the questions"] {
        let mut chat = Chat::new("fractions");
        let Stop::Question(first) = chat.run() else { panic!() };
        let Stop::Question(second) = chat.reply(&first, &Reply::Right) else { panic!() };
        let stop = chat.reply(&second, &Reply::Text(text.to_owned()));
        assert!(matches!(&stop, Stop::Plan(plan) if plan.blocks.len() == 6), "{text}: {stop:?}");
    }
}

#[test]
fn a_plan_that_can_not_be_changed_as_asked_comes_again_as_it_was_with_the_reason() {
    let check = |note: Option<&str>, words: &str| {
        let (mut chat, first) = at_plan("fractions", &Reply::DontKnow);
        let Stop::Plan(plan) = chat.verdict(false, note) else { panic!("{note:?}") };
        assert_eq!(plan, first, "{note:?}");
        let text = chat.last_text();
        assert!(text.contains("stays as it is") && text.contains(words), "{note:?}: {text}");
        text
    };
    check(None, "without a word on what should change");
    check(Some("more pictures"), "I can't change the pictures and demos");
    check(Some("My dog is called Rex"), "I did not understand \"My dog is called Rex\"");
    check(Some("skip everything"), "a plan needs two blocks at least");
    let text = check(Some("in French"), "I can't change the language");
    assert!(text.contains("With the plan I can do this"), "{text}");
}

#[test]
fn while_a_plan_waits_short_words_are_heard_and_nothing_is_repeated() {
    let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
    let mut say = |text: &str, words: &str| {
        let Stop::End(said) = chat.text(text) else { panic!("{text}") };
        assert!(said.contains(words), "{text}: {said}");
        said
    };
    say("looks good", "accept the plan with its button, and I begin");
    say("no", "Then say what should change.");
    let first = say("who made this?", "scripted");
    assert!(!first.contains("such as"), "{first}");
    let second = say("and when?", "lesson");
    assert_ne!(first, second);
    say("stop", "we stop here");
    say("skip the common denominator", "fits \"Which fraction is larger?\" and");
    let Stop::Plan(plan) = chat.text("looks good\n\nOn the plan: skip division") else { panic!() };
    assert!(!ids(&plan).contains(&"divide"));
}

#[test]
fn a_changed_plan_that_waits_in_the_middle_of_a_lesson_can_be_taken_back() {
    let (mut chat, call) = at_first_quiz();
    let Stop::Plan(_) = chat.reply(&call, &Reply::Text("skip division".to_owned())) else { panic!() };
    let Stop::End(text) = chat.text("go on") else { panic!() };
    assert!(text.contains("write \"never mind\""), "{text}");
    let Stop::Plan(plan) = chat.text("never mind") else { panic!() };
    assert_eq!(plan.blocks.len(), 6);
}

#[test]
fn a_change_is_taken_back() {
    let (mut chat, first) = at_plan("fractions", &Reply::DontKnow);
    let Stop::Plan(second) = chat.verdict(false, Some("skip division and start with adding")) else { panic!() };
    assert_ne!(second, first);
    let Stop::Plan(third) = chat.verdict(false, Some("undo that")) else { panic!() };
    assert_eq!(third, first);
}

#[test]
fn a_note_with_the_acceptance_is_heard_too() {
    let (mut chat, _) = at_plan("fractions", &Reply::DontKnow);
    let stop = chat.verdict(true, Some("but skip division"));
    assert!(matches!(&stop, Stop::Plan(plan) if !ids(plan).contains(&"divide")), "{stop:?}");
}

#[test]
fn a_chat_that_begins_with_a_greeting_is_greeted() {
    let mut chat = Chat::new("Hello!");
    assert!(matches!(chat.run(), Stop::Question(_)));
    let text = chat.last_text();
    assert!(text.starts_with("Hello! I am") && !text.contains("I don't find your topic"), "{text}");
}
