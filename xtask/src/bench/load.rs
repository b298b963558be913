//! Many runs, many readers, long records: the server, its provider and its readers each in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Row;
use super::process::{cpu, memory, peak_memory};
use super::server::{Server, pause};
use crate::serve::Built;
use crate::shell::{self, cargo, program, say, target};

/// Runs at once, and how each goes on: one delta every so many ms.
const RUNS: (usize, usize, usize) = (1000, 1000, 20);
/// Chats in which nothing goes on, and their readers.
const IDLE: (usize, usize) = (1000, 10_000);
/// How long idle readers are looked at.
const QUIET: Duration = Duration::from_secs(30);
/// Deltas of a run that somebody attaches to.
const OPEN: usize = 32_000;
/// Texts of 128 kB: deltas of so many characters.
const WIRE: [(usize, usize); 2] = [(32_768, 4), (8_192, 16)];
/// Characters of a delta that holds its time.
const STAMPED: usize = 24;

pub(super) fn measure(built: &Built) -> Result<Vec<Row>> {
    let load = compile()?;
    let (provider, address) = Process::start(&load, &["provider"])?;
    let scene = Scene { built, load: &load, provider: &provider, address: &address };
    let mut rows = vec![Row { name: "load of the machine".to_owned(), value: machine()?, goal: String::new() }];
    rows.extend(scene.runs()?);
    rows.extend(scene.idle()?);
    rows.extend(scene.lagged()?);
    rows.extend(scene.open()?);
    rows.extend(scene.wire()?);
    rows.extend(scene.records()?);
    Ok(rows)
}

fn compile() -> Result<PathBuf> {
    say("Compiling the provider and the readers.");
    shell::run(&mut cargo(["build", "--example", "load", "--features", "ssr", "--profile", "release"]))?;
    Ok(target().join("release/examples/load"))
}

/// What else keeps the machine busy: its load averages.
fn machine() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

struct Scene<'a> {
    built: &'a Built,
    load: &'a Path,
    provider: &'a Process,
    address: &'a str,
}

