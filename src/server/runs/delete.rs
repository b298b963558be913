//! Deleting a chat, undoing that for a while, and removing it for good.

use std::sync::Arc;
use std::time::Duration;

use super::feed::Feed;
use super::{DELETED, Runs, refused};
use crate::app::native::{AgentEvent, ErrorBody, ErrorKind};
use crate::server::clock::now_ms;
use crate::server::store::StoreError;

/// How long a deletion can be undone.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often what is older is removed.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Runs {
    /// Deletes a chat: what runs in it is stopped first, and its streams end with `gone`. Twice is as good as once.
    ///
    /// # Errors
    /// `not-found` or `storage`.
    pub async fn delete_chat(&self, chat: &str) -> Result<(), ErrorBody> {
        let (runs, chat) = (self.clone(), chat.to_owned());
        self.finish(async move {
            let feed = match runs.feed(&chat).await {
                Ok(feed) => feed,
                Err(error) if error.error.kind == ErrorKind::Gone => return Ok(()),
                Err(error) => return Err(error),
            };
            loop {
                tokio::select! {
                    () = stopped(&feed) => {}
                    () = runs.inner.shutdown.cancelled() => {
                        return Err(ErrorBody::new(ErrorKind::Internal, "The server is going down; nothing was deleted."));
                    }
                }
                let _gate = feed.gate.lock().await;
                // An input may have begun another run before the gate was held.
                if !feed.is_busy() {
                    runs.inner.store.delete_chat(&chat, now_ms()).await.map_err(refused)?;
                    feed.publish(AgentEvent::Error(ErrorBody::new(ErrorKind::Gone, DELETED)), None);
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Undoes the deletion of a chat; what came for it meanwhile is taken now.
    ///
    /// # Errors
    /// `not-found` or `storage`.
    pub async fn restore_chat(&self, chat: &str) -> Result<(), ErrorBody> {
        self.inner.store.restore_chat(chat).await.map_err(refused)?;
        self.steered(chat).await
    }

    /// Removes for good what was deleted more than seven days before `now` (Unix time in ms); tells how many chats.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn purge(&self, now: i64) -> Result<u64, StoreError> {
        self.inner.store.purge(now - KEPT.as_millis() as i64).await
    }

    /// Purges now and once a day, until the server shuts down.
    pub fn purge_daily(&self) {
        let runs = self.clone();
        self.inner.tasks.spawn(async move {
            loop {
                match runs.purge(now_ms()).await {
                    Ok(0) => {}
                    Ok(chats) => tracing::info!(chats, "deleted chats were removed for good"),
                    Err(error) => tracing::error!(%error, "deleted chats could not be removed"),
                }
                tokio::select! {
                    () = tokio::time::sleep(DAY) => {}
                    () = runs.inner.shutdown.cancelled() => return,
                }
            }
        });
    }
}

/// Stops what runs, and waits until nothing does.
async fn stopped(feed: &Arc<Feed>) {
    let mut snapshot = feed.snapshot();
    if let Some(tail) = &snapshot.tail {
        tail.cancel.cancel();
    }
    while feed.is_busy() {
        // Whatever is said, or missed, may be the end; a run between two activations is stopped with the next one.
        let _ = snapshot.live.recv().await;
        if let Some((_, cancel)) = feed.open_run() {
            cancel.cancel();
        }
    }
}
