//! How hard a model shall think: a budget of tokens, or an effort within which it decides itself.

use serde_json::{Value, json};

use crate::server::llm::Request;
use crate::server::llm::estimate::{answer_limit, within_window};
use crate::server::llm::thinking::ThinkingLevel;

/// Tokens of an answer by a model of which nothing is known; the API wants a number.
const UNKNOWN_LIMIT: u64 = 8192;
/// Tokens that a budget leaves for the answer itself.
const ANSWER: u64 = 1024;

/// What a request says about thinking, and what follows for the length of the answer.
#[derive(Debug, PartialEq)]
pub(super) struct Thinking {
    pub(super) max_tokens: u64,
    /// The field `thinking`.
    pub(super) thinking: Option<Value>,
    /// The field `output_config`.
    pub(super) output: Option<Value>,
    pub(super) mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Off,
    /// Within a budget; it may also think between its calls, which must be asked for.
    Budget,
    Adaptive,
}

impl Thinking {
    pub(super) fn of(request: &Request) -> Self {
        let model = &request.model;
        let limit = limit(request);
        let level = request.options.thinking;
        let level = if level == ThinkingLevel::Off { level } else { model.clamp(level) };
        if level == ThinkingLevel::Off {
            return Self::off(request);
        }
        if model.compat.force_adaptive_thinking == Some(true) {
            let effort = match model.levels.get(&level).and_then(Option::as_deref) {
                Some(word) => word,
                None if level <= ThinkingLevel::Low => "low",
                None if level == ThinkingLevel::Medium => "medium",
                None => "high",
            };
            return Self {
                max_tokens: limit,
                thinking: Some(json!({"type": "adaptive", "display": "summarized"})),
                output: Some(json!({"effort": effort})),
                mode: Mode::Adaptive,
            };
        }
        let (max_tokens, budget) = fit(request, limit, level.budget());
        let thinking = json!({"type": "enabled", "budget_tokens": budget, "display": "summarized"});
        Self { max_tokens, thinking: Some(thinking), output: None, mode: Mode::Budget }
    }

    /// None at all.
    pub(super) fn off(request: &Request) -> Self {
        let model = &request.model;
        let can_say = model.reasoning && model.levels.get(&ThinkingLevel::Off) != Some(&None);
        let thinking = can_say.then(|| json!({"type": "disabled"}));
        Self { max_tokens: limit(request), thinking, output: None, mode: Mode::Off }
    }
}

fn limit(request: &Request) -> u64 {
    match answer_limit(request) {
        0 => UNKNOWN_LIMIT,
        limit => limit,
    }
}

/// Room for the budget on top of `limit` where the model has it; else the budget shrinks so that an answer is possible.
fn fit(request: &Request, limit: u64, budget: u64) -> (u64, u64) {
    let most = if request.model.max_tokens == 0 { limit + budget } else { request.model.max_tokens };
    let wanted = (limit + budget).min(most);
    let budget = if wanted <= budget { budget.min(wanted.saturating_sub(ANSWER)) } else { budget };
    let max_tokens = within_window(request, wanted);
    let budget = budget.min(max_tokens.saturating_sub(ANSWER));
    // The API's own least budget.
    (max_tokens, if budget == 0 { ANSWER } else { budget })
}
