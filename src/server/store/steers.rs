//! Steers: the results of jobs on their way into a conversation, each of which gets there exactly once.

use sqlx::SqliteConnection;

use super::{Claimed, Store, StoreError, messages, runs};
use crate::app::native::{Marker, Message, Seq, Stored};

impl Store {
    /// Lets a steer wait for its chat; `now` is Unix time in ms. One whose `id` is known changes nothing: a producer that
    /// does not know whether it was heard says it again.
    ///
    /// # Errors
    /// `NoChat` when there is none by that id.
    pub async fn steer(&self, chat: &str, id: &str, marker: Marker, now: i64) -> Result<(), StoreError> {
        let (chat, id) = (chat.to_owned(), id.to_owned());
        self.writer
            .write(move |connection| Box::pin(async move { insert(connection, &chat, &id, marker, now).await }))
            .await
    }

    /// The steers that wait for a chat, in the order in which they came.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn waiting_steers(&self, chat: &str) -> Result<Vec<Message>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        let waiting = waiting(&mut connection, chat, None).await?;
        Ok(waiting.into_iter().map(|(_, steer)| steer).collect())
    }

    /// Appends a steer that waits, for the run that holds its chat, and says where it is; none when it waits no more.
    ///
    /// # Errors
    /// `ClaimLost` when `run` does not hold the chat (any more).
    pub async fn deliver(&self, chat: &str, run: &str, id: &str, now: i64) -> Result<Option<Seq>, StoreError> {
        let (chat, run, id) = (chat.to_owned(), run.to_owned(), id.to_owned());
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    runs::check_held(connection, &chat, &run).await?;
                    let Some((id, steer)) = waiting(connection, &chat, Some(&id)).await?.pop() else { return Ok(None) };
                    Ok(Some(append(connection, &chat, &id, steer, now).await?.seq))
                })
            })
            .await
    }

    /// Claims a chat for a run and appends all steers that wait for it, in one transaction: when there are any, nobody holds
    /// the chat, no stop does, it is not deleted, and `may_wake` says so of its record.
    ///
    /// # Errors
    /// When the record cannot be read, or the write is not kept.
    pub async fn wake(
        &self,
        chat: &str,
        run: &str,
        may_wake: fn(&[Stored]) -> bool,
        now: i64,
    ) -> Result<Claimed, StoreError> {
        let (chat, run, records) = (chat.to_owned(), run.to_owned(), self.records.clone());
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    let waiting = waiting(connection, &chat, None).await?;
                    let is_taken =
                        is_held(connection, &chat).await? || runs::holder(connection, &chat).await?.is_some();
                    if waiting.is_empty() || is_taken {
                        return Ok(Claimed::Held);
                    }
                    if !records.ask_within(connection, &chat, may_wake).await? {
                        return Ok(Claimed::Held);
                    }
                    let mut appended = Vec::with_capacity(waiting.len());
                    for (id, steer) in waiting {
                        appended.push(append(connection, &chat, &id, steer, now).await?);
                    }
                    runs::insert(connection, &chat, &run, now).await?;
                    Ok(Claimed::Now(appended))
                })
            })
            .await
    }

    /// The chats for which steers wait while nobody holds them, no stop does and they are not deleted, the longest wait first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn chats_to_wake(&self) -> Result<Vec<String>, StoreError> {
        let query = "SELECT chat FROM steers JOIN chats ON chats.id = chat
                     WHERE delivered IS NULL AND held = 0 AND deleted IS NULL AND chat NOT IN (SELECT chat FROM runs)
                     GROUP BY chat ORDER BY MIN(steers.rowid)";
        Ok(sqlx::query_scalar(query).fetch_all(&self.readers).await?)
    }
}

