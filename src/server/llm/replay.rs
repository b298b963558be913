//! The record for one model: what another model said, as far as this one can read it.
//!
//! A model's own messages stay as they are, byte for byte. Of another's messages the thinking and its signatures are
//! dropped (nobody else can check them, and they are not what was said), and ids become legal. A model that sees no
//! images reads that there were some.

use std::collections::HashMap;

use super::catalog::Model;
use super::ids::IdRule;
use crate::app::native::message::KnownBlock;
use crate::app::native::{AssistantMessage, Block, Content, Message};

const USER_IMAGE: &str = "(image omitted: model does not support images)";
const TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";

/// `messages` as `model` may read them.
#[must_use]
pub fn for_model(messages: &[Message], model: &Model, rule: IdRule) -> Vec<Message> {
    let mut mapped: HashMap<String, String> = HashMap::new();
    let mut replayed = Vec::with_capacity(messages.len());
    for message in messages {
        let mut message = message.clone();
        match &mut message {
            Message::User(user) => {
                if let Content::Blocks(blocks) = &mut user.content
                    && !model.sees_images()
                {
                    without_images(blocks, USER_IMAGE);
                }
            }
            Message::ToolResult(result) => {
                if let Some(id) = mapped.get(&result.tool_call_id) {
                    result.tool_call_id.clone_from(id);
                }
                if !model.sees_images() {
                    without_images(&mut result.content, TOOL_IMAGE);
                }
            }
            Message::Assistant(answer) => {
                if !model.said(answer) {
                    translate(answer, rule, &mut mapped);
                }
            }
            Message::Custom(_) => {}
        }
        replayed.push(message);
    }
    replayed
}

/// Makes another model's answer readable; `mapped` gets the ids that changed.
fn translate(answer: &mut AssistantMessage, rule: IdRule, mapped: &mut HashMap<String, String>) {
    answer.content.retain(|block| !matches!(block, Block::Known(KnownBlock::Thinking(_))));
    for block in &mut answer.content {
        match block {
            Block::Known(KnownBlock::Text(text)) => text.text_signature = None,
            Block::Known(KnownBlock::ToolCall(call)) => {
                call.thought_signature = None;
                let id = rule.apply(&call.id);
                if id != call.id {
                    mapped.insert(std::mem::replace(&mut call.id, id.clone()), id);
                }
            }
            Block::Known(KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => {}
        }
    }
}

/// Puts one remark in the place of each row of images.
fn without_images(blocks: &mut Vec<Block>, remark: &str) {
    let mut kept: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks.drain(..) {
        match block {
            Block::Known(KnownBlock::Image(_)) if kept.last().and_then(Block::as_text) == Some(remark) => {}
            Block::Known(KnownBlock::Image(_)) => kept.push(Block::text(remark)),
            other => kept.push(other),
        }
    }
    *blocks = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(messages: &Value) -> Vec<Message> {
        serde_json::from_value(messages.clone()).unwrap()
    }

    fn model(id: &str) -> Model {
        Model { id: id.to_owned(), provider: "acme".to_owned(), ..Model::default() }
    }

    fn check(messages: &Value, model: &Model, expected: &Value) {
        assert_eq!(json!(for_model(&read(messages), model, IdRule::Plain)), json!(read(expected)));
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
        check(&said, &model("one"), &said);
        let id = IdRule::Plain.apply("a.1");
        let told = json!([answer(&json!([
            {"type": "text", "text": "Hello"},
            {"type": "toolCall", "id": id, "name": "ls", "arguments": {}},
        ])), {"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": []}]);
        check(&said, &model("two"), &told);
    }

    #[test]
    fn a_model_without_eyes_is_told_of_images() {
        let image = json!({"type": "image", "data": "iVBOR", "mimeType": "image/png"});
        let shown = json!([{"role": "user", "content": [{"type": "text", "text": "see"}, image, image]}]);
        let told = json!([{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "text", "text": USER_IMAGE}]}]);
        check(&shown, &model("one"), &told);
    }
}
