//! A producer of results: a process of its own that writes steers into the data of a server, while that is up and while it is
//! down. The server is told of none of them.

use std::sync::Arc;
use std::time::Duration;

use learnharness::app::native::Marker;
use learnharness::server::store::{Store, StoreError};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::house::House;
use super::ledger::Fault;
use super::tear::DATABASE;

/// The longest wait between two results, in ms.
const APART: u64 = 300;
/// Tries to write one of them; more is a fault.
const TRIES: u32 = 100;

/// Writes results until there are to be no more.
pub(super) async fn produce(house: Arc<House>, seed: u64, no_more: CancellationToken) {
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(rng.random_range(1..APART))) => {}
            () = no_more.cancelled() => return,
        }
        let chats = house.ledger.open_chats();
        let Some(chat) = chats.choose(&mut rng) else { continue };
        let Some(id) = house.ledger.begin_steer(chat) else { continue };
        write(&house, chat, &id).await;
        // Who does not know whether it was heard says it again.
        if rng.random_bool(0.2) {
            write(&house, chat, &id).await;
        }
        house.ledger.end_steer(chat);
    }
}

async fn write(house: &House, chat: &str, id: &str) {
    let mut failure = None;
    for _ in 0..TRIES {
        match try_to_write(house, chat, id).await {
            Ok(()) => return,
            Err(error) => failure = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    house.ledger.fault(Fault::Stuck, format!("{chat}: steer {id} could not be written: {failure:?}"));
}

async fn try_to_write(house: &House, chat: &str, id: &str) -> Result<(), StoreError> {
    let store = Store::open(&house.data().join(DATABASE)).await?;
    let marker = Marker::Steer {
        job_id: id.to_owned(),
        kind: "research".to_owned(),
        outcome: "done".to_owned(),
        artifact_id: None,
        summary: format!("This is {id}."),
    };
    let outcome = store.steer(chat, id, marker, 0).await;
    store.close().await;
    outcome
}
