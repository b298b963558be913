//! Records and what is shown of them, as text.

use expect_test::{Expect, expect};

use super::*;
use crate::app::native::event::ToolOutput;
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
fn a_question_before_the_handoff_is_of_the_probe() {
    let text = format!(
        "user hi\nteacher[toolUse] quiz#a {QUIZ}\nresult quiz#a Right. @ {RIGHT}\n\
         marker probe-handoff {{\"assessment\":{{}}}}\nteacher[toolUse] quiz#b {QUIZ}\nresult quiz#b Right. @ {RIGHT}"
    );
    let units = group(&record(&text), &Tail::default());
    let cards: Vec<bool> = units
        .iter()
        .flat_map(|unit| &unit.parts)
        .filter_map(|part| match &part.body {
            Body::Question(card) => Some(card.of_probe),
            _ => None,
        })
        .collect();
    assert_eq!(cards, [true, false]);
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
              2-end: stopped "" [retry]
        "#]],
    );
}

#[test]
fn a_question_that_was_overtaken_or_left_open_is_closed() {
    let unanswered = r#"{"kind":"quiz","verdict":"notAnswered","answer":{}}"#;
    check(
        &format!("teacher[toolUse] quiz#q {QUIZ} | quiz#r {QUIZ}\nresult quiz#q Not answered. @ {unanswered}\nuser no"),
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
        "user hi\nteacher[aborted] Hel\nmarker notice {\"kind\":\"cut-twice\"}",
        &expect![[r#"
        Learner 1
          1-0: hi
        Teacher 2
          2-0: Hel
          2-end: stopped "" [retry]
          3-0: notice CutTwice
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
fn an_empty_answer_is_a_quiet_line_once_the_model_is_asked_again() {
    let asked_again = "user go\nteacher[empty] ~hm\nmarker notice {\"kind\":\"empty-answer\"}";
    check(
        &format!("{asked_again}\nteacher Hello."),
        &expect![[r#"
            Learner 1
              1-0: go
            Teacher 2
              2-0: ~ hm
              2-end: notice EmptyAnswer
              4-step: ---
              4-0: Hello.
        "#]],
    );
    check(
        &format!("{asked_again}\nteacher[empty]"),
        &expect![[r#"
            Learner 1
              1-0: go
            Teacher 2
              2-0: ~ hm
              2-end: notice EmptyAnswer
              4-step: ---
              4-end: failed: The provider broke off. [retry]
        "#]],
    );
}

#[test]
fn an_empty_answer_is_no_failure_before_its_run_is_over() {
    let record = record("user go\nteacher[empty]");
    let goes_on = Tail { running: true, ..Tail::default() };
    let ends =
        [&goes_on, &Tail::default()].map(|tail| shown_as(&record, tail).lines().last().unwrap().trim().to_owned());
    assert_eq!(ends, ["2-end: notice EmptyAnswer", "2-end: failed: The provider broke off. [retry]"]);
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
    let output = |text| ToolOutput { content: vec![Block::text(text)], details: None };
    let tools = vec![tool("a", Execution::Done(output("done"))), tool("b", Execution::Running(Some(output("so far"))))];
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
