//! The scenes: what the readers do, and what they find.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::reader::{Reader, Seen, ask, chat, tell};
use crate::seed::LENGTHS;
use crate::{Failure, now_us, say};

/// Requests at a time while a scene is set.
const TOGETHER: usize = 50;
/// How often a single thing is measured.
const TIMES: usize = 9;
const FOLLOW: &str = "after=0&updates=delta&follow=1";

/// Many runs at once, each with a reader.
pub(crate) async fn runs(server: SocketAddr, runs: usize, deltas: usize) -> Result<(), Failure> {
    let mut readers = Vec::with_capacity(runs);
    for chat in chats(server, runs).await? {
        let mut reader = Reader::open(server, &chat, FOLLOW).await?;
        reader.until("turn-settled").await?;
        readers.push((chat, reader));
    }
    say(&json!({"ready": runs}))?;
    let begin = stream::iter(readers.iter().map(|(chat, _)| chat.clone()).collect::<Vec<_>>());
    let begin = begin.map(|chat| async move { tell(server, &chat).await }).buffer_unordered(TOGETHER);
    let begin = begin.try_for_each(|_| async { Ok(()) });
    let read = try_join_all(readers.iter_mut().map(|(_, reader)| reader.run()));
    let ((), seen) = futures::try_join!(begin, read)?;
    say(&summary(&seen, deltas))
}

/// What the readers of runs of so many deltas saw.
fn summary(seen: &[Seen], deltas: usize) -> Value {
    let mut delays: Vec<u64> = seen.iter().flat_map(|seen| seen.delays.iter().copied()).collect();
    delays.sort_unstable();
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).copied().unwrap_or(0) as f64 / 1e3;
    json!({
        "deltas": delays.len(),
        "skipped": seen.len() * deltas - delays.len(),
        "p50Ms": at(0.5),
        "p99Ms": at(0.99),
        "maxMs": delays.last().copied().unwrap_or(0) as f64 / 1e3,
        "whole": seen.iter().filter(|seen| seen.is_whole).count(),
    })
}

/// Many readers of chats in which nothing goes on; then one run.
pub(crate) async fn idle(server: SocketAddr, count: usize, readers: usize) -> Result<(), Failure> {
    let chats = chats(server, count).await?;
    let open = (0..readers).map(|index| {
        let chat = &chats[index % chats.len()];
        async move {
            let mut reader = Reader::open(server, chat, FOLLOW).await?;
            reader.until("turn-settled").await?;
            Ok::<_, Failure>(reader)
        }
    });
    let mut open: Vec<Reader> = stream::iter(open).buffered(TOGETHER).try_collect().await?;
    say(&json!({"ready": open.len()}))?;
    // Nothing but keep-alives comes until leave is given.
    tell(server, &chats[0]).await?;
    let seen = try_join_all(open.iter_mut().step_by(count).map(Reader::run)).await?;
    let deltas = seen.first().map_or(0, |seen| seen.delays.len());
    say(&summary(&seen, deltas))
}

/// A run with a quick reader and so many that stop reading before it begins.
pub(crate) async fn lagged(server: SocketAddr, slow: usize) -> Result<(), Failure> {
    let chat = chat(server).await?;
    let mut readers = Vec::new();
    for _ in 0..=slow {
        let mut reader = Reader::open(server, &chat, FOLLOW).await?;
        reader.until("turn-settled").await?;
        readers.push(reader);
    }
    say(&json!({"ready": readers.len()}))?;
    tell(server, &chat).await?;
    let quick = readers[0].run().await?;
    say(&json!({"whole": quick.is_whole, "deltas": quick.delays.len()}))?;
    let mut same = 0;
    for reader in &mut readers[1..] {
        let seen = reader.run().await?;
        same += usize::from(seen.text == quick.text);
    }
    say(&json!({"same": same}))
}

