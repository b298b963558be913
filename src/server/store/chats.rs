//! Chats: made, listed, looked up, deleted, and deleted for good.

use sqlx::SqliteConnection;

use super::{Store, StoreError};
use crate::app::native::Seq;

/// A chat in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRow {
    pub id: String,
    /// Unix time in ms of the last append.
    pub updated: i64,
    /// Position of its last message.
    pub last: Seq,
}

impl Store {
    /// Makes an empty chat; `now` is Unix time in ms.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn create_chat(&self, id: &str, now: i64) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    sqlx::query("INSERT INTO chats (id, created, updated) VALUES (?, ?, ?)")
                        .bind(id)
                        .bind(now)
                        .bind(now)
                        .execute(connection)
                        .await?;
                    Ok(())
                })
            })
            .await
    }

    /// All chats that have a message and are not deleted, the latest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn chats(&self) -> Result<Vec<ChatRow>, StoreError> {
        let rows: Vec<(String, i64, u32)> = sqlx::query_as(
            "SELECT id, updated, (SELECT MAX(seq) FROM messages WHERE chat = chats.id) AS last FROM chats
             WHERE last IS NOT NULL AND deleted IS NULL ORDER BY updated DESC, id DESC",
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(rows.into_iter().map(|(id, updated, last)| ChatRow { id, updated, last: Seq(last) }).collect())
    }

    /// Unix time in ms of a chat's last append.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id.
    pub async fn updated(&self, chat: &str) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT updated FROM chats WHERE id = ?")
            .bind(chat)
            .fetch_optional(&self.readers)
            .await?
            .ok_or_else(|| StoreError::NoChat(chat.to_owned()))
    }

    /// Deletes a chat as of `now` (Unix time in ms), and lets go of it if a run still holds it. Everything is kept until
    /// [`Store::purge`]; a chat that is deleted already stays deleted since then.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id.
    pub async fn delete_chat(&self, chat: &str, now: i64) -> Result<(), StoreError> {
        let chat = chat.to_owned();
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    mark(connection, "UPDATE chats SET deleted = COALESCE(deleted, ?2) WHERE id = ?1", &chat, now)
                        .await?;
                    sqlx::query("DELETE FROM runs WHERE chat = ?").bind(chat).execute(connection).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Undoes a deletion; a chat that is not deleted stays as it is.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id.
    pub async fn restore_chat(&self, chat: &str) -> Result<(), StoreError> {
        let chat = chat.to_owned();
        self.writer
            .write(move |connection| {
                Box::pin(
                    async move { mark(connection, "UPDATE chats SET deleted = NULL WHERE id = ?1", &chat, 0).await },
                )
            })
            .await
    }

    /// Removes for good what was deleted before `before` (Unix time in ms), and tells how many chats that were.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn purge(&self, before: i64) -> Result<u64, StoreError> {
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    let purged = sqlx::query("DELETE FROM chats WHERE deleted < ?").bind(before).execute(connection);
                    Ok(purged.await?.rows_affected())
                })
            })
            .await
    }
}

/// Runs a statement on one chat: `?1` is its id, `?2` the time.
async fn mark(connection: &mut SqliteConnection, statement: &str, chat: &str, now: i64) -> Result<(), StoreError> {
    match sqlx::query(statement).bind(chat).bind(now).execute(connection).await?.rows_affected() {
        0 => Err(StoreError::NoChat(chat.to_owned())),
        _ => Ok(()),
    }
}
