//! Errors of server functions, in the one shape and with their status.

use server_fn::codec::JsonEncoding;
use server_fn::error::{FromServerFnError, ServerFnErrorErr};

use crate::app::native::{ErrorBody, ErrorKind};

impl FromServerFnError for ErrorBody {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        let body = match &error {
            ServerFnErrorErr::Args(_) | ServerFnErrorErr::MissingArg(_) => {
                Self::new(ErrorKind::Malformed, format!("The request cannot be read: {error}"))
            }
            // On the server the request's body, in the browser the answer's.
            ServerFnErrorErr::Deserialization(_) if cfg!(feature = "ssr") => {
                Self::new(ErrorKind::Malformed, format!("The request cannot be read: {error}"))
            }
            ServerFnErrorErr::Request(_) | ServerFnErrorErr::Response(_) => {
                Self::new(ErrorKind::Offline, "The server cannot be reached.")
            }
            _ => Self::new(ErrorKind::Internal, error.to_string()),
        };
        set_status(body.error.kind.status());
        body
    }
}

#[cfg(not(feature = "ssr"))]
fn set_status(_: u16) {}

#[cfg(feature = "ssr")]
pub(super) fn set_status(status: u16) {
    use axum::http::StatusCode;
    use leptos::prelude::use_context;
    if let (Some(response), Ok(status)) = (use_context::<leptos_axum::ResponseOptions>(), StatusCode::from_u16(status))
    {
        response.set_status(status);
    }
}

/// Gives `result` its status: `good`, or that of its error.
#[cfg(feature = "ssr")]
pub(super) fn respond<T>(result: Result<T, ErrorBody>, good: u16) -> Result<T, ErrorBody> {
    set_status(result.as_ref().err().map_or(good, |body| body.error.kind.status()));
    result
}

/// The server, from the context that pages and server functions share.
#[cfg(feature = "ssr")]
pub(super) fn services() -> Result<crate::server::Services, ErrorBody> {
    leptos::prelude::use_context().ok_or_else(|| ErrorBody::new(ErrorKind::Internal, "The server is not in context."))
}
