//! A run from its claim to its settling.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::feed::Feed;
use super::steer::Waiting;
use super::{Runs, before};
use crate::app::native::marker::NoticeKind;
use crate::app::native::view::Next;
use crate::app::native::{AgentEvent, ErrorBody, ErrorKind, Marker, Message, Seq, Stored};
use crate::app::transcript::scan::next::next;
use crate::app::transcript::scan::phase::phase;
use crate::server::agent::{Config, Context, Halted, Sink, run_loop};
use crate::server::clock::now_ms;
use crate::server::store::{Claimed, Outcome, Store, StoreError};
use crate::server::teaching::role;

/// Turns that one run may have.
const MAX_TURNS: usize = 20;

/// A claimed run on its way.
pub(super) struct Start {
    pub(super) chat: String,
    pub(super) run: String,
    /// What was appended with the claim; the run echoes it.
    pub(super) prompts: Vec<Stored>,
    pub(super) cancel: CancellationToken,
}

impl Runs {
    /// Opens the feed for a claimed run and sends it on its way.
    pub(super) fn start(&self, feed: &Arc<Feed>, chat: &str, run: &str, prompts: Vec<Stored>, position: Seq) {
        let cancel = feed.begin(run, before(&prompts, position));
        self.spawn(feed, Start { chat: chat.to_owned(), run: run.to_owned(), prompts, cancel });
    }

    /// Sends an opened run on its way; the tracker owns its task.
    pub(super) fn spawn(&self, feed: &Arc<Feed>, start: Start) {
        let (runs, open, chat) = (self.clone(), feed.clone(), start.chat.clone());
        self.own(feed, &chat, async move { runs.drive(&open, start).await });
    }

