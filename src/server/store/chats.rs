//! Chats: made, listed, looked up.

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

    /// All chats that have a message, the latest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn chats(&self) -> Result<Vec<ChatRow>, StoreError> {
        let rows: Vec<(String, i64, u32)> = sqlx::query_as(
            "SELECT id, updated, (SELECT MAX(seq) FROM messages WHERE chat = chats.id) AS last FROM chats
             WHERE last IS NOT NULL ORDER BY updated DESC, id DESC",
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
}
