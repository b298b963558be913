//! A scripted model provider on the loopback: answers each request with the next reply of a queue and keeps what it was
//! asked, or answers by a rule. It never waits but for what the test opens, or for a pause that its reply has.
//!
//! Plain sockets instead of a web framework, so that a reply may be torn, reset or refused at any byte.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use learnharness::server::llm::catalog::Api;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::judge::judge;

/// Between two beats of [`End::Beat`].
pub(crate) const BEAT: Duration = Duration::from_millis(5);

/// The provider; its connections close when it is dropped.
pub(crate) struct Provider {
    url: String,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    script: Script,
    requests: Mutex<Vec<Recorded>>,
    asked: watch::Sender<usize>,
    closed: watch::Sender<usize>,
    /// What a real provider would have refused.
    faults: Mutex<Vec<String>>,
}

/// Where replies come from.
enum Script {
    Queue(Mutex<VecDeque<Reply>>),
    Rule(Rule),
}

type Rule = Box<dyn Fn(&Recorded) -> Reply + Send + Sync>;

/// A request as it arrived; header names are in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// As the request named it: whole through a proxy, else a path.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One scripted answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Opens before the first byte of the answer is sent.
    pub(crate) before: Option<Gate>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) end: End,
}

/// A piece of a reply's body: bytes that are written at once, or a gate to wait for.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Wait(Gate),
    /// Nothing comes for as long as this.
    Pause(Duration),
    /// Opens a gate, to tell the test that the pieces so far are out.
    Open(Gate),
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Close,
    /// Nothing more comes, and the connection stays open.
    Hang,
    /// The same bytes come again and again, until the client has had enough.
    Beat(&'static str),
    /// The connection breaks in mid-body.
    Reset,
    /// The connection closes without any answer.
    Refuse,
}

/// Holds a reply back until the test opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(CancellationToken);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.cancel();
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        self.0.cancelled().await;
    }
}

impl Reply {
    /// An event stream whose body comes in `pieces`.
    pub(crate) fn events<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            before: None,
            pieces: pieces.into_iter().map(|piece| Piece::Bytes(piece.as_ref().to_vec())).collect(),
            end: End::Close,
        }
    }

    /// A refusal with a JSON body.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self { status, ..Self::events([body]) }.header("content-type", "application/json")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn end(self, end: End) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn before(self, gate: &Gate) -> Self {
        Self { before: Some(gate.clone()), ..self }
    }

    /// Waits for `gate` after the pieces so far.
    pub(crate) fn wait(mut self, gate: &Gate) -> Self {
        self.pieces.push(Piece::Wait(gate.clone()));
        self
    }

    /// Opens `gate` once the pieces so far are out.
    pub(crate) fn open(mut self, gate: &Gate) -> Self {
        self.pieces.push(Piece::Open(gate.clone()));
        self
    }

    /// Waits for as long as this after the pieces so far.
    pub(crate) fn pause(mut self, time: Duration) -> Self {
        self.pieces.push(Piece::Pause(time));
        self
    }

    pub(crate) fn then(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.pieces.push(Piece::Bytes(bytes.as_ref().to_vec()));
        self
    }
}

impl Provider {
    /// Starts with `replies` in the queue; a request beyond them is answered 500.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Script::Queue(Mutex::new(replies.into_iter().collect()))).await
    }

    /// Starts with a rule that answers every request; what it is asked is judged and not kept.
    pub(crate) async fn answering(rule: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Script::Rule(Box::new(rule))).await
    }

    async fn with(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
            asked: watch::Sender::default(),
            closed: watch::Sender::default(),
            faults: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self { url, shared, _tasks: tasks }
    }

    /// Its base URL, without a path.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn push(&self, reply: Reply) {
        match &self.shared.script {
            Script::Queue(replies) => replies.lock().unwrap().push_back(reply),
            Script::Rule(_) => panic!("a rule answers already"),
        }
    }

    /// What a real provider would have refused since the last time.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.faults.lock().unwrap())
    }

    /// What it was asked so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until it has been asked `count` times.
    pub(crate) async fn asked(&self, count: usize) {
        self.shared.asked.subscribe().wait_for(|asked| *asked >= count).await.unwrap();
    }

    /// Waits until `count` connections have ended.
    pub(crate) async fn closed(&self, count: usize) {
        self.shared.closed.subscribe().wait_for(|closed| *closed >= count).await.unwrap();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let faults = self.shared.faults.lock().unwrap();
        assert!(faults.is_empty() || std::thread::panicking(), "a provider would refuse: {faults:?}");
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    stream.set_nodelay(true).unwrap();
    let (mut read, write) = stream.into_split();
    if let Some(request) = receive(&mut read).await {
        let path = request.url.split('?').next().unwrap_or_default();
        let asked = [("/messages", Api::AnthropicMessages), ("/chat/completions", Api::OpenAiCompletions)];
        // What else is asked for, such as a list of models, has no rules.
        if let Some((_, api)) = asked.into_iter().find(|(end, _)| path.ends_with(end)) {
            shared.faults.lock().unwrap().extend(judge(api, &request.body));
        }
        let reply = reply_to(request, &shared);
        shared.asked.send_modify(|asked| *asked += 1);
        tokio::select! {
            _ = answer(write, reply) => {}
            () = gone(read) => {}
        }
    }
    shared.closed.send_modify(|closed| *closed += 1);
}

fn reply_to(request: Recorded, shared: &Shared) -> Reply {
    match &shared.script {
        Script::Queue(replies) => {
            shared.requests.lock().unwrap().push(request);
            let reply = replies.lock().unwrap().pop_front();
            reply.unwrap_or_else(|| Reply::status(500, r#"{"error":{"message":"no reply is scripted"}}"#))
        }
        Script::Rule(rule) => rule(&request),
    }
}

/// Reads one request; none when the client left.
async fn receive(read: &mut OwnedReadHalf) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if read.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let url = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + 4 + length {
        if read.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[head + 4..]).unwrap_or_default();
    Some(Recorded { url, headers, body })
}

async fn answer(mut write: OwnedWriteHalf, reply: Reply) -> std::io::Result<()> {
    if reply.end == End::Refuse {
        return Ok(());
    }
    if let Some(gate) = &reply.before {
        gate.opened().await;
    }
    let mut head = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    write.write_all(format!("{head}\r\n").as_bytes()).await?;
    for piece in reply.pieces {
        match piece {
            Piece::Bytes(bytes) if bytes.is_empty() => {}
            Piece::Bytes(bytes) => chunk(&mut write, &bytes).await?,
            Piece::Wait(gate) => gate.opened().await,
            Piece::Pause(time) => tokio::time::sleep(time).await,
            Piece::Open(gate) => gate.open(),
        }
    }
    match reply.end {
        End::Close => write.write_all(b"0\r\n\r\n").await,
        End::Hang => std::future::pending().await,
        End::Beat(bytes) => loop {
            tokio::time::sleep(BEAT).await;
            chunk(&mut write, bytes.as_bytes()).await?;
        },
        End::Reset | End::Refuse => Ok(()),
    }
}

async fn chunk(write: &mut OwnedWriteHalf, bytes: &[u8]) -> std::io::Result<()> {
    write.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    write.write_all(bytes).await?;
    write.write_all(b"\r\n").await
}

/// Returns when the client has closed its side.
async fn gone(mut read: OwnedReadHalf) {
    let mut rest = [0; 1024];
    while read.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}
