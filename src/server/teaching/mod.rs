//! Teaching: what the agent is told and may do in each phase of a lesson.

mod instructions;

use std::sync::Arc;

use crate::app::native::view::Phase;
use crate::server::agent::Tool;
use crate::server::agent::tools::registry;

/// What a phase makes of the agent.
pub struct Role {
    pub system: String,
    pub tools: Vec<Arc<dyn Tool>>,
}

/// The agent of a phase. The instructions list the tools from the registry itself, so that text and tools agree.
#[must_use]
pub fn role(phase: Phase) -> Role {
    let tools = registry(phase);
    Role { system: instructions::compose(phase, &tools), tools }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_name_exactly_the_tools_of_the_phase() {
        let check = |phase, names: &[&str]| {
            let role = role(phase);
            let registered: Vec<String> = role.tools.iter().map(|tool| tool.face().spec.name.clone()).collect();
            assert_eq!(registered, names);
            let listed: Vec<&str> =
                role.system.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
            assert_eq!(listed, names);
        };
        check(Phase::Probe, &["quiz", "ask_user_question", "probe_done"]);
        let teacher = ["quiz", "ask_user_question", "plan_init", "plan_progress", "judge"];
        check(Phase::Plan, &teacher);
        check(Phase::Teach, &teacher);
    }

    #[test]
    fn the_probe_has_no_explanations_and_the_teacher_has() {
        let check = |phase, expected| {
            let role = role(phase);
            let quiz = role.tools.iter().find(|tool| tool.face().spec.name == "quiz").unwrap();
            assert_eq!(quiz.face().spec.parameters["properties"].get("explanation").is_some(), expected);
        };
        check(Phase::Probe, false);
        check(Phase::Teach, true);
    }
}
