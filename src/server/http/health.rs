//! `GET /health`: answers once the server takes requests.

pub(super) async fn get() -> &'static str {
    "ok\n"
}
