//! `cargo xtask crash`: the real server killed again and again while learners learn, and a table of what became of it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::shell::cargo;

/// What a line for a person begins with.
const LINE: &str = "crash: ";
const USAGE: &str = "usage: cargo xtask crash [--kills N] [--seed N]";

/// How much is played.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    kills: u32,
    seed: u32,
}

/// Kills as often as it is told to; fails when anything was lost, doubled or stuck.
pub(crate) fn crash(arguments: &[String]) -> Result<()> {
    let Wanted { kills, seed } = wanted(arguments)?;
    let mut command = cargo(["test", "--features", "ssr", "--test", "server", "crash::as_many"]);
    command.args(["--", "--ignored", "--nocapture"]).env("RUST_BACKTRACE", "0");
    command.env("LEARNHARNESS_CRASH_KILLS", kills.to_string()).env("LEARNHARNESS_CRASH_SEED", seed.to_string());
    let mut child = command.stdout(Stdio::piped()).spawn().context("can't start cargo")?;
    let mut told = false;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            if let Some(words) = String::from_utf8_lossy(&line?).strip_prefix(LINE) {
                println!("{words}");
                told = true;
            }
        }
    }
    let status = child.wait()?;
    if !told {
        bail!("the server could not be put to the test ({status})");
    }
    if !status.success() {
        bail!("the server does not hold what it promises");
    }
    Ok(())
}

fn wanted(arguments: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { kills: 50, seed: 1 };
    for pair in arguments.chunks(2) {
        let [name, number] = pair else { bail!(USAGE) };
        let place = match name.as_str() {
            "--kills" => &mut wanted.kills,
            "--seed" => &mut wanted.seed,
            _ => bail!(USAGE),
        };
        *place = number.parse().ok().context(USAGE)?;
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_and_seed_may_be_said_and_nothing_else() {
        let read = |line: &str| wanted(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(read("").unwrap(), Wanted { kills: 50, seed: 1 });
        assert_eq!(read("--seed 7 --kills 300").unwrap(), Wanted { kills: 300, seed: 7 });
        for wrong in ["--kills", "--kills many", "300", "--deaths 3"] {
            assert_eq!(read(wrong).unwrap_err().to_string(), USAGE, "{wrong}");
        }
    }
}
