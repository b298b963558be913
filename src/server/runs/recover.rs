//! After a restart: runs whose process died go on by themselves, once; the second time the learner is asked.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use super::drive::Start;
use super::feed::Feed;
use super::{Runs, accept};
use crate::app::native::marker::NoticeKind;
use crate::app::native::message::KnownBlock;
use crate::app::native::view::Next;
use crate::app::native::{
    AssistantMessage, Block, ErrorKind, Marker, Message, Question, Seq, StopReason, Stored, ToolResultMessage,
};
use crate::app::transcript::scan::next::next;
use crate::server::agent::cut::cut_batch;
use crate::server::agent::empty;
use crate::server::clock::now_ms;
use crate::server::store::{Claim, Mended, Onward, Remains, StoreError};

/// Resumptions without anything new after which a run is left to the learner's Retry.
const MAX_TRIES: u32 = 1;
/// Why an answer has no end.
const CUT_OFF: &str = "The server went down.";
const STOPPED: &str = "Stopped.";
/// Claims that are mended at a time, so that they share their commits.
const TOGETHER: usize = 16;

impl Runs {
    /// Mends what the process before left open, lets its runs go on, and wakes the chats for which steers wait, a few at a
    /// time. Called once, before requests are taken; a chat whose record cannot be read is left as it is.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let claims = self.inner.store.claims().await?;
        futures::stream::iter(claims)
            .map(|claim| async move { self.resume(&claim).await })
            .buffered(TOGETHER)
            .try_collect::<()>()
            .await?;
        self.wake_all().await
    }

    async fn resume(&self, claim: &Claim) -> Result<(), StoreError> {
        let now = now_ms();
        let mended = self.inner.store.recover(claim, now, Box::new(move |remains| mend(remains, now))).await;
        let position = match mended {
            Ok((Onward::GoesOn { .. }, position)) => position,
            Ok((Onward::Released, _)) => return Ok(()),
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(%error, chat = claim.chat, "a run cannot go on");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        tracing::info!(chat = claim.chat, run = claim.run, "a run goes on after a restart");
        if let Ok(feed) = self.feed(&claim.chat).await {
            let cancel = feed.begin(&claim.run, position);
            let start = Start { chat: claim.chat.clone(), run: claim.run.clone(), prompts: Vec::new(), cancel };
            let (runs, waiting) = (self.clone(), feed.clone());
            self.own(&feed, &claim.chat, async move { runs.wait_turn(&waiting, start).await });
        }
        Ok(())
    }

    /// Lets a run go on when its turn has come. One that is stopped does not wait for that.
    async fn wait_turn(&self, feed: &Arc<Feed>, start: Start) {
        let _slot = tokio::select! {
            slot = self.inner.resuming.acquire() => slot.ok(),
            () = start.cancel.cancelled() => None,
        };
        let (chat, run, cancel) = (start.chat.clone(), start.run.clone(), start.cancel.clone());
        match self.inner.store.count_try(&chat, &run).await {
            Ok(()) => self.drive(feed, start).await,
            // Without a count it could die again and again.
            Err(error) => {
                self.give_up(feed, &chat, &run, ErrorKind::Storage, &error.to_string()).await;
                self.settle(feed, &chat, &run, &cancel).await;
            }
        }
    }
}

/// What becomes of a run whose process died; `now` is Unix time in ms.
fn mend(remains: &Remains, now: i64) -> Mended {
    if remains.stopped {
        return Mended { append: stopped(remains, now), onward: Onward::Released };
    }
    let mark = |marker: Marker| marker.into_message(uuid::Uuid::now_v7().to_string(), now);
    let mut append = finished(remains);
    let progressed = !append.is_empty() || has_progressed(remains);
    let forgiven = progressed && remains.tries > 0;
    let record = whole(&remains.record, &append);
    let cut_off = remains.open.as_ref().filter(|open| says_something(open)).map(|open| aborted(open, CUT_OFF));
    let is_cut = cut_batch(&record).is_some();
    let due = match next(&record) {
        Next::Reply => true,
        Next::Handoff if !is_cut => {
            append.push(accept::handoff(&record, now));
            true
        }
        Next::Handoff | Next::Idle | Next::Answer(_) | Next::Verdict(_) => is_cut,
    };
    let asks_again = empty::is_to_be_asked_again(&record);
    if !(due || cut_off.is_some() || asks_again) {
        return Mended { append, onward: Onward::Released };
    }
    let is_spent = !progressed && remains.tries >= MAX_TRIES;
    if is_spent {
        append.extend(cut_off);
        append.extend(unposed(&record, now));
        append.push(mark(Marker::Notice { kind: NoticeKind::CutTwice }));
        return Mended { append, onward: Onward::Released };
    }
    if let Some(words) = cut_off {
        append.extend([words, mark(Marker::Interrupted)]);
    } else if asks_again {
        append.push(mark(Marker::Notice { kind: NoticeKind::EmptyAnswer }));
    }
    Mended { append, onward: Onward::GoesOn { forgiven } }
}

