//! Who is let in: host, origin, media type, length and access token, on every route.

use axum::body::Body;
use axum::http::header;
use serde_json::json;

use crate::support::app::{Reply, TestApp};

/// Makes a chat with these headers instead of a page's own; an empty value leaves the header out.
async fn make(app: &TestApp, headers: &[(&str, &str)]) -> Reply {
    let mut request = axum::http::Request::builder().method("POST").uri("/api/chats");
    let given = |name: &str| headers.iter().any(|(other, _)| *other == name);
    if !given("host") {
        request = request.header(header::HOST, app.addr.to_string());
    }
    if !given("content-type") {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(*name, *value);
    }
    app.send(request.body(Body::from("{}")).unwrap()).await
}

#[tokio::test]
async fn only_our_own_names_are_answered() {
    let app = TestApp::new().await;
    for host in ["127.0.0.1:3004", "localhost:3004", "[::1]:3004"] {
        assert_eq!(make(&app, &[("host", host)]).await.status, 201, "{host}");
    }
    for host in ["", "evil.example", "evil.example:3004", "127.0.0.1", "127.0.0.1:3005", "localhost.evil.example:3004"]
    {
        let reply = make(&app, &[("host", host)]).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (403, "forbidden"), "{host}");
    }
    // Reading is guarded as well: a rebound name must not see a lesson.
    let request = axum::http::Request::get("/api/chats").header(header::HOST, "evil.example");
    assert_eq!(app.send(request.body(Body::empty()).unwrap()).await.status, 403);
}

#[tokio::test]
async fn a_change_that_another_site_asks_for_is_refused() {
    let app = TestApp::new().await;
    let check = async |headers: &[(&str, &str)], status: u16| {
        assert_eq!(make(&app, headers).await.status, status, "{headers:?}");
    };
    check(&[("origin", "http://127.0.0.1:3004"), ("sec-fetch-site", "same-origin")], 201).await;
    check(&[("sec-fetch-site", "none")], 201).await;
    check(&[("origin", "http://evil.example")], 403).await;
    check(&[("origin", "http://127.0.0.1:3005")], 403).await;
    check(&[("origin", "http://localhost:3004")], 403).await;
    check(&[("origin", "null")], 403).await;
    check(&[("origin", "")], 201).await;
    check(&[("sec-fetch-site", "cross-site")], 403).await;
    check(&[("sec-fetch-site", "same-site")], 403).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_as_foreign_as_another_site_and_two_hosts_are_none() {
    let app = TestApp::new().await;
    let unreadable = header::HeaderValue::from_bytes(b"\xff").unwrap();
    for name in ["origin", "sec-fetch-site"] {
        let request = app.request("POST", "/api/chats").header(header::CONTENT_TYPE, "application/json");
        let request = request.header(name, unreadable.clone()).body(Body::from("{}")).unwrap();
        assert_eq!(app.send(request).await.status, 403, "{name}");
    }
    let request = app.request("GET", "/api/chats").header(header::HOST, "evil.example");
    assert_eq!(app.send(request.body(Body::empty()).unwrap()).await.status, 403);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_malformed_and_not_too_long() {
    let app = TestApp::new().await;
    let broken = futures::stream::iter([Ok("{"), Err(std::io::Error::other("gone"))]);
    let request = app.request("POST", "/api/chats").header(header::CONTENT_TYPE, "application/json");
    let reply = app.send(request.body(Body::from_stream(broken)).unwrap()).await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (400, "malformed"));
}

#[tokio::test]
async fn what_a_learner_writes_is_nothing_but_text_in_the_pages_title() {
    let app = TestApp::new().await;
    let chat = app.chat().await;
    app.text(&chat, "</title><h1>HTML</h1> & more").await;
    app.model.reply("Well.").await;
    let page = app.get(&format!("/chat/{chat}")).await.text;
    assert!(page.contains("<title>&lt;/title>&lt;h1>HTML&lt;/h1> &amp; more"), "{page}");
    assert!(!page.contains("<h1>HTML"), "{page}");
}

#[tokio::test]
async fn every_route_that_changes_something_is_guarded() {
    let app = TestApp::new().await;
    for path in ["/api/chats", "/api/chat", "/api/activity/abort"] {
        let request = app.request("POST", path).header(header::CONTENT_TYPE, "application/json");
        let request = request.header(header::ORIGIN, "http://evil.example").body(Body::from("{}")).unwrap();
        let reply = app.send(request).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (403, "forbidden"), "{path}");
    }
}

