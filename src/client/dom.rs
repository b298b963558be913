//! The document: focus, scrolling, visibility and keys.

use js_sys::Reflect;
use send_wrapper::SendWrapper;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{
    Document, Event, FocusOptions, HtmlElement, HtmlFormElement, HtmlInputElement, ScrollBehavior, ScrollToOptions,
    VisibilityState, Window,
};

/// Pixels from the end that still count as being at the end.
const NEAR_END: f64 = 120.0;
/// Pixels that stay free above what is kept in sight.
const ABOVE_KEPT: f64 = 64.0;

/// Listens for as long as it lives.
pub struct Listening {
    remove: Option<SendWrapper<Box<dyn FnOnce()>>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(remove) = self.remove.take() {
            remove.take()();
        }
    }
}

/// Says that the page answers now: tests and styles wait for it.
pub fn mark_ready() {
    if let Some(root) = document().and_then(|document| document.document_element()) {
        let _ = root.set_attribute("data-hydrated", "true");
    }
}

/// What the document is called: the browser takes any text.
#[must_use]
pub fn document_title(title: &str) -> String {
    title.to_owned()
}

/// Moves the focus to the first element that `selector` finds; the page stays where it is scrolled to.
pub fn focus(selector: &str) {
    let found = document().and_then(|document| document.query_selector(selector).ok().flatten());
    if let Some(element) = found.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        let _ = element.focus_with_options(&options);
    }
}

/// The values of the options that are checked in a form.
#[must_use]
pub fn checked(form: &HtmlFormElement) -> Vec<String> {
    inputs(form, "input:checked").iter().map(HtmlInputElement::value).collect()
}

/// What stands in the text field of a form.
#[must_use]
pub fn typed(form: &HtmlFormElement) -> String {
    inputs(form, "input[type=text]").first().map(HtmlInputElement::value).unwrap_or_default()
}

fn inputs(form: &HtmlFormElement, selector: &str) -> Vec<HtmlInputElement> {
    let Ok(found) = form.query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|index| found.item(index)?.dyn_into().ok()).collect()
}

/// True when the focus is on nothing in particular, so that moving it interrupts nobody.
#[must_use]
pub fn focus_is_free() -> bool {
    let Some(active) = document().and_then(|document| document.active_element()) else { return true };
    let empty = active.dyn_ref::<web_sys::HtmlTextAreaElement>().map(|area| area.value().is_empty());
    active.tag_name() == "BODY" || empty == Some(true) || active.closest(".ask").ok().flatten().is_some()
}

/// True when the key went into a text field.
#[must_use]
pub fn is_typing(event: &leptos::ev::KeyboardEvent) -> bool {
    let field = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
    field.is_some_and(|field| field.type_() == "text")
}

/// True while the page can be seen.
#[must_use]
pub fn is_visible() -> bool {
    document().is_none_or(|document| document.visibility_state() == VisibilityState::Visible)
}

/// Calls `changed` when the page is shown or hidden.
pub fn on_visibility(changed: impl FnMut() + 'static) -> Option<Listening> {
    listen(document()?.unchecked_into(), "visibilitychange", changed)
}

/// Calls `back` when the browser finds its network again, or brings the page back from its cache.
pub fn on_return(back: impl Fn() + Clone + 'static) -> [Option<Listening>; 2] {
    let Some(window) = window() else { return [None, None] };
    let shown = back.clone();
    let from_cache = move |event: Event| {
        // A page that is loaded is shown as well.
        if Reflect::get(&event, &"persisted".into()).is_ok_and(|persisted| persisted.is_truthy()) {
            shown();
        }
    };
    [
        listen(window.clone().unchecked_into(), "online", back),
        listen_to(window.unchecked_into(), "pageshow", from_cache),
    ]
}

/// Where the learner has moved the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    ToEnd,
    Up,
}

/// Calls `moved` when the learner scrolls to the page's end, or up from it.
pub fn on_scroll(mut moved: impl FnMut(Moved) + 'static) -> Option<Listening> {
    let mut before = Scroll::now();
    let call = move || {
        let now = Scroll::now();
        // Words that come move the end away; a question that goes and a window that grows move the page up: neither is
        // the learner.
        if now.top < before.top && now.height >= before.height && now.seen <= before.seen {
            moved(Moved::Up);
        } else if now.is_at_end() {
            moved(Moved::ToEnd);
        }
        before = now;
    };
    listen(window()?.unchecked_into(), "scroll", call)
}

/// Calls `resized` when the window has another size.
pub fn on_resize(resized: impl FnMut() + 'static) -> Option<Listening> {
    listen(window()?.unchecked_into(), "resize", resized)
}

/// Scrolls to the end of the page, at once, but not past the last element that `keep` finds.
pub fn scroll_to_end(keep: &str) {
    let Some(window) = window() else { return };
    let now = Scroll::now();
    let kept = top_of_last(keep).map_or(f64::INFINITY, |top| now.top + top - ABOVE_KEPT);
    let target = kept.min(now.height - now.seen);
    // Who has read on is not taken back.
    if target <= now.top {
        return;
    }
    let options = ScrollToOptions::new();
    options.set_top(target);
    options.set_behavior(ScrollBehavior::Instant);
    window.scroll_to_with_scroll_to_options(&options);
}

/// How far the last element that `selector` finds is below the window's edge, in pixels.
fn top_of_last(selector: &str) -> Option<f64> {
    let found = document()?.query_selector_all(selector).ok()?;
    let last = found.item(found.length().checked_sub(1)?)?;
    Some(last.unchecked_into::<web_sys::Element>().get_bounding_client_rect().top())
}

/// How the page is scrolled, in pixels.
#[derive(Clone, Copy, Default)]
struct Scroll {
    top: f64,
    seen: f64,
    height: f64,
}

impl Scroll {
    fn now() -> Self {
        let measure = || {
            let window = window()?;
            let top = window.scroll_y().ok()?;
            let seen = window.inner_height().ok()?.as_f64()?;
            let height = f64::from(document()?.document_element()?.scroll_height());
            Some(Self { top, seen, height })
        };
        measure().unwrap_or_default()
    }

    fn is_at_end(self) -> bool {
        self.height - self.top - self.seen < NEAR_END
    }
}

fn listen(target: web_sys::EventTarget, name: &'static str, mut call: impl FnMut() + 'static) -> Option<Listening> {
    listen_to(target, name, move |_| call())
}

fn listen_to(target: web_sys::EventTarget, name: &'static str, call: impl FnMut(Event) + 'static) -> Option<Listening> {
    let callback = Closure::<dyn FnMut(Event)>::new(call);
    target.add_event_listener_with_callback(name, callback.as_ref().unchecked_ref()).ok()?;
    let remove = move || {
        let _ = target.remove_event_listener_with_callback(name, callback.as_ref().unchecked_ref());
    };
    Some(Listening { remove: Some(SendWrapper::new(Box::new(remove))) })
}

fn window() -> Option<Window> {
    web_sys::window()
}

fn document() -> Option<Document> {
    window()?.document()
}
