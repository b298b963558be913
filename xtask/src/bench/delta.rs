//! What a streamed delta costs the server, from the provider's bytes through the store to one reader of each run.

use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use super::Row;
use super::process::{cpu, peak_memory};
use super::provider::Provider;
use super::server::Server;
use crate::serve::Built;

/// Deltas of a run, and runs at once.
const LOADS: [(usize, usize); 3] = [(8_000, 1), (32_000, 1), (500, 200)];
/// Characters of a delta.
const CHARACTERS: usize = 4;

pub(super) fn measure(built: &Built) -> Result<Vec<Row>> {
    let provider = Provider::start()?;
    LOADS.iter().map(|(deltas, runs)| load(built, &provider, *deltas, *runs)).collect()
}

fn load(built: &Built, provider: &Provider, deltas: usize, runs: usize) -> Result<Row> {
    let server = Server::start_on(built, &provider.base_url(deltas, CHARACTERS))?;
    server.say(&server.chat()?, "Warm up.")?;
    let chats = (0..runs).map(|_| server.chat()).collect::<Result<Vec<_>>>()?;
    let (before, start) = (cpu(server.pid())?, Instant::now());
    let read = thread::scope(|scope| {
        let readers: Vec<_> = chats.iter().map(|chat| scope.spawn(|| server.say(chat, "Tell me about it."))).collect();
        readers.into_iter().try_fold(0, |sum, reader| match reader.join() {
            Ok(read) => Ok(sum + read?),
            Err(_) => bail!("a reader broke"),
        })
    })?;
    let all = (deltas * runs) as f64;
    let value = format!(
        "{:>5.1} µs CPU a delta, {:>5.1} bytes sent a delta, {:>5.2} s, {:>5.1} MiB at most",
        (cpu(server.pid())? - before).as_secs_f64() * 1e6 / all,
        read as f64 / all,
        start.elapsed().as_secs_f64(),
        peak_memory(server.pid())? as f64 / f64::from(1 << 20)
    );
    Ok(Row { name: format!("{runs} × {deltas} deltas"), value, goal: "≤ 12 µs".to_owned() })
}
