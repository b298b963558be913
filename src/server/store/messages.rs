//! Messages: appended and read, never changed.

use futures::TryStreamExt;
use futures::future::BoxFuture;
use sqlx::SqliteConnection;
use tokio_util::task::AbortOnDropHandle;

use super::{Store, StoreError, runs};
use crate::app::native::{Message, Seq, Stored};

/// Bytes of a page; one message may be longer.
const PAGE: usize = 64 * 1024;

impl Store {
    /// The messages after `after`, in order.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id, `Gone` when it was deleted.
    pub async fn messages(&self, chat: &str, after: Seq) -> Result<Vec<Stored>, StoreError> {
        let of = chat.to_owned();
        self.read(chat, move |connection| Box::pin(async move { read(connection, &of, after).await })).await
    }

    /// The next messages after `after` and up to `until`, in order: as many as make a page.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id, `Gone` when it was deleted.
    pub async fn page(&self, chat: &str, after: Seq, until: Seq) -> Result<Vec<Stored>, StoreError> {
        let of = chat.to_owned();
        self.read(chat, move |connection| Box::pin(async move { page(connection, &of, after, until).await })).await
    }

    /// Asks a chat's record, as of now, without reading again what is known of it.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id, `Gone` when it was deleted.
    pub async fn ask<T: Send + 'static>(
        &self,
        chat: &str,
        question: impl FnOnce(&[Stored]) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (records, of) = (self.records.clone(), chat.to_owned());
        self.read(chat, move |connection| Box::pin(async move { records.ask(connection, &of, question).await })).await
    }

    /// Reads of a chat that is there, on a task of its own: a reader whose client takes nothing more stops waiting in the
    /// middle, and must not hold a connection for as long.
    async fn read<T, F>(&self, chat: &str, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let (readers, chat) = (self.readers.clone(), chat.to_owned());
        let work = async move {
            let mut connection = readers.acquire().await?;
            exists(&mut connection, &chat).await?;
            body(&mut connection).await
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
                    runs::check_held(connection, &chat, &run).await?;
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

/// The messages after `after`, in order.
pub(super) async fn read(connection: &mut SqliteConnection, chat: &str, after: Seq) -> Result<Vec<Stored>, StoreError> {
    Ok(read_sized(connection, chat, after).await?.into_iter().map(|(stored, _)| stored).collect())
}

/// The same, each with the bytes of its JSON.
pub(super) async fn read_sized(
    connection: &mut SqliteConnection,
    chat: &str,
    after: Seq,
) -> Result<Vec<(Stored, usize)>, StoreError> {
    // As bytes: what is damaged need not be UTF-8.
    let rows: Vec<(u32, Vec<u8>)> =
        sqlx::query_as("SELECT seq, body FROM messages WHERE chat = ? AND seq > ? ORDER BY seq")
            .bind(chat)
            .bind(after.0)
            .fetch_all(connection)
            .await?;
    rows.into_iter().map(|(seq, body)| Ok((parse(chat, seq, &body)?, body.len()))).collect()
}

async fn page(
    connection: &mut SqliteConnection,
    chat: &str,
    after: Seq,
    until: Seq,
) -> Result<Vec<Stored>, StoreError> {
    let query = "SELECT seq, body FROM messages WHERE chat = ? AND seq > ? AND seq <= ? ORDER BY seq";
    let mut rows = sqlx::query_as::<_, (u32, Vec<u8>)>(query).bind(chat).bind(after.0).bind(until.0).fetch(connection);
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE
        && let Some((seq, body)) = rows.try_next().await?
    {
        bytes += body.len();
        messages.push(parse(chat, seq, &body)?);
    }
    Ok(messages)
}

fn parse(chat: &str, seq: u32, body: &[u8]) -> Result<Stored, StoreError> {
    match serde_json::from_slice(body) {
        Ok(message) => Ok(Stored { seq: Seq(seq), message }),
        Err(error) => Err(StoreError::Unreadable { chat: chat.to_owned(), seq: Seq(seq), error }),
    }
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