/// Attaching to a run that has said much.
pub(crate) async fn open(server: SocketAddr, deltas: usize) -> Result<(), Failure> {
    let chat = chat(server).await?;
    let mut first = Reader::open(server, &chat, FOLLOW).await?;
    first.until("turn-settled").await?;
    tell(server, &chat).await?;
    let mut came = 0;
    while came < deltas {
        let event = first.next().await?;
        came += usize::from(event.starts_with(br#"{"type":"message_update""#) && contains(event, b"text_delta"));
    }
    let mut found = json!({});
    for updates in ["full", "delta"] {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let start = Instant::now();
            let mut reader = Reader::open(server, &chat, &format!("after=1&updates={updates}&follow=1")).await?;
            reader.until("message_start").await?;
            times.push(start.elapsed());
        }
        found[updates] = json!({"ms": median_ms(&mut times)});
    }
    let abort = json!({"chatId": chat});
    crate::reader::post(server, "/api/activity/abort", &abort).await?;
    say(&found)
}

/// The bytes of one answer, from the provider and to a reader. `path` is the script's address at the provider.
pub(crate) async fn wire(server: SocketAddr, provider: SocketAddr, path: &str) -> Result<(), Failure> {
    let body = "Content-Length: 2\r\n\r\n{}";
    let (_, theirs) = ask(provider, &format!("POST {path}/chat/completions"), body).await?;
    let chat = chat(server).await?;
    let mut reader = Reader::open(server, &chat, FOLLOW).await?;
    reader.until("turn-settled").await?;
    let before = reader.bytes;
    tell(server, &chat).await?;
    let seen = reader.run().await?;
    let ours = reader.bytes - before;
    say(&json!({"text": seen.text.len(), "whole": seen.is_whole, "provider": theirs.len(), "reader": ours}))
}

/// What the length of a record costs: for each, the first time and the median of some.
pub(crate) async fn records(server: SocketAddr) -> Result<(), Failure> {
    let mut found = json!({});
    for length in LENGTHS {
        let chat = length.to_string();
        let mut last = length;
        let mut times: [Vec<Duration>; 5] = Default::default();
        for _ in 0..TIMES {
            let start = Instant::now();
            let (status, _) = ask(server, &format!("GET /api/chats/{chat}?after={last}"), "").await?;
            times[0].push(start.elapsed());
            let start = Instant::now();
            let mut reader = Reader::open(server, &chat, &format!("after={last}&updates=delta&follow=1")).await?;
            reader.until("turn-settled").await?;
            times[1].push(start.elapsed());
            let (start, asked) = (Instant::now(), now_us());
            let (answer, seen) = futures::join!(
                async {
                    let accepted = tell(server, &chat).await?;
                    Ok::<_, Failure>((accepted, start.elapsed()))
                },
                reader.run()
            );
            let ((accepted, took), seen) = (answer?, seen?);
            times[2].push(took);
            times[3].push(Duration::from_micros(seen.first.saturating_sub(asked)));
            times[4].push(Duration::from_micros(seen.ended.saturating_sub(seen.first)));
            last = accepted["seq"].as_u64().unwrap_or(0) as usize + 1;
            if status != 200 {
                return Err(format!("GET answers with {status}").into());
            }
        }
        let names = ["GET", "attach", "POST", "to the request", "answer and append"];
        for (name, mut times) in names.into_iter().zip(times) {
            let first = times[0].as_secs_f64() * 1e3;
            found[name][&chat] = json!({"firstMs": first, "ms": median_ms(&mut times)});
        }
    }
    say(&found)
}

fn median_ms(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn contains(event: &[u8], words: &[u8]) -> bool {
    event.windows(words.len()).any(|window| window == words)
}

async fn chats(server: SocketAddr, count: usize) -> Result<Vec<String>, Failure> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let made = join_all((0..TOGETHER.min(count - all.len())).map(|_| chat(server))).await;
        all.extend(made.into_iter().collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}
