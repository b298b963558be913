//! The loop alone beside the reference packages' agent on Node: each in a process of its own, with one listener, against
//! the same provider in a third process. Both say themselves what they took.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Row;
use super::provider::Provider;
use crate::serve::Built;
use crate::shell::{self, cargo, program, say, target};

/// Deltas of a run, and runs at once.
const LOADS: [(usize, usize); 4] = [(2_000, 1), (8_000, 1), (32_000, 1), (500, 200)];
/// Characters of a delta.
const CHARACTERS: usize = 4;
/// Turns with a call of a tool each, of so many deltas.
const TURNS: (usize, usize) = (200, 20);
/// Bytes of the answers that are only decoded and folded.
const SIZES: [usize; 2] = [1 << 20, 8 << 20];
/// What ours may take of what the reference takes.
const CPU_GOAL: &str = "ratio ≤ 0.1";
const MEMORY_GOAL: &str = "ratio ≤ 0.2";

/// The reference: what it is made of, and the program that drives it.
const PACKAGE: &str = r#"{"private": true, "type": "module", "dependencies": {
    "@earendil-works/pi-agent-core": "0.85.1", "@earendil-works/pi-ai": "0.85.1"}}"#;
const PROGRAM: &str = include_str!("reference.mjs");

pub(super) fn measure(_: &Built) -> Result<Vec<Row>> {
    let provider = Provider::start()?;
    let (ours, theirs) = (compile()?, install()?);
    let both = |arguments: &[&str]| -> Result<(Value, Value)> {
        Ok((said(program(&ours).args(arguments))?, said(program("node").arg(&theirs).args(arguments))?))
    };
    let mut rows = Vec::new();
    for (deltas, runs) in LOADS {
        let (ours, theirs) = both(&[&provider.base_url(deltas, CHARACTERS), &runs.to_string()])?;
        let all = (deltas * runs) as f64;
        let load = format!("{runs} × {deltas} deltas");
        rows.push(compared(format!("{load}: CPU"), "µs a delta", all, "cpuMicroseconds", CPU_GOAL, &ours, &theirs)?);
        rows.push(compared(
            format!("{load}: memory"),
            "MiB",
            f64::from(1 << 20),
            "peakBytes",
            MEMORY_GOAL,
            &ours,
            &theirs,
        )?);
    }
    let (turns, deltas) = TURNS;
    let url = provider.base_url_with_calls(deltas, CHARACTERS);
    let (ours_turns, theirs_turns) = both(&[&url, "turns", &turns.to_string()])?;
    for (name, field) in [("first turns", "firstTurnMicroseconds"), ("last turns", "lastTurnMicroseconds")] {
        rows.push(compared(format!("{name} of {turns}"), "µs a turn", 1.0, field, "", &ours_turns, &theirs_turns)?);
    }
    for bytes in SIZES {
        let ours = said(program(&ours).args(["parse", &bytes.to_string()]))?;
        let nanoseconds = |field| Ok::<_, anyhow::Error>(number(&ours, field)? * 1e3 / bytes as f64);
        let value = format!(
            "{:>6.2} ns a byte to decode, {:>6.2} to fold",
            nanoseconds("decodeMicroseconds")?,
            nanoseconds("foldMicroseconds")?
        );
        rows.push(Row { name: format!("{} MiB of events", bytes >> 20), value, goal: "linear".to_owned() });
    }
    Ok(rows)
}

fn compared(
    name: String,
    unit: &str,
    share: f64,
    field: &str,
    goal: &str,
    ours: &Value,
    theirs: &Value,
) -> Result<Row> {
    let (ours, theirs) = (number(ours, field)? / share, number(theirs, field)? / share);
    let value = format!("{ours:>7.1} {unit}; reference {theirs:>7.1}; ratio {:.3}", ours / theirs);
    Ok(Row { name, value, goal: goal.to_owned() })
}

fn number(said: &Value, field: &str) -> Result<f64> {
    said[field].as_f64().with_context(|| format!("no {field} in {said}"))
}

fn said(command: &mut std::process::Command) -> Result<Value> {
    let text = shell::read(command)?;
    serde_json::from_str(&text).with_context(|| format!("{command:?} said {text:?}"))
}

fn compile() -> Result<PathBuf> {
    say("Compiling the loop alone.");
    shell::run(&mut cargo(["build", "--example", "loop", "--features", "ssr", "--profile", "release"]))?;
    Ok(target().join("release/examples/loop"))
}

/// Installs the reference from npm and returns its program.
fn install() -> Result<PathBuf> {
    let folder = target().join("bench/reference");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("reference.mjs");
    std::fs::write(&file, PROGRAM)?;
    if !folder.join("node_modules").is_dir() {
        say("Installing the reference packages with npm.");
        std::fs::write(folder.join("package.json"), PACKAGE)?;
        let mut npm = program("npm");
        shell::run(npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder))?;
    }
    Ok(file)
}
