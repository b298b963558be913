//! `GET /api/chats/{id}/stream`: the events of a chat as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use async_stream::stream;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde::Deserialize;

use super::chats::{malformed, no_chat};
use super::error::Refusal;
use crate::app::native::{ErrorBody, ErrorKind, Seq};
use crate::server::Services;
use crate::server::runs::{From, Updates};

/// Comments keep proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
pub(super) struct Options {
    after: Option<Seq>,
    #[serde(default)]
    updates: Form,
    #[serde(default)]
    follow: Follow,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Full,
    Delta,
}

/// Whether the stream goes on after the chat has settled.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum Follow {
    #[default]
    #[serde(rename = "0")]
    No,
    #[serde(rename = "1")]
    Yes,
}

pub(super) async fn get(
    State(services): State<Services>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Path(id) = id.map_err(no_chat)?;
    let Query(options) = query.map_err(malformed)?;
    let from = match (last_event_id(&headers)?, options.after) {
        (Some(seq), _) | (None, Some(seq)) => From::After(seq),
        (None, None) => From::OpenRun,
    };
    let updates = match options.updates {
        Form::Full => Updates::Full,
        Form::Delta => Updates::Delta,
    };
    let follow = options.follow == Follow::Yes;
    let items = services.runs.attach(&id, from, updates, follow).await?;
    let events = stream! {
        let mut items = std::pin::pin!(items);
        let mut last = None;
        while let Some(item) = items.next().await {
            last = Some((item.position, item.settled));
            yield Ok::<_, Infallible>(Event::default().id(item.position.to_string()).data(item.json));
        }
        // A stream that was cut off must not look like one that is done.
        if let Some((position, true)) = last && !follow {
            yield Ok(Event::default().id(position.to_string()).data("[DONE]"));
        }
    };
    let quiet = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((quiet, Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))).into_response())
}

/// `Last-Event-ID`, which a browser sends when it connects again.
fn last_event_id(headers: &HeaderMap) -> Result<Option<Seq>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok());
    seq.map(Some).ok_or_else(|| Refusal(ErrorBody::new(ErrorKind::Malformed, "Last-Event-ID is not a position.")))
}
