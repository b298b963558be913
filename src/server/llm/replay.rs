//! The record for one model: what another model said, as far as this one can read it.
//!
//! A model's own messages stay as they are, byte for byte, but for what its provider can't have given. Of another's
//! messages the thinking and its signatures are dropped (nobody else can check them, and they are not what was said).
//! Ids and names become legal, and ids stay different. A model that sees no images, or not of that type, reads that
//! there were some.

use std::borrow::{Borrow, Cow};
use std::collections::{HashMap, HashSet};

use super::catalog::Model;
use super::ids::{IdRule, tool_name};
use crate::app::native::message::{ImageBlock, KnownBlock, UserMessage};
use crate::app::native::{AssistantMessage, Block, Content, Message, ToolResultMessage};

const USER_IMAGE: &str = "(image omitted: model does not support images)";
const TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";
const OTHER_IMAGE: &str = "(image omitted: its type is not supported)";
/// The types of images that every provider takes.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// `messages` as `model` may read them; what stays as it is is borrowed.
#[must_use]
pub fn for_model<'a>(messages: &'a [impl Borrow<Message>], model: &Model, rule: IdRule) -> Vec<Cow<'a, Message>> {
    let mut ids = Ids { rule, mapped: HashMap::new(), used: HashSet::new() };
    let replayed = messages.iter().map(|message| {
        let message: &Message = message.borrow();
        let changed = match message {
            Message::User(user) => shown(user, model).map(Message::User),
            Message::ToolResult(result) => translated_result(result, model, &ids).map(Message::ToolResult),
            Message::Assistant(answer) => translated(answer, model.said(answer), &mut ids).map(Message::Assistant),
            Message::Custom(_) => None,
        };
        changed.map_or(Cow::Borrowed(message), Cow::Owned)
    });
    replayed.collect()
}

/// A user's message without the images that `model` can't see; none when it stays as it is.
fn shown(user: &UserMessage, model: &Model) -> Option<UserMessage> {
    let Content::Blocks(blocks) = &user.content else { return None };
    let blocks = without_images(blocks, model, USER_IMAGE)?;
    Some(UserMessage { content: Content::Blocks(blocks), ..user.clone() })
}

/// A result with the id that its call has by now, a legal name and images that `model` can see; none when it has them.
fn translated_result(result: &ToolResultMessage, model: &Model, ids: &Ids<'_>) -> Option<ToolResultMessage> {
    let id = ids.mapped.get(result.tool_call_id.as_str()).filter(|id| **id != result.tool_call_id);
    let name = Some(tool_name(&result.tool_name)).filter(|name| *name != result.tool_name);
    let name = name.filter(|_| !result.tool_name.is_empty());
    let content = without_images(&result.content, model, TOOL_IMAGE);
    if id.is_none() && name.is_none() && content.is_none() {
        return None;
    }
    let mut translated = result.clone();
    translated.tool_call_id = id.map_or(translated.tool_call_id, ToString::to_string);
    translated.tool_name = name.map_or(translated.tool_name, Cow::into_owned);
    translated.content = content.unwrap_or(translated.content);
    Some(translated)
}

/// An answer as the asked model can read it, which said it itself if it is its `own`; none when it stays as it is.
fn translated<'a>(answer: &'a AssistantMessage, own: bool, ids: &mut Ids<'a>) -> Option<AssistantMessage> {
    let names: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        answer.tool_calls().map(|call| (ids.map(&call.id, own), tool_name(&call.name))).collect();
    let is_legal = names.iter().zip(answer.tool_calls()).all(|((id, name), call)| *id == call.id && *name == call.name);
    if is_legal && (own || !answer.content.iter().any(is_private)) {
        return None;
    }
    let mut translated = answer.clone();
    let mut names = names.into_iter();
    translated.content.retain(|block| own || !matches!(block, Block::Known(KnownBlock::Thinking(_))));
    for block in &mut translated.content {
        match block {
            Block::Known(KnownBlock::Text(text)) if !own => text.text_signature = None,
            Block::Known(KnownBlock::ToolCall(call)) => {
                if let Some((id, name)) = names.next() {
                    (call.id, call.name) = (id.into_owned(), name.into_owned());
                }
                if !own {
                    call.thought_signature = None;
                }
            }
            Block::Known(KnownBlock::Text(_) | KnownBlock::Thinking(_) | KnownBlock::Image(_)) | Block::Other(_) => {}
        }
    }
    Some(translated)
}