#[tokio::test]
async fn what_changes_something_is_json() {
    let app = TestApp::new().await;
    for media in ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"] {
        let reply = make(&app, &[("content-type", media)]).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (415, "media-type"), "{media}");
    }
    for media in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(make(&app, &[("content-type", media)]).await.status, 201, "{media}");
    }
}

#[tokio::test]
async fn no_answer_invites_other_sites() {
    let app = TestApp::new().await;
    let reply = app.get("/api/chats").await;
    assert!(!reply.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    assert_eq!(reply.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(reply.headers[header::X_FRAME_OPTIONS], "DENY");
    let preflight = app.request("OPTIONS", "/api/chat").header(header::ORIGIN, "http://evil.example");
    let reply = app.send(preflight.body(Body::empty()).unwrap()).await;
    assert!(reply.status.is_client_error(), "{}", reply.status);
    assert!(!reply.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn beyond_loopback_nothing_is_seen_without_the_token() {
    let app = TestApp::with_token("10.1.2.3:3004", "s3cret").await;
    let get = async |path: &str, name: header::HeaderName, value: &str| {
        app.send(app.request("GET", path).header(name, value).body(Body::empty()).unwrap()).await.status
    };
    let reply = app.get("/api/chats").await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (401, "token"));
    assert_eq!(app.get("/").await.status, 401);
    assert_eq!(app.get("/health").await.status, 200);
    for wrong in ["", "s3cre", "s3cret2", "S3CRET"] {
        assert_eq!(get("/api/chats", header::AUTHORIZATION, &format!("Bearer {wrong}")).await, 401, "{wrong}");
        assert_eq!(get("/api/chats", header::COOKIE, &format!("learnharness_token={wrong}")).await, 401, "{wrong}");
    }
    assert_eq!(get("/api/chats", header::AUTHORIZATION, "Bearer s3cret").await, 200);
    assert_eq!(get("/api/chats", header::COOKIE, "a=b; learnharness_token=s3cret").await, 200);
    assert_eq!(make(&app, &[("authorization", "Bearer s3cret")]).await.status, 201);
    assert_eq!(make(&app, &[]).await.status, 401);
}

#[tokio::test]
async fn the_token_is_shown_once_and_then_lives_in_a_cookie_that_scripts_cannot_read() {
    let app = TestApp::with_token("10.1.2.3:3004", "s3cret").await;
    for wrong in ["/login", "/login?token=", "/login?token=s3cre", "/login?other=s3cret"] {
        let reply = app.get(wrong).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (401, "token"), "{wrong}");
        assert!(!reply.headers.contains_key(header::SET_COOKIE));
    }
    let reply = app.get("/login?token=s3cret").await;
    assert_eq!((reply.status.as_u16(), reply.headers[header::LOCATION].to_str().unwrap()), (303, "/"));
    let cookie = reply.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    let home = app.request("GET", "/api/chats").header(header::COOKIE, pair).body(Body::empty()).unwrap();
    assert_eq!(app.send(home).await.status, 200);
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_have_the_shape_of_all_errors() {
    let app = TestApp::new().await;
    for path in ["/api/nothing", "/api", "/api/"] {
        let reply = app.get(path).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (404, "not-found"), "{path}");
    }
    let reply = app.post("/api/chats/x/stream", &json!({})).await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (405, "method"));
    let reply = app.get("/api/chat").await;
    assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (405, "method"));
    for method in ["PUT", "PATCH", "DELETE"] {
        let reply = app.send(app.request(method, "/api/chats").body(Body::empty()).unwrap()).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (405, "method"), "{method}");
    }
}

#[tokio::test]
async fn an_address_that_cannot_be_read_has_the_shape_of_all_errors() {
    let app = TestApp::new().await;
    for path in ["/api/chats/%ff", "/api/chats/%ff/stream"] {
        let reply = app.get(path).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (404, "not-found"), "{path}");
    }
    for query in ["after=x", "after=-1", "follow=2", "follow=yes", "updates=some"] {
        let reply = app.get(&format!("/api/chats/any/stream?{query}")).await;
        assert_eq!((reply.status.as_u16(), reply.kind().as_str()), (400, "malformed"), "{query}");
    }
}
