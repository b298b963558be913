//! The whole application over an empty store, with a model driven by hand and no socket: requests go straight into the
//! router. [`TestApp::serve`] puts a socket before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use learnharness::app::native::{Message, Seq, Stored};
use learnharness::server::Services;
use learnharness::server::config::Config;
use learnharness::server::http::app;
use learnharness::server::llm::catalog::{Key, Models};
use learnharness::server::llm::known::Keys;
use learnharness::server::runs::Runs;
use learnharness::server::store::{Claimed, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::model::{Hand, catalog_model, driven, line};
use super::reader::Reader;

pub(crate) struct TestApp {
    pub(crate) model: Hand,
    pub(crate) runs: Runs,
    pub(crate) store: Store,
    pub(crate) router: Router,
    pub(crate) addr: SocketAddr,
    served: JoinSet<()>,
    dir: Arc<TempDir>,
}

/// An answer, read to its end.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestApp {
    pub(crate) async fn new() -> Self {
        Self::at(Arc::new(TempDir::new().unwrap()), "127.0.0.1:3004", None).await
    }

    /// Serves on `addr` to those who show `token`.
    pub(crate) async fn with_token(addr: &str, token: &str) -> Self {
        Self::at(Arc::new(TempDir::new().unwrap()), addr, Some(token)).await
    }

    /// With models of the test's own; the hand is idle.
    pub(crate) async fn with_models(models: Models) -> Self {
        Self::process(Arc::new(TempDir::new().unwrap()), models).await
    }

    /// A process over the data in `dir`, with models of the test's own. Runs are not yet resumed.
    pub(crate) async fn process(dir: Arc<TempDir>, models: Models) -> Self {
        let addr = "127.0.0.1:3004".parse().unwrap();
        let (store, runs, router) = Self::parts(dir.path(), addr, models, None).await;
        Self { model: driven().0, runs, store, router, addr, served: JoinSet::new(), dir }
    }

    /// The next process over the same data, without what the one before had in mind. Runs are not yet resumed.
    pub(crate) async fn restart(self) -> Self {
        self.runs.shut_down().await;
        self.store.close().await;
        let (dir, addr) = (self.dir.clone(), self.addr.to_string());
        drop(self);
        Self::at(dir, &addr, None).await
    }

    /// The next process after one that died: nothing was told to it, and what it had not written is lost.
    pub(crate) async fn crash(self) -> Self {
        self.store.close().await;
        let (dir, addr) = (self.dir.clone(), self.addr.to_string());
        drop(self);
        Self::at(dir, &addr, None).await
    }

    async fn at(dir: Arc<TempDir>, addr: &str, token: Option<&str>) -> Self {
        let (model, models) = driven();
        let addr = addr.parse().unwrap();
        let (store, runs, router) = Self::parts(dir.path(), addr, models, token).await;
        Self { model, runs, store, router, addr, served: JoinSet::new(), dir }
    }

    async fn parts(dir: &Path, addr: SocketAddr, models: Models, token: Option<&str>) -> (Store, Runs, Router) {
        let config = Config {
            addr,
            data: dir.to_owned(),
            site: dir.join("site"),
            model: catalog_model(),
            thinking: None,
            keys: Keys::new(),
            capture: false,
            pace: Duration::ZERO,
            token: token.map(|token| Key(token.to_owned())),
        };
        let store = Store::open(&Self::database(dir)).await.unwrap();
        let runs = Runs::new(store.clone(), models);
        let services = Services { config: Arc::new(config), runs: runs.clone(), assets: None };
        (store, runs, app(services))
    }

    fn database(dir: &Path) -> PathBuf {
        dir.join("learnharness.db")
    }

    /// Where the store's file is.
    pub(crate) fn file(&self) -> PathBuf {
        Self::database(self.dir.path())
    }

    /// Serves on a free port of the loopback for as long as the application lives; returns the address of its root.
    pub(crate) async fn serve() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut app = Self::at(Arc::new(TempDir::new().unwrap()), &addr.to_string(), None).await;
        let router = app.router.clone();
        app.served.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (app, format!("http://{addr}"))
    }

    /// A request as a browser page of ours makes it.
    pub(crate) fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        Request::builder().method(method).uri(path).header(header::HOST, self.addr.to_string())
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = super::soon("an answer", self.router.clone().oneshot(request)).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = super::soon("the answer's body", to_bytes(body, usize::MAX)).await.unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request("GET", path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_raw(path, "application/json", body.to_string()).await
    }

    pub(crate) async fn post_raw(&self, path: &str, media: &str, body: impl Into<Body>) -> Reply {
        let request = self.request("POST", path).header(header::CONTENT_TYPE, media).header(header::ACCEPT, "*/*");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Makes a chat and returns its id.
    pub(crate) async fn chat(&self) -> String {
        let made = self.post("/api/chats", &json!({})).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn input(&self, chat: &str, input: Value) -> Reply {
        self.post("/api/chat", &json!({"chatId": chat, "input": input})).await
    }

    pub(crate) async fn input_as(&self, chat: &str, id: &str, input: Value) -> Reply {
        self.post("/api/chat", &json!({"chatId": chat, "inputId": id, "input": input})).await
    }

    /// Sends a text that must be taken.
    pub(crate) async fn text(&self, chat: &str, text: &str) {
        let reply = self.input(chat, json!({"type": "text", "text": text})).await;
        assert_eq!(reply.status, 202, "{}", reply.text);
    }

    /// Stops the chat's run; returns the status.
    pub(crate) async fn stop(&self, chat: &str) -> u16 {
        self.post("/api/activity/abort", &json!({"chatId": chat})).await.status.as_u16()
    }

    /// A reader that stays, from the start of the record.
    pub(crate) async fn follow(&self, chat: &str) -> Reader {
        self.stream(&format!("/api/chats/{chat}/stream?after=0&follow=1&updates=delta")).await
    }

    /// A reader that stays, of a chat where nothing goes on; it has read what there is.
    pub(crate) async fn watch(&self, chat: &str) -> Reader {
        let mut reader = self.follow(chat).await;
        reader.settled().await;
        reader
    }

    /// A reader of this path.
    pub(crate) async fn stream(&self, path: &str) -> Reader {
        self.stream_by(self.request("GET", path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn stream_by(&self, request: Request<Body>) -> Reader {
        let response = super::soon("a stream", self.router.clone().oneshot(request)).await.unwrap();
        assert_eq!(response.status(), 200);
        Reader::new(response.into_body().into_data_stream())
    }

    /// The stored messages as they are on disk.
    pub(crate) async fn record(&self, chat: &str) -> Vec<Stored> {
        self.store.messages(chat, Seq::START).await.unwrap()
    }

    /// The stored messages, one a line.
    pub(crate) async fn lines(&self, chat: &str) -> Vec<String> {
        self.record(chat).await.iter().map(|stored| line(&stored.message)).collect()
    }

    /// A chat whose record holds these messages.
    pub(crate) async fn chat_with(&self, messages: Vec<Message>) -> String {
        let chat = self.chat().await;
        self.claimed(&chat, messages).await;
        self.store.release(&chat, "given").await.unwrap();
        chat
    }

    /// Appends these messages and leaves the chat claimed by the run `given`, as a process that died does.
    pub(crate) async fn claimed(&self, chat: &str, messages: Vec<Message>) {
        let claimed = self.store.claim(chat, "given", messages, 0).await.unwrap();
        assert!(matches!(claimed, Claimed::Now(_)));
    }

    /// Everything that the store holds of chats, inputs and claims, for telling whether anything has changed.
    pub(crate) async fn dump(&self) -> String {
        let url = format!("sqlite://{}?mode=ro", self.file().display());
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        let mut dump = String::new();
        for query in [
            "SELECT chat || seq || body FROM messages ORDER BY chat, seq",
            "SELECT chat || input_id || accepted FROM inputs ORDER BY 1",
            "SELECT chat || id || tries FROM runs ORDER BY 1",
            "SELECT id || created || updated || held FROM chats ORDER BY 1",
            "SELECT id || chat || body || COALESCE(delivered, '') FROM steers ORDER BY 1",
        ] {
            let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(&pool).await.unwrap();
            dump.push_str(&rows.join("\n"));
            dump.push('\n');
        }
        pool.close().await;
        dump
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text))
    }

    /// The error's kind, after a look at the one shape that errors have.
    pub(crate) fn kind(&self) -> String {
        let body = self.json();
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(1), "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|words| !words.is_empty()), "{body}");
        body["error"]["kind"].as_str().unwrap().to_owned()
    }
}
