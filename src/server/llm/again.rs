//! A request that was made before, sent as it is: no retry, nothing built anew.

use std::collections::HashSet;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::catalog::{Api, Model};
use super::error::ProviderError;
use super::listen::follow;
use super::transport::{Call, Transport};
use super::{StreamEvent, anthropic_messages, openai_completions};
use crate::server::clock::now_ms;

/// The status of the response and what the dialect of `model` makes of it.
///
/// # Errors
/// When there was no answer.
pub async fn send(
    transport: &Transport,
    model: Model,
    call: Call,
) -> Result<(u16, BoxStream<'static, StreamEvent>), ProviderError> {
    let reply = transport.send(&call).await?;
    let (status, cancel) = (reply.status(), CancellationToken::new());
    let events = match model.api {
        Api::AnthropicMessages => {
            follow(transport, call, reply, anthropic_messages::answer(model, HashSet::new(), now_ms()), cancel)
        }
        Api::OpenAiCompletions | Api::Lesson => {
            follow(transport, call, reply, openai_completions::answer(model, HashSet::new(), now_ms()), cancel)
        }
    };
    Ok((status, events))
}
