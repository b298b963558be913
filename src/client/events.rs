//! The event source: the live events of a chat, until it is dropped.

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable};
use gloo_net::eventsource::futures::EventSource;
use wasm_bindgen_futures::spawn_local;

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
    task: AbortHandle,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows the stream at `url` and hands over what it tells.
pub fn follow(url: &str, mut tell: impl FnMut(Told) + 'static) -> Following {
    let (task, registration) = AbortHandle::new_pair();
    let url = url.to_owned();
    let reading = async move {
        let Ok(mut source) = EventSource::new(&url) else { return tell(Told::Lost) };
        let Ok(mut messages) = source.subscribe("message") else { return tell(Told::Lost) };
        // The browser would connect again by itself; the session decides instead, after it has asked where the chat is.
        while let Some(Ok((_, message))) = messages.next().await {
            let id = message.last_event_id().parse().ok();
            let data = message.data().as_string().unwrap_or_default();
            if let Ok(event) = serde_json::from_str(&data) {
                tell(Told::Event(id, Box::new(event)));
            }
        }
        drop(messages);
        source.close();
        tell(Told::Lost);
    };
    spawn_local(async move {
        let _ = Abortable::new(reading, registration).await;
    });
    Following { task }
}
