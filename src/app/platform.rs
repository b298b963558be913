//! The only file that branches on the browser: what the page asks of it, and what the server says instead (nothing).

#[cfg(feature = "hydrate")]
pub use crate::client::{
    clock::{Ticker, every, next_frame},
    dom::{
        announce_focus, at_end, focus, is_visible, navigate, on_key, on_scroll, on_visibility, prefers_still,
        scroll_to_end, set_title,
    },
    events::{Following, follow},
    http::get,
    storage::{draft, new_id, remember_draft},
};
