//! `ask_user_question`: asks the learner something that is never graded.

use async_trait::async_trait;
use serde_json::json;

use crate::app::native::Question;
use crate::app::native::question::ASK;
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct AskUserQuestion {
    face: Face,
}

impl AskUserQuestion {
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: ASK.to_owned(),
            description:
                "Asks the learner about wishes, goals or background. Never graded. Ends your turn until the answer \
                          is there."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "options": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
                    "multiSelect": {"type": "boolean", "description": "True when several options may be chosen."},
                    "allowOther": {"type": "boolean", "description": "True when own words may be written (the default)."},
                },
                "required": ["question"],
            }),
            ..ToolSpec::default()
        };
        let snippet = "ask about wishes, goals or background; never graded";
        Self {
            face: Face {
                spec,
                label: "Question",
                snippet,
                mode: Mode::Sequential,
                after: After::StopRun,
                replay: Replay::Again,
            },
        }
    }
}

#[async_trait]
impl Tool for AskUserQuestion {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        Question::from_args(ASK, &call.args).map_err(ToolError)?;
        Ok(super::posed())
    }
}
