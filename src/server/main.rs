//! The server: reads its configuration, opens its data, resumes what was running, and serves until it is told to stop. With a
//! command it does that instead.

use std::fs::File;
use std::future::IntoFuture;
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
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long open connections may take to end once the server is told to stop.
const FAREWELL: Duration = Duration::from_millis(1500);

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info,sqlx=warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = match Cli::parse().command {
        None => serve().await,
        Some(Command::Capture(command)) => capture(command).await,
        Some(Command::Models { local }) => models::list(local).await.map_err(Failure::from),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("learnharness: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn capture(command: CaptureCommand) -> Result<(), Failure> {
    captures::run(command, &Config::from_env()?, &mut std::io::stdout()).await
}

async fn serve() -> Result<(), Failure> {
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
    runs.recover().await?;
    runs.purge_daily();
    let services = Services { config: config.clone(), runs: runs.clone(), assets: Assets::read(&config.site) };
    let listener = TcpListener::bind(config.addr).await.map_err(|error| format!("{}: {error}", config.addr))?;
    println!("learnharness serves http://{} with the model {name}", config.addr);
    let told = tokio_util::sync::CancellationToken::new();
    let server = axum::serve(listener, app(services)).with_graceful_shutdown(told.clone().cancelled_owned());
    let mut server = std::pin::pin!(server.into_future());
    tokio::select! {
        ended = &mut server => ended?,
        () = told_to_stop()? => {
            told.cancel();
            runs.shut_down().await;
            // A connection that does not end by itself must not hold the process.
            let _ = tokio::time::timeout(FAREWELL, server).await;
        }
    }
    store.close().await;
    if let Some(keeper) = keeper {
        keeper.close();
    }
    Ok(())
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

/// Makes the data folder and holds it against a second process until the file is closed.
fn own(data: &Path) -> Result<File, Failure> {
    std::fs::create_dir_all(data).map_err(|error| format!("{} cannot be made: {error}", data.display()))?;
    let path = data.join("learnharness.lock");
    let file = File::create(&path).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    file.try_lock().map_err(|_| format!("{} belongs to another learnharness that is running", data.display()))?;
    Ok(file)
}

/// Resolves on SIGINT or SIGTERM.
fn told_to_stop() -> Result<impl Future<Output = ()>, Failure> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
