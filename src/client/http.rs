//! Reads over HTTP, with errors in the one shape.

use gloo_net::http::Request;
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;
use web_sys::AbortSignal;

use crate::app::native::{ErrorBody, ErrorKind};

/// Milliseconds until a server that does not answer counts as unreachable.
const PATIENCE_MS: u32 = 10_000;

/// Gets JSON from a path of this server.
///
/// # Errors
/// What the server says, or `offline` when it cannot be reached.
pub fn get<T: DeserializeOwned>(path: &str) -> impl Future<Output = Result<T, ErrorBody>> + Send + use<T> {
    // Resources want futures that could move between threads; in the browser there is one.
    SendWrapper::new(read(path.to_owned()))
}

async fn read<T: DeserializeOwned>(path: String) -> Result<T, ErrorBody> {
    let offline = |_| ErrorBody::new(ErrorKind::Offline, "The server cannot be reached.");
    let limit = AbortSignal::timeout_with_u32(PATIENCE_MS);
    let response = Request::get(&path).abort_signal(Some(&limit)).send().await.map_err(offline)?;
    let text = response.text().await.map_err(offline)?;
    let unread =
        |error: serde_json::Error| ErrorBody::new(ErrorKind::Internal, format!("The server's answer: {error}"));
    if response.ok() {
        serde_json::from_str(&text).map_err(unread)
    } else {
        Err(serde_json::from_str(&text).map_err(unread)?)
    }
}
