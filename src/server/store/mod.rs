//! The record on disk: SQLite with one writer and a pool of readers.
//!
//! Errors here are [`StoreError`]; a caller that speaks to a learner turns them into its own.

mod chats;
mod inputs;
mod messages;
mod runs;
mod writer;

use std::path::Path;
use std::str::FromStr;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

pub use chats::ChatRow;
pub use inputs::{Acceptance, Decide, Decision, Offer};
pub use runs::{Claim, Claimed};
use writer::Writer;

/// What the store can refuse with.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no chat {0}")]
    NoChat(String),
    #[error("the chat {0} was deleted")]
    Gone(String),
    #[error("the run no longer holds its chat")]
    ClaimLost,
    #[error("a stored message cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
    #[error("the database could not be prepared: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The transaction that held this write failed, or the writer is gone.
    #[error("the write was not kept: {0}")]
    NotKept(String),
}

/// A cheap handle on the database. Writes are awaited until they are durable.
#[derive(Clone)]
pub struct Store {
    readers: SqlitePool,
    writer: Writer,
}

impl Store {
    /// Opens (or makes) the database at `path` and brings its tables up to date.
    ///
    /// # Errors
    /// When the file cannot be opened for writing or is no database of ours.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let url = format!("sqlite://{}", path.display());
        let options = SqliteConnectOptions::from_str(&url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(std::time::Duration::from_secs(5));
        let connection = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        sqlx::migrate!("migrations/sqlite").run(&connection).await?;
        let readers = SqlitePoolOptions::new().max_connections(4).connect_with(options.read_only(true)).await?;
        Ok(Self { readers, writer: Writer::start(connection) })
    }

    /// Ends the writer after what is queued, and closes the files.
    pub async fn close(&self) {
        self.writer.close().await;
        self.readers.close().await;
    }
}
