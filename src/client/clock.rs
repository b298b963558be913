//! Time in the browser: now, delays and animation frames.

use gloo_timers::callback::Timeout;
use send_wrapper::SendWrapper;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

/// Calls once, unless it is dropped before.
pub struct Timer {
    // The browser has one thread; a session, which the server makes too, holds only what could move between threads.
    _timeout: SendWrapper<Timeout>,
}

/// Calls `ring` in `ms` milliseconds.
pub fn after(ms: u32, ring: impl FnOnce() + 'static) -> Timer {
    Timer { _timeout: SendWrapper::new(Timeout::new(ms, ring)) }
}

/// Unix time in ms by the machine's clock, which goes on while the machine sleeps.
#[must_use]
pub fn now() -> f64 {
    js_sys::Date::now()
}

/// Waits `ms` milliseconds.
pub async fn sleep(ms: u32) {
    gloo_timers::future::TimeoutFuture::new(ms).await;
}

/// Calls `paint` before the next frame is drawn.
pub fn next_frame(paint: impl FnOnce() + 'static) {
    let callback = Closure::once_into_js(paint);
    if let Some(window) = web_sys::window() {
        // A window without frames draws nothing either.
        let _ = window.request_animation_frame(callback.unchecked_ref());
    }
}
