//! The `anthropic-messages` dialect: Anthropic's own API, and servers that speak it.

mod answer;
mod body;
mod event;
mod messages;
mod thinking;

use std::collections::HashSet;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::catalog::Model;
use super::draft::call_ids;
use super::listen::{Answer, Clock, listen};
use super::transport::{Auth, Call, Transport};
use super::{Dialect, Request, StreamEvent, js};

use answer::Said;

/// Speaks with any server that offers `/v1/messages`.
#[derive(Clone)]
pub struct AnthropicMessages {
    transport: Transport,
    clock: Clock,
}

impl AnthropicMessages {
    #[must_use]
    pub fn new(transport: Transport, clock: Clock) -> Self {
        Self { transport, clock }
    }
}

impl Dialect for AnthropicMessages {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let call = call(&request);
        let answer = answer(request.model, call_ids(&request.messages), (self.clock)());
        listen(self.transport.clone(), call, answer, cancel)
    }
}

/// What makes a message of this API's events. `ids` are those of earlier calls; `timestamp` is Unix time in ms.
pub(super) fn answer(model: Model, ids: HashSet<String>, timestamp: i64) -> impl Answer {
    Said::new(model, ids, timestamp)
}

fn call(request: &Request) -> Call {
    // People write the address with and without the version.
    let base = request.model.base_url.trim_end_matches('/').trim_end_matches("/v1");
    Call {
        url: format!("{base}/v1/messages"),
        key: request.model.key.clone(),
        auth: Auth::ApiKey,
        headers: body::headers(request),
        body: js::json(&body::body(request)).into(),
    }
}
