//! The `openai-completions` dialect: streamed chat completions, as OpenAI defined them and many servers speak them.

mod answer;
mod body;
mod cache;
mod chat;
mod chunk;
mod details;
mod lenient;
mod messages;
mod quirks;
mod reasoning;
mod routing;
mod think;

use std::collections::HashSet;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::catalog::Model;
use super::draft::call_ids;
use super::listen::{Answer, Clock, listen};
use super::transport::{Auth, Call, Transport};
use super::{Dialect, Request, StreamEvent};

use answer::Chat;
use quirks::Quirks;

/// Speaks with any server that offers `/chat/completions`.
#[derive(Clone)]
pub struct OpenAiCompletions {
    transport: Transport,
    clock: Clock,
}

impl OpenAiCompletions {
    #[must_use]
    pub fn new(transport: Transport, clock: Clock) -> Self {
        Self { transport, clock }
    }
}

impl Dialect for OpenAiCompletions {
    fn stream(&self, request: Request, cancel: CancellationToken) -> BoxStream<'static, StreamEvent> {
        let quirks = Quirks::of(&request.model);
        let call = call(&request, &quirks);
        let answer = answer(request.model, call_ids(&request.messages), (self.clock)());
        listen(self.transport.clone(), call, answer, cancel)
    }
}

/// What makes a message of this API's events. `ids` are those of earlier calls; `timestamp` is Unix time in ms.
pub(super) fn answer(model: Model, ids: HashSet<String>, timestamp: i64) -> impl Answer {
    let says_finish = Quirks::of(&model).finish_reason;
    Chat::new(model, says_finish, ids, timestamp)
}

fn call(request: &Request, quirks: &Quirks) -> Call {
    Call {
        url: format!("{}/chat/completions", request.model.base_url.trim_end_matches('/')),
        key: request.model.key.clone(),
        auth: Auth::Bearer,
        headers: body::headers(request, quirks),
        body: body::body(request, quirks).into(),
    }
}
