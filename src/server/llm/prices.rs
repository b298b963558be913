//! What tokens cost.

use serde::{Deserialize, Serialize};

use crate::app::native::Usage;

/// USD a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    #[serde(flatten)]
    pub rates: Rates,
    /// Other rates for long requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Tier>,
}

/// USD a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// Rates of a request that sends more than so many tokens, cached ones included; they apply to the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tier {
    pub input_tokens_above: u64,
    #[serde(flatten)]
    pub rates: Rates,
}

/// The key among a usage's unknown fields that counts the cache writes which are kept for an hour.
pub const CACHE_WRITE_1H: &str = "cacheWrite1h";

impl Prices {
    /// Fills in `usage.cost` from its token counts.
    pub fn apply(&self, usage: &mut Usage) {
        let rates = self.rates_for(usage.input + usage.cache_read + usage.cache_write);
        let cost = |rate: f64, tokens: u64| rate / 1_000_000.0 * tokens as f64;
        // An hour in the cache costs twice the input.
        let long = usage.extra.get(CACHE_WRITE_1H).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let short = usage.cache_write.saturating_sub(long);
        let written = rates.cache_write * short as f64 + rates.input * 2.0 * long as f64;
        usage.cost.input = cost(rates.input, usage.input);
        usage.cost.output = cost(rates.output, usage.output);
        usage.cost.cache_read = cost(rates.cache_read, usage.cache_read);
        usage.cost.cache_write = written / 1_000_000.0;
        usage.cost.total = usage.cost.input + usage.cost.output + usage.cost.cache_read + usage.cost.cache_write;
    }

    /// The rates of the highest tier that a request of `tokens` reaches.
    fn rates_for(&self, tokens: u64) -> Rates {
        let reached = self.tiers.iter().filter(|tier| tokens > tier.input_tokens_above);
        reached.max_by_key(|tier| tier.input_tokens_above).map_or(self.rates, |tier| tier.rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/cost.json");

    #[test]
    fn costs_are_those_of_the_reference() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            let prices: Prices = serde_json::from_value(row["in"]["cost"].clone()).unwrap();
            let mut counts = row["in"].clone();
            counts.as_object_mut().unwrap().shift_remove("cost");
            let mut usage: Usage = serde_json::from_value(counts).unwrap();
            prices.apply(&mut usage);
            for kind in ["input", "output", "cacheRead", "cacheWrite", "total"] {
                assert_eq!(json!(usage.cost)[kind].as_f64(), row["out"][kind].as_f64(), "{kind} of {}", row["in"]);
            }
        }
    }
}