/// What a run that the learner had stopped would have left if it had come to its end.
fn stopped(remains: &Remains, now: i64) -> Vec<Message> {
    let mut append = finished(remains);
    let silent = || (next(&whole(&remains.record, &append)) == Next::Reply).then(AssistantMessage::default);
    let open = remains.open.clone().filter(says_something).or_else(silent);
    append.extend(open.map(|open| aborted(&open, STOPPED)));
    let record = whole(&remains.record, &append);
    append.extend(unposed(&record, now));
    append.extend(accept::close_all(&record, accept::STOPPED, now));
    append
}

/// What ended of the batch that was cut off, in source order.
fn finished(remains: &Remains) -> Vec<Message> {
    let Some(cut) = cut_batch(&remains.record) else { return Vec::new() };
    let of_batch = remains.outcomes.iter().filter(|kept| kept.position == cut.seq && cut.open.contains(&kept.nth));
    of_batch.flat_map(|kept| kept.messages.clone()).collect()
}

/// True when the run has finished something since it was last resumed.
fn has_progressed(remains: &Remains) -> bool {
    let Some(resumed) = remains.resumed else { return false };
    let since = remains.record.iter().filter(|stored| stored.seq > resumed);
    since.into_iter().any(|stored| matches!(stored.message, Message::Assistant(_) | Message::ToolResult(_)))
}

fn whole(record: &[Stored], append: &[Message]) -> Vec<Stored> {
    let mut seq = record.last().map_or(Seq::START, |last| last.seq);
    let mut whole = record.to_vec();
    for message in append {
        seq = seq.next();
        whole.push(Stored { seq, message: message.clone() });
    }
    whole
}

/// True when there is a word, a thought or a call in it.
fn says_something(open: &AssistantMessage) -> bool {
    open.content.iter().any(|block| match block {
        Block::Known(KnownBlock::Text(text)) => !text.text.trim().is_empty(),
        Block::Known(KnownBlock::Thinking(thinking)) => {
            !thinking.thinking.trim().is_empty() || thinking.thinking_signature.is_some()
        }
        Block::Known(KnownBlock::ToolCall(_) | KnownBlock::Image(_)) | Block::Other(_) => true,
    })
}

/// The open message as the record keeps it; `words` say why it has no end.
fn aborted(open: &AssistantMessage, words: &str) -> Message {
    let mut answer = open.clone();
    answer.stop_reason = StopReason::Aborted;
    answer.error_message = Some(words.to_owned());
    for block in &mut answer.content {
        if let Block::Known(KnownBlock::ToolCall(call)) = block {
            call.partial_args = None;
        }
    }
    Message::Assistant(answer)
}

/// Error results for the questions of a cut batch that cannot be asked: nobody could answer them.
fn unposed(record: &[Stored], now: i64) -> Vec<Message> {
    let Some(cut) = cut_batch(record) else { return Vec::new() };
    let open = cut.answer.tool_calls().enumerate().filter(|(nth, _)| cut.open.contains(nth)).map(|(_, call)| call);
    let refused = open.filter(|call| Question::is_question(&call.name)).filter_map(|call| {
        let error = Question::from_args(&call.name, &call.arguments).err()?;
        Some(Message::ToolResult(ToolResultMessage::failed(call, &error, now)))
    });
    refused.collect()
}
