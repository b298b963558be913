//! The lesson plan that the learner accepts or sends back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scalar;

/// The name of the tool that proposes a plan.
pub const PLAN_INIT: &str = "plan_init";
/// The name of the tool that reports a block as started or done.
pub const PLAN_PROGRESS: &str = "plan_progress";
/// The name of the tool that ends the probing.
pub const PROBE_DONE: &str = "probe_done";

/// A plan as `plan_init` takes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(deserialize_with = "scalar::text")]
    pub title: String,
    #[serde(deserialize_with = "scalar::text")]
    pub goal: String,
    pub blocks: Vec<PlanBlock>,
}

/// One block of a plan. Its id is stable across re-plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanBlock {
    #[serde(deserialize_with = "scalar::text")]
    pub id: String,
    #[serde(deserialize_with = "scalar::text")]
    pub title: String,
    #[serde(deserialize_with = "scalar::text")]
    pub objective: String,
    #[serde(default, deserialize_with = "scalar::texts")]
    pub concepts: Vec<String>,
}

/// How far a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BlockStatus {
    #[default]
    Open,
    Started,
    Done,
}

impl Plan {
    /// Reads and checks the arguments of a `plan_init` call.
    ///
    /// # Errors
    /// Words that a model can act on.
    pub fn from_args(args: &Value) -> Result<Self, String> {
        let plan: Self = serde_json::from_value(args.clone()).map_err(|error| error.to_string())?;
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
