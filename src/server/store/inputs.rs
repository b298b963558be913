//! Inputs: accepted in one transaction, exactly once by their id.

use sqlx::SqliteConnection;

use super::records::Records;
use super::{Store, StoreError, messages, runs};
use crate::app::native::{Accepted, ErrorBody, ErrorDetail, ErrorKind, Message, Stored};

/// What is to become of an input, decided against the record as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Appended in this order.
    pub append: Vec<Message>,
    /// True when a run is due.
    pub run: bool,
}

/// What an input means for the runs that the server starts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// The learner is at work: steers that wait may wake the chat.
    Free,
    /// A stop: nothing starts by itself until the learner's next input.
    Held,
}

/// Decides about an input; a refusal changes nothing.
pub type Decide = Box<dyn FnOnce(&[Stored]) -> Result<Decision, ErrorBody> + Send + Sync>;

/// An input on its way in.
pub struct Offer {
    pub chat: String,
    /// The client's own id of the input, for sending it again.
    pub input_id: Option<String>,
    /// The id that the run gets if one is due.
    pub run_id: String,
    /// Unix time in ms.
    pub now: i64,
    pub wakes: Wakes,
    pub decide: Decide,
}

/// How an input was taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Acceptance {
    /// Now, with what was appended.
    New { accepted: Accepted, appended: Vec<Stored> },
    /// Earlier under the same id; nothing was done.
    Known(Accepted),
}

impl Store {
    /// Takes an input: a known id gets its first acceptance again; else the chat is claimed, the record is asked, and what
    /// `decide` says is appended.
    ///
    /// # Errors
    /// The outer one when the store fails; the inner one when the input is refused.
    pub async fn accept(&self, offer: Offer) -> Result<Result<Acceptance, ErrorBody>, StoreError> {
        // Read before, so that the writer reads only what comes in between; what is wrong with it is found there.
        let _ = self.ask(&offer.chat, |_| ()).await;
        let records = self.records.clone();
        self.writer.write(move |connection| Box::pin(accept(connection, records, offer))).await
    }
}

async fn accept(
    connection: &mut SqliteConnection,
    records: Records,
    offer: Offer,
) -> Result<Result<Acceptance, ErrorBody>, StoreError> {
    messages::exists(connection, &offer.chat).await?;
    if let Some(accepted) = known(connection, &offer).await? {
        return Ok(Ok(Acceptance::Known(accepted)));
    }
    if let Some(run) = runs::holder(connection, &offer.chat).await? {
        return Ok(Err(busy(run)));
    }
    let decide = offer.decide;
    let decided = records.ask_within(connection, &offer.chat, |record| {
        (decide(record), record.last().map(|stored| stored.seq).unwrap_or_default())
    });
    let (decision, position) = decided.await?;
    let decision = match decision {
        Ok(decision) => decision,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let appended = messages::append_all(connection, &offer.chat, decision.append, offer.now).await?;
    sqlx::query("UPDATE chats SET held = ?2 WHERE id = ?1 AND held <> ?2")
        .bind(&offer.chat)
        .bind(offer.wakes == Wakes::Held)
        .execute(&mut *connection)
        .await?;
    if decision.run {
        runs::insert(connection, &offer.chat, &offer.run_id, offer.now).await?;
    }
    let seq = appended.last().map_or(position, |stored| stored.seq);
    let accepted = Accepted { run_id: decision.run.then_some(offer.run_id), seq };
    if let Some(input_id) = offer.input_id {
        sqlx::query("INSERT INTO inputs (chat, input_id, accepted) VALUES (?, ?, ?)")
            .bind(&offer.chat)
            .bind(input_id)
            .bind(serde_json::to_string(&accepted)?)
            .execute(connection)
            .await?;
    }
    Ok(Ok(Acceptance::New { accepted, appended }))
}

async fn known(connection: &mut SqliteConnection, offer: &Offer) -> Result<Option<Accepted>, StoreError> {
    let Some(input_id) = &offer.input_id else { return Ok(None) };
    let accepted: Option<String> = sqlx::query_scalar("SELECT accepted FROM inputs WHERE chat = ? AND input_id = ?")
        .bind(&offer.chat)
        .bind(input_id)
        .fetch_optional(connection)
        .await?;
    Ok(accepted.map(|json| serde_json::from_str(&json)).transpose()?)
}

fn busy(run: String) -> ErrorBody {
    ErrorBody {
        error: ErrorDetail {
            run_id: Some(run),
            ..ErrorBody::new(ErrorKind::Busy, "The teacher is still at work in this chat.").error
        },
    }
}
