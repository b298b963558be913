//! The event source: the live events of a chat, until it is dropped.

use std::cell::RefCell;
use std::rc::Rc;

use send_wrapper::SendWrapper;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Event, EventSource, MessageEvent};

use crate::app::native::{AgentEvent, Seq};

/// What comes out of a followed stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// An event, with the position that it leaves the reader at.
    Event(Option<Seq>, Box<AgentEvent>),
    /// The connection is gone; nothing more comes.
    Lost,
}

/// A stream that is followed; dropping it closes the connection.
pub struct Following {
    // The browser has one thread; a session, which the server makes too, holds only what could move between threads.
    _connection: SendWrapper<Connection>,
}

struct Connection {
    source: EventSource,
    _hear: Closure<dyn FnMut(MessageEvent)>,
    _fail: Closure<dyn FnMut(Event)>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.source.set_onmessage(None);
        self.source.set_onerror(None);
        self.source.close();
    }
}

/// Follows the stream at `url` and hands over what it tells; none when the browser does not take the address.
pub fn follow(url: &str, tell: impl FnMut(Told) + 'static) -> Option<Following> {
    let source = EventSource::new(url).ok()?;
    let tell = Rc::new(RefCell::new(tell));
    let told = Rc::clone(&tell);
    let hear = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
        let id = message.last_event_id().parse().ok();
        let data = message.data().as_string().unwrap_or_default();
        if let Ok(event) = serde_json::from_str(&data) {
            (tell.borrow_mut())(Told::Event(id, Box::new(event)));
        }
    });
    let broken = source.clone();
    let fail = Closure::<dyn FnMut(Event)>::new(move |_| {
        // The browser would connect again by itself; the session decides instead, after it has asked where the chat is.
        broken.close();
        (told.borrow_mut())(Told::Lost);
    });
    source.set_onmessage(Some(hear.as_ref().unchecked_ref()));
    source.set_onerror(Some(fail.as_ref().unchecked_ref()));
    Some(Following { _connection: SendWrapper::new(Connection { source, _hear: hear, _fail: fail }) })
}
