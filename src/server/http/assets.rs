//! The built browser side: hashed files, precompressed and immutable, and the manifest that names them.

use std::path::Path;

use axum::Router;
use axum::http::{HeaderValue, Response, header};
use serde::Deserialize;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

/// The names of the current build's files below `/pkg`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Assets {
    pub js: String,
    pub wasm: String,
    pub css: String,
}

impl Assets {
    /// Reads the manifest of a build; none when there is no build, and pages come without style and script.
    #[must_use]
    pub fn read(site: &Path) -> Option<Self> {
        let path = site.join("pkg/manifest.json");
        let read = std::fs::read(&path).map_err(|error| error.to_string());
        match read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
            Ok(assets) => Some(assets),
            Err(error) => {
                tracing::warn!(path = %path.display(), error, "no built browser side; `cargo xtask serve` makes it");
                None
            }
        }
    }
}

pub(super) fn service<S: Clone + Send + Sync + 'static>(site: &Path) -> Router<S> {
    let files = ServeDir::new(site.join("pkg")).precompressed_br().precompressed_gzip();
    let immutable = |response: &Response<_>| {
        let value = HeaderValue::from_static("public, max-age=31536000, immutable");
        response.status().is_success().then_some(value)
    };
    Router::new()
        .fallback_service(files)
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, immutable))
}
