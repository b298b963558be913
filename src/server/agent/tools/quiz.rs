//! `quiz`: asks the learner a graded question and ends the run until it is answered.

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::app::native::Question;
use crate::app::native::question::QUIZ;
use crate::server::agent::tool::{After, Call, Done, Face, Mode, Replay, Tool, ToolError};
use crate::server::llm::ToolSpec;

pub(super) struct Quiz {
    face: Face,
}

impl Quiz {
    /// The probe's form has no explanation and no hint: a probe does not teach.
    pub(super) fn for_probe() -> Self {
        Self::with(&properties())
    }

    pub(super) fn for_teaching() -> Self {
        let mut properties = properties();
        properties["explanation"] =
            json!({"type": "string", "description": "Why the right answer is right; shown with the grading."});
        properties["hint"] = json!({"type": "string", "description": "A nudge that gives nothing away."});
        Self::with(&properties)
    }

    fn with(properties: &Value) -> Self {
        let spec = ToolSpec {
            name: QUIZ.to_owned(),
            description:
                "Asks the learner one question that is graded at once. The learner may also say \"I don't know\" or \
                          skip it. Ends your turn until the answer is there."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": ["question", "kind", "correct", "concept"],
            }),
            ..ToolSpec::default()
        };
        let snippet =
            "ask one graded question; options of equal standing and length, exactly what was taught or is probed";
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

fn properties() -> Value {
    json!({
        "question": {"type": "string", "description": "The question, in Markdown."},
        "kind": {"type": "string", "enum": ["single", "multi", "short"]},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "2 to 6 options of equal standing and similar length; none for kind short.",
        },
        "correct": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The right options, letter for letter; for kind short every answer to accept.",
        },
        "concept": {"type": "string", "description": "The concept that the question tests."},
    })
}

#[async_trait]
impl Tool for Quiz {
    fn face(&self) -> &Face {
        &self.face
    }

    async fn execute(&self, call: Call) -> Result<Done, ToolError> {
        Question::from_args(QUIZ, &call.args).map_err(ToolError)?;
        Ok(super::posed())
    }
}
