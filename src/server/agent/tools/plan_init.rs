//! `plan_init`: proposes a plan, or a changed one; the learner's verdict decides.

use async_trait::async_trait;
use serde_json::json;

use crate::app::native::Plan;
use crate::app::native::plan::PLAN_INIT;
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct PlanInit {
    face: Face,
}

impl PlanInit {
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: PLAN_INIT.to_owned(),
            description:
                "Shows the learner a plan of 2 to 12 blocks to accept or send back. Keep the ids of blocks when you \
                          change a plan. Ends your turn until the verdict is there."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "goal": {"type": "string", "description": "What the learner will be able to do."},
                    "blocks": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "string", "description": "Short and stable across changes."},
                                "title": {"type": "string"},
                                "objective": {"type": "string"},
                                "concepts": {"type": "array", "items": {"type": "string"}},
                            },
                            "required": ["id", "title", "objective", "concepts"],
                        },
                    },
                },
                "required": ["title", "goal", "blocks"],
            }),
            ..ToolSpec::default()
        };
        let snippet = "propose a plan, or a changed one; the learner accepts it or sends it back";
        Self {
            face: Face {
                spec,
                label: "Plan",
                snippet,
                mode: Mode::Parallel,
                after: After::StopRun,
                replay: Replay::Again,
            },
        }
    }
}

#[async_trait]
impl Tool for PlanInit {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        Plan::from_args(&call.args).map_err(ToolError)?;
        Ok(Done::text("The plan is shown; the learner's verdict follows."))
    }
}
