//! Checkpoints: about once a second, what open runs are saying is kept, so that a crash costs at most that.

use std::sync::Arc;
use std::time::Duration;

use super::feed::Feed;
use super::{Inner, Runs};
use crate::server::store::OpenMessage;

/// How much of a stream may be lost.
const EVERY: Duration = Duration::from_secs(1);

impl Runs {
    /// Keeps checkpoints for as long as anybody holds the runs.
    pub(super) fn keep_checkpoints(&self) {
        let (inner, shutdown) = (Arc::downgrade(&self.inner), self.inner.shutdown.clone());
        self.inner.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(EVERY) => {}
                    () = shutdown.cancelled() => return,
                }
                let Some(inner) = inner.upgrade() else { return };
                let feeds = inner.live_feeds().await;
                inner.checkpoint(&feeds).await;
            }
        });
    }
}

impl Inner {
    /// All feeds that somebody holds; the others are forgotten.
    pub(super) async fn live_feeds(&self) -> Vec<(String, Arc<Feed>)> {
        let mut feeds = self.feeds.lock().await;
        feeds.retain(|_, feed| feed.strong_count() > 0);
        feeds.iter().filter_map(|(chat, feed)| Some((chat.clone(), feed.upgrade()?))).collect()
    }

    /// Keeps the open messages that have grown since the last time, in one transaction. What cannot be kept now is tried
    /// again the next time; the runs go on.
    pub(super) async fn checkpoint(&self, feeds: &[(String, Arc<Feed>)]) {
        let mut open = Vec::new();
        let mut kept = Vec::new();
        for (chat, feed) in feeds {
            if let Some((run, position, json)) = feed.unsaved() {
                open.push(OpenMessage { chat: chat.clone(), run, position, json });
                kept.push(feed);
                // Writing out many messages must not hold up the runs.
                tokio::task::yield_now().await;
            }
        }
        if open.is_empty() {
            return;
        }
        if let Err(error) = self.store.keep_open(open).await {
            tracing::error!(%error, "a checkpoint was not kept");
            kept.into_iter().for_each(|feed| feed.not_saved());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::stream::BoxStream;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::app::native::{
        AgentEvent, AssistantEvent, AssistantMessage, Block, InputEvent, Message, Seq, StopReason,
    };
    use crate::server::llm::catalog::{Model, Models};
    use crate::server::llm::options::Options;
    use crate::server::llm::{Dialect, Request, StreamEvent};
    use crate::server::runs::{From, Updates};
    use crate::server::store::{Mended, Onward, Store};

    /// A model of few words.
    struct Brief;

    impl Dialect for Brief {
        fn stream(&self, _: Request, _: CancellationToken) -> BoxStream<'static, StreamEvent> {
            let (content, stop_reason) = (vec![Block::text("Hello.")], StopReason::Stop);
            let message = AssistantMessage { content, stop_reason, ..AssistantMessage::default() };
            futures::stream::iter([StreamEvent::End(Box::new(message))]).boxed()
        }
    }

    async fn runs() -> (tempfile::TempDir, Store, Runs) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        let models = Models { model: Model::default(), dialect: Arc::new(Brief), options: Options::default() };
        let runs = Runs::new(store.clone(), models);
        (folder, store, runs)
    }

    fn says(feed: &Feed, delta: &str) {
        let event = AssistantEvent::TextDelta { content_index: 0, delta: delta.to_owned() };
        feed.publish(AgentEvent::update(event, None), None);
    }

    /// What a new process would find of the open message.
    async fn found(store: &Store) -> Option<String> {
        let claim = store.claims().await.unwrap().remove(0);
        let (sender, found) = tokio::sync::oneshot::channel();
        let mend = Box::new(move |remains: &crate::server::store::Remains| {
            let _ = sender.send(remains.open.as_ref().map(AssistantMessage::text));
            Mended { append: Vec::new(), onward: Onward::GoesOn { forgiven: false } }
        });
        store.recover(&claim, 0, mend).await.unwrap();
        found.await.unwrap()
    }

    #[tokio::test]
    async fn an_open_message_is_kept_as_it_is_when_it_has_grown() {
        let (_folder, store, runs) = runs().await;
        store.create_chat("chat", 0).await.unwrap();
        store.claim("chat", "run", Vec::new(), 0).await.unwrap();
        let feed = runs.feed("chat").await.unwrap();
        feed.begin("run", Seq::START);
        let message = AssistantMessage { content: vec![Block::text("Half")], ..AssistantMessage::default() };
        feed.publish(AgentEvent::MessageStart { message: Message::Assistant(message.clone()) }, None);
        says(&feed, " is");
        let feeds = runs.inner.live_feeds().await;
        runs.inner.checkpoint(&feeds).await;
        assert!(feed.unsaved().is_none(), "nothing has been said since");
        says(&feed, " one");
        runs.inner.checkpoint(&feeds).await;
        assert_eq!(found(&store).await.as_deref(), Some("Half is one"));
        feed.publish(AgentEvent::MessageEnd { message: Message::Assistant(message) }, Some(Seq(1)));
        assert!(feed.unsaved().is_none(), "the record has it");
        store.close().await;
    }

    #[tokio::test]
    async fn what_could_not_be_kept_is_tried_again() {
        let (_folder, store, runs) = runs().await;
        store.create_chat("chat", 0).await.unwrap();
        let feed = runs.feed("chat").await.unwrap();
        feed.begin("run", Seq::START);
        feed.publish(AgentEvent::MessageStart { message: Message::Assistant(AssistantMessage::default()) }, None);
        let feeds = runs.inner.live_feeds().await;
        store.close().await;
        runs.inner.checkpoint(&feeds).await;
        assert!(feed.unsaved().is_some());
    }

    #[tokio::test]
    async fn a_run_that_has_ended_leaves_nothing_behind() {
        let (_folder, store, runs) = runs().await;
        for _ in 0..3 {
            let chat = runs.create_chat().await.unwrap();
            let input = InputEvent::Text { text: "hi".to_owned(), note: None };
            runs.accept(&chat, None, input).await.unwrap();
            let reader = runs.attach(&chat, From::After(Seq::START), Updates::Delta, false).await.unwrap();
            assert!(reader.count().await > 0);
        }
        // The task that keeps checkpoints stays; the others end a moment after their last event.
        while runs.inner.tasks.len() > 1 {
            tokio::task::yield_now().await;
        }
        assert!(runs.inner.live_feeds().await.is_empty());
        assert!(runs.inner.feeds.lock().await.is_empty());
        assert!(store.claims().await.unwrap().is_empty());
        assert!(runs.inner.cut_off.lock().unwrap().is_empty());
        let weak = Arc::downgrade(&runs.inner);
        drop(runs);
        assert!(weak.upgrade().is_none(), "nothing but its holders keeps it");
        store.close().await;
    }
}
