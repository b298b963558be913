//! What the browser keeps for the learner: drafts; and fresh ids.

use web_sys::Storage;

/// The draft of a chat's composer; empty when there is none.
#[must_use]
pub fn draft(chat: &str) -> String {
    storage().and_then(|storage| storage.get_item(&key(chat)).ok().flatten()).unwrap_or_default()
}

/// Keeps the draft of a chat's composer, or forgets it when it is empty.
pub fn remember_draft(chat: &str, text: &str) {
    let Some(storage) = storage() else { return };
    // A full or forbidden storage loses the draft, which is no reason to disturb the learner.
    let _ = if text.is_empty() { storage.remove_item(&key(chat)) } else { storage.set_item(&key(chat), text) };
}

/// A fresh id for an input: 128 random bits in hex. Good enough to be unique in one chat; not a secret.
#[must_use]
pub fn new_id() -> String {
    (0..4).map(|_| format!("{:08x}", (js_sys::Math::random() * f64::from(u32::MAX)) as u32)).collect()
}

fn key(chat: &str) -> String {
    format!("draft:{chat}")
}

fn storage() -> Option<Storage> {
    web_sys::window()?.local_storage().ok()?
}
