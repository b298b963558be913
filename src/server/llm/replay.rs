//! The record for one model: what another model said, as far as this one can read it.
//!
//! A model's own messages stay as they are, byte for byte, but for what its provider can't have given. Of another's
//! messages the thinking and its signatures are dropped (nobody else can check them, and they are not what was said).
//! Ids and names become legal, and ids stay different. A model that sees no images, or not of that type, reads that
//! there were some.

use std::collections::{HashMap, HashSet};

use super::catalog::Model;
use super::ids::{IdRule, tool_name};
use crate::app::native::message::{ImageBlock, KnownBlock};
use crate::app::native::{AssistantMessage, Block, Content, Message};

const USER_IMAGE: &str = "(image omitted: model does not support images)";
const TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";
const OTHER_IMAGE: &str = "(image omitted: its type is not supported)";
/// The types of images that every provider takes.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// `messages` as `model` may read them.
#[must_use]
pub fn for_model(messages: &[Message], model: &Model, rule: IdRule) -> Vec<Message> {
    let mut ids = Ids { rule, mapped: HashMap::new(), used: HashSet::new() };
    let mut replayed = Vec::with_capacity(messages.len());
    for message in messages {
        let mut message = message.clone();
        match &mut message {
            Message::User(user) => {
                if let Content::Blocks(blocks) = &mut user.content {
                    show_images(blocks, model, USER_IMAGE);
                }
            }
            Message::ToolResult(result) => {
                if let Some(id) = ids.mapped.get(&result.tool_call_id) {
                    result.tool_call_id.clone_from(id);
                }
                show_images(&mut result.content, model, TOOL_IMAGE);
                if !result.tool_name.is_empty() {
                    result.tool_name = tool_name(&result.tool_name);
                }
            }
            Message::Assistant(answer) => translate(answer, model.said(answer), &mut ids),
            Message::Custom(_) => {}
        }
        replayed.push(message);
    }
    replayed
}

/// Makes an answer readable for the asked model, which said it itself if it is its `own`.
fn translate(answer: &mut AssistantMessage, own: bool, ids: &mut Ids) {
    answer.content.retain(|block| own || !matches!(block, Block::Known(KnownBlock::Thinking(_))));
    for block in &mut answer.content {
        match block {
            Block::Known(KnownBlock::Text(text)) if !own => text.text_signature = None,
            Block::Known(KnownBlock::ToolCall(call)) => {
                call.name = tool_name(&call.name);
                call.id = ids.map(&call.id, own);
                if !own {
                    call.thought_signature = None;
                }
            }
            Block::Known(KnownBlock::Text(_) | KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => {}
        }
    }
}

/// The ids of one request.
struct Ids {
    rule: IdRule,
    /// Those of the calls so far, each with what it became.
    mapped: HashMap<String, String>,
    /// What they became: the rule may make one of two.
    used: HashSet<String>,
}

impl Ids {
    fn map(&mut self, id: &str, own: bool) -> String {
        let legal = if own && self.rule.allows(id) { id.to_owned() } else { self.rule.apply(id) };
        let mut unused = legal;
        for count in 2.. {
            if self.used.insert(unused.clone()) {
                break;
            }
            unused = self.rule.apply(&format!("{id}_{count}"));
        }
        self.mapped.insert(id.to_owned(), unused.clone());
        unused
    }
}

/// Leaves the images that `model` can see; `blind` is the remark for one that sees none.
fn show_images(blocks: &mut Vec<Block>, model: &Model, blind: &str) {
    if model.sees_images() {
        let is_known = |image: &ImageBlock| IMAGES.contains(&image.mime_type.as_str()) && !image.data.is_empty();
        without_images(blocks, OTHER_IMAGE, |image| !is_known(image));
    } else {
        without_images(blocks, blind, |_| true);
    }
}

/// Puts one remark in the place of each row of images that are `hidden`.
fn without_images(blocks: &mut Vec<Block>, remark: &str, hidden: impl Fn(&ImageBlock) -> bool) {
    let mut kept: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks.drain(..) {
        match block {
            Block::Known(KnownBlock::Image(image)) if hidden(&image) => {
                if kept.last().and_then(Block::as_text) != Some(remark) {
                    kept.push(Block::text(remark));
                }
            }
            other => kept.push(other),
        }
    }
    *blocks = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::llm::catalog::Input;
    use serde_json::{Value, json};

    fn read(messages: &Value) -> Vec<Message> {
        serde_json::from_value(messages.clone()).unwrap()
    }

    fn model(id: &str) -> Model {
        Model { id: id.to_owned(), provider: "acme".to_owned(), ..Model::default() }
    }

    fn check(messages: &Value, model: &Model, rule: IdRule, expected: &Value) {
        assert_eq!(json!(for_model(&read(messages), model, rule)), json!(read(expected)));
    }

    fn answer(content: &Value) -> Value {
        json!({"role": "assistant", "api": "openai-completions", "provider": "acme", "model": "one", "content": content})
    }

    #[test]
    fn thinking_and_signatures_go_back_to_their_own_model_only() {
        let said = json!([answer(&json!([
            {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"},
            {"type": "text", "text": "Hello", "textSignature": "t"},
            {"type": "toolCall", "id": "a.1", "name": "ls", "arguments": {}, "thoughtSignature": "s"},
        ])), {"role": "toolResult", "toolCallId": "a.1", "toolName": "ls", "content": []}]);
        check(&said, &model("one"), IdRule::Own, &said);
        let id = IdRule::Plain.apply("a.1");
        let told = json!([answer(&json!([
            {"type": "text", "text": "Hello"},
            {"type": "toolCall", "id": id, "name": "ls", "arguments": {}},
        ])), {"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": []}]);
        check(&said, &model("two"), IdRule::Plain, &told);
    }

    #[test]
    fn what_a_provider_cant_have_given_becomes_legal_and_stays_different() {
        let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "search web", "arguments": {}});
        let said = json!([answer(&json!([call("a|b"), call("a_b")]))]);
        let name = |model| {
            let Message::Assistant(answer) = for_model(&read(&said), &model, IdRule::Short).remove(0) else { panic!() };
            answer.tool_calls().map(|call| (call.id.clone(), call.name.clone())).collect::<Vec<_>>()
        };
        let named = |one: &str, two: &str| [one, two].map(|id| (id.to_owned(), "search_web".to_owned()));
        assert_eq!(name(model("one")), named("a|b", "a_b"));
        assert_eq!(name(model("two")), named("a_b", "a_b_2"));
    }

    #[test]
    fn an_image_of_a_type_that_nobody_takes_is_told_of() {
        let image = |kind: &str| json!({"type": "image", "data": "iVBOR", "mimeType": kind});
        let shown = json!([{"role": "user", "content": [image("image/png"), image("image/svg+xml")]}]);
        let told = json!([{"role": "user", "content": [image("image/png"), {"type": "text", "text": OTHER_IMAGE}]}]);
        let sees = Model { input: vec![Input::Text, Input::Image], ..model("one") };
        check(&shown, &sees, IdRule::Own, &told);
    }

    #[test]
    fn a_model_without_eyes_is_told_of_images() {
        let image = json!({"type": "image", "data": "iVBOR", "mimeType": "image/png"});
        let shown = json!([{"role": "user", "content": [{"type": "text", "text": "see"}, image, image]}]);
        let told = json!([{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "text", "text": USER_IMAGE}]}]);
        check(&shown, &model("one"), IdRule::Own, &told);
    }
}
