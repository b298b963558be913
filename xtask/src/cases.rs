//! `cargo xtask cases`: dialects and loop against the cases of any folders, a line a case and the counts last.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, root};

/// The cases that come with the code.
const OWN: [&str; 3] = ["pi", "faults", "faults-translated"];
/// What a line of a case begins with.
const LINES: [&str; 3] = ["ok ", "listed ", "DIFFERS "];
const COUNTS: &str = "cases: ";

/// Runs the cases of these folders, or else our own.
pub(crate) fn cases(arguments: &[String]) -> Result<()> {
    let folders = folders(arguments)?;
    let given = std::env::join_paths(folders).context("a folder's name holds the sign that separates folders")?;
    let mut command = cargo(["test", "--features", "ssr", "--test", "server", "cases::"]);
    command.args(["--", "--ignored", "--nocapture"]).env("LEARNHARNESS_CASES", given).env("RUST_BACKTRACE", "0");
    let mut child = command.stdout(Stdio::piped()).spawn().context("can't start cargo")?;
    let mut counts = None;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            match line.strip_prefix(COUNTS) {
                Some(found) => counts = Some(found.to_owned()),
                None if LINES.iter().any(|start| line.starts_with(start)) => println!("{line}"),
                None => {}
            }
        }
    }
    let status = child.wait()?;
    let Some(counts) = counts else { bail!("the cases could not be run ({status})") };
    println!("{counts}");
    if !status.success() {
        bail!("cases differ, or there are none");
    }
    Ok(())
}

/// Whole paths, because the tests run in the repository's root.
fn folders(arguments: &[String]) -> Result<Vec<PathBuf>> {
    if arguments.is_empty() {
        let fixtures = root().join("src/server/tests/fixtures");
        return Ok(OWN.iter().map(|name| fixtures.join(name)).collect());
    }
    let whole = |argument: &String| {
        let folder = PathBuf::from(argument).canonicalize().with_context(|| format!("can't find {argument}"))?;
        if folder.is_dir() { Ok(folder) } else { bail!("{argument} is not a folder") }
    };
    arguments.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_folders_our_own_cases_are_meant() {
        assert!(folders(&[]).unwrap().iter().all(|folder| folder.is_dir()));
    }

    #[test]
    fn what_is_no_folder_is_refused_by_its_name() {
        let error = folders(&["no/such/place".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "can't find no/such/place");
        let file = root().join("Cargo.toml").display().to_string();
        assert!(folders(std::slice::from_ref(&file)).unwrap_err().to_string().contains(&file));
    }
}
