//! Time in the browser: repeated calls, delays and animation frames.

use gloo_timers::callback::Interval;
use send_wrapper::SendWrapper;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

/// Calls again and again until it is dropped.
pub struct Ticker {
    // The browser has one thread; a session, which the server makes too, holds only what could move between threads.
    _interval: SendWrapper<Interval>,
}

/// Calls `tick` every `ms` milliseconds.
pub fn every(ms: u32, tick: impl FnMut() + 'static) -> Ticker {
    Ticker { _interval: SendWrapper::new(Interval::new(ms, tick)) }
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
