//! The newest part of the database torn off between two lives, as a disk may do that lies about what it has written: what is
//! left must be a beginning of what was there.

use std::path::{Path, PathBuf};

use learnharness::app::native::{Seq, Stored};
use learnharness::server::store::{Store, StoreError};
use rand::Rng;
use rand::rngs::StdRng;

use super::house::House;
use super::ledger::Fault;

pub(super) const DATABASE: &str = "learnharness.db";
const LOG: &str = "learnharness.db-wal";
/// Tears the write-ahead log of a server that is down, or takes it away.
pub(super) async fn tear(house: &House, rng: &mut StdRng) {
    let log = house.data().join(LOG);
    let Ok(length) = std::fs::metadata(&log).map(|meta| meta.len()) else { return };
    let before = copy(house, "before");
    let left = match rng.random_range(0..10) {
        0 => None,
        1 => Some(rng.random_range(0..=length)),
        // Mostly a little, sometimes much.
        _ => Some(length - (length as f64 * rng.random_range(0.0..1.0_f64).powi(4)) as u64),
    };
    match left {
        None => std::fs::remove_file(&log).unwrap(),
        Some(left) => std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(left).unwrap(),
    }
    let after = copy(house, "after");
    compare(house, &before, &after).await;
}

async fn compare(house: &House, before: &Path, after: &Path) {
    let old = Store::open(before).await.unwrap();
    let new = match Store::open(after).await {
        Ok(new) => new,
        Err(error) => {
            old.close().await;
            return house.ledger.fault(Fault::Server, format!("a torn database does not open: {error}"));
        }
    };
    house.ledger.begin_epoch();
    for chat in house.ledger.chats() {
        let (whole, left) = (record(&old, &chat).await, record(&new, &chat).await);
        match (whole, left) {
            (Some(whole), Some(left)) if whole.starts_with(&left) => house.ledger.cut(&chat, left.len()),
            (_, None) => house.ledger.take(&chat),
            (whole, Some(left)) => {
                let words = format!(
                    "{chat}: {} messages are left that are no beginning of {:?}",
                    left.len(),
                    whole.map(|whole| whole.len())
                );
                house.ledger.fault(Fault::Lost, words);
            }
        }
    }
    old.close().await;
    new.close().await;
}

/// A chat's messages; none when there is no such chat.
async fn record(store: &Store, chat: &str) -> Option<Vec<Stored>> {
    match store.messages(chat, Seq::START).await {
        Ok(record) => Some(record),
        Err(StoreError::NoChat(_)) => None,
        Err(error) => panic!("{chat}: {error}"),
    }
}

/// Copies the database with its log; the path of the copy.
fn copy(house: &House, name: &str) -> PathBuf {
    let folder = house.folder().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    for file in [DATABASE, LOG] {
        let from = house.data().join(file);
        if from.exists() {
            std::fs::copy(from, folder.join(file)).unwrap();
        }
    }
    folder.join(DATABASE)
}
