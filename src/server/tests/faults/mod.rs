//! Faults that were reported in public for systems like this one (`fixtures/faults`), each also in the words of the other
//! API (`fixtures/faults-translated`). Where they and the reference disagree, the fault wins.
//!
//! Scripted answers are played here, over a socket and cut at every position. Histories are in `replay`, what drives the
//! loop in `run_loop`, what drives the application in `record`, `recovery` and `wire`, and Markdown beside its renderer.

mod compare;
mod cut;
mod questions;
mod variant;

use std::path::{Path, PathBuf};

use learnharness::app::native::message::KnownBlock;
use learnharness::app::native::{AssistantMessage, Block, Message, Seq, Stored, ToolResultMessage};
use learnharness::server::agent::context::to_llm;
use learnharness::server::llm::Request;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::dialect::{ask_of, model_at};
use crate::support::judge::faults_of;
use crate::support::report::{Listed, Report};

use variant::Variant;

/// Scripted answers that we make something else of, and why.
pub(crate) const DIFFERENCES: Listed =
    &[("31-empty-turn/7", "the words of a refusal are the text of the answer, as its statement says")];

/// Words that a person must find in the error, where the fault says so in prose.
const WORDS: &[(&str, &str)] = &[
    ("05-error-object-in-200/1", "upstream at capacity"),
    ("05-error-object-in-200/2", "worker lost"),
    ("05-error-object-in-200/3", "overloaded"),
    ("06-anthropic-error-odd-shape/1", "Overloaded"),
    ("06-anthropic-error-odd-shape/2", "serving fault"),
    ("06-anthropic-error-odd-shape/3", "gateway gave up"),
    ("07-non-sse-bodies/1", "520"),
    ("07-non-sse-bodies/5", "bad model"),
    ("11-unknown-events-vs-broken-data/2", "broken data"),
];

/// Bytes up to which an answer is cut everywhere; a longer one is cut around its ends.
const EVERYWHERE: usize = 64 * 1024;
/// Bytes of the longest answer that is cut at all: what is longer is refused anyhow.
const LONGEST: usize = 4 * 1024 * 1024;

/// Where what comes of a scripted answer is not what the fault says.
pub(crate) async fn difference(variant: &Variant) -> Option<String> {
    let (message, requests) = variant.over_http().await;
    // What has begun is never asked for again.
    let requests = Some(requests).filter(|_| variant.status != 200);
    let mut wanted = variant.wanted.clone();
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == variant.name) {
        wanted["words"] = (*words).into();
    }
    compare::difference(variant.api, &message, requests, &wanted)
}

/// The folders of faults that come with the code.
fn folders() -> [PathBuf; 2] {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/tests/fixtures");
    ["faults", "faults-translated"].map(|folder| fixtures.join(folder))
}

/// The scripted answers of the faults in a folder.
pub(crate) fn variants(folder: &Path) -> Vec<Variant> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .flat_map(|path| Variant::of(path))
        .collect()
}

fn own_variants() -> Vec<Variant> {
    folders().iter().flat_map(|folder| variants(folder)).collect()
}

#[tokio::test]
async fn reported_faults_are_answered_as_they_should_be() {
    let mut report = Report::new(DIFFERENCES);
    let variants = own_variants();
    assert_eq!(variants.len(), 138);
    for variant in variants {
        report.add(&variant.name, difference(&variant).await);
    }
    report.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_the_same_wherever_its_bytes_are_cut() {
    let short =
        own_variants().into_iter().filter(|variant| variant.chunks.iter().map(Vec::len).sum::<usize>() <= LONGEST);
    let mut cuts: JoinSet<()> = short.map(cut_everywhere).collect();
    while let Some(outcome) = cuts.join_next().await {
        outcome.unwrap();
    }
}

async fn cut_everywhere(variant: Variant) {
    let bytes = variant.chunks.concat();
    let whole = told(variant.in_pieces(vec![bytes.clone()]).await);
    // A long one is all text but for its ends.
    let ends = if bytes.len() > EVERYWHERE { 60 } else { bytes.len() };
    for cut in (0..=ends).chain(bytes.len().saturating_sub(ends).max(ends + 1)..bytes.len()) {
        let pieces = vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()];
        assert_eq!(told(variant.in_pieces(pieces).await), whole, "{} cut at {cut}", variant.name);
    }
    if bytes.len() <= EVERYWHERE {
        let pieces = bytes.iter().map(|byte| vec![*byte]).collect();
        assert_eq!(told(variant.in_pieces(pieces).await), whole, "{} byte by byte", variant.name);
    }
}

/// The message, with one word for every id that was made up.
fn told(mut message: AssistantMessage) -> AssistantMessage {
    for block in &mut message.content {
        if let Block::Known(KnownBlock::ToolCall(call)) = block
            && call.id.starts_with("call_")
            && call.id.len() == 37
        {
            call.id = "made up".to_owned();
        }
    }
    message
}

#[tokio::test]
async fn whatever_came_of_a_fault_the_next_request_is_sound_and_says_it_once() {
    for variant in own_variants() {
        let (message, _) = variant.over_http().await;
        let text = message.text();
        let results = message.tool_calls().map(|call| result(&call.id)).collect::<Vec<_>>();
        let mut record = vec![Message::user("Hi", 0), Message::Assistant(message)];
        record.extend(results);
        record.push(Message::user("Go on", 0));
        let record: Vec<Stored> =
            record.into_iter().zip(1..).map(|(message, seq)| Stored { seq: Seq(seq), message }).collect();
        let request = Request { messages: to_llm(&record), ..ask_of(model_at(variant.api, "http://nowhere")) };
        let faults = faults_of(&request).await;
        assert!(faults.is_empty(), "{}: {faults:#?}", variant.name);
        let said = request.messages.iter().filter_map(|message| message.as_assistant());
        let said = said.map(AssistantMessage::text).collect::<String>();
        assert_eq!(said.trim(), text.trim(), "{}", variant.name);
    }
}

fn result(id: &str) -> Message {
    let result = json!({"role": "toolResult", "toolCallId": id, "toolName": "look", "content": [{"type": "text", "text": "found"}]});
    Message::ToolResult(serde_json::from_value::<ToolResultMessage>(result).unwrap())
}
