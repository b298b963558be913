//! A reader of a chat's stream, as thin as can be: it looks at the bytes of an event and folds the text, no more.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::{Failure, now_us};

pub(crate) struct Reader {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    /// Bytes read so far.
    pub(crate) bytes: usize,
}

/// What a reader saw of one run.
#[derive(Default)]
pub(crate) struct Seen {
    /// µs between the sending of a delta and its coming, for each.
    pub(crate) delays: Vec<u64>,
    /// The text, folded from its deltas, and at the end that of the finished message.
    pub(crate) text: String,
    /// True when both are the same.
    pub(crate) is_whole: bool,
    /// When the provider sent its first delta, and when the message's end came; µs.
    pub(crate) first: u64,
    pub(crate) ended: u64,
}

impl Reader {
    pub(crate) async fn open(server: SocketAddr, chat: &str, query: &str) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let head = format!("GET /api/chats/{chat}/stream?{query} HTTP/1.1\r\nHost: {server}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        Ok(Self { stream: BufReader::with_capacity(2048, stream), line: Vec::new(), bytes: 0 })
    }

    /// The next event's JSON.
    pub(crate) async fn next(&mut self) -> Result<&[u8], Failure> {
        loop {
            self.line.clear();
            let read = self.stream.read_until(b'\n', &mut self.line).await?;
            if read == 0 {
                return Err("the stream ended".into());
            }
            self.bytes += read;
            if self.line.starts_with(b"data: {") {
                return Ok(self.line[b"data: ".len()..].trim_ascii_end());
            }
        }
    }

    pub(crate) async fn until(&mut self, kind: &str) -> Result<(), Failure> {
        let begin = format!(r#"{{"type":"{kind}""#);
        while !self.next().await?.starts_with(begin.as_bytes()) {}
        Ok(())
    }

    /// Reads one run to its settling.
    pub(crate) async fn run(&mut self) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        loop {
            let event = self.next().await?;
            if event.starts_with(br#"{"type":"message_update","message""#) {
                let update: Value = serde_json::from_slice(event)?;
                seen.text = update["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            } else if event.starts_with(br#"{"type":"message_update""#) {
                let now = now_us();
                let Some(delta) = field(event, r#""type":"text_delta""#, r#""delta":""#) else { continue };
                if let Ok(sent) = delta.split(' ').next().unwrap_or_default().parse::<u64>() {
                    seen.delays.push(now.saturating_sub(sent));
                    seen.first = if seen.first == 0 { sent } else { seen.first };
                }
                seen.text.push_str(delta);
            } else if event.starts_with(br#"{"type":"message_end""#) {
                let message = serde_json::from_slice::<Value>(event)?["message"].take();
                if message["role"] == "assistant" {
                    seen.ended = now_us();
                    let text = message["content"][0]["text"].as_str().unwrap_or_default();
                    seen.is_whole = text == seen.text;
                    seen.text = text.to_owned();
                }
            } else if event.starts_with(br#"{"type":"turn-settled""#) {
                return Ok(seen);
            }
        }
    }
}

/// A text without escapes, of an event that holds `mark`.
fn field<'e>(event: &'e [u8], mark: &str, name: &str) -> Option<&'e str> {
    let event = std::str::from_utf8(event).ok()?;
    let (_, rest) = event.split_once(mark)?;
    let (_, rest) = rest.split_once(name)?;
    Some(rest.split_once('"')?.0)
}

/// A request with JSON, and the JSON that comes back.
pub(crate) async fn post(server: SocketAddr, path: &str, body: &Value) -> Result<Value, Failure> {
    let body = body.to_string();
    let head = format!("POST {path}");
    let rest = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (status, answer) = ask(server, &head, &rest).await?;
    if !(200..300).contains(&status) {
        return Err(format!("POST {path} answers with {status}: {}", String::from_utf8_lossy(&answer)).into());
    }
    Ok(serde_json::from_slice(&answer)?)
}

/// Status and body of an answer that ends with its connection.
pub(crate) async fn ask(server: SocketAddr, head: &str, rest: &str) -> Result<(u16, Vec<u8>), Failure> {
    let mut stream = TcpStream::connect(server).await?;
    let rest = if rest.is_empty() { "\r\n" } else { rest };
    stream.write_all(format!("{head} HTTP/1.0\r\nHost: {server}\r\nAccept: */*\r\n{rest}").as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or("no answer")?;
    let status = std::str::from_utf8(&bytes[..end])?.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((status, bytes[end + 4..].to_vec()))
}

pub(crate) async fn chat(server: SocketAddr) -> Result<String, Failure> {
    let made = post(server, "/api/chats", &serde_json::json!({})).await?;
    Ok(made["id"].as_str().ok_or("no id")?.to_owned())
}

/// Says something in a chat.
pub(crate) async fn tell(server: SocketAddr, chat: &str) -> Result<Value, Failure> {
    let input = serde_json::json!({"type": "text", "text": "Tell me about it."});
    post(server, "/api/chat", &serde_json::json!({"chatId": chat, "input": input})).await
}
