//! The thread that writes captures. What comes faster than it writes is dropped: a lesson must not wait for it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::Folder;
use crate::server::llm::capture::{Captured, Keep};
use crate::server::llm::catalog::Key;

/// Captures that may wait to be written.
const WAITING: usize = 32;

/// Takes captures, until it is closed or dropped.
pub struct Keeper {
    /// None once it is closed; held for moments only.
    queue: Mutex<Option<SyncSender<Captured>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// Writes into `folder`; `keys` are taken out, beside those that went over the wire.
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn start(folder: Folder, keys: Vec<Key>) -> std::io::Result<Self> {
        let (queue, captures) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("captures".to_owned());
        let thread = thread.spawn(move || write(&captures, &folder, &keys))?;
        Ok(Self { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Takes no more, and returns when all that waited is written.
    pub fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes captures has panicked");
        }
    }
}

impl Keep for Keeper {
    fn keep(&self, captured: Captured) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.as_ref().is_some_and(|queue| queue.try_send(captured).is_err()) {
            tracing::warn!("a capture is left out: too many wait to be written");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.close();
    }
}

fn write(captures: &Receiver<Captured>, folder: &Folder, keys: &[Key]) {
    for captured in captures {
        if let Err(error) = folder.add(&captured.into_exchange(keys)) {
            tracing::warn!(%error, "a capture could not be written");
        }
    }
}
