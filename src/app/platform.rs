//! The only file that branches on the browser: what the page asks of it, and what stands in for it on the server, where
//! nobody scrolls, types or waits.

#[cfg(feature = "hydrate")]
pub use crate::client::{
    clock::{Timer, after, next_frame, now, sleep},
    dom::{
        Listening, Moved, checked, document_title, focus, focus_is_free, is_typing, is_visible, on_resize, on_return,
        on_scroll, on_visibility, scroll_to_end, typed,
    },
    events::{Following, Told, follow},
    http::get,
    slots::{Slot, take_slot},
    storage::{draft, new_id, remember_draft},
};

#[cfg(not(feature = "hydrate"))]
pub use nowhere::*;

#[cfg(not(feature = "hydrate"))]
mod nowhere {
    use crate::app::native::{AgentEvent, ErrorBody, ErrorKind, Seq};

    pub struct Timer;
    pub struct Listening;
    pub struct Following;
    pub struct Slot;

    #[derive(PartialEq)]
    pub enum Moved {
        ToEnd,
        Up,
    }

    pub enum Told {
        Event(Option<Seq>, Box<AgentEvent>),
        Lost,
    }

    /// The text of the `<title>` that is sent, which leptos writes as it is.
    #[must_use]
    pub fn document_title(title: &str) -> String {
        title.replace('&', "&amp;").replace('<', "&lt;")
    }

    pub fn after(_: u32, _: impl FnOnce() + 'static) -> Timer {
        Timer
    }

    #[must_use]
    pub fn now() -> f64 {
        0.0
    }

    pub fn next_frame(_: impl FnOnce() + 'static) {}

    pub async fn sleep(_: u32) {}

    pub fn focus(_: &str) {}

    #[must_use]
    pub fn checked<Form>(_: &Form) -> Vec<String> {
        Vec::new()
    }

    #[must_use]
    pub fn typed<Form>(_: &Form) -> String {
        String::new()
    }

    #[must_use]
    pub fn focus_is_free() -> bool {
        false
    }

    #[must_use]
    pub fn is_typing(_: &leptos::ev::KeyboardEvent) -> bool {
        false
    }

    #[must_use]
    pub fn is_visible() -> bool {
        false
    }

    pub fn on_scroll(_: impl FnMut(Moved) + 'static) -> Option<Listening> {
        None
    }

    pub fn on_visibility(_: impl FnMut() + 'static) -> Option<Listening> {
        None
    }

    pub fn on_return(_: impl Fn() + Clone + 'static) -> [Option<Listening>; 2] {
        [None, None]
    }

    pub fn on_resize(_: impl FnMut() + 'static) -> Option<Listening> {
        None
    }

    pub fn scroll_to_end(_: &str) {}

    pub fn follow(_: &str, _: impl FnMut(Told) + 'static) -> Option<Following> {
        None
    }

    pub async fn take_slot() -> Option<Slot> {
        None
    }

    /// Reads go straight to the server's parts there.
    ///
    /// # Errors
    /// Always.
    pub async fn get<T>(_: &str) -> Result<T, ErrorBody> {
        Err(ErrorBody::new(ErrorKind::Offline, "There is no browser here."))
    }

    #[must_use]
    pub fn draft(_: &str) -> String {
        String::new()
    }

    pub fn remember_draft(_: &str, _: &str) {}

    #[must_use]
    pub fn new_id() -> String {
        String::new()
    }
}
