//! What tests share: an application over an empty store, a model driven by hand, a provider, and readers of streams.

pub(crate) mod app;
pub(crate) mod dialect;
pub(crate) mod disk;
pub(crate) mod judge;
pub(crate) mod model;
pub(crate) mod provider;
pub(crate) mod reader;
pub(crate) mod report;

use std::time::Duration;

/// Waits for what must come; a test that would hang fails instead.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap_or_else(|_| panic!("{what} did not come"))
}
