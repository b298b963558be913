//! How a server ends, and what it makes of data that it cannot use: the real binary on a folder and a port of its own.
//! With `durability`, these are the reported faults 52, 67, 68 and 69 (`fixtures/faults`) for a record in SQLite.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use learnharness::app::native::{AssistantMessage, Message};
use learnharness::server::store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::disk::Disk;
use crate::support::reader::Reader;
use crate::support::soon;

/// Far more than the two seconds that an end may take on a machine with nothing else to do.
const SOON: Duration = Duration::from_secs(8);

/// A process of the server.
struct Server {
    child: Child,
    addr: String,
    http: reqwest::Client,
}

impl Server {
    async fn start(data: &Path, env: &[(&str, &str)]) -> Self {
        let (mut child, addr) = spawn(data, env).await;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = soon("the server's first word", lines.next_line()).await.unwrap().expect("it serves");
        assert!(line.starts_with("learnharness serves"), "{line}");
        Self { child, addr, http: reqwest::Client::new() }
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.http.get(format!("http://{}{path}", self.addr)).send().await.unwrap();
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(format!("http://{}{path}", self.addr)).header("accept", "application/json");
        let response = request.json(&body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
    }

    async fn begin(&self, text: &str) -> String {
        let chat = self.post("/api/chats", json!({})).await.1["id"].as_str().unwrap().to_owned();
        let input = json!({"type": "text", "text": text});
        assert_eq!(self.post("/api/chat", json!({"chatId": chat, "input": input})).await.0, 202);
        chat
    }

    async fn follow(&self, chat: &str) -> Reader {
        let url = format!("http://{}/api/chats/{chat}/stream?after=0&follow=1", self.addr);
        let response = self.http.get(url).send().await.unwrap();
        Reader::new(axum::body::Body::from_stream(response.bytes_stream()).into_data_stream())
    }

    /// A client that asks for a chat's stream and takes nothing of it.
    async fn deaf(&self, chat: &str) -> TcpStream {
        let mut client = TcpStream::connect(&self.addr).await.unwrap();
        let request = format!("GET /api/chats/{chat}/stream?after=0&follow=1 HTTP/1.1\r\nhost: {}\r\n\r\n", self.addr);
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    async fn tell(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
    }

    /// Waits for its end; returns its exit code.
    async fn end(&mut self) -> Option<i32> {
        tokio::time::timeout(SOON, self.child.wait()).await.expect("the server ends").unwrap().code()
    }
}

async fn spawn(data: &Path, env: &[(&str, &str)]) -> (Child, String) {
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_learnharness"));
    command.env_clear().envs(env.iter().copied()).env("LEARNHARNESS_DATA", data).env("LEARNHARNESS_ADDR", &addr);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    (command.spawn().unwrap(), addr)
}

/// A server that must not start: why not.
async fn refusal(data: &Path) -> String {
    let (child, _) = spawn(data, &[]).await;
    let output = tokio::time::timeout(SOON, child.wait_with_output()).await.expect("the server refuses").unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8(output.stderr).unwrap();
    words.lines().find_map(|line| line.strip_prefix("learnharness: ")).expect(&words).to_owned()
}

async fn rows(data: &Path, query: &str) -> Vec<String> {
    let url = format!("sqlite://{}?mode=ro", data.join("learnharness.db").display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let rows = sqlx::query_scalar(query).fetch_all(&pool).await.unwrap();
    pool.close().await;
    rows
}

fn open_text(row: &str) -> String {
    serde_json::from_str::<AssistantMessage>(row).unwrap().text()
}

#[tokio::test]
async fn a_server_may_have_as_many_connections_as_the_system_allows() {
    let data = TempDir::new().unwrap();
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -S -n 128 && exec \"$0\"", env!("CARGO_BIN_EXE_learnharness")]);
    command.env_clear().env("LEARNHARNESS_DATA", data.path()).env("LEARNHARNESS_ADDR", &addr);
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    soon("the server's first word", lines.next_line()).await.unwrap().expect("it serves");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id().unwrap())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_ne!(words[3], "128");
    assert_eq!(words[3], words[4]);
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_keeps_every_word_and_the_next_one_goes_on() {
    let data = TempDir::new().unwrap();
    let mut server = Server::start(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "40")]).await;
    let mut chats = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..3 {
        let chat = server.begin("Teach me fractions").await;
        let mut reader = server.follow(&chat).await;
        let says_much = |live: &learnharness::app::transcript::Live| {
            live.tail.open.as_ref().is_some_and(|open| open.text().len() > 20)
        };
        reader.until("some words", |_, live| says_much(live)).await;
        readers.push(reader);
        chats.push(chat);
    }
    let _deaf = server.deaf(&chats[0]).await;
    server.tell("-TERM").await;
    let mut heard = Vec::new();
    for mut reader in readers {
        // The stream is cut by the end of the server, in the middle of a lesson.
        while reader.next().await.is_some() {}
        heard.push(reader.live.tail.open.map(|open| open.text()).unwrap_or_default());
    }
    assert_eq!(server.end().await, Some(0));
    let mut kept = Vec::new();
    for chat in &chats {
        let row = rows(data.path(), &format!("SELECT message FROM checkpoints WHERE chat = '{chat}'")).await;
        kept.push(open_text(&row[0]));
    }
    for (heard, kept) in heard.iter().zip(&kept) {
        assert!(kept.starts_with(heard.as_str()), "{heard:?} was heard of {kept:?}");
    }
    assert_eq!(rows(data.path(), "SELECT id FROM runs WHERE tries = 0").await.len(), 3);
    let server = Server::start(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "0")]).await;
    for (chat, kept) in chats.iter().zip(kept) {
        server.follow(chat).await.settled().await;
        let messages = server.get(&format!("/api/chats/{chat}")).await["messages"].clone();
        let cut: AssistantMessage = serde_json::from_value(messages[1]["message"].clone()).unwrap();
        assert_eq!(cut.text(), kept);
        assert_eq!(messages[2]["message"]["customType"], "interrupted");
        assert_eq!(messages[3]["message"]["role"], "assistant");
    }
}