impl Scene<'_> {
    fn server(&self, script: &str) -> Result<Server> {
        Server::start_on(self.built, &self.base_url(script))
    }

    fn base_url(&self, script: &str) -> String {
        format!("http://{}/{script}/v1", self.address)
    }

    fn runs(&self) -> Result<Vec<Row>> {
        let (runs, deltas, every) = RUNS;
        let server = self.server(&format!("{deltas}x{STAMPED}-{every}ms"))?;
        let arguments = [server.address(), runs.to_string(), deltas.to_string()];
        let (mut readers, _) = Process::scene(self.load, "runs", &arguments)?;
        let pids = [server.pid(), self.provider.pid(), readers.pid()];
        let before = pids.map(cpu);
        let found = readers.go_on()?;
        let mut used = Vec::new();
        for (pid, before) in pids.into_iter().zip(before) {
            used.push((cpu(pid)? - before?).as_secs_f64());
        }
        let all = number(&found, "deltas")?;
        let name = format!("{runs} × {}/s", 1000 / every);
        Ok(vec![
            row(format!("{name}: delay"), delays(&found)?, "p99 < 25 ms"),
            row(
                format!("{name}: whole"),
                format!("{} of {runs}, {} updates skipped", found["whole"], found["skipped"]),
                "all",
            ),
            row(format!("{name}: memory"), mebibytes(peak_memory(server.pid())?), "< 300 MiB"),
            row(format!("{name}: CPU of the server"), format!("{:.1} µs a delta", used[0] * 1e6 / all), "≤ 12 µs"),
            row(format!("{name}: CPU of the provider"), format!("{:.1} µs a delta", used[1] * 1e6 / all), ""),
            row(format!("{name}: CPU of the readers"), format!("{:.1} µs a delta", used[2] * 1e6 / all), ""),
        ])
    }

    fn idle(&self) -> Result<Vec<Row>> {
        let (chats, readers) = IDLE;
        let server = self.server(&format!("200x{STAMPED}-20ms"))?;
        let empty = memory(server.pid())?;
        let (mut scene, _) =
            Process::scene(self.load, "idle", &[server.address(), chats.to_string(), readers.to_string()])?;
        let (full, before) = (memory(server.pid())?, cpu(server.pid())?);
        pause(QUIET);
        let used = cpu(server.pid())? - before;
        let found = scene.go_on()?;
        let name = format!("{readers} readers of {chats} idle chats");
        let each = (full - empty) as f64 / readers as f64 / 1024.0;
        Ok(vec![
            row(format!("{name}: memory"), format!("{}, {each:.1} KiB a reader", mebibytes(full)), ""),
            row(format!("{name}: CPU"), format!("{:.2} s in {} s", used.as_secs_f64(), QUIET.as_secs()), ""),
            row(format!("{name}, then one run: delay"), delays(&found)?, "p99 < 25 ms"),
        ])
    }

    fn lagged(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for slow in [0, 1, 50] {
            let server = self.server("20000x200")?;
            let (mut scene, _) = Process::scene(self.load, "lagged", &[server.address(), slow.to_string()])?;
            let before = memory(server.pid())?;
            let quick = scene.go_on()?;
            let grown = peak_memory(server.pid())?.saturating_sub(before);
            let same = scene.go_on()?;
            let value =
                format!("{} more, whole {}, as the quick one {}", mebibytes(grown), quick["whole"], same["same"]);
            rows.push(row(format!("20000 × 200 bytes, {slow} readers stopped"), value, "< 16 MiB a reader more"));
        }
        Ok(rows)
    }

    fn open(&self) -> Result<Vec<Row>> {
        let server = self.server(&format!("{OPEN}x4-open"))?;
        let (_, found) = Process::scene(self.load, "open", &[server.address(), OPEN.to_string()])?;
        let one = |updates: &str| -> Result<Row> {
            let value = format!("{:.1} ms", number(&found[updates], "ms")?);
            Ok(row(format!("attach to a run of {OPEN} deltas ({updates})"), value, "< 20 ms"))
        };
        Ok(vec![one("full")?, one("delta")?])
    }

    fn wire(&self) -> Result<Vec<Row>> {
        let one = |(deltas, characters): (usize, usize)| -> Result<Row> {
            let script = format!("{deltas}x{characters}");
            let server = self.server(&script)?;
            let arguments = [server.address(), self.address.to_owned(), format!("/{script}/v1")];
            let (_, found) = Process::scene(self.load, "wire", &arguments)?;
            let (theirs, ours) = (number(&found, "provider")?, number(&found, "reader")?);
            let value =
                format!("{:.2} MB of the provider's {:.2}, ratio {:.2}", ours / 1e6, theirs / 1e6, ours / theirs);
            Ok(row(format!("wire of 128 kB in deltas of {characters}"), value, "ratio ≤ 2.5"))
        };
        WIRE.into_iter().map(one).collect()
    }

    fn records(&self) -> Result<Vec<Row>> {
        let data = target().join("bench/records");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        std::fs::create_dir_all(&data)?;
        shell::run(program(self.load).arg("seed").arg(&data))?;
        let server = Server::start_over(self.built, &self.base_url(&format!("20x{STAMPED}")), &data)?;
        let (_, found) = Process::scene(self.load, "records", &[server.address()])?;
        let Some(found) = found.as_object() else { bail!("no records in {found}") };
        let one = |(name, times): (&String, &Value)| -> Result<Row> {
            let Some(times) = times.as_object() else { bail!("no times of {name}") };
            let mut words = Vec::new();
            for (length, time) in times {
                let (ms, first) = (number(time, "ms")?, number(time, "firstMs")?);
                words.push(format!("{length}: {ms:.1} ms (first {first:.1})"));
            }
            Ok(row(format!("records by length: {name}"), words.join(", "), ""))
        };
        found.iter().map(one).collect()
    }
}

fn row(name: String, value: String, goal: &str) -> Row {
    Row { name, value, goal: goal.to_owned() }
}

fn delays(found: &Value) -> Result<String> {
    let ms = |name| number(found, name);
    Ok(format!("p50 {:.1} ms, p99 {:.1} ms, at most {:.1} ms", ms("p50Ms")?, ms("p99Ms")?, ms("maxMs")?))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

fn number(found: &Value, name: &str) -> Result<f64> {
    found[name].as_f64().with_context(|| format!("no {name} in {found}"))
}

/// A process that says a line for each thing it has found; dropping it ends it.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    leave: ChildStdin,
}

impl Process {
    /// Starts it and waits for its first line.
    fn start(load: &Path, arguments: &[&str]) -> Result<(Self, String)> {
        let mut command = program(load);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?);
        let leave = child.stdin.take().context("no input")?;
        let mut process = Self { child, lines, leave };
        let line = process.line()?;
        Ok((process, line))
    }

    fn scene(load: &Path, name: &str, arguments: &[String]) -> Result<(Self, Value)> {
        let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(String::as_str)).collect();
        let (process, line) = Self::start(load, &words)?;
        Ok((process, serde_json::from_str(&line)?))
    }

    /// Lets it go on; what it finds next.
    fn go_on(&mut self) -> Result<Value> {
        writeln!(self.leave)?;
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            bail!("the readers broke");
        }
        Ok(line.trim().to_owned())
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
