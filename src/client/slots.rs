//! Slots for streams: a few for all pages of an origin together, because a browser opens only six connections to a server
//! over HTTP/1.1. A slot is a lock of the Web Locks API, which the browser takes back when a page goes.

use futures::channel::oneshot;
use futures::future::{Either, select};
use js_sys::{Function, Object, Promise, Reflect};
use send_wrapper::SendWrapper;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// Streams that all pages of an origin hold at most; two connections stay for everything else.
const SLOTS: u32 = 4;

/// A slot that is held until it is dropped.
pub struct Slot {
    /// Lets go of the lock; none where there are no locks (an insecure context), and every visible page may stream.
    // The browser has one thread; a session, which the server makes too, holds only what could move between threads.
    release: Option<SendWrapper<Function>>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            // It settles a promise, which cannot fail.
            let _ = release.call0(&JsValue::UNDEFINED);
        }
    }
}

/// Takes a slot if one is free.
pub async fn take_slot() -> Option<Slot> {
    for number in 0..SLOTS {
        if let Some(slot) = take(&format!("learnharness-stream-{number}")).await {
            return Some(slot);
        }
    }
    None
}

/// Takes the lock of this name unless another page holds it.
async fn take(name: &str) -> Option<Slot> {
    let (tell, told) = oneshot::channel();
    let granted = Closure::<dyn FnMut(JsValue) -> JsValue>::once(move |lock: JsValue| {
        if lock.is_null() {
            let _ = tell.send(None);
            return JsValue::UNDEFINED;
        }
        // The lock is held for as long as this promise is open.
        let mut tell = Some(tell);
        Promise::new(&mut |release, _| {
            if let Some(tell) = tell.take() {
                let _ = tell.send(Some(Slot { release: Some(SendWrapper::new(release)) }));
            }
        })
        .into()
    });
    let everybody_streams = || Some(Slot { release: None });
    let Ok(request) = request(name, granted.as_ref().unchecked_ref()) else { return everybody_streams() };
    match select(told, JsFuture::from(request)).await {
        Either::Left((Ok(slot), _)) => slot,
        // The browser refused to ask for the lock at all.
        Either::Left((Err(_), _)) | Either::Right((Err(_), _)) => everybody_streams(),
        Either::Right((Ok(_), told)) => told.await.ok().flatten(),
    }
}

/// `navigator.locks.request(name, {ifAvailable: true}, granted)`; an error where there are no locks.
fn request(name: &str, granted: &Function) -> Result<Promise, JsValue> {
    let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into());
    let locks = get(&get(&js_sys::global(), "navigator")?, "locks")?;
    let options = Object::new();
    Reflect::set(&options, &"ifAvailable".into(), &JsValue::TRUE)?;
    let request: Function = get(&locks, "request")?.dyn_into()?;
    request.call3(&locks, &name.into(), &options, granted)?.dyn_into()
}
