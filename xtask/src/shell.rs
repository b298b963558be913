//! Running programs: where the repository is, cargo with a clean environment, and children whose tests are counted.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The repository's root folder.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Everything that is built lies under here.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// One line about what happens now.
pub(crate) fn say(line: impl AsRef<str>) {
    println!("==> {}", line.as_ref());
}

/// A variable of the environment that the command was called in; an empty one counts as absent.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the rule is for the app; this program is configured by its caller")]
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A program that starts in the repository's root.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Cargo, as if it had been called by hand.
///
/// `cargo run` tells this program about its own package; build scripts that watch those variables would run again, and
/// with them half of the tree.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = program("cargo");
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    // Several may run at once: lines, no bars.
    command.env("CARGO_TERM_PROGRESS_WHEN", "never").env("CARGO_TARGET_DIR", target()).args(arguments);
    command
}

/// Runs to the end, with output as it comes; a failure is an error that names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("can't start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs to the end and returns what was written to standard output, trimmed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("can't start `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether the command can be started and succeeds; its words are thrown away.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs a test program to the end, passing its output on, and adds what it counted to `count`, also when it fails.
pub(crate) fn run_counting(command: &mut Command, count: &mut Count) -> Result<()> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("can't start `{}`", line(command)))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).split(b'\n') {
            let text = String::from_utf8_lossy(&text?).into_owned();
            println!("{text}");
            *count += counted(&text);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// What one line of output counts: cargo's `test result: ok. 3 passed; 0 failed; …` or Playwright's `  3 passed (4.1s)`.
fn counted(text: &str) -> Count {
    let words: Vec<&str> = text.split_whitespace().collect();
    let before = |noun: &str| {
        let position = words.iter().position(|word| word.trim_end_matches(';') == noun)?;
        words.get(position.checked_sub(1)?)?.parse().ok()
    };
    match words.as_slice() {
        ["test", "result:", ..] => {
            Count { passed: before("passed").unwrap_or(0), failed: before("failed").unwrap_or(0) }
        }
        [number, "passed", time] if time.starts_with('(') => Count { passed: number.parse().unwrap_or(0), failed: 0 },
        [number, "failed"] => Count { passed: 0, failed: number.parse().unwrap_or(0) },
        _ => Count::default(),
    }
}

/// The command as it would be typed.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, passed: u64, failed: u64) {
        assert_eq!(counted(text), Count { passed, failed }, "{text}");
    }

    #[test]
    fn results_of_cargo_and_playwright_are_counted_and_nothing_else() {
        check("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s", 12, 0);
        check("test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", 10, 2);
        check("  7 passed (4.1s)", 7, 0);
        check("  1 failed", 0, 1);
        check("running 12 tests", 0, 0);
        check("test three_passed_one_failed ... ok", 0, 0);
        check("we said 3 passed", 0, 0);
    }

    #[test]
    fn a_failing_command_is_named_in_the_error() {
        let error = run(program("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 3` failed (exit status: 3)");
    }

    #[test]
    fn counts_survive_a_failure() {
        let mut count = Count::default();
        let script = "echo 'test result: FAILED. 4 passed; 1 failed;'; exit 101";
        run_counting(program("sh").args(["-c", script]), &mut count).unwrap_err();
        assert_eq!(count, Count { passed: 4, failed: 1 });
    }
}