#[tokio::test]
async fn a_silent_provider_and_deaf_clients_do_not_hold_a_server_that_is_told_to_stop() {
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", provider.local_addr().unwrap());
    let data = TempDir::new().unwrap();
    let store = Store::open(&data.path().join("learnharness.db")).await.unwrap();
    store.create_chat("long", 0).await.unwrap();
    // More than the buffers between two processes hold.
    store.claim("long", "run", vec![Message::user("x".repeat(1_000_000), 0); 16], 0).await.unwrap();
    store.release("long", "run").await.unwrap();
    store.close().await;
    let env = [("LEARNHARNESS_MODEL", "m"), ("LEARNHARNESS_BASE_URL", url.as_str())];
    let mut server = Server::start(data.path(), &env).await;
    let _deaf = [server.deaf("long").await, server.deaf("long").await];
    let mut held = Vec::new();
    for _ in 0..20 {
        let chat = server.begin("hi").await;
        let (asked, _) = soon("a request", provider.accept()).await.unwrap();
        held.push((asked, server.deaf(&chat).await));
    }
    server.tell("-INT").await;
    assert_eq!(server.end().await, Some(0));
    assert_eq!(rows(data.path(), "SELECT id FROM runs WHERE tries = 0").await.len(), 20);
}

#[tokio::test]
async fn a_server_that_is_told_twice_ends_at_once() {
    let data = TempDir::new().unwrap();
    let (mut child, addr) = spawn(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "1000")]).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    soon("the server's first word", lines.next_line()).await.unwrap();
    let mut server = Server { child, addr, http: reqwest::Client::new() };
    // A request that never comes whole keeps its connection open.
    let mut half = TcpStream::connect(&server.addr).await.unwrap();
    half.write_all(b"POST /api/chats HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    server.get("/api/chats").await;
    server.tell("-TERM").await;
    let closed = async { while TcpStream::connect(&server.addr).await.is_ok() {} };
    soon("the end of listening", closed).await;
    server.tell("-TERM").await;
    assert_eq!(server.end().await, Some(1));
    let mut words = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut words).await.unwrap();
    assert!(words.contains("was told to stop twice"), "{words}");
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused_and_the_first_goes_on() {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "0")]).await;
    let words = refusal(data.path()).await;
    assert!(words.ends_with("belongs to another learnharness that is running"), "{words}");
    let chat = server.begin("Teach me fractions").await;
    server.follow(&chat).await.settled().await;
}

#[tokio::test]
async fn the_lock_of_a_process_that_was_killed_holds_nobody_up() {
    let data = TempDir::new().unwrap();
    let mut server = Server::start(data.path(), &[]).await;
    let chat = server.begin("Teach me fractions").await;
    server.child.kill().await.unwrap();
    let server = Server::start(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "0")]).await;
    server.follow(&chat).await.settled().await;
}

#[tokio::test]
async fn data_is_for_the_eyes_of_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let data = parent.path().join("data");
    let _server = Server::start(&data, &[]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in ["learnharness.db", "learnharness.db-wal", "learnharness.db-shm"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_of_ours_is_refused_and_left_as_it_is() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("learnharness.db");
    std::fs::write(&file, "Dear diary, today I have learned something about fractions.".repeat(100)).unwrap();
    check_refused(data.path(), "is no database, or it is damaged").await;
    std::fs::remove_file(&file).unwrap();
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    sqlx::query("CREATE TABLE recipes (name TEXT)").execute(&pool).await.unwrap();
    pool.close().await;
    check_refused(data.path(), "is a database of another program").await;
}

#[tokio::test]
async fn a_database_with_a_damaged_page_is_refused_and_left_as_it_is() {
    let data = TempDir::new().unwrap();
    let mut server = Server::start(data.path(), &[("LEARNHARNESS_LESSON_PACE_MS", "0")]).await;
    let chat = server.begin("Teach me fractions").await;
    server.follow(&chat).await.settled().await;
    server.tell("-TERM").await;
    server.end().await;
    let file = data.path().join("learnharness.db");
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    let root: i64 = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")
        .fetch_one(&pool)
        .await
        .unwrap();
    // Its log is put away, so that the page is read from the file.
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&pool).await.unwrap();
    pool.close().await;
    let mut bytes = std::fs::read(&file).unwrap();
    let start = (usize::try_from(root).unwrap() - 1) * 4096;
    bytes[start..start + 4096].fill(0xee);
    std::fs::write(&file, &bytes).unwrap();
    check_refused(data.path(), "is damaged").await;
}

#[tokio::test]
async fn data_that_cannot_be_written_is_refused_by_name() {
    let Some(disk) = Disk::of("4m") else { return };
    let mut server = Server::start(disk.path(), &[]).await;
    server.tell("-TERM").await;
    server.end().await;
    disk.read_only();
    let words = refusal(disk.path()).await;
    assert!(words.contains("cannot be written"), "{words}");
    let missing = refusal(&disk.path().join("missing")).await;
    assert!(missing.contains("cannot be made"), "{missing}");
}

/// Nothing of the database changes, and the refusal names it.
async fn check_refused(data: &Path, why: &str) {
    let file = data.join("learnharness.db");
    let before = std::fs::read(&file).unwrap();
    let words = refusal(data).await;
    assert!(words.contains("learnharness.db") && words.contains(why), "{words}");
    assert!(std::fs::read(&file).unwrap() == before, "the file has changed");
}
