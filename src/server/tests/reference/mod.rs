//! The reference's cases: scripted answers over real HTTP through a dialect and the loop, against what the reference
//! packages (pi-ai and pi-agent-core 0.85.1) made of them: every event, every request, and the arguments of every tool.
//!
//! Error texts are compared by class (an error is an error), scratch fields and times not at all.

mod case;
mod compare;
mod play;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::report::{Listed, Report};

/// Cases that differ from the reference on purpose, and why. A case that differs and is not here fails; so does one that is
/// here and differs no more.
pub(crate) const DIFFERENCES: Listed = &[
    ("abort-keeps-queues", KEPT_TEXT),
    ("abort-mid-text", KEPT_TEXT),
    ("after-tool-override", NO_HOOKS),
    ("after-tool-terminate", NO_HOOKS),
    (
        "anthropic-fallback-model",
        "another model than the chosen one is never offered: the learner chose it and its price",
    ),
    ("anthropic-no-stop-reason", "message_stop is an end, with or without a reason, when no call is open"),
    ("anthropic-stop-max-tokens", MARKED),
    ("anthropic-stop-pause-and-unknown", "an unknown reason for the end is no failure: its word is kept"),
    ("anthropic-stop-refusal", KEPT_TEXT),
    ("before-tool-block", NO_HOOKS),
    ("before-tool-block-terminate", NO_HOOKS),
    ("before-tool-throws-and-mutates", NO_HOOKS),
    ("continue-follow-up", NO_FOLLOW_UPS),
    ("custom-default-dropped", NO_ROLES),
    ("custom-harness-convert", NO_ROLES),
    ("custom-to-user", NO_ROLES),
    ("finish-content-filter", KEPT_TEXT),
    ("finish-length-tool", MARKED),
    ("follow-up", NO_FOLLOW_UPS),
    ("history-dangling-call-last", "results stand in the order of their calls, made-up ones too"),
    ("history-errored-assistant", KEPT_TEXT),
    ("history-orphan-result", NO_ORPHANS),
    ("history-orphan-result-anthropic", NO_ORPHANS),
    ("ids-same-model", "no empty list of tools for OpenAI, and no id that OpenAI refuses and so can't have given"),
    ("ids-to-anthropic", "an id that must change gets a mark of its own: two that differ in a bad sign stay two"),
    ("ids-to-openai", "an id that is too long gets a mark of its own, not only an end; and no empty list of tools"),
    ("ids-to-openrouter", "an id that is too long for OpenAI is shortened: OpenAI may stand behind it"),
    ("no-api-key", "a model without its key is refused before a run: nothing is appended"),
    ("param-vercel-routing", "that gateway's own routing is not spoken; OpenRouter's is"),
    ("prepare-arguments", NO_HOOKS),
    ("replay-anthropic-thinking-to-openai", NO_FOREIGN_THOUGHTS),
    ("replay-thinking-to-anthropic", NO_FOREIGN_THOUGHTS),
    ("steer-during-prepare-next-turn", NO_HOOKS),
    ("steer-two-polls", NO_HOOKS),
    ("terminate-some", ONE_STOPS),
    ("terminate-then-follow-up", NO_FOLLOW_UPS),
    (
        "terminate-then-steer",
        "a tool that ends the run ends it before steering is polled: a steer waits for the answer",
    ),
    ("terminate-with-error-in-batch", ONE_STOPS),
    ("text-content-array", "the texts of the parts, instead of \"[object Object]\""),
    ("text-lone-surrogate-answer", "halves join across deltas, and one that stays alone is U+FFFD"),
    ("tool-args-invalid-json", MARKED),
    ("tool-details-usage-added", NO_DEFERRED_TOOLS),
    ("tool-duplicate-ids", "one id on two indexes is two calls, and the second gets an id of its own"),
    ("tool-id-changes-same-index", "a new id with a name begins a new call, also on a used index"),
    ("tool-iserror-returned", "a tool returns a result or an error; it cannot return a result that says it is one"),
    ("tool-piece-without-id-or-index", "a piece with neither id nor index goes on in the last call"),
    ("tools-deferred-anthropic", NO_DEFERRED_TOOLS),
    ("tools-deferred-kimi", NO_DEFERRED_TOOLS),
    ("tools-duplicate-names-anthropic", "no two tools of a registry have one name"),
    ("transform-context-keep-last", NO_HOOKS),
    ("usage-openrouter-cost-ignored", "the provider's own cost is kept as a diagnostic when it is another than ours"),
    ("usage-twice", "usage that comes before the finish is applied once, at the end: updates stay small"),
    ("validate-arguments-not-object", "arguments that are no object go back as an empty one: providers refuse others"),
];

const KEPT_TEXT: &str = "what was said before a stop or a failure stays in the conversation: the learner has read it";
const MARKED: &str = "arguments that are cut off or broken carry a mark, so that nobody runs them";
const NO_DEFERRED_TOOLS: &str =
    "results neither bring further tools nor their usage: a phase has its tools from the start";
const NO_FOLLOW_UPS: &str = "there is no second queue: what waits is a steer";
const NO_FOREIGN_THOUGHTS: &str = "thinking of another model is dropped, not put into the mouth of this one";
const NO_HOOKS: &str = "tools and loop have no hooks";
const NO_ORPHANS: &str = "a result without its call is left out: providers refuse it";
const NO_ROLES: &str = "the record has four roles; what is ours is `custom` and speaks through its text";
const ONE_STOPS: &str = "one result that ends the run ends it, whatever else was in the batch: a question is posed";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_is_what_the_reference_made_of_it() {
    let mut report = Report::new(DIFFERENCES);
    let cases = cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/tests/fixtures/pi"));
    assert_eq!(cases.len(), 194);
    for (name, path) in cases {
        report.add(&name, difference(&path).await);
    }
    report.close();
}

/// The cases of a folder by their names.
pub(crate) fn cases(folder: &Path) -> BTreeMap<String, PathBuf> {
    let files = std::fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path());
    let cases = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    cases.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

/// Where what comes of a case differs from what the reference made of it.
pub(crate) async fn difference(case: &Path) -> Option<String> {
    let golden = case.parent()?.with_file_name("golden").join(case.file_name()?);
    match play::play(&load(case)).await {
        Ok(found) => compare::first_difference(&found, &load(&golden)),
        Err(words) => Some(words),
    }
}

fn load(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
