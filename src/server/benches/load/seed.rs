//! Records of different length in a data folder, for a server that starts on it.

use std::path::Path;

use learnharness::app::native::{AssistantMessage, Block, Message, StopReason};
use learnharness::server::store::Store;

use crate::Failure;

/// Messages of each record; a chat's id is its number.
pub(crate) const LENGTHS: [usize; 2] = [100, 10_000];
/// Characters of a message.
const CHARACTERS: usize = 400;

pub(crate) async fn seed(folder: &Path) -> Result<(), Failure> {
    let store = Store::open(&folder.join("learnharness.db")).await?;
    for length in LENGTHS {
        let chat = length.to_string();
        store.create_chat(&chat, 0).await?;
        store.claim(&chat, "seed", (0..length).map(message).collect(), 0).await?;
        store.release(&chat, "seed").await?;
    }
    store.close().await;
    Ok(())
}

fn message(index: usize) -> Message {
    let text = format!("{index} {}", "The tide comes in twice a day. ".repeat(CHARACTERS / 31));
    if index.is_multiple_of(2) {
        return Message::user(text, index as i64);
    }
    Message::Assistant(AssistantMessage {
        content: vec![Block::text(text)],
        stop_reason: StopReason::Stop,
        ..AssistantMessage::default()
    })
}
