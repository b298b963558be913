//! `judge`: settles a short answer that matched no accepted one.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use crate::app::native::Marker;
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct Judge {
    face: Face,
}

impl Judge {
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "judge".to_owned(),
            description: "Settles a short answer whose grading is open.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "toolCallId": {"type": "string", "description": "The id of the quiz call."},
                    "verdict": {"type": "string", "enum": ["correct", "wrong"]},
                    "reason": {"type": "string", "description": "One sentence for the learner."},
                },
                "required": ["toolCallId", "verdict", "reason"],
            }),
            ..ToolSpec::default()
        };
        let snippet = "settle a short answer whose grading is open";
        Self {
            face: Face {
                spec,
                label: "Judgement",
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
    tool_call_id: String,
    verdict: String,
    reason: String,
}

#[async_trait]
impl Tool for Judge {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        let Args { tool_call_id, verdict, reason } =
            serde_json::from_value(call.args).map_err(|error| ToolError(error.to_string()))?;
        let text = format!("The answer is judged {verdict}.");
        Ok(Done { markers: vec![Marker::Judgement { tool_call_id, verdict, reason }], ..Done::text(text) })
    }
}
