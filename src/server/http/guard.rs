//! The guard before every route: host, origin, token, media type and length.
//!
//! A server on loopback is reachable by every page that the browser shows; what keeps foreign pages out are the exact host
//! (against rebinding) and the origin (against forged requests).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::BODY_LIMIT;
use super::error::Refusal;
use crate::app::native::{ErrorBody, ErrorKind};
use crate::server::Services;

/// How long a request's body may take to come.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The cookie that carries the access token.
const COOKIE: &str = "learnharness_token";

pub(super) async fn guard(State(services): State<Services>, mut request: Request, next: Next) -> Response {
    if let Err(refusal) = host(&services, request.headers()) {
        return refusal.into_response();
    }
    if let Some(token) = &services.config.token {
        if request.uri().path() == "/login" {
            return login(&token.0, request.uri());
        }
        if request.uri().path() != "/health" && !has_token(request.headers(), &token.0) {
            let words = "Open /login?token=… with the access token first.";
            return Refusal(ErrorBody::new(ErrorKind::Token, words)).into_response();
        }
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        if let Err(refusal) = change(request.method(), request.headers()) {
            return refusal.into_response();
        }
        request = match bounded(request).await {
            Ok(request) => request,
            Err(refusal) => return refusal.into_response(),
        };
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

/// The host must be one of ours, letter for letter: another name that resolves here is an attack.
fn host(services: &Services, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut given = headers.get_all(header::HOST).iter();
    let (first, second) = (given.next(), given.next());
    let given = first.filter(|_| second.is_none()).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let port = services.config.addr.port();
    let ours = [
        services.config.addr.to_string(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ];
    // Bound to every address, the owner's names for the machine cannot be known; the token guards instead.
    if ours.iter().any(|host| host == given) || services.config.addr.ip().is_unspecified() {
        return Ok(());
    }
    Err(forbidden("This server does not answer to that host name."))
}

/// What a request that changes something must show.
fn change(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // What cannot be read is as foreign as what is.
    let told = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    if let Some(origin) = told("origin") {
        let host = text(header::HOST).unwrap_or_default();
        let same = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if same != Some(host) {
            return Err(forbidden("This request comes from another site."));
        }
    }
    if told("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(forbidden("This request comes from another site."));
    }
    let media = text(header::CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default();
    // No other method has a route that reads a body.
    if method == Method::POST && !media.trim().eq_ignore_ascii_case("application/json") {
        return Err(Refusal(ErrorBody::new(ErrorKind::MediaType, "This route takes application/json only.")));
    }
    let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    if length.is_some_and(|length| length > BODY_LIMIT) {
        return Err(too_large());
    }
    Ok(())
}

/// Reads the body whole, because a length that was announced may be wrong and need not be announced at all.
async fn bounded(request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_LIMIT)).await;
    let read = read.map_err(|_| Refusal(ErrorBody::new(ErrorKind::Malformed, "The request did not end.")))?;
    let bytes = read.map_err(|error| {
        match std::error::Error::source(&error) {
            Some(source) if source.is::<http_body_util::LengthLimitError>() => return too_large(),
            Some(_) | None => {}
        }
        Refusal(ErrorBody::new(ErrorKind::Malformed, "The request's body cannot be read."))
    })?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

fn too_large() -> Refusal {
    let words = format!("The request is longer than {} kB.", BODY_LIMIT / 1024);
    Refusal(ErrorBody::new(ErrorKind::TooLarge, words))
}

fn forbidden(words: &str) -> Refusal {
    Refusal(ErrorBody::new(ErrorKind::Forbidden, words))
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

/// Takes the token once from the address and keeps it in a cookie that scripts cannot read.
fn login(token: &str, uri: &Uri) -> Response {
    let given = Query::<Login>::try_from_uri(uri).map(|Query(login)| login.token).unwrap_or_default();
    if !same(&given, token) {
        return Refusal(ErrorBody::new(ErrorKind::Token, "That is not the access token.")).into_response();
    }
    let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000");
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let bearer = text(header::AUTHORIZATION).strip_prefix("Bearer ").is_some_and(|given| same(given, token));
    let cookies = text(header::COOKIE);
    let pair =
        |cookie: &str| cookie.trim().split_once('=').is_some_and(|(name, value)| name == COOKIE && same(value, token));
    bearer || cookies.split(';').any(pair)
}

/// Compares without telling by its time how much was right.
fn same(given: &str, token: &str) -> bool {
    given.len() == token.len()
        && given.bytes().zip(token.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}
