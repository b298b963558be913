//! The cases of any folders, a line each: what `cargo xtask cases` runs.
//!
//! A folder is laid out like `fixtures/pi` (cases/ and golden/) or holds the files of faults, or it holds such folders.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use futures::FutureExt;

use crate::support::report::Listed;
use crate::{faults, reference};

/// Paths as in `PATH`; without it there is nothing to run.
const FOLDERS: &str = "LEARNHARNESS_CASES";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by `cargo xtask cases`"]
async fn the_cases_of_the_given_folders() {
    #[expect(clippy::disallowed_methods, reason = "the rule is for the app; these folders are for this test alone")]
    let given = std::env::var_os(FOLDERS).unwrap_or_default();
    let mut tally = Tally::default();
    // Libtest has begun a line.
    println!();
    for folder in std::env::split_paths(&given).flat_map(|folder| folders_in(&folder)) {
        tally.run(&folder).await;
    }
    println!("cases: {} ok, {} listed, {} differ", tally.ok, tally.listed, tally.differ);
    assert_eq!(tally.differ, 0, "cases differ");
    assert!(tally.ok + tally.listed > 0, "no cases");
}

/// The folders of cases under `folder`, itself included.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    if is_reference(folder) {
        return vec![folder.to_owned()];
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let own = entries.iter().any(|path| path.extension().is_some_and(|kind| kind == "json")).then(|| folder.to_owned());
    own.into_iter().chain(entries.iter().filter(|path| path.is_dir()).flat_map(|path| folders_in(path))).collect()
}

fn is_reference(folder: &Path) -> bool {
    folder.join("cases").is_dir() && folder.join("golden").is_dir()
}

#[derive(Default)]
struct Tally {
    ok: usize,
    listed: usize,
    differ: usize,
}

impl Tally {
    async fn run(&mut self, folder: &Path) {
        if is_reference(folder) {
            for (name, path) in reference::cases(folder) {
                self.add(&name, reference::DIFFERENCES, reference::difference(&path)).await;
            }
        } else {
            for variant in faults::variants(folder) {
                self.add(&variant.name, faults::DIFFERENCES, faults::difference(&variant)).await;
            }
        }
    }

    async fn add(&mut self, name: &str, listed: Listed, case: impl Future<Output = Option<String>>) {
        // A case of a shape that nobody has foreseen must not hide those after it.
        let outcome = AssertUnwindSafe(case).catch_unwind().await;
        let difference = outcome.unwrap_or_else(|panic| Some(words(panic.as_ref())));
        let reason = listed.iter().find(|(known, _)| *known == name).map(|(_, reason)| reason);
        match (difference, reason) {
            (None, _) => {
                self.ok += 1;
                println!("ok {name}");
            }
            (Some(_), Some(reason)) => {
                self.listed += 1;
                println!("listed {name}: {reason}");
            }
            (Some(difference), None) => {
                self.differ += 1;
                println!("DIFFERS {name}: {}", difference.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("broke: {}", text.unwrap_or("without words"))
}
