//! Records in memory, as many as fit: each is parsed once, and only what was appended since is read.
//!
//! A record is append-only, so that what is known of it stays true. What a transaction sees and has not committed is never
//! kept. A record that is not here is read anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use sqlx::SqliteConnection;

use super::{StoreError, messages};
use crate::app::native::{Seq, Stored};

/// What all records may take, in bytes of memory, about.
const ROOM: u64 = 96 << 20;
/// How many records that may be.
const RECORDS: usize = 1000;
/// Memory that a message takes beside its texts, and for each byte of its JSON, about.
const MESSAGE: usize = size_of::<Stored>();
const BYTE: usize = 2;

/// A cheap handle on the records. In one piece: a cache of several would give each record the room of one of them.
#[derive(Clone)]
pub(super) struct Records(Arc<Mutex<Cache<String, Known, Room>>>);

/// What is known of a record, and the memory that it takes.
#[derive(Clone, Default)]
struct Known {
    record: Arc<Mutex<Vec<Stored>>>,
    bytes: usize,
}

#[derive(Clone)]
struct Room;

impl Weighter<String, Known> for Room {
    fn weight(&self, chat: &String, known: &Known) -> u64 {
        (chat.len() + size_of::<Known>() + known.bytes) as u64
    }
}

impl Records {
    pub(super) fn new() -> Self {
        Self::within(ROOM)
    }

    fn within(room: u64) -> Self {
        Self(Arc::new(Mutex::new(Cache::with_weighter(RECORDS, room, Room))))
    }

    /// Asks a record as `connection` sees it, or later. Everything that it sees must be committed.
    pub(super) async fn ask<T>(
        &self,
        connection: &mut SqliteConnection,
        chat: &str,
        question: impl FnOnce(&[Stored]) -> T,
    ) -> Result<T, StoreError> {
        let mut known = self.known(chat);
        let end = end(&known.lock());
        let new = messages::read_sized(connection, chat, end).await?;
        let grown: usize = new.iter().map(|(_, bytes)| MESSAGE + BYTE * bytes).sum();
        let answer = {
            let mut record = known.lock();
            extend(&mut record, new);
            question(&record)
        };
        if grown > 0 {
            known.bytes += grown;
            self.cache().insert(chat.to_owned(), known);
        }
        Ok(answer)
    }

    /// Asks a record as the transaction of `connection` sees it.
    pub(super) async fn ask_within<T>(
        &self,
        connection: &mut SqliteConnection,
        chat: &str,
        question: impl FnOnce(&[Stored]) -> T,
    ) -> Result<T, StoreError> {
        let known = self.known(chat);
        let end = end(&known.lock());
        let new = messages::read_sized(connection, chat, end).await?;
        let mut record = Restored::of(known.lock());
        extend(&mut record.guard, new);
        Ok(question(&record.guard))
    }
}

impl Records {
    fn known(&self, chat: &str) -> Known {
        self.cache().get(chat).cloned().unwrap_or_default()
    }

    /// Held for moments only.
    fn cache(&self) -> MutexGuard<'_, Cache<String, Known, Room>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Held for as long as a question takes, never across an await.
    fn lock(&self) -> MutexGuard<'_, Vec<Stored>> {
        // A question that broke off has changed nothing.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record that gets back to its length, whatever the question does.
struct Restored<'a> {
    guard: MutexGuard<'a, Vec<Stored>>,
    length: usize,
}

impl<'a> Restored<'a> {
    fn of(guard: MutexGuard<'a, Vec<Stored>>) -> Self {
        let length = guard.len();
        Self { guard, length }
    }
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        self.guard.truncate(self.length);
    }
}

fn end(record: &[Stored]) -> Seq {
    record.last().map(|stored| stored.seq).unwrap_or_default()
}