    /// Does a run's work for as long as the server lives. At its end the claim stays, so that the next start resumes the
    /// run.
    pub(super) fn own(&self, feed: &Arc<Feed>, chat: &str, work: impl Future<Output = ()> + Send + 'static) {
        let (inner, feed, chat) = (self.inner.clone(), feed.clone(), chat.to_owned());
        self.inner.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = inner.shutdown.cancelled() => {
                    inner.cut_off.lock().unwrap_or_else(PoisonError::into_inner).push((chat, feed));
                }
            }
        });
    }

    /// Runs, and runs again as long as the chat owes something that the server starts by itself.
    pub(super) async fn drive(&self, feed: &Arc<Feed>, first: Start) {
        let mut due = Some(first);
        while let Some(start) = due {
            let (chat, run, cancel) = (start.chat.clone(), start.run.clone(), start.cancel.clone());
            let outcome = AssertUnwindSafe(self.run(feed, start)).catch_unwind().await;
            let failure = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(halted)) => Some((ErrorKind::Storage, halted.0)),
                Err(_) => Some((ErrorKind::Internal, "the run panicked".to_owned())),
            };
            if let Some((kind, cause)) = failure {
                self.give_up(feed, &chat, &run, kind, &cause).await;
            }
            due = self.settle(feed, &chat, &run, &cancel).await;
        }
    }

    /// One activation of the agent.
    async fn run(&self, feed: &Arc<Feed>, start: Start) -> Result<(), Halted> {
        let store = &self.inner.store;
        let halted = |error: crate::server::store::StoreError| Halted(error.to_string());
        let first = start.prompts.first().map(|first| first.seq);
        let asked = store.ask(&start.chat, move |record| {
            let known = first.map_or(record.len(), |first| record.partition_point(|stored| stored.seq < first));
            (phase(record), record[..known].to_vec())
        });
        let (phase, record) = asked.await.map_err(halted)?;
        let role = role(phase);
        let config = Config {
            model: self.inner.models.model.clone(),
            dialect: self.inner.models.dialect.clone(),
            steering: Arc::new(Waiting { store: store.clone(), chat: start.chat.clone() }),
            max_turns: MAX_TURNS,
            session: start.chat.clone(),
            options: self.inner.models.options.clone(),
        };
        let context = Context { system: role.system, record, tools: role.tools };
        let answer = context.record.iter().rfind(|stored| stored.message.as_assistant().is_some());
        let mut sink = RunSink {
            store: store.clone(),
            feed: feed.clone(),
            echoes: start.prompts.iter().map(|stored| stored.seq).collect(),
            answer: answer.map(|stored| stored.seq).unwrap_or_default(),
            chat: start.chat,
            run: start.run,
        };
        let prompts = start.prompts.into_iter().map(|stored| stored.message).collect();
        run_loop(prompts, context, &config, &mut sink, &start.cancel).await.map(drop)
    }

    /// Ends a run that failed outside of its model, in the readers' eyes too.
    pub(super) async fn give_up(&self, feed: &Feed, chat: &str, run: &str, kind: ErrorKind, cause: &str) {
        tracing::error!(chat, run, cause, "a run was given up");
        let words = match kind {
            ErrorKind::Storage => "The server could not save the lesson, so the teacher has stopped.",
            _ => "Something went wrong on the server, so the teacher has stopped.",
        };
        let notice = match kind {
            ErrorKind::Storage => self.keep_notice(chat, run).await,
            _ => None,
        };
        let _gate = feed.gate.lock().await;
        if let Err(error) = self.inner.store.release(chat, run).await {
            tracing::error!(%error, chat, run, "a claim could not be released");
        }
        if !feed.has_started() {
            // It failed before its first event.
            feed.publish(AgentEvent::AgentStart, None);
        }
        feed.publish(AgentEvent::Error(ErrorBody::new(kind, words)), None);
        feed.publish(AgentEvent::AgentEnd { messages: Vec::new() }, None);
        super::stop::announce(feed, notice.into_iter().collect());
    }

    /// Says in the record that something could not be saved, if the store takes that by now.
    async fn keep_notice(&self, chat: &str, run: &str) -> Option<Stored> {
        let marker = Marker::Notice { kind: NoticeKind::Storage };
        let message = marker.into_message(uuid::Uuid::now_v7().to_string(), now_ms());
        let seq = self.inner.store.append(chat, run, &message, now_ms()).await.ok()?;
        Some(Stored { seq, message })
    }

    /// Asks what the chat owes now: the next run of the same activation, or nothing (`turn-settled`).
    pub(super) async fn settle(
        &self,
        feed: &Arc<Feed>,
        chat: &str,
        ended: &str,
        stopped: &CancellationToken,
    ) -> Option<Start> {
        let _gate = feed.gate.lock().await;
        if feed.open_run().is_some() {
            // An input came first; its run settles the chat.
            return None;
        }
        if stopped.is_cancelled() {
            // A stop holds the handoff back, and with it the claim that was kept for it.
            if let Err(error) = self.inner.store.release(chat, ended).await {
                tracing::error!(%error, chat, "a claim could not be released");
            }
            // A question that was posed while the stop was on its way is closed like one that waited before it.
            if let Err(error) = self.close_questions(feed, chat).await {
                tracing::error!(%error, chat, "a question could not be closed");
            }
        } else if let Some(start) = self.hand_off(feed, chat, ended).await {
            return Some(start);
        } else if let Some(start) = self.wake(feed, chat).await {
            return Some(start);
        }
        feed.publish(AgentEvent::TurnSettled, None);
        None
    }

    /// Passes the claim to the teacher's run if the prober has ended.
    async fn hand_off(&self, feed: &Arc<Feed>, chat: &str, ended: &str) -> Option<Start> {
        let due = |record: &[Stored]| (next(record) == Next::Handoff).then(|| super::accept::handoff(record, now_ms()));
        let marker = self.inner.store.ask(chat, due).await.ok()??;
        let run = uuid::Uuid::now_v7().simple().to_string();
        begun(feed, chat, &run, self.inner.store.pass_on(chat, ended, &run, vec![marker], now_ms()).await)
    }
}

/// Opens the feed for a run that the server starts by itself, if it got the chat.
pub(super) fn begun(feed: &Feed, chat: &str, run: &str, claimed: Result<Claimed, StoreError>) -> Option<Start> {
    match claimed {
        Ok(Claimed::Now(prompts)) => {
            let position = prompts.last().map(|stored| stored.seq).unwrap_or_default();
            let cancel = feed.begin(run, before(&prompts, position));
            Some(Start { chat: chat.to_owned(), run: run.to_owned(), prompts, cancel })
        }
        Ok(Claimed::Held) => None,
        Err(error) => {
            tracing::error!(%error, chat, "a run could not be begun");
            None
        }
    }
}

/// Stores what a run says, then publishes it.
pub(super) struct RunSink {
    pub(super) store: Store,
    pub(super) feed: Arc<Feed>,
    pub(super) chat: String,
    pub(super) run: String,
    /// Positions of messages that are in the record before their events: prompts, steers, and results with their markers.
    pub(super) echoes: VecDeque<Seq>,
    /// Position of the last answer.
    pub(super) answer: Seq,
}

