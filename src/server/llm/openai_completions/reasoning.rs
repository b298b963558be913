//! How hard a model shall think, in the words of its server.

use serde_json::{Map, Value, json};

use crate::server::llm::catalog::Model;
use crate::server::llm::compat::ThinkingFormat;
use crate::server::llm::thinking::ThinkingLevel;

use super::quirks::Quirks;

/// The fields that ask `model` for `level`; none for a model that cannot be asked.
pub(super) fn fields(model: &Model, level: ThinkingLevel, quirks: &Quirks) -> Map<String, Value> {
    if !model.reasoning {
        return Map::new();
    }
    let on = level != ThinkingLevel::Off;
    // A model that always thinks is not told to stop: it is told nothing.
    let level = if on { model.clamp(level) } else { level };
    let word = effort(model, level);
    // The plain field, on servers that have it beside their own.
    let effort = |asked: bool| word.clone().filter(|_| asked && quirks.reasoning_effort);
    let switch = |on: bool| json!({"type": if on { "enabled" } else { "disabled" }});
    let has_off = model.levels.get(&ThinkingLevel::Off) != Some(&None);
    let (own, plain) = match quirks.thinking_format {
        ThinkingFormat::Openai => (None, effort(on || is_named(model))),
        ThinkingFormat::Openrouter | ThinkingFormat::StringThinking => {
            let word = if on || is_named(model) { word.clone() } else { Some("none".into()) };
            let shown = word.filter(|_| on || has_off);
            let own = match quirks.thinking_format {
                ThinkingFormat::Openrouter => shown.map(|word| ("reasoning", json!({"effort": word}))),
                _ => shown.map(|word| ("thinking", word)),
            };
            (own, None)
        }
        ThinkingFormat::Deepseek => ((on || has_off).then(|| ("thinking", switch(on))), effort(on)),
        ThinkingFormat::Zai => {
            let own = if on { json!({"type": "enabled", "clear_thinking": false}) } else { switch(false) };
            (Some(("thinking", own)), effort(on))
        }
        ThinkingFormat::Together => (Some(("reasoning", json!({"enabled": on}))), effort(on)),
        ThinkingFormat::AntLing => {
            let word = word.clone().filter(|_| on && model.levels.contains_key(&level));
            (word.map(|word| ("reasoning", json!({"effort": word}))), None)
        }
        ThinkingFormat::Qwen => (Some(("enable_thinking", on.into())), effort(on)),
        ThinkingFormat::QwenChatTemplate => {
            (Some(("chat_template_kwargs", json!({"enable_thinking": on, "preserve_thinking": true}))), None)
        }
    };
    own.into_iter()
        .chain(plain.map(|word| ("reasoning_effort", word)))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The provider's word for a level that it has.
fn effort(model: &Model, level: ThinkingLevel) -> Option<Value> {
    match model.levels.get(&level) {
        Some(word) => word.as_deref().map(Value::from),
        None => Some(level.name().into()),
    }
}

/// True when the model has a word of its own for not thinking.
fn is_named(model: &Model) -> bool {
    matches!(model.levels.get(&ThinkingLevel::Off), Some(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::compat::Compat;

    fn check(format: &str, levels: &Value, level: ThinkingLevel, expected: &Value) {
        let compat: Compat = serde_json::from_value(json!({"thinkingFormat": format})).unwrap();
        let levels = serde_json::from_value(levels.clone()).unwrap();
        let model = Model { reasoning: true, levels, compat, ..Model::default() };
        let found = fields(&model, level, &Quirks::of(&model));
        assert_eq!(Value::Object(found), *expected, "{format} {}", level.name());
    }

    #[test]
    fn every_server_is_asked_in_its_own_words() {
        use ThinkingLevel::{High, Max, Off};
        let (plain, mapped) = (json!({}), json!({"off": "zero", "high": "hard"}));
        check("openai", &plain, Off, &json!({}));
        check("openai", &plain, High, &json!({"reasoning_effort": "high"}));
        check("openai", &mapped, Off, &json!({"reasoning_effort": "zero"}));
        check("openai", &mapped, Max, &json!({"reasoning_effort": "hard"}));
        check("openrouter", &plain, Off, &json!({"reasoning": {"effort": "none"}}));
        check("openrouter", &mapped, Off, &json!({"reasoning": {"effort": "zero"}}));
        check("openrouter", &mapped, High, &json!({"reasoning": {"effort": "hard"}}));
        check("string-thinking", &plain, Off, &json!({"thinking": "none"}));
        check("string-thinking", &plain, High, &json!({"thinking": "high"}));
        check("deepseek", &plain, Off, &json!({"thinking": {"type": "disabled"}}));
        check("deepseek", &plain, High, &json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}));
        check("zai", &plain, Off, &json!({"thinking": {"type": "disabled"}}));
        let zai = json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "high"});
        check("zai", &plain, High, &zai);
        check("together", &plain, Off, &json!({"reasoning": {"enabled": false}}));
        check("together", &plain, High, &json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}));
        check("ant-ling", &plain, High, &json!({}));
        check("ant-ling", &mapped, High, &json!({"reasoning": {"effort": "hard"}}));
        check("qwen", &plain, Off, &json!({"enable_thinking": false}));
        check("qwen", &plain, High, &json!({"enable_thinking": true, "reasoning_effort": "high"}));
        let kwargs = json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}});
        check("qwen-chat-template", &plain, High, &kwargs);
    }

    #[test]
    fn a_model_that_always_thinks_is_not_told_to_stop() {
        let always = json!({"off": null, "minimal": null});
        check("openrouter", &always, ThinkingLevel::Off, &json!({}));
        check("deepseek", &always, ThinkingLevel::Off, &json!({}));
        check("openrouter", &always, ThinkingLevel::Minimal, &json!({"reasoning": {"effort": "low"}}));
    }
}
