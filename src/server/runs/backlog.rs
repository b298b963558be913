//! The channel from a feed to its readers: what the slowest has not taken is kept up to a number of bytes; whoever is further
//! behind is told so, and holds up nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Sends values to all receivers.
pub(super) struct Sender<T> {
    log: Arc<Mutex<Log<T>>>,
    sent: watch::Sender<()>,
}

/// Takes what was sent since it subscribed, in order.
pub(super) struct Receiver<T> {
    log: Arc<Mutex<Log<T>>>,
    sent: watch::Receiver<()>,
    /// Number of the value that it takes next.
    next: u64,
}

/// Why there is no next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// It is kept no more.
    Behind,
    /// The sender is gone.
    Closed,
}

/// The values that a receiver has not taken.
struct Log<T> {
    kept: VecDeque<Kept<T>>,
    /// Number of the first of them.
    first: u64,
    bytes: usize,
    limit: usize,
    receivers: usize,
}

struct Kept<T> {
    value: Arc<T>,
    bytes: usize,
    /// Receivers that have not taken it.
    waiting: usize,
}

impl<T> Sender<T> {
    /// `limit` counts bytes; the last value is kept even if it is larger.
    pub(super) fn new(limit: usize) -> Self {
        let log = Log { kept: VecDeque::new(), first: 0, bytes: 0, limit, receivers: 0 };
        Self { log: Arc::new(Mutex::new(log)), sent: watch::Sender::new(()) }
    }

    /// Sends what `make` returns, with its size in bytes. Nothing is made when nobody listens.
    pub(super) fn send(&self, make: impl FnOnce() -> (T, usize)) {
        let mut log = lock(&self.log);
        if log.receivers == 0 {
            log.first += 1;
            return;
        }
        let (value, bytes) = make();
        let waiting = log.receivers;
        log.kept.push_back(Kept { value: Arc::new(value), bytes, waiting });
        log.bytes += bytes;
        while log.bytes > log.limit && log.kept.len() > 1 {
            log.forget_first();
        }
        drop(log);
        self.sent.send_replace(());
    }

    pub(super) fn subscribe(&self) -> Receiver<T> {
        let mut log = lock(&self.log);
        log.receivers += 1;
        Receiver { log: self.log.clone(), sent: self.sent.subscribe(), next: log.end() }
    }

    /// Bytes that are kept for receivers.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        lock(&self.log).bytes
    }
}

impl<T> Receiver<T> {
    /// The next value, once it is there.
    pub(super) async fn recv(&mut self) -> Result<Arc<T>, Missed> {
        loop {
            if let Some(value) = self.try_recv()? {
                return Ok(value);
            }
            self.sent.changed().await.map_err(|_| Missed::Closed)?;
        }
    }

    /// The next value, if it is there.
    pub(super) fn try_recv(&mut self) -> Result<Option<Arc<T>>, Missed> {
        let mut log = lock(&self.log);
        let index = self.next.checked_sub(log.first).ok_or(Missed::Behind)? as usize;
        let Some(kept) = log.kept.get_mut(index) else { return Ok(None) };
        kept.waiting -= 1;
        let value = kept.value.clone();
        self.next += 1;
        log.forget_taken();
        Ok(Some(value))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut log = lock(&self.log);
        log.receivers -= 1;
        let taken = self.next.saturating_sub(log.first) as usize;
        log.kept.iter_mut().skip(taken).for_each(|kept| kept.waiting -= 1);
        log.forget_taken();
    }
}

impl<T> Log<T> {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn forget_taken(&mut self) {
        while self.kept.front().is_some_and(|kept| kept.waiting == 0) {
            self.forget_first();
        }
        if self.kept.is_empty() {
            // An idle channel holds no room.
            self.kept.shrink_to(8);
        }
    }

    fn forget_first(&mut self) {
        if let Some(kept) = self.kept.pop_front() {
            self.first += 1;
            self.bytes -= kept.bytes;
        }
    }
}

fn lock<T>(log: &Mutex<Log<T>>) -> MutexGuard<'_, Log<T>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Send(usize),
        Subscribe,
        /// Of the receivers that there are, this one (modulo their number).
        Take(usize),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1usize..40).prop_map(Step::Send),
            1 => Just(Step::Subscribe),
            6 => (0usize..8).prop_map(Step::Take),
            1 => (0usize..8).prop_map(Step::Leave),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn receivers_get_everything_in_order_or_are_told_and_no_more_is_kept_than_allowed(steps in steps()) {
            let sender = Sender::new(100);
            let mut sent = 0usize;
            let mut sizes = HashMap::new();
            let mut receivers: Vec<(Receiver<usize>, usize)> = Vec::new();
            for step in steps {
                match step {
                    Step::Send(bytes) => {
                        sizes.insert(sent, bytes);
                        sender.send(|| (sent, bytes));
                        sent += 1;
                    }
                    Step::Subscribe => receivers.push((sender.subscribe(), sent)),
                    Step::Take(index) if !receivers.is_empty() => {
                        let count = receivers.len();
                        let (receiver, expected) = &mut receivers[index % count];
                        match receiver.try_recv() {
                            Ok(Some(value)) => {
                                prop_assert_eq!(*value, *expected);
                                *expected += 1;
                            }
                            Ok(None) => prop_assert_eq!(*expected, sent),
                            Err(missed) => {
                                prop_assert_eq!(missed, Missed::Behind);
                                let unread: usize = (*expected..sent).map(|value| sizes[&value]).sum();
                                prop_assert!(unread > 100);
                                receivers[index % count] = (sender.subscribe(), sent);
                            }
                        }
                    }
                    Step::Leave(index) if !receivers.is_empty() => {
                        receivers.swap_remove(index % receivers.len());
                    }
                    Step::Take(_) | Step::Leave(_) => {}
                }
                prop_assert!(sender.bytes() <= 100);
                if receivers.iter().all(|(_, next)| *next == sent) {
                    prop_assert_eq!(sender.bytes(), 0, "everybody has everything");
                }
            }
        }
    }

    #[test]
    fn nothing_is_made_for_nobody() {
        let sender: Sender<usize> = Sender::new(100);
        sender.send(|| unreachable!("nobody listens"));
        drop(sender.subscribe());
        sender.send(|| unreachable!("nobody listens any more"));
    }

    #[test]
    fn one_that_is_larger_than_all_is_kept_until_the_next() {
        let sender = Sender::new(100);
        let (mut quick, mut slow) = (sender.subscribe(), sender.subscribe());
        sender.send(|| ("large", 1000));
        assert_eq!(quick.try_recv().unwrap().as_deref(), Some(&"large"));
        sender.send(|| ("small", 1));
        assert_eq!(quick.try_recv().unwrap().as_deref(), Some(&"small"));
        assert_eq!(slow.try_recv(), Err(Missed::Behind));
    }

    #[test]
    fn whoever_waits_is_woken_by_a_value_and_by_the_end() {
        let sender = Sender::new(100);
        let mut receiver = sender.subscribe();
        {
            let mut waiting = std::pin::pin!(receiver.recv());
            assert!(waiting.as_mut().now_or_never().is_none());
            sender.send(|| (1, 1));
            assert_eq!(waiting.now_or_never(), Some(Ok(Arc::new(1))));
        }
        drop(sender);
        assert_eq!(receiver.recv().now_or_never(), Some(Err(Missed::Closed)));
    }
}
