//! The browser side: the hydrate entry, and every call of a browser API.

pub mod clock;
pub mod dom;
pub mod events;
pub mod http;
pub mod slots;
pub mod storage;

use wasm_bindgen::prelude::wasm_bindgen;

/// Takes over the page that the server rendered.
#[wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(crate::app::pages::App);
    dom::mark_ready();
}
