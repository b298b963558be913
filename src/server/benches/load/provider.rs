//! A model provider whose deltas say when they were sent.
//!
//! The address says what it answers: below `/400x24/v1` 400 deltas of 24 characters as fast as they are taken; with `-20ms`
//! after the size one every 20 ms; with `-open` the answer has no end. Each delta begins with the time in µs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{Failure, now_us};

/// Prints its address and answers until its input ends.
pub(crate) async fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let mut answers = JoinSet::new();
    let (told, mut ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = told.send(());
    });
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                // A caller that goes away is no fault of the provider.
                answers.spawn(async move { answer(stream).await.is_ok() });
            }
            Some(_) = answers.join_next() => {}
            _ = &mut ended => return Ok(()),
        }
    }
}

/// What an address asks for.
#[derive(Debug, PartialEq, Eq)]
struct Script {
    deltas: usize,
    characters: usize,
    every: Option<Duration>,
    open: bool,
}

impl Script {
    fn read(path: &str) -> Option<Self> {
        let mut words = path.strip_suffix("/v1/chat/completions")?.strip_prefix('/')?.split('-');
        let (deltas, characters) = words.next()?.split_once('x')?;
        let (deltas, characters) = (deltas.parse().ok()?, characters.parse().ok()?);
        let mut script = Self { deltas, characters, every: None, open: false };
        for word in words {
            match word.strip_suffix("ms") {
                Some(every) => script.every = Some(Duration::from_millis(every.parse().ok()?)),
                None if word == "open" => script.open = true,
                None => return None,
            }
        }
        Some(script)
    }
}

async fn answer(stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    let (mut reader, mut writer) = (BufReader::new(read), BufWriter::new(write));
    let path = request(&mut reader).await?;
    let script = Script::read(&path).ok_or("no such script")?;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    writer.write_all(head.as_bytes()).await?;
    let mut ticks = script.every.map(|every| {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    for _ in 0..script.deltas {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let text = format!("{:<width$}", now_us(), width = script.characters);
        send(&mut writer, &chunk(&json!({"content": &text[..script.characters]}), &Value::Null)).await?;
    }
    if script.open {
        // The server hangs up when the run is stopped.
        let _ = reader.read_to_end(&mut Vec::new()).await;
        return Ok(());
    }
    send(&mut writer, &chunk(&json!({}), &json!("stop"))).await?;
    writer.write_all(b"data: [DONE]\n\n").await?;
    Ok(writer.flush().await?)
}

/// Each its own piece on the wire, as from a model.
async fn send(writer: &mut (impl AsyncWriteExt + Unpin), event: &Value) -> Result<(), Failure> {
    writer.write_all(format!("data: {event}\n\n").as_bytes()).await?;
    Ok(writer.flush().await?)
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "measured", "choices": [choice]})
}

/// The path of a request, which is read to its end.
async fn request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Result<String, Failure> {
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let path = line.split(' ').nth(1).ok_or("no request")?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line).await? == 0 {
            return Err("half a request".into());
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
            Some(_) => {}
            None => break,
        }
    }
    reader.read_exact(&mut vec![0; length]).await?;
    Ok(path)
}
