//! Chats as a client sees them: the list and one chat as of now.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Runs, refused};
use crate::app::native::view::{ChatSummary, ChatView, Next, Phase};
use crate::app::native::{ErrorBody, ErrorKind, Seq, Usage};
use crate::app::transcript::scan::next::{next, pending};
use crate::app::transcript::scan::phase::phase;
use crate::app::transcript::scan::plan::plan;
use crate::app::transcript::scan::title::title;
use crate::app::transcript::scan::usage::usage;
use crate::server::store::ChatRow;

/// Titles of chats that have none yet.
const UNTITLED: &str = "New lesson";

/// Summaries by chat, each good for as long as the record ends where it did.
#[derive(Default)]
pub(super) struct Summaries(Mutex<HashMap<String, (Seq, ChatSummary)>>);

impl Runs {
    /// All chats, the latest first.
    ///
    /// # Errors
    /// `storage` when the store cannot be read.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>, ErrorBody> {
        let mut chats = Vec::new();
        for row in self.inner.store.chats().await.map_err(refused)? {
            let mut summary = match self.summary(&row).await {
                Ok(summary) => summary,
                // One chat that cannot be read must not hide the others.
                Err(error) if error.error.kind == ErrorKind::Internal => unreadable(&row),
                Err(error) => return Err(error),
            };
            summary.updated = row.updated;
            summary.running = self.live_feed(&row.id).await.is_some_and(|feed| feed.is_busy());
            chats.push(summary);
        }
        Ok(chats)
    }

    /// A chat as of now, with its messages after `after`.
    ///
    /// # Errors
    /// `not-found` when there is none by that id.
    pub async fn view(&self, chat: &str, after: Seq) -> Result<ChatView, ErrorBody> {
        let record = self.inner.store.messages(chat, Seq::START).await.map_err(refused)?;
        let feed = self.live_feed(chat).await;
        let running = feed.as_ref().is_some_and(|feed| feed.is_busy());
        Ok(ChatView {
            id: chat.to_owned(),
            title: title(&record).unwrap_or_else(|| UNTITLED.to_owned()),
            phase: phase(&record),
            running,
            pending: pending(&record),
            plan: plan(&record),
            usage: usage(&record),
            jobs: Vec::new(),
            retry: feed.and_then(|feed| feed.retry()),
            messages: record.into_iter().filter(|stored| stored.seq > after).collect(),
        })
    }

    async fn summary(&self, row: &ChatRow) -> Result<ChatSummary, ErrorBody> {
        if let Some(summary) = self.inner.summaries.get(row) {
            return Ok(summary);
        }
        let record = self.inner.store.messages(&row.id, Seq::START).await.map_err(refused)?;
        let summary = ChatSummary {
            id: row.id.clone(),
            title: title(&record).unwrap_or_else(|| UNTITLED.to_owned()),
            phase: phase(&record),
            next: next(&record),
            running: false,
            updated: row.updated,
            usage: usage(&record),
        };
        let last = record.last().map(|stored| stored.seq).unwrap_or_default();
        self.inner.summaries.put(last, summary.clone());
        Ok(summary)
    }
}

/// Stands in the list for a chat whose record cannot be read.
fn unreadable(row: &ChatRow) -> ChatSummary {
    ChatSummary {
        id: row.id.clone(),
        title: "Unreadable lesson".to_owned(),
        phase: Phase::default(),
        next: Next::default(),
        running: false,
        updated: row.updated,
        usage: Usage::default(),
    }
}

impl Summaries {
    fn get(&self, row: &ChatRow) -> Option<ChatSummary> {
        let summaries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.get(&row.id).filter(|(seq, _)| *seq == row.last).map(|(_, summary)| summary.clone())
    }

    fn put(&self, seq: Seq, summary: ChatSummary) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(summary.id.clone(), (seq, summary));
    }
}
