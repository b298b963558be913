//! Mounts the pages on the server: the document around them, their routes, and the headers that go with a page.

use std::path::Path;

use axum::Router;
use axum::http::{HeaderValue, header};
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list};
use leptos_meta::MetaTags;

use super::pages::App;
use crate::server::Services;
use crate::server::http::{App as State, Assets};

/// What leptos needs to know of the build.
#[must_use]
pub fn options(site: &Path) -> LeptosOptions {
    LeptosOptions::builder().output_name("learnharness").site_root(site.to_string_lossy().into_owned()).build()
}

/// Adds the pages and the server functions to the routes.
pub fn mount(routes: Router<State>, state: &State) -> Router<State> {
    let services = state.services.clone();
    let context = move || provide_context(services.clone());
    let fallback = state.services.clone();
    routes.leptos_routes_with_context(state, generate_route_list(App), context, shell).fallback(
        leptos_axum::file_and_error_handler_with_context::<State, _>(
            move || provide_context(fallback.clone()),
            |_: LeptosOptions| shell(),
        ),
    )
}

/// The document around every page.
fn shell() -> impl IntoView {
    secure();
    let assets = use_context::<Services>().and_then(|services| services.assets);
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" href="data:,"/>
                {assets.map(links)}
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// The style, and the script that starts the browser side.
fn links(assets: Assets) -> impl IntoView {
    let Assets { js, wasm, css } = assets;
    let start = format!(
        "import init, {{ hydrate }} from '/pkg/{js}';\n\
         init({{ module_or_path: '/pkg/{wasm}' }}).then(() => hydrate());"
    );
    view! {
        <link rel="stylesheet" href=format!("/pkg/{css}")/>
        <link rel="modulepreload" href=format!("/pkg/{js}") nonce=use_nonce()/>
        <link rel="preload" href=format!("/pkg/{wasm}") r#as="fetch" r#type="application/wasm" crossorigin="anonymous"/>
        <script type="module" nonce=use_nonce() inner_html=start></script>
    }
}

/// Nothing runs, loads or frames but what this page brings.
fn secure() {
    let Some(response) = use_context::<ResponseOptions>() else { return };
    let nonce = use_nonce().map(|nonce| nonce.to_string()).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}
