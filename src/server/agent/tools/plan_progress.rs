//! `plan_progress`: reports a block of the plan as started or done.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use crate::app::native::Marker;
use crate::app::native::plan::{BlockStatus, PLAN_PROGRESS};
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct PlanProgress {
    face: Face,
}

impl PlanProgress {
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: PLAN_PROGRESS.to_owned(),
            description: "Marks a block of the accepted plan as started or done, for the learner's progress list."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "blockId": {"type": "string"},
                    "status": {"type": "string", "enum": ["started", "done"]},
                },
                "required": ["blockId", "status"],
            }),
            ..ToolSpec::default()
        };
        let snippet = "mark a block of the plan as started or done";
        Self {
            face: Face {
                spec,
                label: "Progress",
                snippet,
                mode: Mode::Parallel,
                after: After::GoOn,
                replay: Replay::Again,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    block_id: String,
    status: BlockStatus,
}

#[async_trait]
impl Tool for PlanProgress {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        let Args { block_id, status } =
            serde_json::from_value(call.args).map_err(|error| ToolError(error.to_string()))?;
        let text = match status {
            BlockStatus::Started => format!("Block {block_id} is started."),
            BlockStatus::Done => format!("Block {block_id} is done."),
            BlockStatus::Open => return Err(ToolError("The status is started or done.".to_owned())),
        };
        Ok(Done { markers: vec![Marker::PlanBlock { block_id, status }], ..Done::text(text) })
    }
}
