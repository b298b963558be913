//! A server that is started for a measurement on a free port with an empty data folder, and the requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::serve::Built;
use crate::shell::{program, target};

/// How long a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server; dropping it ends it.
pub(crate) struct Server {
    address: SocketAddr,
    child: Child,
}

/// What came back: status, headers by lower-case name, body as sent (not decoded).
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Starts the server on the lesson teacher alone and waits until `/health` answers.
    pub(crate) fn start(built: &Built) -> Result<Self> {
        Self::start_with(built, &[])
    }

    /// Starts the server on a model at `base_url`.
    pub(crate) fn start_on(built: &Built, base_url: &str) -> Result<Self> {
        Self::start_with(built, &[("LEARNHARNESS_MODEL", "measured"), ("LEARNHARNESS_BASE_URL", base_url)])
    }

    /// The same over data that is there already.
    pub(crate) fn start_over(built: &Built, base_url: &str, data: &Path) -> Result<Self> {
        Self::start_at(built, &[("LEARNHARNESS_MODEL", "measured"), ("LEARNHARNESS_BASE_URL", base_url)], data)
    }

    fn start_with(built: &Built, variables: &[(&str, &str)]) -> Result<Self> {
        let data = target().join("bench/data");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        std::fs::create_dir_all(&data)?;
        Self::start_at(built, variables, &data)
    }

    fn start_at(built: &Built, variables: &[(&str, &str)], data: &Path) -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut command = program(&built.server);
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "DATABASE_URL", "LEARNHARNESS_TOKEN"]
        {
            command.env_remove(name);
        }
        command
            .env("LEARNHARNESS_ADDR", address.to_string())
            .env("LEARNHARNESS_DATA", data)
            .env("LEARNHARNESS_SITE", &built.site)
            .env("RUST_LOG", "warn")
            .envs(variables.iter().copied())
            .stdout(Stdio::null());
        let child = command.spawn().context("can't start the server")?;
        let mut server = Server { address, child };
        server.wait()?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for a path with the content codings that browsers accept.
    pub(crate) fn get(&self, path: &str) -> Result<Response> {
        let mut bytes = Vec::new();
        self.send(&format!("GET {path}"), "Accept-Encoding: br, gzip\r\n\r\n")?.read_to_end(&mut bytes)?;
        Response::parse(&bytes).with_context(|| format!("the answer to GET {path} is no HTTP"))
    }

    /// Sends JSON and returns the JSON that comes back; anything but success is an error.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let rest = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut bytes = Vec::new();
        self.send(&format!("POST {path}"), &rest)?.read_to_end(&mut bytes)?;
        let response = Response::parse(&bytes).with_context(|| format!("the answer to POST {path} is no HTTP"))?;
        if !(200..300).contains(&response.status) {
            bail!("POST {path} answers with {}: {}", response.status, String::from_utf8_lossy(&response.body));
        }
        Ok(serde_json::from_slice(&response.body)?)
    }

    /// Makes a chat and returns its id.
    pub(crate) fn chat(&self) -> Result<String> {
        let made = self.post("/api/chats", &json!({}))?;
        Ok(made["id"].as_str().context("a new chat has no id")?.to_owned())
    }

    /// Says something in a chat and reads its stream until the run has settled; returns the bytes that came.
    pub(crate) fn say(&self, chat: &str, text: &str) -> Result<usize> {
        let path = format!("GET /api/chats/{chat}/stream?after=0&updates=delta&follow=1");
        let mut stream = BufReader::new(self.send(&path, "\r\n")?);
        let mut line = String::new();
        // The first to come says that nothing runs.
        until(&mut stream, &mut line, "turn-settled")?;
        self.post("/api/chat", &json!({"chatId": chat, "input": {"type": "text", "text": text}}))?;
        Ok(until(&mut stream, &mut line, "agent_end")? + until(&mut stream, &mut line, "turn-settled")?)
    }

    /// Sends a request and returns the connection. HTTP/1.0 answers come in one piece that ends with the connection.
    fn send(&self, request: &str, rest: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "{request} HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\n{rest}", self.address)?;
        Ok(stream)
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended before it answered ({status})");
            }
            if self.get("/health").is_ok_and(|response| response.status == 200) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("the server does not answer on http://{}/health", self.address);
            }
            pause(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Response {
    /// A header's value, empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let (first, rest) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = first.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = rest.lines().filter_map(header).collect();
        Some(Response { status, headers, body: bytes[end + 4..].to_vec() })
    }
}

/// Reads lines until an event of this type; returns the bytes that were read.
fn until(stream: &mut impl BufRead, line: &mut String, kind: &str) -> Result<usize> {
    let begin = format!("data: {{\"type\":\"{kind}\"");
    let mut bytes = 0;
    loop {
        line.clear();
        let read = stream.read_line(line)?;
        bytes += read;
        if line.starts_with(&begin) {
            return Ok(bytes);
        }
        if read == 0 {
            bail!("the stream ended before {kind}");
        }
    }
}

/// Waits without the thread's sleep, which the house forbids: on a channel where nothing comes.
pub(super) fn pause(duration: Duration) {
    let (_held, silence) = mpsc::channel::<()>();
    let _ = silence.recv_timeout(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_its_headers_and_its_raw_body() {
        let bytes = b"HTTP/1.0 200 OK\r\nContent-Type: text/css\r\ncontent-encoding: br\r\n\r\n\x00\r\n\r\n\xff";
        let response = Response::parse(bytes).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), "text/css");
        assert_eq!(response.header("content-encoding"), "br");
        assert_eq!(response.header("etag"), "");
        assert_eq!(response.body, b"\x00\r\n\r\n\xff");
    }

    #[test]
    fn half_a_head_is_no_answer() {
        assert!(Response::parse(b"HTTP/1.0 200 OK\r\nContent-Type: te").is_none());
    }
}
