//! Asking a server for a piece of JSON that is no answer of a model: bounded in time and size, and without redirects, so
//! that a key stays where it belongs.

use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use super::catalog::Key;

/// How much is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From the request to the end of its answer.
    pub time: Duration,
    /// Bytes of the answer.
    pub size: usize,
}

/// Asks servers.
#[derive(Clone, Debug)]
pub(super) struct Getter {
    http: Client,
    bounds: Bounds,
}

impl Getter {
    /// For servers on the internet: by way of the proxy that the environment names.
    pub(super) fn far(bounds: Bounds) -> Result<Self, String> {
        Self::over(Client::builder(), bounds)
    }

    /// For servers on this machine or nearby.
    pub(super) fn near(bounds: Bounds) -> Result<Self, String> {
        Self::over(Client::builder().no_proxy(), bounds)
    }

    fn over(builder: reqwest::ClientBuilder, bounds: Bounds) -> Result<Self, String> {
        let builder = builder
            .timeout(bounds.time)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("learnharness/", env!("CARGO_PKG_VERSION")));
        Ok(Self { http: builder.build().map_err(|error| error.to_string())?, bounds })
    }

    pub(super) async fn get(&self, url: &str, key: Option<&Key>) -> Result<Value, String> {
        self.send(self.http.get(url), key).await
    }

    pub(super) async fn post(&self, url: &str, key: Option<&Key>, body: &Value) -> Result<Value, String> {
        self.send(self.http.post(url).json(body), key).await
    }

    async fn send(&self, request: RequestBuilder, key: Option<&Key>) -> Result<Value, String> {
        let request = match key {
            Some(Key(key)) => request.bearer_auth(key),
            None => request,
        };
        let mut response = request.send().await.map_err(|error| self.words(&error))?;
        if !response.status().is_success() {
            return Err(format!("it answered {}", response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.words(&error))? {
            if body.len() + bytes.len() > self.bounds.size {
                return Err(format!("its answer is longer than {} bytes", self.bounds.size));
            }
            body.extend_from_slice(&bytes);
        }
        serde_json::from_slice(&body).map_err(|_| "its answer is not JSON".to_owned())
    }

    /// What went wrong, without the address.
    fn words(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("it did not answer within {} s", self.bounds.time.as_secs_f64());
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        if error.is_connect() { cause.to_string() } else { "it closed the connection".to_owned() }
    }
}
