//! The record on disk: SQLite with one writer and a pool of readers.
//!
//! Errors here are [`StoreError`]; a caller that speaks to a learner turns them into its own.

mod chats;
mod checkpoints;
mod inputs;
mod messages;
mod records;
mod runs;
mod steers;
mod writer;

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

pub use chats::ChatRow;
pub use checkpoints::{Mend, Mended, Onward, OpenMessage, Outcome, Remains};
pub use inputs::{Acceptance, Decide, Decision, Offer, Wakes};
use records::Records;
pub use runs::{Claim, Claimed};
use writer::Writer;

use crate::app::native::Seq;

/// What the store can refuse with.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no chat {0}")]
    NoChat(String),
    #[error("the chat {0} was deleted")]
    Gone(String),
    #[error("the run no longer holds its chat")]
    ClaimLost,
    /// The message at `seq` is damaged; it stays as it is.
    #[error("message {seq} of the chat {chat} cannot be read: {error}")]
    Unreadable { chat: String, seq: Seq, error: serde_json::Error },
    #[error("this cannot be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
    #[error("the database could not be prepared: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    #[error("{path} {reason}")]
    Unusable { path: String, reason: String },
    /// The transaction that held this write failed, or the writer is gone.
    #[error("the write was not kept: {0}")]
    NotKept(String),
}

/// A cheap handle on the database. Writes are awaited until they are durable.
#[derive(Clone)]
pub struct Store {
    readers: SqlitePool,
    writer: Writer,
    records: Records,
}

impl Store {
    /// Opens (or makes) the database at `path` and brings its tables up to date.
    ///
    /// # Errors
    /// `Unusable` when the file cannot be opened for writing, is damaged, or is no database of ours; it is left as it is.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let refused = |reason: String| StoreError::Unusable { path: path.display().to_string(), reason };
        create_private(path).map_err(|error| refused(format!("cannot be written: {error}")))?;
        Self::prepare(path).await.map_err(|error| match error {
            StoreError::Database(error) => refused(words(&error)),
            StoreError::Migration(error) => refused(format!("is of another version, or not ours: {error}")),
            other => other,
        })
    }

    async fn prepare(path: &Path) -> Result<Self, StoreError> {
        let url = format!("sqlite://{}", path.display());
        let options = SqliteConnectOptions::from_str(&url)?
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(std::time::Duration::from_secs(5));
        let connection = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        check_ours(&connection, path).await?;
        sqlx::query("PRAGMA journal_mode = WAL").execute(&connection).await?;
        sqlx::migrate!("migrations/sqlite").run(&connection).await?;
        let readers = SqlitePoolOptions::new().max_connections(4).connect_with(options.read_only(true)).await?;
        Ok(Self { readers, writer: Writer::start(connection), records: Records::new() })
    }

    /// Ends the writer after what is queued, and closes the files. The writer is the last one, so that SQLite puts its log
    /// away.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Makes the file, if it is not there, for the eyes of its owner only; SQLite gives the files beside it the same mode.
fn create_private(path: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

/// Refuses a database of somebody else and one whose pages are damaged, before anything is written to it.
async fn check_ours(connection: &SqlitePool, path: &Path) -> Result<(), StoreError> {
    let refused = |reason: String| StoreError::Unusable { path: path.display().to_string(), reason };
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'").fetch_all(connection).await?;
    if !tables.is_empty() && !tables.iter().any(|table| table == "_sqlx_migrations") {
        return Err(refused("is a database of another program".to_owned()));
    }
    let found: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(connection).await?;
    if found == "ok" { Ok(()) } else { Err(refused(format!("is damaged: {found}"))) }
}

/// Why a database cannot be opened, for a person.
fn words(error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default();
    match code.parse::<u32>().map(|code| code & 0xff) {
        Ok(8) => "cannot be written: it is read-only".to_owned(),
        Ok(11) => format!("is damaged: {error}"),
        Ok(13) => "cannot be written: the disk is full".to_owned(),
        Ok(26) => "is no database, or it is damaged".to_owned(),
        _ => format!("cannot be opened: {error}"),
    }
}
