//! Checkpoints: what an open run has so far and the record has not, and what a new process makes of it.

use sqlx::SqliteConnection;

use super::{Claim, Store, StoreError, messages};
use crate::app::native::{AssistantMessage, Message, Seq, Stored};

/// The open message of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenMessage {
    pub chat: String,
    pub run: String,
    /// Where the record ends.
    pub position: Seq,
    /// The message as JSON.
    pub json: String,
}

/// A call that has ended: its result and the markers that follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Position of the answer that called.
    pub position: Seq,
    /// Place of the call among the answer's.
    pub nth: usize,
    pub messages: Vec<Message>,
}

/// What a run whose process died has left.
#[derive(Clone, Debug, PartialEq)]
pub struct Remains {
    pub record: Vec<Stored>,
    /// Resumptions so far.
    pub tries: u32,
    /// Where the record ended when the run was last resumed.
    pub resumed: Option<Seq>,
    /// True when the learner had stopped it.
    pub stopped: bool,
    /// What it was saying.
    pub open: Option<AssistantMessage>,
    pub outcomes: Vec<Outcome>,
}

/// What becomes of the claim of a run whose process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The run goes on; `forgiven` when its resumptions so far count no more.
    GoesOn {
        forgiven: bool,
    },
    Released,
}

/// What a new process makes of the remains.
#[derive(Clone, Debug, PartialEq)]
pub struct Mended {
    /// Appended in this order.
    pub append: Vec<Message>,
    pub onward: Onward,
}

/// Decides about the remains of a run.
pub type Mend = Box<dyn FnOnce(&Remains) -> Mended + Send + Sync>;

impl Store {
    /// Keeps open messages, in one transaction. Those of runs that hold their chat no more are left out.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn keep_open(&self, open: Vec<OpenMessage>) -> Result<(), StoreError> {
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    for OpenMessage { chat, run, position, json } in open {
                        sqlx::query(
                            "INSERT INTO checkpoints (chat, position, message)
                             SELECT chat, ?3, ?4 FROM runs WHERE chat = ?1 AND id = ?2
                             ON CONFLICT (chat) DO UPDATE SET position = excluded.position, message = excluded.message",
                        )
                        .bind(chat)
                        .bind(run)
                        .bind(position.0)
                        .bind(json)
                        .execute(&mut *connection)
                        .await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Keeps how a call ended, until the record has it.
    ///
    /// # Errors
    /// When the write is not kept.
    pub async fn keep_outcome(&self, chat: &str, run: &str, outcome: &Outcome) -> Result<(), StoreError> {
        let (chat, run, position) = (chat.to_owned(), run.to_owned(), outcome.position);
        let nth = i64::try_from(outcome.nth).unwrap_or(i64::MAX);
        let json = serde_json::to_string(&outcome.messages)?;
        self.writer
            .write(move |connection| {
                Box::pin(async move {
                    sqlx::query(
                        "INSERT OR REPLACE INTO outcomes (chat, position, nth, messages)
                         SELECT chat, ?3, ?4, ?5 FROM runs WHERE chat = ?1 AND id = ?2",
                    )
                    .bind(chat)
                    .bind(run)
                    .bind(position.0)
                    .bind(nth)
                    .bind(json)
                    .execute(connection)
                    .await?;
                    Ok(())
                })
            })
            .await
    }

    /// Makes of a dead run's remains what `mend` says, in one transaction, and says where the record ends now.
    ///
    /// # Errors
    /// `ClaimLost` when the run holds its chat no more; `Unreadable` when its record is damaged.
    pub async fn recover(&self, claim: &Claim, now: i64, mend: Mend) -> Result<(Onward, Seq), StoreError> {
        let claim = claim.clone();
        self.writer.write(move |connection| Box::pin(recover(connection, claim, now, mend))).await
    }
}

async fn recover(
    connection: &mut SqliteConnection,
    Claim { chat, run, .. }: Claim,
    now: i64,
    mend: Mend,
) -> Result<(Onward, Seq), StoreError> {
    let held: Option<(u32, Option<u32>, bool)> =
        sqlx::query_as("SELECT tries, resumed, stopped FROM runs WHERE chat = ? AND id = ?")
            .bind(&chat)
            .bind(&run)
            .fetch_optional(&mut *connection)
            .await?;
    let (tries, resumed, stopped) = held.ok_or(StoreError::ClaimLost)?;
    let record = messages::read(connection, &chat, Seq::START).await?;
    let last = record.last().map(|stored| stored.seq).unwrap_or_default();
    let open = open(connection, &chat, last).await?;
    let outcomes = outcomes(connection, &chat).await?;
    let mended = mend(&Remains { record, tries, resumed: resumed.map(Seq), stopped, open, outcomes });
    let appended = messages::append_all(connection, &chat, mended.append, now).await?;
    let forget: &[&str] = match mended.onward {
        Onward::Released => &["DELETE FROM runs WHERE chat = ?"],
        Onward::GoesOn { forgiven: false } => {
            &["DELETE FROM checkpoints WHERE chat = ?", "DELETE FROM outcomes WHERE chat = ?"]
        }
        Onward::GoesOn { forgiven: true } => &[
            "DELETE FROM checkpoints WHERE chat = ?",
            "DELETE FROM outcomes WHERE chat = ?",
            "UPDATE runs SET tries = 0 WHERE chat = ?",
        ],
    };
    for statement in forget {
        sqlx::query(statement).bind(&chat).execute(&mut *connection).await?;
    }
    Ok((mended.onward, appended.last().map_or(last, |stored| stored.seq)))
}

/// The open message that follows the record's `last`. One that cannot be read is none: the record stands without it.
async fn open(
    connection: &mut SqliteConnection,
    chat: &str,
    last: Seq,
) -> Result<Option<AssistantMessage>, StoreError> {
    let json: Option<String> = sqlx::query_scalar("SELECT message FROM checkpoints WHERE chat = ? AND position = ?")
        .bind(chat)
        .bind(last.0)
        .fetch_optional(connection)
        .await?;
    Ok(json.and_then(|json| readable(chat, &json)))
}

async fn outcomes(connection: &mut SqliteConnection, chat: &str) -> Result<Vec<Outcome>, StoreError> {
    let rows: Vec<(u32, u32, String)> =
        sqlx::query_as("SELECT position, nth, messages FROM outcomes WHERE chat = ? ORDER BY position, nth")
            .bind(chat)
            .fetch_all(connection)
            .await?;
    let read = |(position, nth, json): (u32, u32, String)| {
        Some(Outcome { position: Seq(position), nth: nth as usize, messages: readable(chat, &json)? })
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

fn readable<T: serde::de::DeserializeOwned>(chat: &str, json: &str) -> Option<T> {
    serde_json::from_str(json).inspect_err(|error| tracing::error!(%error, chat, "a checkpoint cannot be read")).ok()
}
