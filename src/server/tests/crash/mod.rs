//! The real server, killed at any moment while learners learn: nothing is lost, nothing is doubled, and every lesson goes on
//! by itself.
//!
//! - [`house`] is a server with its data, [`campaign`] the kills and restarts, [`disk`] and [`tear`] what else may befall data;
//! - [`producer`] is another process, which writes steers into the data;
//! - [`learner`], [`watcher`] and [`reader`] are its clients, who speak HTTP through [`client`];
//! - [`ledger`] is what they saw and were told, held against the record after every restart;
//! - [`teacher`] and [`wire`] are the provider behind the server, who judges every request.
//!
//! `cargo xtask crash` plays it at length; a small part belongs to the ordinary tests.

mod campaign;
mod client;
mod disk;
mod house;
mod learner;
mod ledger;
mod producer;
mod reader;
mod teacher;
mod tear;
mod watcher;
mod wire;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use learnharness::server::llm::catalog::Api;

use crate::support::provider::{Provider, Reply};
use campaign::{Between, Size};
use house::{House, Teacher};
use ledger::{Fault, Figures, Ledger};

/// How many kills, and the seed of all that is drawn.
const KILLS: &str = "LEARNHARNESS_CRASH_KILLS";
const SEED: &str = "LEARNHARNESS_CRASH_SEED";
/// What each line for a person begins with.
const LINE: &str = "crash: ";
/// How soon a second server on the same data must have said so.
const REFUSAL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_started_again_loses_and_doubles_nothing() {
    let size = Size {
        seed: 1,
        kills: 4,
        learners: 2,
        watchers: 1,
        apart: Duration::from_millis(8),
        life: Duration::from_millis(900),
        patience: Duration::from_secs(120),
    };
    for api in [Api::OpenAiCompletions, Api::AnthropicMessages] {
        let row = with_provider(api, "killed", size, Between::Nothing, None).await;
        assert!(row.faults.is_empty(), "{:#?}", row.faults);
        assert!(row.figures.kills >= size.kills && row.figures.published > 0 && row.figures.steers > 0);
    }
    disk::second(size).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by `cargo xtask crash`"]
async fn as_many_kills_as_are_wanted() {
    let kills = number(KILLS).unwrap_or(50);
    let size = Size {
        seed: u64::from(number(SEED).unwrap_or(1)),
        kills: kills.div_ceil(3),
        learners: 4,
        watchers: 2,
        apart: Duration::from_millis(60),
        life: Duration::from_millis(4500),
        patience: Duration::from_secs(90),
    };
    println!();
    println!("{LINE}seed {}", size.seed);
    let few = Size { kills: size.kills.div_ceil(3).max(3), learners: 2, watchers: 1, seed: size.seed + 3, ..size };
    let (lesson, chat, messages, torn, full) = tokio::join!(
        with_lesson(size),
        with_provider(
            Api::OpenAiCompletions,
            "completions",
            Size { seed: size.seed + 1, ..size },
            Between::Nothing,
            None
        ),
        with_provider(Api::AnthropicMessages, "messages", Size { seed: size.seed + 2, ..size }, Between::Nothing, None),
        with_provider(
            Api::OpenAiCompletions,
            "torn log",
            Size { apart: Duration::from_millis(5), ..few },
            Between::Tear,
            None
        ),
        on_a_small_disk(Size { seed: size.seed + 4, ..few }),
    );
    let mut rows = vec![lesson, chat, messages, torn];
    let mut is_good = true;
    match full {
        Ok(row) => rows.push(row),
        Err(words) => println!("{LINE}disk full: skipped: {words}"),
    }
    println!("{LINE}{}", Row::head());
    for row in &rows {
        println!("{LINE}{}", row.line());
        is_good &= row.faults.is_empty();
    }
    for row in &rows {
        for (fault, words) in row.faults.iter().take(20) {
            println!("{LINE}{}: {fault:?}: {words}", row.name);
        }
    }
    is_good &= tell("read-only data", &disk::read_only(size).await);
    is_good &= tell("second server", &disk::second(size).await.and_then(in_time));
    println!("{LINE}{}", if is_good { "good" } else { "there are faults" });
    assert!(is_good);
}

fn in_time(took: Duration) -> Result<String, String> {
    let words = format!("refused after {} ms", took.as_millis());
    if took <= REFUSAL { Ok(words) } else { Err(words) }
}

fn tell(what: &str, outcome: &Result<String, String>) -> bool {
    let is_skipped = outcome.as_ref().is_err_and(|words| words.starts_with("skipped: "));
    match outcome {
        Ok(words) => println!("{LINE}{what}: ok: {words}"),
        Err(words) if is_skipped => println!("{LINE}{what}: {words}"),
        Err(words) => println!("{LINE}{what}: WRONG: {words}"),
    }
    outcome.is_ok() || is_skipped
}

async fn with_lesson(size: Size) -> Row {
    let house = Arc::new(House::new(Teacher::Lesson, None));
    campaign::run(house.clone(), size, Between::Nothing).await;
    Row::of("lesson", &house.ledger)
}

async fn on_a_small_disk(size: Size) -> Result<Row, String> {
    let disk = disk::Disk::new(24).await?;
    Ok(with_provider(Api::OpenAiCompletions, "disk full", size, Between::Nothing, Some(disk)).await)
}

async fn with_provider(api: Api, name: &'static str, size: Size, between: Between, disk: Option<disk::Disk>) -> Row {
    let serial = AtomicU64::new(0);
    let provider = Provider::answering(move |request| {
        if request.body["messages"].is_null() {
            return Reply::status(404, r#"{"error":{"message":"not here"}}"#);
        }
        let answer = teacher::play(&wire::heard(api, &request.body));
        wire::reply(api, serial.fetch_add(1, Ordering::Relaxed), &answer, size.apart)
    })
    .await;
    let teacher = Teacher::At { api, url: provider.url().to_owned() };
    let house = Arc::new(House::new(teacher, disk.as_ref().map(disk::Disk::data)));
    match &disk {
        Some(disk) => disk::full(house.clone(), disk, size).await,
        None => campaign::run(house.clone(), size, between).await,
    }
    for fault in provider.take_faults() {
        house.ledger.fault(Fault::Invalid, fault);
    }
    Row::of(name, &house.ledger)
}

/// One line of the table.
struct Row {
    name: &'static str,
    figures: Figures,
    faults: Vec<(Fault, String)>,
}

impl Row {
    fn of(name: &'static str, ledger: &Ledger) -> Self {
        Self { name, figures: ledger.figures(), faults: ledger.faults() }
    }

    fn head() -> String {
        let columns = [
            "kills",
            "starts",
            "recovered",
            "inputs",
            "messages",
            "steers",
            "lost",
            "doubled",
            "invalid",
            "reader",
            "stuck",
            "server",
            "text ms",
            "retries",
            "507",
            "lessons",
            "s",
        ];
        columns.iter().fold(format!("{:<12}", ""), |mut line, column| {
            let _ = write!(line, "{column:>10}");
            line
        })
    }

    fn line(&self) -> String {
        let Figures { kills, starts, recovered, inputs, published, steers, refused, retries, chats, text_lost, took } =
            self.figures;
        let of = |kind: Fault| self.faults.iter().filter(|(fault, _)| *fault == kind).count() as u128;
        let counts = [kills, starts, recovered, inputs, published, steers].map(u128::from);
        let faults = [Fault::Lost, Fault::Doubled, Fault::Invalid, Fault::Reader, Fault::Stuck, Fault::Server].map(of);
        let rest = [
            text_lost.as_millis(),
            u128::from(retries),
            u128::from(refused),
            u128::from(chats),
            u128::from(took.as_secs()),
        ];
        counts.iter().chain(&faults).chain(&rest).fold(format!("{:<12}", self.name), |mut line, count| {
            let _ = write!(line, "{count:>10}");
            line
        })
    }
}

/// A number from the environment.
fn number(name: &str) -> Option<u32> {
    #[expect(clippy::disallowed_methods, reason = "the rule is for the app; these numbers are for this test alone")]
    std::env::var(name).ok()?.parse().ok()
}
