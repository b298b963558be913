//! Stopping: a run from any tab, or the question that a chat waits with.

use super::accept::{announcement, close_all};
use super::feed::Feed;
use super::{Runs, refused};
use crate::app::native::{ErrorBody, ErrorKind, Stored};
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
        let feed = self.feed(chat).await?;
        if let Some((_, cancel)) = feed.open_run() {
            cancel.cancel();
            return Ok(Stopped::Something);
        }
        let _gate = feed.gate.lock().await;
        let now = now_ms();
        let offer = Offer {
            chat: chat.to_owned(),
            input_id: None,
            run_id: String::new(),
            now,
            decide: Box::new(move |record| Ok(Decision { append: close_all(record, now), run: false })),
        };
        match self.inner.store.accept(offer).await.map_err(refused)? {
            Ok(Acceptance::New { appended, .. }) if !appended.is_empty() => {
                announce(&feed, appended);
                Ok(Stopped::Something)
            }
            Ok(_) => Ok(Stopped::Nothing),
            // A run began in between; it is what there is to stop.
            Err(ErrorBody { error }) if error.kind == ErrorKind::Busy => {
                if let Some((_, cancel)) = feed.open_run() {
                    cancel.cancel();
                }
                Ok(Stopped::Something)
            }
            Err(error) => Err(error),
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
