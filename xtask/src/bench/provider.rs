//! A model provider for measurements: a process of its own, so that its work is not counted with anyone's.
//!
//! The address says what it answers: below `/500x4/v1` every request gets 500 deltas of 4 characters, as fast as they can be
//! read; below `/500x4-tools/v1` a call of the tool `ls` follows them.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::shell::program;

/// What the deltas are cut from.
const TEXT: &str = "The tide comes in twice a day, and **the moon** has a hand in it: `water` follows the pull.\n\n";

/// A provider in a process of its own; dropping it ends it.
pub(super) struct Provider {
    child: Child,
    port: u16,
}

impl Provider {
    pub(super) fn start() -> Result<Self> {
        let mut command = program(std::env::current_exe()?);
        let mut child = command.arg("provider").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the provider has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        Ok(Self { child, port: port.with_context(|| format!("the provider said {line:?}"))? })
    }

    /// Where a model answers with so many deltas of so many characters.
    pub(super) fn base_url(&self, deltas: usize, characters: usize) -> String {
        format!("http://127.0.0.1:{}/{deltas}x{characters}/v1", self.port)
    }

    /// The same, and each answer ends with the call of a tool.
    pub(super) fn base_url_with_calls(&self, deltas: usize, characters: usize) -> String {
        format!("http://127.0.0.1:{}/{deltas}x{characters}-tools/v1", self.port)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `cargo xtask provider`: answers until its input ends.
pub(crate) fn serve(_: &[String]) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A caller that goes away is no fault of the provider.
            thread::spawn(move || answer(stream).ok());
        }
    });
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

fn answer(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = BufWriter::new(stream);
    let (path, body) = request(&mut reader)?;
    let Some(script) = Script::read(&path) else {
        write!(writer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        return Ok(writer.flush()?);
    };
    write!(writer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    for event in script.events(&body) {
        // Each its own piece on the wire, as from a model.
        write!(writer, "data: {event}\n\n")?;
        writer.flush()?;
    }
    write!(writer, "data: [DONE]\n\n")?;
    Ok(writer.flush()?)
}

/// The path and the body of a request.
fn request(reader: &mut impl BufRead) -> Result<(String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).context("no request")?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            bail!("half a request");
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, serde_json::from_slice(&body)?))
}

/// What an address asks for.
#[derive(Debug, PartialEq, Eq)]
struct Script {
    deltas: usize,
    characters: usize,
    calls: bool,
}

impl Script {
    fn read(path: &str) -> Option<Self> {
        let script = path.strip_suffix("/v1/chat/completions")?.strip_prefix('/')?;
        let (size, calls) = script.strip_suffix("-tools").map_or((script, false), |size| (size, true));
        let (deltas, characters) = size.split_once('x')?;
        Some(Self { deltas: deltas.parse().ok()?, characters: characters.parse().ok()?, calls })
    }

    fn events(&self, body: &Value) -> Vec<Value> {
        let text: Vec<char> = TEXT.chars().collect();
        let piece = |index: usize| -> String {
            (0..self.characters).map(|offset| text[(index * self.characters + offset) % text.len()]).collect()
        };
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "measured", "choices": [choice]})
        };
        let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        events.extend((0..self.deltas).map(|index| chunk(json!({"content": piece(index)}), Value::Null)));
        let messages = body["messages"].as_array().map_or(0, Vec::len);
        if self.calls {
            let function = json!({"name": "ls", "arguments": json!({"path": messages.to_string()}).to_string()});
            let call = json!({"index": 0, "id": format!("call_{messages}"), "type": "function", "function": function});
            events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        }
        events.push(chunk(json!({}), json!(if self.calls { "tool_calls" } else { "stop" })));
        let usage = json!({"prompt_tokens": messages, "completion_tokens": self.deltas, "total_tokens": messages + self.deltas});
        events.push(json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "measured", "choices": [], "usage": usage}));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_what_is_answered() {
        let script = |deltas, characters, calls| Some(Script { deltas, characters, calls });
        assert_eq!(Script::read("/500x4/v1/chat/completions"), script(500, 4, false));
        assert_eq!(Script::read("/1x8-tools/v1/chat/completions"), script(1, 8, true));
        assert_eq!(Script::read("/v1/chat/completions"), None);
        let events = script(3, 4, false).unwrap().events(&json!({"messages": [1, 2]}));
        let texts: Vec<&str> =
            events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(texts, ["", "The ", "tide", " com"]);
        assert_eq!(events.last().unwrap()["usage"]["total_tokens"], 5);
    }
}
