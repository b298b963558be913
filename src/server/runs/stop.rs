//! Stopping: a run from any tab, or the question that a chat waits with.

use super::Runs;
use super::accept::{STOPPED, announcement, close_all};
use super::feed::Feed;
use crate::app::native::{ErrorBody, Stored};
use crate::server::clock::now_ms;
use crate::server::store::{Acceptance, Decision, Offer};

/// What a stop met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A run or a question: it ends now.
    Something,
    Nothing,
}

impl Runs {
    /// Stops the chat's run, or closes its pending questions; twice is as good as once.
    ///
    /// # Errors
    /// `not-found` or `storage`.
    pub async fn stop(&self, chat: &str) -> Result<Stopped, ErrorBody> {
        let (runs, chat) = (self.clone(), chat.to_owned());
        self.finish(async move {
            let feed = runs.feed(&chat).await?;
            if cancel(&feed) == Stopped::Something {
                return Ok(Stopped::Something);
            }
            let _gate = feed.gate.lock().await;
            match cancel(&feed) {
                Stopped::Something => Ok(Stopped::Something),
                Stopped::Nothing => runs.close_questions(&feed, &chat).await,
            }
        })
        .await
    }

    /// Closes all pending questions without an answer; the caller holds the feed's gate.
    pub(super) async fn close_questions(&self, feed: &Feed, chat: &str) -> Result<Stopped, ErrorBody> {
        let now = now_ms();
        let offer = || Offer {
            chat: chat.to_owned(),
            input_id: None,
            run_id: String::new(),
            now,
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

/// Stops the open run, if there is one.
fn cancel(feed: &Feed) -> Stopped {
    match feed.open_run() {
        Some((_, cancel)) => {
            cancel.cancel();
            Stopped::Something
        }
        None => Stopped::Nothing,
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