#[async_trait]
impl Sink for RunSink {
    async fn emit(&mut self, event: AgentEvent) -> Result<Option<Seq>, Halted> {
        let seq = match &event {
            AgentEvent::MessageStart { .. } => self.echoes.front().copied(),
            AgentEvent::MessageEnd { message } => self.place(message).await?,
            AgentEvent::AgentEnd { .. } => {
                // An input that comes between the release and the event must not begin inside of this run.
                let feed = self.feed.clone();
                let _gate = feed.gate.lock().await;
                self.release().await.map_err(|error| Halted(error.to_string()))?;
                feed.publish(event, None);
                return Ok(None);
            }
            AgentEvent::AgentStart
            | AgentEvent::TurnStart
            | AgentEvent::MessageUpdate { .. }
            | AgentEvent::ToolExecutionStart { .. }
            | AgentEvent::ToolExecutionUpdate { .. }
            | AgentEvent::ToolExecutionEnd { .. }
            | AgentEvent::TurnEnd { .. }
            | AgentEvent::TurnSettled
            | AgentEvent::Error(_)
            | AgentEvent::Activity(_) => None,
        };
        self.feed.publish(event, seq);
        Ok(seq)
    }

    async fn keep(&mut self, nth: usize, outcome: &[Message]) {
        let outcome = Outcome { position: self.answer, nth, messages: outcome.to_vec() };
        if let Err(error) = self.store.keep_outcome(&self.chat, &self.run, &outcome).await {
            tracing::error!(%error, chat = self.chat, "a result was not kept");
        }
    }

    async fn deliver(&mut self, steer: &Message) -> Result<bool, Halted> {
        let Message::Custom(steer) = steer else { return Ok(false) };
        let place = self.store.deliver(&self.chat, &self.run, &steer.id, now_ms()).await;
        let place = place.map_err(|error| Halted(error.to_string()))?;
        self.echoes.extend(place);
        Ok(place.is_some())
    }

    async fn store(&mut self, messages: &[Message]) -> Result<(), Halted> {
        let stored = self.store.append_together(&self.chat, &self.run, messages, now_ms()).await;
        self.echoes.extend(stored.map_err(|error| Halted(error.to_string()))?);
        Ok(())
    }
}

impl RunSink {
    /// Lets go of the chat, unless the prober hands it to the teacher: a crash in between would leave nobody to do that.
    async fn release(&self) -> Result<(), StoreError> {
        if self.store.ask(&self.chat, next).await? == Next::Handoff {
            return Ok(());
        }
        self.store.release(&self.chat, &self.run).await
    }

    /// Where a finished message is in the record: there already, stored now, or (a placeholder) never.
    async fn place(&mut self, message: &Message) -> Result<Option<Seq>, Halted> {
        if let Some(seq) = self.echoes.pop_front() {
            return Ok(Some(seq));
        }
        if message.as_tool_result().is_some_and(crate::app::native::ToolResultMessage::is_posed_placeholder) {
            return Ok(None);
        }
        let stored = self.store.append(&self.chat, &self.run, message, now_ms()).await;
        let seq = stored.map_err(|error| Halted(error.to_string()))?;
        if message.as_assistant().is_some() {
            self.answer = seq;
        }
        Ok(Some(seq))
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_run_that_fails_before_it_began_has_a_start_and_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        let runs = Runs::new(store, crate::server::runs::silent::models());
        let chat = runs.create_chat().await.unwrap();
        let feed = runs.feed(&chat).await.unwrap();
        feed.begin("run", Seq::START);
        let mut live = feed.snapshot().live;
        runs.give_up(&feed, &chat, "run", ErrorKind::Internal, "for no reason").await;
        let mut kinds = Vec::new();
        while let Ok(Some(publication)) = live.try_recv() {
            kinds.push(serde_json::to_value(&publication.event).unwrap()["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(kinds, ["agent_start", "error", "agent_end"]);
    }

    #[tokio::test]
    async fn a_claim_is_released_and_the_end_published_in_one_step_for_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("test.db")).await.unwrap();
        store.create_chat("chat", 0).await.unwrap();
        store.claim("chat", "run", Vec::new(), 0).await.unwrap();
        let feed = Arc::new(Feed::new(Seq::START));
        feed.begin("run", Seq::START);
        let mut sink = RunSink {
            store: store.clone(),
            feed: feed.clone(),
            chat: "chat".to_owned(),
            run: "run".to_owned(),
            echoes: VecDeque::new(),
            answer: Seq::START,
        };
        // An input that is being taken holds the gate: it finds the run either open and claimed, or neither.
        let gate = feed.gate.lock().await;
        let mut end = sink.emit(AgentEvent::AgentEnd { messages: Vec::new() });
        for _ in 0..20 {
            assert!(poll!(end.as_mut()).is_pending());
            assert_eq!(store.claims().await.unwrap().len(), 1, "released under an input's feet");
        }
        drop(gate);
        end.await.unwrap();
        assert!(store.claims().await.unwrap().is_empty());
        assert!(feed.open_run().is_none());
        store.close().await;
    }
}