/// Lets a steer wait, in the transaction of what it tells of.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    chat: &str,
    id: &str,
    marker: Marker,
    now: i64,
) -> Result<(), StoreError> {
    // One that is deleted may come back.
    match messages::exists(connection, chat).await {
        Ok(()) | Err(StoreError::Gone(_)) => {}
        Err(error) => return Err(error),
    }
    sqlx::query("INSERT INTO steers (id, chat, body, created) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING")
        .bind(id)
        .bind(chat)
        .bind(serde_json::to_string(&marker.into_message(id.to_owned(), now))?)
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}

/// The steers that wait, or the one of them that is `wanted`, by their ids. One that is damaged goes on waiting: the
/// conversation stands without it.
async fn waiting(
    connection: &mut SqliteConnection,
    chat: &str,
    wanted: Option<&str>,
) -> Result<Vec<(String, Message)>, StoreError> {
    let rows: Vec<(String, Vec<u8>)> = sqlx::query_as(
        "SELECT id, CAST(body AS BLOB) FROM steers
         WHERE chat = ?1 AND delivered IS NULL AND (?2 IS NULL OR id = ?2) ORDER BY rowid",
    )
    .bind(chat)
    .bind(wanted)
    .fetch_all(connection)
    .await?;
    let read = |(id, body): (String, Vec<u8>)| match steer(&id, &body) {
        Some(steer) => Some((id, steer)),
        None => {
            tracing::warn!(chat, id, "a steer cannot be read");
            None
        }
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// A steer as it was kept under this id; none when it is damaged.
fn steer(id: &str, body: &[u8]) -> Option<Message> {
    let steer: Message = serde_json::from_slice(body).ok()?;
    matches!(&steer, Message::Custom(custom) if custom.id == id).then_some(steer)
}

/// Makes a message of the record of a steer that waits.
async fn append(
    connection: &mut SqliteConnection,
    chat: &str,
    id: &str,
    steer: Message,
    now: i64,
) -> Result<Stored, StoreError> {
    let seq = messages::insert(connection, chat, &serde_json::to_string(&steer)?, now).await?;
    sqlx::query("UPDATE steers SET delivered = ? WHERE id = ?").bind(seq.0).bind(id).execute(connection).await?;
    Ok(Stored { seq, message: steer })
}

/// True from a stop to the learner's next input, and for a chat that is deleted.
async fn is_held(connection: &mut SqliteConnection, chat: &str) -> Result<bool, StoreError> {
    let held: Option<bool> = sqlx::query_scalar("SELECT held OR deleted IS NOT NULL FROM chats WHERE id = ?")
        .bind(chat)
        .fetch_optional(connection)
        .await?;
    held.ok_or_else(|| StoreError::NoChat(chat.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_damaged_steer_goes_on_waiting_and_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        store.create_chat("chat", 0).await.unwrap();
        let marker = || Marker::Interrupted;
        for id in ["cut", "odd", "other", "whole"] {
            store.steer("chat", id, marker(), 0).await.unwrap();
        }
        let damage = "UPDATE steers SET body = CASE id WHEN 'cut' THEN substr(body, 9) WHEN 'odd' THEN x'fffe'
                      ELSE replace(body, '\"other\"', '\"another\"') END WHERE id <> 'whole'";
        let damaged = store.writer.write(move |connection| {
            Box::pin(async move { Ok(sqlx::query(damage).execute(connection).await?.rows_affected()) })
        });
        assert_eq!(damaged.await.unwrap(), 3);
        let waiting = store.waiting_steers("chat").await.unwrap();
        assert!(matches!(&waiting[..], [Message::Custom(steer)] if steer.id == "whole"), "{waiting:?}");
        let woken = store.wake("chat", "run", |_| true, 0).await.unwrap();
        assert!(matches!(woken, Claimed::Now(appended) if appended.len() == 1));
        assert_eq!(store.deliver("chat", "run", "cut", 0).await.unwrap(), None);
        assert_eq!(store.deliver("chat", "run", "whole", 0).await.unwrap(), None, "it was delivered");
    }
}
