//! Chats as a client sees them: the list and one chat as of now.

use std::collections::{HashMap, HashSet};
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
        let rows = self.inner.store.chats().await.map_err(refused)?;
        self.inner.summaries.retain(&rows);
        for row in rows {
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
        let id = chat.to_owned();
        let view = self.inner.store.ask(chat, move |record| ChatView {
            id,
            title: title(record).unwrap_or_else(|| UNTITLED.to_owned()),
            phase: phase(record),
            running: false,
            pending: pending(record),
            plan: plan(record),
            usage: usage(record),
            jobs: Vec::new(),
            retry: None,
            messages: record[record.partition_point(|stored| stored.seq <= after)..].to_vec(),
        });
        let mut view = view.await.map_err(refused)?;
        if let Some(feed) = self.live_feed(chat).await {
            (view.running, view.retry) = (feed.is_busy(), feed.retry());
        }
        Ok(view)
    }

    async fn summary(&self, row: &ChatRow) -> Result<ChatSummary, ErrorBody> {
        if let Some(summary) = self.inner.summaries.get(row) {
            return Ok(summary);
        }
        let ChatRow { id, updated, .. } = row.clone();
        let asked = self.inner.store.ask(&row.id, move |record| {
            let summary = ChatSummary {
                id,
                title: title(record).unwrap_or_else(|| UNTITLED.to_owned()),
                phase: phase(record),
                next: next(record),
                running: false,
                updated,
                usage: usage(record),
            };
            (record.last().map(|stored| stored.seq).unwrap_or_default(), summary)
        });
        let (last, summary) = asked.await.map_err(refused)?;
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

    /// Forgets the chats that are listed no more.
    fn retain(&self, rows: &[ChatRow]) {
        let listed: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let mut summaries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.retain(|chat, _| listed.contains(chat.as_str()));
    }

    fn put(&self, seq: Seq, summary: ChatSummary) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(summary.id.clone(), (seq, summary));
    }
}
