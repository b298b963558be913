//! `probe_done`: ends the probing with an assessment; the teacher takes over.

use async_trait::async_trait;
use serde_json::json;

use crate::app::native::marker::Assessment;
use crate::app::native::plan::PROBE_DONE;
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct ProbeDone {
    face: Face,
}

impl ProbeDone {
    pub(super) fn new() -> Self {
        let concepts =
            |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
        let spec = ToolSpec {
            name: PROBE_DONE.to_owned(),
            description: "Ends the probe. The teacher gets the assessment and proposes a plan.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "assessment": {
                        "type": "object",
                        "properties": {
                            "known": concepts("Concepts that the learner has."),
                            "shaky": concepts("Concepts that the learner half has."),
                            "unknown": concepts("Concepts that the learner lacks."),
                            "goal": {"type": "string", "description": "What the learner wants, in one sentence."},
                        },
                        "required": ["known", "shaky", "unknown", "goal"],
                    },
                },
                "required": ["assessment"],
            }),
            ..ToolSpec::default()
        };
        let snippet = "end the probe with an assessment once you know enough to plan";
        Self {
            face: Face {
                spec,
                label: "Assessment",
                snippet,
                mode: Mode::Parallel,
                after: After::StopRun,
                replay: Replay::Again,
            },
        }
    }
}

#[async_trait]
impl Tool for ProbeDone {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        serde_json::from_value::<Assessment>(call.args["assessment"].clone())
            .map_err(|error| ToolError(error.to_string()))?;
        Ok(Done::text("The probe has ended."))
    }
}
