//! Token counts and their cost, of one message or summed over many.

use super::record::record;

record! {
    /// Tokens of one answer (or a sum); `cost` in USD. `output` includes `reasoning`; `input` excludes the cached tokens.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Usage {
        pub input: u64 = default "input",
        pub output: u64 = default "output",
        pub cache_read: u64 = default "cacheRead",
        pub cache_write: u64 = default "cacheWrite",
        pub reasoning: Option<u64> = optional "reasoning",
        pub total_tokens: u64 = default "totalTokens",
        pub cost: Cost = default "cost",
        ..extra
    }
}

record! {
    /// USD by kind of token.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Cost {
        pub input: f64 = default "input",
        pub output: f64 = default "output",
        pub cache_read: f64 = default "cacheRead",
        pub cache_write: f64 = default "cacheWrite",
        pub total: f64 = default "total",
    }
}

impl Usage {
    /// Adds `other` to this sum; unknown fields are not summed.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        if let Some(reasoning) = other.reasoning {
            self.reasoning = Some(self.reasoning.unwrap_or(0) + reasoning);
        }
        self.total_tokens += other.total_tokens;
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }
}
