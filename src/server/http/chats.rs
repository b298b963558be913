//! `GET /api/chats` and `GET /api/chats/{id}`: the list, and one chat as of now.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::error::Refusal;
use crate::app::native::view::ChatSummary;
use crate::app::native::{ErrorBody, ErrorKind, Seq};
use crate::server::Services;

pub(super) async fn list(State(services): State<Services>) -> Result<Json<Vec<ChatSummary>>, Refusal> {
    Ok(Json(services.runs.chats().await?))
}

#[derive(Deserialize)]
pub(super) struct After {
    #[serde(default)]
    after: Seq,
}

/// The chat with its messages after `after`; 304 when it is what the client has (`If-None-Match`).
pub(super) async fn show(
    State(services): State<Services>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<After>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Path(id) = id.map_err(no_chat)?;
    let Query(After { after }) = query.map_err(malformed)?;
    let view = services.runs.view(&id, after).await?;
    let body = serde_json::to_string(&view).map_err(|error| ErrorBody::new(ErrorKind::Internal, error.to_string()))?;
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.trim_start_matches("W/") == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let headers = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::CONTENT_TYPE, "application/json".to_owned()),
    ];
    Ok((headers, body).into_response())
}

/// An id that is no text names no chat.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn no_chat(rejection: PathRejection) -> Refusal {
    Refusal(ErrorBody::new(ErrorKind::NotFound, rejection.body_text()))
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn malformed(rejection: QueryRejection) -> Refusal {
    Refusal(ErrorBody::new(ErrorKind::Malformed, rejection.body_text()))
}
