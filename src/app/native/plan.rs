//! The lesson plan that the learner accepts or sends back.

use serde_json::Value;

use super::json::Json;
use super::record::{record, words};

/// The name of the tool that proposes a plan.
pub const PLAN_INIT: &str = "plan_init";
/// The name of the tool that reports a block as started or done.
pub const PLAN_PROGRESS: &str = "plan_progress";
/// The name of the tool that ends the probing.
pub const PROBE_DONE: &str = "probe_done";

record! {
    /// A plan as `plan_init` takes it.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Plan {
        pub title: String = text "title",
        pub goal: String = text "goal",
        pub blocks: Vec<PlanBlock> = needed "blocks",
    }
}

record! {
    /// One block of a plan. Its id is stable across re-plans.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct PlanBlock {
        pub id: String = text "id",
        pub title: String = text "title",
        pub objective: String = text "objective",
        pub concepts: Vec<String> = some_texts "concepts",
    }
}

words! {
    /// How far a block is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum BlockStatus {
        #[default]
        Open = "open",
        Started = "started",
        Done = "done",
    }
}

impl Plan {
    /// Reads and checks the arguments of a `plan_init` call.
    ///
    /// # Errors
    /// Words that a model can act on.
    pub fn from_args(args: &Value) -> Result<Self, String> {
        let plan: Self = Json::read(args.clone().into()).map_err(|fault| fault.to_string())?;
        if !(2..=12).contains(&plan.blocks.len()) {
            return Err(format!("A plan has 2 to 12 blocks; this one has {}.", plan.blocks.len()));
        }
        for (index, block) in plan.blocks.iter().enumerate() {
            for (field, text) in [("id", &block.id), ("title", &block.title), ("objective", &block.objective)] {
                if text.trim().is_empty() {
                    return Err(format!("Block {} has an empty {field}.", index + 1));
                }
            }
            if plan.blocks[..index].iter().any(|earlier| earlier.id == block.id) {
                return Err(format!("Two blocks have the id {:?}; each needs its own.", block.id));
            }
        }
        Ok(plan)
    }
}
