//! What a streamed delta costs, from the provider's bytes through the store to one reader, beside the reference packages'
//! agent on Node, which only assembles the message: same machine, same provider.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Row;
use super::process::{cpu, peak_memory};
use super::provider::Provider;
use super::server::Server;
use crate::serve::Built;
use crate::shell::{self, program, say, target};

/// Deltas of a run, and runs at once.
const LOADS: [(usize, usize); 4] = [(2_000, 1), (8_000, 1), (32_000, 1), (500, 200)];
/// Characters of a delta.
const CHARACTERS: usize = 4;
const GOAL: f64 = 0.1;
const MEMORY_GOAL: f64 = 0.2;

/// The reference: what it is made of, and the program that drives it.
const PACKAGE: &str = r#"{"private": true, "type": "module", "dependencies": {
    "@earendil-works/pi-agent-core": "0.85.1", "@earendil-works/pi-ai": "0.85.1"}}"#;
const PROGRAM: &str = include_str!("reference.mjs");

/// What a load took.
struct Cost {
    cpu: Duration,
    /// Bytes.
    peak: u64,
    wall: Duration,
}

pub(super) fn measure(built: &Built) -> Result<Vec<Row>> {
    let provider = Provider::start()?;
    let reference = install()?;
    let mut rows = Vec::new();
    for (deltas, runs) in LOADS {
        let url = provider.base_url(deltas, CHARACTERS);
        let ours = ours(built, &url, runs)?;
        let theirs = theirs(&reference, &url, runs)?;
        let load = if runs == 1 { format!("{deltas} deltas") } else { format!("{runs} runs of {deltas}") };
        rows.extend(compare(&load, (deltas * runs) as f64, &ours, &theirs));
    }
    Ok(rows)
}

fn compare(load: &str, deltas: f64, ours: &Cost, theirs: &Cost) -> [Row; 2] {
    let each = |cost: &Cost| cost.cpu.as_secs_f64() * 1e6 / deltas;
    let mebibytes = |cost: &Cost| cost.peak as f64 / f64::from(1 << 20);
    let cpu = format!(
        "{:>6.1} µs a delta, {:>6.2} s; reference {:>6.1} µs, {:>6.2} s; ratio {:.3}",
        each(ours),
        ours.wall.as_secs_f64(),
        each(theirs),
        theirs.wall.as_secs_f64(),
        each(ours) / each(theirs)
    );
    let memory = format!(
        "{:>6.1} MiB at most; reference {:>6.1} MiB; ratio {:.3}",
        mebibytes(ours),
        mebibytes(theirs),
        mebibytes(ours) / mebibytes(theirs)
    );
    [
        Row { name: format!("{load}: CPU"), value: cpu, goal: format!("≤ {GOAL}") },
        Row { name: format!("{load}: memory"), value: memory, goal: format!("≤ {MEMORY_GOAL}") },
    ]
}

/// The load on our server, with a reader for each run.
fn ours(built: &Built, url: &str, runs: usize) -> Result<Cost> {
    let server = Server::start_on(built, url)?;
    server.say(&server.chat()?, "Warm up.")?;
    let chats = (0..runs).map(|_| server.chat()).collect::<Result<Vec<_>>>()?;
    let (before, start) = (cpu(server.pid())?, Instant::now());
    thread::scope(|scope| {
        let readers: Vec<_> = chats.iter().map(|chat| scope.spawn(|| server.say(chat, "Tell me about it."))).collect();
        readers.into_iter().try_for_each(|reader| match reader.join() {
            Ok(read) => read.map(drop),
            Err(_) => bail!("a reader broke"),
        })
    })?;
    let wall = start.elapsed();
    Ok(Cost { cpu: cpu(server.pid())? - before, peak: peak_memory(server.pid())?, wall })
}

/// Installs the reference from npm and returns its program.
fn install() -> Result<std::path::PathBuf> {
    let folder = target().join("bench/reference");
    std::fs::create_dir_all(&folder)?;
    let program_file = folder.join("reference.mjs");
    std::fs::write(&program_file, PROGRAM)?;
    if !folder.join("node_modules").is_dir() {
        say("Installing the reference packages with npm.");
        std::fs::write(folder.join("package.json"), PACKAGE)?;
        let mut npm = program("npm");
        shell::run(npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder))?;
    }
    Ok(program_file)
}

/// The same load on the reference; it says what it took.
fn theirs(reference: &std::path::Path, url: &str, runs: usize) -> Result<Cost> {
    let said = shell::read(program("node").arg(reference).arg(url).arg(runs.to_string()))?;
    let said: Value = serde_json::from_str(&said).with_context(|| format!("the reference said {said:?}"))?;
    let number = |name: &str| said[name].as_u64().with_context(|| format!("the reference said no {name}"));
    Ok(Cost {
        cpu: Duration::from_micros(number("cpuMicroseconds")?),
        peak: number("peakBytes")?,
        wall: Duration::from_micros(number("wallMicroseconds")?),
    })
}
