//! Pieces of pages that are used twice or more, or are a story of their own.

pub mod activity;
pub mod chats;
pub mod composer;
pub mod dock;
pub mod plan_card;
pub mod progress;
pub mod prose;
pub mod question_card;
pub mod rich;
pub mod status;
pub mod transcript;
pub mod usage;
