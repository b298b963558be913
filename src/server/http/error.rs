//! Errors as responses: the one JSON shape, with its status.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::app::native::{ErrorBody, ErrorKind};

/// An error on its way out.
pub(super) struct Refusal(pub(super) ErrorBody);

impl From<ErrorBody> for Refusal {
    fn from(body: ErrorBody) -> Self {
        Self(body)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.error.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0)).into_response()
    }
}

pub(super) async fn no_method() -> Refusal {
    Refusal(ErrorBody::new(ErrorKind::Method, "This route does not take that method."))
}

pub(super) async fn no_route() -> Refusal {
    Refusal(ErrorBody::new(ErrorKind::NotFound, "There is no such route."))
}