/// True for what only the model that said it can read.
fn is_private(block: &Block) -> bool {
    match block {
        Block::Known(KnownBlock::Thinking(_)) => true,
        Block::Known(KnownBlock::Text(text)) => text.text_signature.is_some(),
        Block::Known(KnownBlock::ToolCall(call)) => call.thought_signature.is_some(),
        Block::Known(KnownBlock::Image(_)) | Block::Other(_) => false,
    }
}

/// The ids of one request.
struct Ids<'a> {
    rule: IdRule,
    /// Those of the calls so far, each with what it became.
    mapped: HashMap<&'a str, Cow<'a, str>>,
    /// What they became: the rule may make one of two.
    used: HashSet<Cow<'a, str>>,
}

impl<'a> Ids<'a> {
    fn map(&mut self, id: &'a str, own: bool) -> Cow<'a, str> {
        let is_legal = own && self.rule.allows(id);
        let mut unused = if is_legal { Cow::Borrowed(id) } else { Cow::Owned(self.rule.apply(id)) };
        for count in 2.. {
            if self.used.insert(unused.clone()) {
                break;
            }
            unused = self.rule.apply(&format!("{id}_{count}")).into();
        }
        self.mapped.insert(id, unused.clone());
        unused
    }
}

/// `blocks` with one remark in the place of each row of images that `model` can't see; none when it sees all of them.
/// `blind` is the remark for a model that sees none.
fn without_images(blocks: &[Block], model: &Model, blind: &str) -> Option<Vec<Block>> {
    let (sees, remark) = if model.sees_images() { (true, OTHER_IMAGE) } else { (false, blind) };
    let is_known = |image: &ImageBlock| IMAGES.contains(&image.mime_type.as_str()) && !image.data.is_empty();
    let is_hidden =
        |block: &Block| matches!(block, Block::Known(KnownBlock::Image(image)) if !sees || !is_known(image));
    if !blocks.iter().any(is_hidden) {
        return None;
    }
    let mut kept: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        if !is_hidden(block) {
            kept.push(block.clone());
        } else if kept.last().and_then(Block::as_text) != Some(remark) {
            kept.push(Block::text(remark));
        }
    }
    Some(kept)
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
            let said = read(&said);
            let replayed = for_model(&said, &model, IdRule::Short);
            let answer = replayed[0].as_assistant().unwrap();
            answer.tool_calls().map(|call| (call.id.clone(), call.name.clone())).collect::<Vec<_>>()
        };
        let named = |one: &str, two: &str| [one, two].map(|id| (id.to_owned(), "search_web".to_owned()));
        assert_eq!(name(model("one")), named("a|b", "a_b"));
        assert_eq!(name(model("two")), named("a_b", "a_b_2"));
    }

    #[test]
    fn what_stays_as_it_is_is_not_copied() {
        let call = json!({"type": "toolCall", "id": "a", "name": "ls", "arguments": {}});
        let said = read(&json!([
            {"role": "user", "content": [{"type": "text", "text": "see"}]},
            answer(&json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, call])),
            {"role": "toolResult", "toolCallId": "a", "toolName": "ls", "content": []},
        ]));
        let copied = |model| {
            let replayed = for_model(&said, &model, IdRule::Own);
            replayed.iter().map(|message| matches!(message, Cow::Owned(_))).collect::<Vec<_>>()
        };
        assert_eq!(copied(model("one")), [false, false, false]);
        assert_eq!(copied(model("two")), [false, true, false], "another's thinking is dropped");
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
