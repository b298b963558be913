//! How hard a model is asked to think.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The levels that a request may name, from none to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    #[default]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// What a provider calls the levels: a word of its own, or none for a level that the model has not got. Levels that are
/// not named here go by their own names; `xhigh` and `max` exist only when named.
pub type LevelMap = BTreeMap<ThinkingLevel, Option<String>>;

impl ThinkingLevel {
    pub const ALL: [Self; 7] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// Its own name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The level that a model with `map` has for this one: the next one up, else the next one down.
    #[must_use]
    pub fn clamp(self, reasoning: bool, map: &LevelMap) -> Self {
        let has = |level: &Self| match map.get(level) {
            _ if !reasoning => *level == Self::Off,
            Some(word) => word.is_some(),
            None => *level <= Self::High,
        };
        let up = Self::ALL.into_iter().filter(|level| *level >= self).find(has);
        up.or_else(|| Self::ALL.into_iter().rev().filter(|level| *level < self).find(has)).unwrap_or_default()
    }

    /// Tokens that a model which takes a budget instead of a level may think for.
    #[must_use]
    pub fn budget(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Minimal => 1024,
            Self::Low => 2048,
            Self::Medium => 8192,
            Self::High | Self::Xhigh | Self::Max => 16_384,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/clamp-thinking-level.json");

    #[test]
    fn a_level_that_a_model_lacks_moves_as_in_the_reference() {
        let mut rows = 0;
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            // A word that is no level cannot be asked for here.
            let Ok(level) = serde_json::from_value::<ThinkingLevel>(row["in"]["level"].clone()) else { continue };
            let map: Option<LevelMap> = serde_json::from_value(row["in"]["thinkingLevelMap"].clone()).unwrap();
            let clamped = level.clamp(row["in"]["reasoning"] == true, &map.unwrap_or_default());
            assert_eq!(clamped.name(), row["out"], "{}", row["in"]);
            rows += 1;
        }
        assert_eq!(rows, 84);
    }
}
