//! What a tool is: its face to the model, its face to the learner, and its work.

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::native::event::ToolOutput;
use crate::app::native::{Block, Marker};
use crate::server::llm::ToolSpec;

/// How a tool stands to the others of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Runs beside the others.
    Parallel,
    /// Makes the whole batch run one call after the other.
    Sequential,
}

/// What a clean result of a tool means for its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The model goes on.
    GoOn,
    /// The run ends before steering is polled, whatever else was in the batch.
    StopRun,
}

/// What becomes of a call that a crash cut off, when its run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It reads or computes and changes nothing: it is made again.
    Again,
    /// It may have had its effect: the model is told that nobody knows.
    Never,
}

/// What a tool says of itself.
#[derive(Clone, Debug)]
pub struct Face {
    pub spec: ToolSpec,
    /// For the learner.
    pub label: &'static str,
    /// One line for the instructions.
    pub snippet: &'static str,
    pub mode: Mode,
    pub after: After,
    pub replay: Replay,
}

/// A result that stands: what the model and the record get, and the markers that follow it.
#[derive(Clone, Debug, Default)]
pub struct Done {
    pub output: ToolOutput,
    pub markers: Vec<Marker>,
}

impl Done {
    /// A result of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { output: ToolOutput { content: vec![Block::text(text)], details: None }, markers: Vec::new() }
    }
}

/// Why a call failed, in words that a model can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// One call at work.
pub struct Call {
    pub id: String,
    /// Validated arguments.
    pub args: Value,
    pub cancel: CancellationToken,
    pub updates: Updates,
}

/// Where a running tool reports what it has so far.
#[derive(Clone)]
pub struct Updates(pub(super) mpsc::UnboundedSender<(usize, ToolOutput)>, pub(super) usize);

impl Updates {
    /// Shows an intermediate result; reports after the end are ignored.
    pub fn send(&self, output: ToolOutput) {
        let _ = self.0.send((self.1, output));
    }
}

/// A tool of the agent. An `Err` becomes an error result; a call that outlives its limit or the abort's grace is dropped.
#[async_trait]
pub trait Tool: Send + Sync {
    fn face(&self) -> &Face;
    async fn execute(&self, call: Call) -> Result<Done, ToolError>;
}
