//! Messages: appended and read, never changed.

use sqlx::SqliteConnection;
use tokio_util::task::AbortOnDropHandle;

use super::{Store, StoreError};
use crate::app::native::{Message, Seq, Stored};

impl Store {
    /// The messages after `after`, in order. Read on a task of its own: a reader whose client takes nothing more stops
    /// waiting in the middle, and must not hold a connection for as long.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id, `Gone` when it was deleted.
    pub async fn messages(&self, chat: &str, after: Seq) -> Result<Vec<Stored>, StoreError> {
        let (readers, chat) = (self.readers.clone(), chat.to_owned());
        let work = async move {
            let mut connection = readers.acquire().await?;
            exists(&mut connection, &chat).await?;
            read(&mut connection, &chat, after).await
        };
        #[expect(clippy::disallowed_methods, reason = "the handle aborts with its caller, which owns it")]
        let task = AbortOnDropHandle::new(tokio::spawn(work));
        task.await.map_err(|_| StoreError::Database(sqlx::Error::WorkerCrashed))?
    }

    /// The position of the last message.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id, `Gone` when it was deleted.
    pub async fn last(&self, chat: &str) -> Result<Seq, StoreError> {
        let mut connection = self.readers.acquire().await?;
        exists(&mut connection, chat).await?;
        let last: Option<u32> = sqlx::query_scalar("SELECT MAX(seq) FROM messages WHERE chat = ?")
            .bind(chat)
            .fetch_one(&mut *connection)
            .await?;
        Ok(Seq(last.unwrap_or(0)))
    }

    /// Appends a message of the run that holds the chat.
    ///
    /// # Errors
    /// `ClaimLost` when `run` does not hold the chat (any more).
    pub async fn append(&self, chat: &str, run: &str, message: &Message, now: i64) -> Result<Seq, StoreError> {
        let seqs = self.append_together(chat, run, std::slice::from_ref(message), now).await?;
        Ok(seqs.last().copied().unwrap_or_default())
    }

    /// Appends messages of the run that holds the chat, in one transaction, and says where they are.
    ///
    /// # Errors
    /// `ClaimLost` when `run` does not hold the chat (any more).
    pub async fn append_together(
        &self,
        chat: &str,
        run: &str,
        messages: &[Message],
        now: i64,
    ) -> Result<Vec<Seq>, StoreError> {
        let (chat, run) = (chat.to_owned(), run.to_owned());
        let bodies: Vec<String> = messages.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    let held: Option<i64> = sqlx::query_scalar("SELECT 1 FROM runs WHERE chat = ? AND id = ?")
                        .bind(&chat)
                        .bind(&run)
                        .fetch_optional(&mut *connection)
                        .await?;
                    held.ok_or(StoreError::ClaimLost)?;
                    let mut seqs = Vec::with_capacity(bodies.len());
                    for body in bodies {
                        seqs.push(insert(connection, &chat, &body, now).await?);
                    }
                    Ok(seqs)
                })
            })
            .await
    }
}

/// Fails with `NoChat` or `Gone` unless the chat is there.
pub(super) async fn exists(connection: &mut SqliteConnection, chat: &str) -> Result<(), StoreError> {
    let found: Option<Option<i64>> =
        sqlx::query_scalar("SELECT deleted FROM chats WHERE id = ?").bind(chat).fetch_optional(connection).await?;
    match found {
        Some(None) => Ok(()),
        Some(Some(_)) => Err(StoreError::Gone(chat.to_owned())),
        None => Err(StoreError::NoChat(chat.to_owned())),
    }
}

pub(super) async fn read(connection: &mut SqliteConnection, chat: &str, after: Seq) -> Result<Vec<Stored>, StoreError> {
    // As bytes: what is damaged need not be UTF-8.
    let rows: Vec<(u32, Vec<u8>)> =
        sqlx::query_as("SELECT seq, body FROM messages WHERE chat = ? AND seq > ? ORDER BY seq")
            .bind(chat)
            .bind(after.0)
            .fetch_all(connection)
            .await?;
    let read = |(seq, body): (u32, Vec<u8>)| match serde_json::from_slice(&body) {
        Ok(message) => Ok(Stored { seq: Seq(seq), message }),
        Err(error) => Err(StoreError::Unreadable { chat: chat.to_owned(), seq: Seq(seq), error }),
    };
    rows.into_iter().map(read).collect()
}

/// Appends messages in their order.
pub(super) async fn append_all(
    connection: &mut SqliteConnection,
    chat: &str,
    messages: Vec<Message>,
    now: i64,
) -> Result<Vec<Stored>, StoreError> {
    let mut appended = Vec::with_capacity(messages.len());
    for message in messages {
        let seq = insert(connection, chat, &serde_json::to_string(&message)?, now).await?;
        appended.push(Stored { seq, message });
    }
    Ok(appended)
}

/// Appends a message's JSON at the next position.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    chat: &str,
    body: &str,
    now: i64,
) -> Result<Seq, StoreError> {
    let seq: u32 = sqlx::query_scalar(
        "INSERT INTO messages (chat, seq, body)
         SELECT ?1, COALESCE(MAX(seq), 0) + 1, ?2 FROM messages WHERE chat = ?1 RETURNING seq",
    )
    .bind(chat)
    .bind(body)
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query("UPDATE chats SET updated = ? WHERE id = ?").bind(now).bind(chat).execute(connection).await?;
    Ok(Seq(seq))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn whoever_stops_waiting_in_the_middle_of_a_read_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        store.create_chat("chat", 0).await.unwrap();
        let mut reads: Vec<_> = (0..8).map(|_| Box::pin(store.messages("chat", Seq::START))).collect();
        for read in &mut reads {
            assert!(futures::poll!(read).is_pending());
        }
        let read = tokio::time::timeout(Duration::from_secs(10), store.messages("chat", Seq::START)).await;
        assert!(read.expect("a connection is free").unwrap().is_empty());
    }
}
