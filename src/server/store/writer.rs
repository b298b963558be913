//! The one task that writes: what has queued is committed as one transaction (group commit).

use std::sync::Arc;

use futures::future::BoxFuture;
use sqlx::sqlite::SqlitePool;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::StoreError;

/// Writes that one transaction holds at most.
const GROUP: usize = 256;

/// A write: runs inside a savepoint of its own, so that a refusal leaves the others of its group untouched.
type Body<T> = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send>;

/// Queues writes and awaits their commit.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Write>>,
    task: Arc<Mutex<Option<AbortOnDropHandle<()>>>>,
    pool: SqlitePool,
}

impl Writer {
    pub(super) fn start(pool: SqlitePool) -> Self {
        let (queue, writes) = mpsc::channel(1024);
        #[expect(clippy::disallowed_methods, reason = "the handle aborts with the writer, which owns it")]
        let task = AbortOnDropHandle::new(tokio::spawn(work(pool.clone(), writes)));
        Self { queue, task: Arc::new(Mutex::new(Some(task))), pool }
    }

    /// Runs `body` in the next group; its value comes back once the group is durable.
    pub(super) async fn write<T, F>(&self, body: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let write = Queued { body: Some(Box::new(body)), outcome: None, reply };
        let gone = |_| StoreError::NotKept("the store is closed".to_owned());
        self.queue.send(Box::new(write)).await.map_err(|_| StoreError::NotKept("the store is closed".to_owned()))?;
        answer.await.map_err(gone)?
    }

    /// Lets the queue run dry, ends the task and closes the file.
    pub(super) async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Box::new(Last { reply })).await.is_ok() {
            let _ = answer.await;
        }
        self.task.lock().await.take();
        self.pool.close().await;
    }
}

/// A queued write of any type.
trait Write: Send {
    /// Fails when the group's transaction is lost.
    fn apply<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Result<(), sqlx::Error>>;
    /// Tells the caller; `failure` when the group could not be committed.
    fn settle(self: Box<Self>, failure: Option<&str>);
}

struct Queued<T> {
    body: Option<Body<T>>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send + 'static> Write for Queued<T> {
    fn apply<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            if let Some(body) = self.body.take() {
                self.outcome = Some(in_savepoint(connection, body).await?);
            }
            Ok(())
        })
    }

    fn settle(self: Box<Self>, failure: Option<&str>) {
        let outcome = match (self.outcome, failure) {
            (Some(Ok(_)), Some(failure)) => Err(StoreError::NotKept(failure.to_owned())),
            (Some(outcome), _) => outcome,
            (None, failure) => Err(StoreError::NotKept(failure.unwrap_or("not reached").to_owned())),
        };
        // The caller may have gone away; the write stands all the same.
        let _ = self.reply.send(outcome);
    }
}

/// Stands at the end of the queue, to be told when everything before it is durable.
struct Last {
    reply: oneshot::Sender<()>,
}

impl Write for Last {
    fn apply<'a>(&'a mut self, _: &'a mut SqliteConnection) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async { Ok(()) })
    }

    fn settle(self: Box<Self>, _: Option<&str>) {
        let _ = self.reply.send(());
    }
}

async fn work(pool: SqlitePool, mut writes: mpsc::Receiver<Box<dyn Write>>) {
    let mut group = Vec::with_capacity(GROUP);
    while writes.recv_many(&mut group, GROUP).await > 0 {
        let failure = commit(&pool, &mut group).await.err().map(|error| error.to_string());
        if let Some(failure) = &failure {
            tracing::error!(%failure, "a group of writes was not kept");
        }
        for write in group.drain(..) {
            write.settle(failure.as_deref());
        }
    }
}

async fn commit(pool: &SqlitePool, group: &mut [Box<dyn Write>]) -> Result<(), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let outcome = in_transaction(&mut connection, group).await;
    if outcome.is_err() {
        // Where a full disk has left its transaction, nobody can say.
        let _ = connection.close().await;
    }
    outcome
}

async fn in_transaction(connection: &mut SqliteConnection, group: &mut [Box<dyn Write>]) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for write in group.iter_mut() {
        write.apply(&mut transaction).await?;
    }
    transaction.commit().await
}

/// Fails when the group's transaction is lost: SQLite has ended it by itself, and no write after this one may be made
/// outside of it.
async fn in_savepoint<T>(
    connection: &mut SqliteConnection,
    body: Body<T>,
) -> Result<Result<T, StoreError>, sqlx::Error> {
    let mut savepoint = connection.begin().await?;
    match body(&mut savepoint).await {
        Ok(value) => {
            savepoint.commit().await?;
            Ok(Ok(value))
        }
        Err(error) => {
            savepoint.rollback().await?;
            Ok(Err(error))
        }
    }
}
