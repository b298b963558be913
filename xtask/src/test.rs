//! `cargo xtask test` and `cargo xtask check`: steps in a row, the first failure ends them, a table says what each took.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell::{Count, cargo, program, root, run, run_counting, say, target};
use crate::site::{self, NAME};
use crate::tools::{self, WASM_TARGET};
use crate::wasm::Mode;

/// Runs everything; with a filter, only the tests whose name has it.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => Report::default().run(&[LINTS, DOCS, TESTS, BROWSER].concat(), None),
        [filter] if !filter.starts_with('-') => Report::default().run(&[TESTS, BROWSER].concat(), Some(filter)),
        _ => bail!("usage: cargo xtask test [FILTER]"),
    }
}

/// Runs what is worth running after every change.
pub(crate) fn check(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask check");
    }
    Report::default().run(&[LINTS, &TESTS[..1]].concat(), None)
}

/// One step: its name in the table, and what it does with the report and the filter.
type Step = (&'static str, fn(&mut Report, Option<&str>) -> Result<()>);

const LINTS: &[Step] = &[("format", format), ("lints, server", server_lints), ("lints, browser", browser_lints)];
const DOCS: &[Step] = &[("lints, xtask", xtask_lints), ("docs", docs)];
const TESTS: &[Step] = &[("cargo test", cargo_test), ("cargo test, xtask", xtask_test)];
const BROWSER: &[Step] =
    &[("end2end packages", packages), ("end2end types", types), ("site", build_site), ("end2end", playwright)];

fn format(_: &mut Report, _: Option<&str>) -> Result<()> {
    tools::components()?;
    run(&mut cargo(["fmt", "--all", "--check"])).context("the format is off; `cargo fmt --all` mends it")
}

fn server_lints(_: &mut Report, _: Option<&str>) -> Result<()> {
    run(&mut cargo(["clippy", "--all-targets", "--features", "ssr", "--", "-D", "warnings"]))
}

fn browser_lints(_: &mut Report, _: Option<&str>) -> Result<()> {
    tools::wasm_target()?;
    let arguments = ["clippy", "--lib", "--target", WASM_TARGET, "--no-default-features", "--features", "hydrate"];
    run(cargo(arguments).args(["--", "-D", "warnings"]))
}

fn xtask_lints(_: &mut Report, _: Option<&str>) -> Result<()> {
    run(&mut cargo(["clippy", "--package", "xtask", "--all-targets", "--", "-D", "warnings"]))
}

fn docs(_: &mut Report, _: Option<&str>) -> Result<()> {
    run(cargo(["doc", "--no-deps", "--lib", "--features", "ssr"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn cargo_test(report: &mut Report, filter: Option<&str>) -> Result<()> {
    let mut command = cargo(["test", "--features", "ssr", "--no-fail-fast"]);
    run_counting(command.args(filter), &mut report.count)
}

fn xtask_test(report: &mut Report, filter: Option<&str>) -> Result<()> {
    run_counting(cargo(["test", "--package", "xtask"]).args(filter), &mut report.count)
}

fn packages(_: &mut Report, _: Option<&str>) -> Result<()> {
    tools::install_packages(&root().join("end2end"), "Playwright")
}

fn types(_: &mut Report, _: Option<&str>) -> Result<()> {
    run(in_end2end().args(["tsc", "--noEmit"]))
}

fn build_site(_: &mut Report, _: Option<&str>) -> Result<()> {
    site::build(Mode::Release).map(drop)
}

fn playwright(report: &mut Report, filter: Option<&str>) -> Result<()> {
    let chromium = tools::chromium()?;
    let mut command = in_end2end();
    command.args(["playwright", "test", "--pass-with-no-tests"]);
    if let Some(filter) = filter {
        command.args(["--grep", filter]);
    }
    command.env("CHROMIUM", chromium);
    command.env("LEARNHARNESS_BIN", tested_server()?).env("LEARNHARNESS_SITE", target().join("site"));
    run_counting(&mut command, &mut report.count)
}

/// The server that `cargo test` has built for its integration tests.
fn tested_server() -> Result<PathBuf> {
    let server = target().join("debug").join(NAME);
    if !server.is_file() {
        bail!("missing: {}, which `cargo test` should have built", server.display());
    }
    Ok(server)
}

fn in_end2end() -> Command {
    let mut npx = program("npx");
    npx.arg("--no-install").current_dir(root().join("end2end"));
    npx
}

/// What has been run so far.
#[derive(Default)]
struct Report {
    took: Vec<(&'static str, Duration)>,
    count: Count,
}

impl Report {
    fn run(mut self, steps: &[Step], filter: Option<&str>) -> Result<()> {
        for (name, step) in steps {
            say(format!("{name} ({} of {})", self.took.len() + 1, steps.len()));
            let start = Instant::now();
            let outcome = step(&mut self, filter);
            self.took.push((name, start.elapsed()));
            if let Err(error) = outcome {
                println!("\n{}", self.table());
                return Err(error.context(format!("step `{name}` failed")));
            }
        }
        println!("\n{}\n{}", self.table(), self.total());
        Ok(())
    }

    fn table(&self) -> String {
        let row = |(name, took): (&str, Duration)| format!("{name:<20}{:>8.1} s\n", took.as_secs_f64());
        let rows: String = self.took.iter().copied().map(row).collect();
        rows + &row(("in all", self.took.iter().map(|(_, took)| *took).sum()))
    }

    fn total(&self) -> String {
        format!("{} passed, {} failed", self.count.passed, self.count.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_each_step_and_their_sum() {
        let took = vec![("format", Duration::from_millis(1500)), ("docs", Duration::from_millis(20_000))];
        let report = Report { took, count: Count { passed: 12, failed: 0 } };
        assert_eq!(
            report.table(),
            "format                   1.5 s\ndocs                    20.0 s\nin all                  21.5 s\n"
        );
        assert_eq!(report.total(), "12 passed, 0 failed");
    }

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        fn fails(_: &mut Report, _: Option<&str>) -> Result<()> {
            bail!("two tests failed")
        }
        fn never(_: &mut Report, _: Option<&str>) -> Result<()> {
            panic!("ran after a failure")
        }
        let error = Report::default().run(&[("first", fails), ("second", never)], None).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `first` failed: two tests failed");
    }
}
