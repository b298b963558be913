//! How long the server takes to render a lesson's page.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Row;
use super::process::cpu;
use super::provider::Provider;
use super::server::Server;
use crate::serve::Built;

/// Messages of the lessons, and what their pages may take.
const LESSONS: [(usize, &str); 2] = [(20, ""), (1_000, "< 40 ms")];
/// Renderings of each.
const TIMES: u32 = 20;

pub(super) fn measure(built: &Built) -> Result<Vec<Row>> {
    let provider = Provider::start()?;
    // Answers of about 800 characters.
    let server = Server::start_on(built, &provider.base_url(200, 4))?;
    LESSONS.iter().map(|(messages, goal)| render(&server, *messages, goal)).collect()
}

fn render(server: &Server, messages: usize, goal: &str) -> Result<Row> {
    let chat = server.chat()?;
    for _ in 0..messages / 2 {
        server.say(&chat, "Tell me about the tides.")?;
    }
    let path = format!("/chat/{chat}");
    let mut sent = 0;
    let mut times = Vec::new();
    let before = cpu(server.pid())?;
    for _ in 0..TIMES {
        let start = Instant::now();
        let response = server.get(&path)?;
        if response.status != 200 {
            bail!("GET {path} answers with {}", response.status);
        }
        times.push(start.elapsed());
        sent = response.body.len();
    }
    let cpu = (cpu(server.pid())? - before) / TIMES;
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let value = format!(
        "{:>6.1} ms (median) {:>6.1} ms CPU {:>8.1} kB sent",
        milliseconds(times[times.len() / 2]),
        milliseconds(cpu),
        sent as f64 / 1e3
    );
    Ok(Row { name: format!("{messages} messages"), value, goal: goal.to_owned() })
}
