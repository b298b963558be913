//! Requests of a client whose server may die at any moment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use learnharness::app::native::view::ChatView;
use learnharness::app::native::{Accepted, InputEvent};
use learnharness::app::transcript::scan::next::next;
use serde_json::json;

use super::house::{House, Moment};
use super::ledger::{Fault, Outcome, Shown};
use crate::support::model::line;

/// How long the news of a kill may take to the one who lost a connection by it.
pub(super) const NEWS: Duration = Duration::from_secs(30);
/// Between two tries of what the server could not store.
const AGAIN: Duration = Duration::from_millis(100);

/// What a server answered, in which epoch of its record.
struct Answer {
    status: u16,
    body: String,
    epoch: u32,
}

#[derive(Clone)]
pub(super) struct Client {
    pub(super) house: Arc<House>,
    pub(super) http: reqwest::Client,
}

/// The chat is not there (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

impl Client {
    pub(super) fn new(house: Arc<House>) -> Self {
        // Each life of the server has an address of its own, so that no connection outlives its process.
        Self { house, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// Makes a chat.
    pub(super) async fn create(&self) -> String {
        let make = |http: &reqwest::Client, addr| http.post(format!("http://{addr}/api/chats")).json(&json!({}));
        let Answer { status, body, .. } = loop {
            match self.until_answered(make).await {
                Answer { status: 507, .. } => tokio::time::sleep(AGAIN).await,
                answer => break answer,
            }
        };
        let made: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let Some(id) = made["id"].as_str() else { panic!("no chat was made: {status} {body}") };
        self.house.ledger.open(id);
        id.to_owned()
    }

    /// The chat as of now, as it came.
    pub(super) async fn show(&self, chat: &str) -> Result<String, Gone> {
        let make = |http: &reqwest::Client, addr| http.get(format!("http://{addr}/api/chats/{chat}"));
        let Answer { status, body, .. } = self.until_answered(make).await;
        match status {
            200 => Ok(body),
            404 => Err(Gone),
            _ => panic!("{chat} was not shown: {status} {body}"),
        }
    }

    /// How a chat stands, in a line for a person.
    pub(super) async fn describe(&self, chat: &str) -> String {
        let Ok(body) = self.show(chat).await else { return format!("{chat} is gone") };
        let view: ChatView = serde_json::from_str(&body).unwrap();
        let last: Vec<String> = view.messages.iter().rev().take(6).map(|stored| line(&stored.message)).collect();
        let (running, owed) = (view.running, next(&view.messages));
        format!("{chat}: running {running}, {owed:?}, the last first: {}", last.join(" | "))
    }

    /// Holds a chat's record against what is known of it.
    pub(super) async fn audit(&self, chat: &str) -> Result<(), Gone> {
        let known = self.house.ledger.known(chat);
        let body = self.show(chat).await?;
        let shown: Shown = serde_json::from_str(&body).unwrap();
        self.house.ledger.audit(chat, &known, &shown);
        Ok(())
    }

    /// The same, with the text that readers saw: for when nobody writes any more.
    pub(super) async fn audit_at_the_end(&self, chat: &str) -> Result<(), Gone> {
        self.audit(chat).await?;
        let body = self.show(chat).await?;
        self.house.ledger.audit_text(chat, &serde_json::from_str(&body).unwrap());
        Ok(())
    }

    /// Sends an input until there is an answer to it, with the same id each time.
    pub(super) async fn deliver(&self, chat: &str, token: &str, input: &InputEvent) -> Result<(), Gone> {
        let body = json!({"chatId": chat, "inputId": token, "input": input});
        let make = |http: &reqwest::Client, addr| http.post(format!("http://{addr}/api/chat")).json(&body);
        let ledger = &self.house.ledger;
        loop {
            let Answer { status, body, epoch } = self.until_answered(make).await;
            match status {
                202 => {
                    let accepted: Accepted = serde_json::from_str(&body).unwrap();
                    ledger.settle(epoch, chat, token, &Outcome::Accepted(accepted));
                    self.house.observe(Moment::Accepted);
                    return Ok(());
                }
                404 => return Err(Gone),
                409 | 422 => {
                    ledger.settle(epoch, chat, token, &Outcome::Refused);
                    return Ok(());
                }
                507 => {
                    ledger.postpone(chat, token, Outcome::Refused);
                    ledger.count(|figures| figures.refused += 1);
                    self.audit(chat).await?;
                    tokio::time::sleep(AGAIN).await;
                    ledger.postpone(chat, token, Outcome::Unknown);
                }
                _ => {
                    ledger.fault(Fault::Server, format!("{chat}: an input was answered {status} {body}"));
                    return Ok(());
                }
            }
        }
    }

    /// Sends the request that `make` makes, again in each life of the server, until one answers: status and body.
    async fn until_answered(
        &self,
        make: impl Fn(&reqwest::Client, SocketAddr) -> reqwest::RequestBuilder + Send + Sync,
    ) -> Answer {
        loop {
            let (nth, addr, epoch) = self.house.up().await;
            let answer = async {
                let response = make(&self.http, addr).send().await?;
                let status = response.status().as_u16();
                Ok::<_, reqwest::Error>(Answer { status, body: response.text().await?, epoch })
            };
            match answer.await {
                Ok(answer) => return answer,
                Err(error) => {
                    if self.house.ended(nth, NEWS).await.is_none() {
                        self.house.ledger.fault(Fault::Server, format!("a request broke off by itself: {error}"));
                    }
                }
            }
        }
    }
}
