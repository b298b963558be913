//! A second client of a chat: attaches anywhere and in any way, leaves, forgets and comes again.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::reader::{Ended, Reader, Way};

/// Watches until the chat is over, and then to its end; the reader with its last view.
pub(super) async fn watch(client: Client, chat: String, seed: u64, over: CancellationToken) -> Reader {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut reader = Reader::new(&client, &chat);
    while !over.is_cancelled() {
        if rng.random_bool(0.1) {
            reader = Reader::new(&client, &chat);
        }
        let way = Way { updates: updates(&mut rng), follow: rng.random_bool(0.5), enough: rng.random_range(1..400) };
        let ended = tokio::select! {
            ended = reader.read(way) => ended,
            () = over.cancelled() => break,
        };
        match ended {
            // Like a page that looks again from time to time.
            Ended::Settled => tokio::time::sleep(Duration::from_millis(rng.random_range(20..400))).await,
            Ended::Gone => return reader,
            Ended::Cut | Ended::Enough => {}
        }
    }
    reader.settle(updates(&mut rng)).await;
    reader
}

pub(super) fn updates(rng: &mut StdRng) -> &'static str {
    if rng.random_bool(0.5) { "delta" } else { "full" }
}
