//! Stopping: a run from any tab, or the question that a chat waits with.

use super::Runs;
use super::accept::{STOPPED, announcement, close_all};
use super::feed::Feed;
use crate::app::native::{ErrorBody, Stored};
use crate::server::clock::now_ms;
use crate::server::store::{Acceptance, Decision, Offer, Wakes};

/// What a stop met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A run or a question: it ends now.
    Something,
    Nothing,
}

impl Runs {
    /// Stops the chat's run, or closes its pending questions; twice is as good as once. Nothing starts by itself until the
    /// learner's next input, whatever the stop has met.
    ///
    /// # Errors
    /// `not-found` or `storage`.
    pub async fn stop(&self, chat: &str) -> Result<Stopped, ErrorBody> {
        let (runs, chat) = (self.clone(), chat.to_owned());
        self.finish(async move {
            let feed = runs.feed(&chat).await?;
            if runs.stop_open_run(&feed, &chat).await == Stopped::Something {
                return Ok(Stopped::Something);
            }
            let _gate = feed.gate.lock().await;
            match runs.stop_open_run(&feed, &chat).await {
                Stopped::Something => Ok(Stopped::Something),
                Stopped::Nothing => runs.close_questions(&feed, &chat).await,
            }
        })
        .await
    }

    /// Stops the open run, if there is one, also for a process that comes after this one.
    async fn stop_open_run(&self, feed: &Feed, chat: &str) -> Stopped {
        let Some((run, cancel)) = feed.open_run() else { return Stopped::Nothing };
        cancel.cancel();
        if let Err(error) = self.inner.store.mark_stopped(chat, &run).await {
            tracing::error!(%error, chat, "a stop was not kept");
        }
        Stopped::Something
    }

    /// Closes all pending questions without an answer; the caller holds the feed's gate.
    pub(super) async fn close_questions(&self, feed: &Feed, chat: &str) -> Result<Stopped, ErrorBody> {
        let now = now_ms();
        let offer = || Offer {
            chat: chat.to_owned(),
            input_id: None,
            run_id: String::new(),
            now,
            wakes: Wakes::Held,
            decide: Box::new(move |record| Ok(Decision { append: close_all(record, STOPPED, now), run: false })),
        };
        match self.offer(feed, offer).await? {
            Acceptance::New { appended, .. } if !appended.is_empty() => {
                announce(feed, appended);
                Ok(Stopped::Something)
            }
            Acceptance::New { .. } | Acceptance::Known(_) => Ok(Stopped::Nothing),
        }
    }
}

/// Shows readers what was appended outside of a run.
pub(super) fn announce(feed: &Feed, appended: Vec<Stored>) {
    for Stored { seq, message } in appended {
        for event in announcement(message) {
            feed.publish(event, Some(seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::native::Seq;
    use crate::server::runs::silent::models;
    use crate::server::store::{Mended, Onward, Remains, Store};

    #[tokio::test]
    async fn a_stop_is_kept_for_the_next_process_before_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        let runs = Runs::new(store.clone(), models());
        store.create_chat("chat", 0).await.unwrap();
        store.claim("chat", "run", Vec::new(), 0).await.unwrap();
        // A run that is slow to end.
        let feed = runs.feed("chat").await.unwrap();
        let cancel = feed.begin("run", Seq::START);
        assert_eq!(runs.stop("chat").await.unwrap(), Stopped::Something);
        assert!(cancel.is_cancelled());
        let claim = store.claims().await.unwrap().remove(0);
        let (sender, found) = tokio::sync::oneshot::channel();
        let mend = Box::new(move |remains: &Remains| {
            let _ = sender.send(remains.stopped);
            Mended { append: Vec::new(), onward: Onward::Released }
        });
        store.recover(&claim, 0, mend).await.unwrap();
        assert!(found.await.unwrap());
        store.close().await;
    }
}
