//! A server under test: its data folder, and one life of its process after the other.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use learnharness::server::llm::catalog::Api;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, watch};

use super::ledger::Ledger;

/// How long a start may take on a machine that has other things to do.
const START: Duration = Duration::from_secs(60);
const LOG: &str = "server.log";

/// The process as its clients know it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    Up {
        nth: u32,
        addr: SocketAddr,
        /// Counts how often our own hands have taken something from the record.
        epoch: u32,
    },
    Down {
        since: Instant,
    },
}

/// What clients observe, so that a kill may come right then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Accepted,
    MessageEnd,
    Update,
    Call,
}

/// Who the teacher is.
#[derive(Clone, Debug)]
pub(super) enum Teacher {
    Lesson,
    At { api: Api, url: String },
}

pub(super) struct House {
    pub(super) ledger: Ledger,
    teacher: Teacher,
    /// Beside the data, for the log and for copies.
    folder: tempfile::TempDir,
    data: PathBuf,
    child: Mutex<Option<Child>>,
    life: watch::Sender<Life>,
    /// The moment at which the process is to be killed: the nth of its kind from now on.
    armed: Mutex<Option<(Moment, u32)>>,
    struck: Notify,
}

impl House {
    /// A house whose data lies in `data`, or else in a folder of its own.
    pub(super) fn new(teacher: Teacher, data: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            ledger: Ledger::default(),
            teacher,
            data: data.unwrap_or_else(|| folder.path().join("data")),
            folder,
            child: Mutex::default(),
            life: watch::Sender::new(Life::Down { since: Instant::now() }),
            armed: Mutex::default(),
            struck: Notify::new(),
        }
    }

    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// A place for copies.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for the process to be up: its number, address and epoch.
    pub(super) async fn up(&self) -> (u32, SocketAddr, u32) {
        loop {
            let mut life = self.life.subscribe();
            if let Ok(life) = life.wait_for(|life| matches!(life, Life::Up { .. })).await
                && let Life::Up { nth, addr, epoch } = *life
            {
                return (nth, addr, epoch);
            }
        }
    }

    /// When the life of this number ended, once it has; a stream that broke off may tell it first.
    pub(super) async fn ended(&self, number: u32, patience: Duration) -> Option<Instant> {
        let mut life = self.life.subscribe();
        let other = life.wait_for(|life| !matches!(life, Life::Up { nth, .. } if *nth == number));
        match tokio::time::timeout(patience, other).await {
            Ok(Ok(life)) => match *life {
                Life::Down { since } => Some(since),
                Life::Up { .. } => Some(Instant::now()),
            },
            _ => None,
        }
    }

    /// Starts the process and waits until it serves; how long that took.
    ///
    /// # Errors
    /// What it said instead of serving.
    pub(super) async fn start(&self) -> Result<Duration, String> {
        loop {
            let begun = Instant::now();
            let (mut child, addr) = self.spawn();
            if serves(&mut child).await {
                let mut nth = 0;
                self.ledger.count(|figures| {
                    figures.starts += 1;
                    nth = figures.starts;
                });
                *self.child.lock().unwrap() = Some(child);
                self.life.send_replace(Life::Up { nth, addr, epoch: self.ledger.epoch() });
                return Ok(begun.elapsed());
            }
            child.kill().await.unwrap();
            let words = self.last_words();
            // Somebody else was given the address between our look and its use.
            if !words.contains("Address already in use") {
                return Err(format!("no start: {words}"));
            }
        }
    }

    /// Starts the process and kills it after this long, whatever it is doing then.
    pub(super) async fn start_and_kill(&self, after: Duration) {
        let (mut child, _) = self.spawn();
        tokio::time::sleep(after).await;
        child.kill().await.unwrap();
        self.ledger.count(|figures| figures.kills += 1);
    }

    /// Starts another process on the same data and waits for it to end by itself: its status and last words.
    pub(super) async fn start_another(&self, patience: Duration) -> Result<(ExitStatus, String), String> {
        let (mut child, _) = self.spawn();
        match tokio::time::timeout(patience, child.wait()).await {
            Ok(status) => Ok((status.unwrap(), self.last_words())),
            Err(_) => Err(format!("it did not end within {patience:?}")),
        }
    }

    /// Kills the process now, if it is up.
    pub(super) fn strike(&self) {
        if let Some(child) = self.child.lock().unwrap().as_mut() {
            self.life.send_replace(Life::Down { since: Instant::now() });
            child.start_kill().unwrap();
        }
        self.struck.notify_one();
    }

    /// Kills the process at the nth moment of a kind, or when it does not come.
    pub(super) async fn strike_at(&self, moment: Moment, nth: u32, patience: Duration) {
        *self.armed.lock().unwrap() = Some((moment, nth));
        if tokio::time::timeout(patience, self.struck.notified()).await.is_err() {
            self.armed.lock().unwrap().take();
            self.strike();
            self.struck.notified().await;
        }
    }

    /// A client has seen this: the server dies here if it was to die here.
    pub(super) fn observe(&self, moment: Moment) {
        let mut armed = self.armed.lock().unwrap();
        let Some((_, left)) = armed.as_mut().filter(|(waited, _)| *waited == moment) else { return };
        *left -= 1;
        if *left == 0 {
            *armed = None;
            self.strike();
        }
    }

    /// Waits until the process that was struck is gone.
    pub(super) async fn bury(&self) {
        let child = self.child.lock().unwrap().take();
        if let Some(mut child) = child {
            child.wait().await.unwrap();
            self.ledger.count(|figures| figures.kills += 1);
        }
    }

    /// Kills the process and waits until it is gone.
    pub(super) async fn kill(&self) {
        self.strike();
        self.struck.notified().await;
        self.bury().await;
    }

    /// All that the processes have logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join(LOG)).unwrap_or_default()
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(4)..].join(" / ")
    }

    fn spawn(&self) -> (Child, SocketAddr) {
        // Free now; nobody else on this machine is likely to take it within the next moments.
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder().join(LOG)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_learnharness"));
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("RUST_LOG", "info,sqlx=warn")
            .env("LEARNHARNESS_ADDR", addr.to_string())
            .env("LEARNHARNESS_DATA", &self.data)
            .env("LEARNHARNESS_SITE", self.folder().join("site"))
            .env("LEARNHARNESS_LESSON_PACE_MS", "2");
        if let Teacher::At { api, url } = &self.teacher {
            let base = match api {
                Api::AnthropicMessages => url.clone(),
                Api::OpenAiCompletions | Api::Lesson => format!("{url}/v1"),
            };
            command
                .env("LEARNHARNESS_MODEL", "acme/think-1")
                .env("LEARNHARNESS_BASE_URL", base)
                .env("LEARNHARNESS_API", api.name())
                .env("LEARNHARNESS_API_KEY", "a-key");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        (command.spawn().unwrap(), addr)
    }
}

/// Waits until a process says that it serves; false when it ends, or takes too long.
async fn serves(child: &mut Child) -> bool {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = async {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.starts_with("learnharness serves ") {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(START, said).await.unwrap_or_default()
}
