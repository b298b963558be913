//! After a restart: runs whose process died go on by themselves.

use super::Runs;
use crate::app::native::Seq;
use crate::app::native::view::Next;
use crate::app::transcript::scan::next::next;
use crate::server::store::{Claim, StoreError};

/// Resumptions after which a run is left to the learner's Retry.
const MAX_TRIES: u32 = 2;

impl Runs {
    /// Resumes what the process before left open. Called once, before requests are taken.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn recover(&self) -> Result<(), StoreError> {
        for claim in self.inner.store.claims().await? {
            self.resume(&claim).await?;
        }
        Ok(())
    }

    async fn resume(&self, claim: &Claim) -> Result<(), StoreError> {
        let store = &self.inner.store;
        let record = store.messages(&claim.chat, Seq::START).await?;
        let owed = next(&record);
        if owed == Next::Reply && claim.tries < MAX_TRIES {
            store.count_try(&claim.chat, &claim.run).await?;
            tracing::info!(chat = claim.chat, run = claim.run, "a run goes on after a restart");
            if let Ok(feed) = self.feed(&claim.chat).await {
                let position = record.last().map(|stored| stored.seq).unwrap_or_default();
                self.start(&feed, &claim.chat, &claim.run, Vec::new(), position);
            }
            return Ok(());
        }
        store.release(&claim.chat, &claim.run).await?;
        if owed == Next::Handoff
            && let Ok(feed) = self.feed(&claim.chat).await
            && let Some(start) = self.settle(&feed, &claim.chat, &tokio_util::sync::CancellationToken::new()).await
        {
            self.spawn(&feed, start);
        }
        Ok(())
    }
}
