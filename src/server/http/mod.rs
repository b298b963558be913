//! The HTTP surface: every route in one list, behind one guard.

mod assets;
mod chats;
mod error;
mod guard;
mod health;
mod stream;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::get;
use leptos::prelude::LeptosOptions;
use tower_http::compression::CompressionLayer;

use super::Services;

pub use assets::Assets;

/// What routes share.
#[derive(Clone)]
pub struct App {
    pub services: Services,
    pub leptos: LeptosOptions,
}

impl FromRef<App> for Services {
    fn from_ref(app: &App) -> Self {
        app.services.clone()
    }
}

impl FromRef<App> for LeptosOptions {
    fn from_ref(app: &App) -> Self {
        app.leptos.clone()
    }
}

/// Bytes that a request body may have.
const BODY_LIMIT: usize = 512 * 1024;

/// The whole application. Server functions (`POST /api/chats`, `/api/chats/delete`,
/// `/api/chats/restore`, `/api/chat`, `/api/activity/abort`) come with the pages.
pub fn app(services: Services) -> Router {
    let app = App { leptos: crate::app::serve::options(&services.config.site), services };
    let routes = Router::new()
        .route("/health", get(health::get))
        .route("/api/chats", get(chats::list))
        .route("/api/chats/{id}", get(chats::show))
        .route("/api/chats/{id}/stream", get(stream::get))
        .route("/api", axum::routing::any(error::no_route))
        .route("/api/", axum::routing::any(error::no_route))
        .route("/api/{*rest}", axum::routing::any(error::no_route))
        .nest_service("/pkg", assets::service(&app.services.config.site));
    crate::app::serve::mount(routes, &app)
        .method_not_allowed_fallback(error::no_method)
        .layer(CompressionLayer::new())
        .layer(axum::middleware::from_fn_with_state(app.services.clone(), guard::guard))
        .with_state(app)
}