/// Adds what the record does not have; somebody else may have been quicker.
fn extend(record: &mut Vec<Stored>, new: Vec<(Stored, usize)>) {
    let end = end(record);
    record.extend(new.into_iter().map(|(stored, _)| stored).filter(|stored| stored.seq > end));
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::app::native::Message;
    use crate::server::store::{Acceptance, Decision, Offer, Store, Wakes};

    async fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        store.create_chat("chat", 0).await.unwrap();
        store.claim("chat", "run", vec![Message::user("one", 0), Message::user("two", 0)], 0).await.unwrap();
        (folder, store)
    }

    fn texts(record: &[Stored]) -> Vec<String> {
        record.iter().map(|stored| serde_json::to_value(&stored.message).unwrap()["content"].to_string()).collect()
    }

    fn offer(decide: impl FnOnce(&[Stored]) -> Decision + Send + Sync + 'static) -> Offer {
        let decide = Box::new(move |record: &[Stored]| Ok(decide(record)));
        Offer { chat: "chat".to_owned(), input_id: None, run_id: String::new(), now: 0, wakes: Wakes::Free, decide }
    }

    #[tokio::test]
    async fn what_is_known_is_not_read_again_and_what_is_new_is() {
        let (_folder, store) = store().await;
        assert_eq!(store.ask("chat", texts).await.unwrap(), ["\"one\"", "\"two\""]);
        store
            .writer
            .write(|connection| {
                Box::pin(async move {
                    sqlx::query("UPDATE messages SET body = '{' WHERE seq <= 2").execute(connection).await?;
                    Ok(())
                })
            })
            .await
            .unwrap();
        store.append("chat", "run", &Message::user("three", 0), 0).await.unwrap();
        assert_eq!(store.ask("chat", texts).await.unwrap(), ["\"one\"", "\"two\"", "\"three\""]);
        // The next process is told of the damage.
        let (_, connection) = (store.messages("chat", Seq::START).await.unwrap_err(), store.readers.clone());
        let mut connection = connection.acquire().await.unwrap();
        assert!(Records::new().ask(&mut connection, "chat", texts).await.is_err());
    }

    #[tokio::test]
    async fn an_input_is_decided_with_what_its_transaction_sees_and_nothing_of_that_is_kept() {
        let (_folder, store) = store().await;
        store.release("chat", "run").await.unwrap();
        assert_eq!(store.ask("chat", texts).await.unwrap().len(), 2);
        let records = store.records.clone();
        let seen = store.writer.write(move |connection| {
            Box::pin(async move {
                messages::append_all(connection, "chat", vec![Message::user("never", 0)], 0).await?;
                let seen = records.ask_within(connection, "chat", texts).await?;
                // The savepoint is rolled back.
                Err::<(), _>(StoreError::NotKept(seen.join(" ")))
            })
        });
        let StoreError::NotKept(seen) = seen.await.unwrap_err() else { panic!() };
        assert_eq!(seen, "\"one\" \"two\" \"never\"");
        assert_eq!(store.ask("chat", texts).await.unwrap(), ["\"one\"", "\"two\""]);
        let said = |record: &[Stored]| Decision { append: vec![Message::user(texts(record).join("+"), 0)], run: false };
        let Ok(Acceptance::New { appended, .. }) = store.accept(offer(said)).await.unwrap() else { panic!() };
        assert_eq!(appended[0].seq, Seq(3));
        assert_eq!(store.ask("chat", texts).await.unwrap()[2], r#""\"one\"+\"two\"""#);
    }

    #[tokio::test]
    async fn a_question_that_breaks_off_inside_of_a_transaction_leaves_the_record_as_it_was() {
        let (_folder, store) = store().await;
        assert_eq!(store.ask("chat", texts).await.unwrap().len(), 2);
        let (records, readers) = (store.records.clone(), store.readers.clone());
        store.append("chat", "run", &Message::user("three", 0), 0).await.unwrap();
        let breaks = async move {
            let mut connection = readers.acquire().await.unwrap();
            records.ask_within(&mut connection, "chat", |record| panic!("{}", record.len())).await
        };
        let panic = std::panic::AssertUnwindSafe(breaks).catch_unwind().await.map(|_: Result<(), _>| ()).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "3");
        assert_eq!(store.records.known("chat").lock().len(), 2);
        assert_eq!(store.ask("chat", texts).await.unwrap().len(), 3);
    }

    #[tokio::test]
    async fn no_more_is_kept_than_there_is_room_for() {
        let (_folder, store) = store().await;
        let mut connection = store.readers.acquire().await.unwrap();
        let records = Records::within(100);
        assert_eq!(records.ask(&mut connection, "chat", texts).await.unwrap().len(), 2);
        assert_eq!(records.cache().len(), 0);
        let records = Records::within(100_000);
        for (chat, count) in [("chat", 2), ("chat", 2), ("other", 0)] {
            assert_eq!(records.ask(&mut connection, chat, <[Stored]>::len).await.unwrap(), count);
        }
        assert_eq!(records.cache().len(), 1, "an empty record takes no room");
        assert!(records.cache().weight() > 2 * MESSAGE as u64);
        let records = Records::within(records.cache().weight() * 5 / 4);
        records.ask(&mut connection, "chat", |_| ()).await.unwrap();
        assert_eq!(records.cache().len(), 1, "one record may take nearly all of it");
    }
}
