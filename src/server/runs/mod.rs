//! Who is running: inputs accepted, runs driven, readers attached, runs stopped and resumed.
//!
//! A run belongs to the server: it goes on when every reader has left.

mod accept;
mod attach;
mod backlog;
mod checkpoint;
mod delete;
mod drive;
mod feed;
mod recover;
#[cfg(test)]
mod silent;
mod steer;
mod stop;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::native::{ErrorBody, ErrorKind, Seq};
use crate::server::llm::catalog::Models;
use crate::server::store::{Acceptance, Offer, Store, StoreError};

pub use attach::{From, Item, Updates};
use feed::Feed;
pub use stop::Stopped;

/// A cheap handle on all that runs.
#[derive(Clone)]
pub struct Runs {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    models: Models,
    /// Live feeds; each is held by its run and its readers, and gone with the last of them. Whoever keeps checkpoints
    /// sweeps out the names of those that are gone.
    feeds: Mutex<HashMap<String, Weak<Feed>>>,
    summaries: view::Summaries,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    /// Runs of the process before that may go on at the same time.
    resuming: Semaphore,
    /// The feeds of runs that the end of the server has cut off, for a last checkpoint.
    cut_off: std::sync::Mutex<Vec<(String, Arc<Feed>)>>,
}

/// How many runs of the process before go on at the same time.
const RESUMING: usize = 4;

impl Runs {
    #[must_use]
    pub fn new(store: Store, models: Models) -> Self {
        let runs = Self {
            inner: Arc::new(Inner {
                store,
                models,
                feeds: Mutex::default(),
                summaries: view::Summaries::default(),
                tasks: TaskTracker::new(),
                shutdown: CancellationToken::new(),
                resuming: Semaphore::new(RESUMING),
                cut_off: std::sync::Mutex::default(),
            }),
        };
        runs.keep_checkpoints();
        runs
    }

    /// Ends all readers, and all runs where they are, with a last checkpoint: their claims stay, so that the next start
    /// resumes them.
    pub async fn shut_down(&self) {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        let cut_off = std::mem::take(&mut *self.inner.cut_off.lock().unwrap_or_else(PoisonError::into_inner));
        self.inner.checkpoint(&cut_off).await;
        // Being told to stop is no failure of a run.
        if let Err(error) = self.inner.store.forgive_tries().await {
            tracing::error!(%error, "the runs' tries could not be forgiven");
        }
    }

    /// Makes an empty chat and returns its id.
    ///
    /// # Errors
    /// `storage` when it could not be kept.
    pub async fn create_chat(&self) -> Result<String, ErrorBody> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        self.inner.store.create_chat(&id, crate::server::clock::now_ms()).await.map_err(refused)?;
        Ok(id)
    }

    /// Brings `work` to its end even when nobody waits for it any more: a client that leaves between a claim and its run
    /// must not leave the chat claimed, nor the record ahead of its feed.
    async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ErrorBody>> + Send + 'static,
    ) -> Result<T, ErrorBody> {
        self.inner.tasks.spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "an input was given up");
            Err(internal())
        })
    }

    /// Offers an input to the store; the caller holds the feed's gate. A claim that no run of ours holds, because its
    /// release failed, is let go first.
    async fn offer(&self, feed: &Feed, make: impl Fn() -> Offer) -> Result<Acceptance, ErrorBody> {
        let store = &self.inner.store;
        let offer = make();
        let chat = offer.chat.clone();
        let refusal = match store.accept(offer).await.map_err(refused)? {
            Ok(acceptance) => return Ok(acceptance),
            Err(refusal) => refusal,
        };
        match &refusal.error.run_id {
            Some(run) if refusal.error.kind == ErrorKind::Busy && feed.open_run().is_none() => {
                tracing::warn!(chat, run, "a claim was left behind");
                store.release(&chat, run).await.map_err(refused)?;
                store.accept(make()).await.map_err(refused)?
            }
            _ => Err(refusal),
        }
    }

    /// The feed of a chat, made when nobody holds one.
    async fn feed(&self, chat: &str) -> Result<Arc<Feed>, ErrorBody> {
        let mut feeds = self.inner.feeds.lock().await;
        if let Some(feed) = feeds.get(chat).and_then(Weak::upgrade) {
            return Ok(feed);
        }
        // Nobody appends without holding the feed, so that the position read here is the one of now.
        let position = self.inner.store.last(chat).await.map_err(refused)?;
        let feed = Arc::new(Feed::new(position));
        feeds.insert(chat.to_owned(), Arc::downgrade(&feed));
        Ok(feed)
    }

    /// The feed of a chat if anybody holds it.
    async fn live_feed(&self, chat: &str) -> Option<Arc<Feed>> {
        self.inner.feeds.lock().await.get(chat).and_then(Weak::upgrade)
    }
}

/// What is said of a deleted chat.
const DELETED: &str = "This lesson was deleted.";

/// The one door from the store's errors to a client's.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn refused(error: StoreError) -> ErrorBody {
    match error {
        StoreError::NoChat(_) => ErrorBody::new(ErrorKind::NotFound, "There is no such chat."),
        StoreError::Gone(_) => ErrorBody::new(ErrorKind::Gone, DELETED),
        StoreError::Unreadable { seq, .. } => {
            tracing::error!(%error, "a chat is damaged");
            let words =
                format!("Message {seq} of this lesson is damaged, so it cannot be opened. It was left as it is.");
            ErrorBody::new(ErrorKind::Internal, words)
        }
        StoreError::Unwritable(_) | StoreError::ClaimLost => {
            tracing::error!(%error, "the record is not as it should be");
            internal()
        }
        StoreError::Database(_) | StoreError::Migration(_) | StoreError::Unusable { .. } | StoreError::NotKept(_) => {
            tracing::error!(%error, "the store refused");
            ErrorBody::new(ErrorKind::Storage, "The server could not save this. Nothing was changed; try again.")
        }
    }
}

fn internal() -> ErrorBody {
    ErrorBody::new(ErrorKind::Internal, "Something went wrong on the server; its log says what.")
}

/// The position before the first of `prompts`.
fn before(prompts: &[crate::app::native::Stored], position: Seq) -> Seq {
    prompts.first().map_or(position, |first| Seq(first.seq.0.saturating_sub(1)))
}
