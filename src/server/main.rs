//! The server: reads its configuration, opens its data, resumes what was running, and serves until it is told to stop. With a
//! command it does that instead.

use std::fs::{DirBuilder, File, TryLockError};
use std::future::IntoFuture;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use learnharness::server::captures::{self, CaptureCommand, Failure, Folder, Keeper};
use learnharness::server::command::{Cli, Command};
use learnharness::server::config::Config;
use learnharness::server::http::{Assets, app};
use learnharness::server::llm::capture::Keep;
use learnharness::server::llm::known::Catalog;
use learnharness::server::llm::update::{self, Source};
use learnharness::server::llm::{self, local};
use learnharness::server::runs::Runs;
use learnharness::server::store::Store;
use learnharness::server::{Services, models};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long runs and open connections may take to end once the server is told to stop.
const FAREWELL: Duration = Duration::from_millis(1500);

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info,sqlx=warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("learnharness: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Lets the process have as many connections as the system allows it; shells often begin with far less.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, limit = limit.current, "the number of open files could not be raised");
    }
}

fn run(command: Option<Command>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(async {
        match command {
            None => serve().await,
            Some(Command::Capture(command)) => capture(command).await,
            Some(Command::Models { local }) => models::list(local).await.map_err(Failure::from),
        }
    });
    // Work that blocks a thread, such as the look-up of a name, must not hold the process.
    runtime.shutdown_background();
    outcome
}

async fn capture(command: CaptureCommand) -> Result<(), Failure> {
    captures::run(command, &Config::from_env()?, &mut std::io::stdout()).await
}

async fn serve() -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    raise_open_files();
    let config = Arc::new(Config::from_env()?);
    let _lock = own(&config.data)?;
    let store = Store::open(&config.data.join("learnharness.db")).await?;
    let keeper = keeper(&config)?;
    let keep = keeper.clone().map(|keeper| keeper as Arc<dyn Keep>);
    let _update = update::begin(Source::of(Catalog::built_in(), &config.keys, &config.data));
    let model = local::settle(config.model.clone()).await?;
    let models = llm::models(model, config.thinking, &config.data.join("lessons"), config.pace, keep)?;
    let name = models.model.id.clone();
    let runs = Runs::new(store.clone(), models);
    // A server that cannot serve must not begin with the runs of the one before.
    let listener = TcpListener::bind(config.addr).await.map_err(|error| format!("{}: {error}", config.addr))?;
    runs.recover().await?;
    runs.purge_daily();
    let services = Services { config: config.clone(), runs: runs.clone(), assets: Assets::read(&config.site) };
    println!("learnharness serves http://{} with the model {name}", config.addr);
    let told = tokio_util::sync::CancellationToken::new();
    let server = axum::serve(listener, app(services)).with_graceful_shutdown(told.clone().cancelled_owned());
    let mut server = std::pin::pin!(server.into_future());
    tokio::select! {
        ended = &mut server => ended?,
        () = signals.next() => {
            told.cancel();
            tokio::select! {
                () = end(&runs, &store, server) => {}
                () = signals.next() => return Err("was told to stop twice, and ended at once".to_owned().into()),
            }
        }
    }
    if let Some(keeper) = keeper {
        keeper.close();
    }
    Ok(())
}

/// Ends what goes on. Nothing that does not end by itself, such as a client that takes nothing more, holds the process.
async fn end(runs: &Runs, store: &Store, server: impl Future<Output = std::io::Result<()>>) {
    let _ = tokio::time::timeout(FAREWELL, async { tokio::join!(runs.shut_down(), server) }).await;
    let _ = tokio::time::timeout(FAREWELL / 6, store.close()).await;
}

/// Who keeps captures, if they are wanted.
fn keeper(config: &Config) -> Result<Option<Arc<Keeper>>, Failure> {
    if !config.capture {
        return Ok(None);
    }
    let own = [config.model.key.clone(), config.token.clone()].into_iter().flatten();
    let keys = config.keys.values().cloned().chain(own).collect();
    tracing::warn!("what goes over the wire to models is kept in {}", config.data.join("captures").display());
    Ok(Some(Arc::new(Keeper::start(Folder::of(&config.data), keys)?)))
}

/// Makes the data folder, for the eyes of its owner only, and holds it against a second process until the file is closed.
fn own(data: &Path) -> Result<File, Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.map_err(|error| format!("{} cannot be made: {error}", data.display()))?;
    let path = data.join("learnharness.lock");
    let file = File::create(&path).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(format!("{} belongs to another learnharness that is running", data.display()).into())
        }
        Err(TryLockError::Error(error)) => Err(format!("{} cannot be locked: {error}", path.display()).into()),
    }
}

/// What tells the server to stop: SIGINT and SIGTERM, from now on.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
