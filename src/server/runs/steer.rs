//! Steers on their way in: a run looks for them at its turn boundaries, and they wake a chat in which nothing goes on.

use std::sync::Arc;

use async_trait::async_trait;

use super::Runs;
use super::drive::{Start, begun};
use super::feed::Feed;
use crate::app::native::view::Next;
use crate::app::native::{ErrorBody, Message, Stored};
use crate::app::transcript::scan::next::next;
use crate::server::agent::Steering;
use crate::server::clock::now_ms;
use crate::server::store::{Store, StoreError};

/// The steers that wait for a chat.
pub(super) struct Waiting {
    pub(super) store: Store,
    pub(super) chat: String,
}

#[async_trait]
impl Steering for Waiting {
    async fn poll(&self) -> Vec<Message> {
        self.store.waiting_steers(&self.chat).await.unwrap_or_else(|error| {
            tracing::error!(%error, chat = self.chat, "the steers could not be read");
            Vec::new()
        })
    }
}

impl Runs {
    /// Tells that the store has a steer for the chat. An open run takes it at its next turn boundary, or leaves it to its
    /// end; if there is none and the chat is idle, it is woken.
    ///
    /// # Errors
    /// `not-found`, `gone` or `storage`; the steer waits all the same.
    pub async fn steered(&self, chat: &str) -> Result<(), ErrorBody> {
        let (runs, chat) = (self.clone(), chat.to_owned());
        self.finish(async move {
            let feed = runs.feed(&chat).await?;
            let _gate = feed.gate.lock().await;
            if feed.open_run().is_none()
                && let Some(start) = runs.wake(&feed, &chat).await
            {
                runs.spawn(&feed, start);
            }
            Ok(())
        })
        .await
    }

    /// Claims an idle chat for a run that begins with the steers that wait for it, if there are any and no stop holds. The
    /// caller holds the feed's gate, and no run is open.
    pub(super) async fn wake(&self, feed: &Feed, chat: &str) -> Option<Start> {
        let run = uuid::Uuid::now_v7().simple().to_string();
        begun(feed, chat, &run, self.inner.store.wake(chat, &run, is_idle, now_ms()).await)
    }

    /// Wakes all chats that may be woken, a few at a time.
    pub(super) async fn wake_all(&self) -> Result<(), StoreError> {
        for chat in self.inner.store.chats_to_wake().await? {
            let Ok(feed) = self.feed(&chat).await else { continue };
            let (runs, asleep, of) = (self.clone(), feed.clone(), chat.clone());
            self.own(&feed, &chat, async move { runs.wake_in_turn(&asleep, &of).await });
        }
        Ok(())
    }

    /// Wakes a chat when its turn has come; by then an input may have done so.
    async fn wake_in_turn(&self, feed: &Arc<Feed>, chat: &str) {
        let _slot = self.inner.resuming.acquire().await;
        let start = {
            let _gate = feed.gate.lock().await;
            if feed.open_run().is_some() { None } else { self.wake(feed, chat).await }
        };
        if let Some(start) = start {
            self.drive(feed, start).await;
        }
    }
}

/// True when neither the learner nor the teacher owes anything.
fn is_idle(record: &[Stored]) -> bool {
    next(record) == Next::Idle
}
