//! Runs: the claim of at most one run on a chat, as a row with a lease.

use sqlx::SqliteConnection;

use super::{Store, StoreError, messages};
use crate::app::native::{Message, Stored};

/// How long a claim holds unless it is renewed, in ms. One process owns the data, so that the lease only tells others
/// that a run is alive.
const LEASE_MS: i64 = 30_000;

/// A claim found when the server started: its run died with the process before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub chat: String,
    pub run: String,
    /// Resumptions so far.
    pub tries: u32,
}

/// The outcome of claiming a chat for a run that the server starts by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// The chat is held; what was appended with the claim.
    Now(Vec<Stored>),
    /// Another run was first, or the chat is free.
    Held,
}

impl Store {
    /// Claims a chat and appends `messages`, in one transaction.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn claim(&self, chat: &str, run: &str, append: Vec<Message>, now: i64) -> Result<Claimed, StoreError> {
        let (chat, run) = (chat.to_owned(), run.to_owned());
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    if holder(connection, &chat).await?.is_some() {
                        return Ok(Claimed::Held);
                    }
                    let appended = messages::append_all(connection, &chat, append, now).await?;
                    insert(connection, &chat, &run, now).await?;
                    Ok(Claimed::Now(appended))
                })
            })
            .await
    }

    /// Passes a chat from the run that has ended to the next one and appends `messages`, in one transaction.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn pass_on(
        &self,
        chat: &str,
        ended: &str,
        run: &str,
        append: Vec<Message>,
        now: i64,
    ) -> Result<Claimed, StoreError> {
        let (chat, ended, run) = (chat.to_owned(), ended.to_owned(), run.to_owned());
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    if holder(connection, &chat).await?.as_ref() != Some(&ended) {
                        return Ok(Claimed::Held);
                    }
                    sqlx::query("DELETE FROM runs WHERE chat = ?").bind(&chat).execute(&mut *connection).await?;
                    let appended = messages::append_all(connection, &chat, append, now).await?;
                    insert(connection, &chat, &run, now).await?;
                    Ok(Claimed::Now(appended))
                })
            })
            .await
    }

    /// Lets go of a chat and of what was kept of its run; nothing happens when `run` does not hold it.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn release(&self, chat: &str, run: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM runs WHERE chat = ? AND id = ?", [chat, run]).await
    }

    /// All claims, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn claims(&self) -> Result<Vec<Claim>, StoreError> {
        let rows: Vec<(String, String, u32)> =
            sqlx::query_as("SELECT chat, id, tries FROM runs ORDER BY started, chat").fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(|(chat, run, tries)| Claim { chat, run, tries }).collect())
    }

    /// Forgets the resumptions of all runs: they did not die, they were ended.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn forgive_tries(&self) -> Result<(), StoreError> {
        self.change("UPDATE runs SET tries = 0", []).await
    }

    /// Keeps that the learner has stopped a run, so that it does not go on after a crash, and that nothing starts by itself
    /// after it. The stop of a run that another one has followed already says nothing of that one.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn mark_stopped(&self, chat: &str, run: &str) -> Result<(), StoreError> {
        let (chat, run) = (chat.to_owned(), run.to_owned());
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    if holder(connection, &chat).await?.is_some_and(|holder| holder != run) {
                        return Ok(());
                    }
                    for statement in
                        ["UPDATE runs SET stopped = 1 WHERE chat = ?", "UPDATE chats SET held = 1 WHERE id = ?"]
                    {
                        sqlx::query(statement).bind(&chat).execute(&mut *connection).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Counts one more resumption of a run, before it starts.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn count_try(&self, chat: &str, run: &str) -> Result<(), StoreError> {
        let count = "UPDATE runs SET tries = tries + 1,
                     resumed = (SELECT COALESCE(MAX(seq), 0) FROM messages WHERE messages.chat = runs.chat)
                     WHERE chat = ? AND id = ?";
        self.change(count, [chat, run]).await
    }

    /// One statement whose parameters are `values`.
    async fn change<const N: usize>(&self, statement: &'static str, values: [&str; N]) -> Result<(), StoreError> {
        let values = values.map(str::to_owned);
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    let query = values.into_iter().fold(sqlx::query(statement), sqlx::query::Query::bind);
                    query.execute(connection).await?;
                    Ok(())
                })
            })
            .await
    }
}

/// Fails with `ClaimLost` unless `run` holds the chat.
pub(super) async fn check_held(connection: &mut SqliteConnection, chat: &str, run: &str) -> Result<(), StoreError> {
    let holder = holder(connection, chat).await?;
    if holder.as_deref() == Some(run) { Ok(()) } else { Err(StoreError::ClaimLost) }
}

/// The run that holds a chat.
pub(super) async fn holder(connection: &mut SqliteConnection, chat: &str) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar("SELECT id FROM runs WHERE chat = ?").bind(chat).fetch_optional(connection).await?)
}

pub(super) async fn insert(
    connection: &mut SqliteConnection,
    chat: &str,
    run: &str,
    now: i64,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO runs (chat, id, started, lease) VALUES (?, ?, ?, ?)")
        .bind(chat)
        .bind(run)
        .bind(now)
        .bind(now + LEASE_MS)
        .execute(connection)
        .await?;
    Ok(())
}
