//! The native vocabulary: messages, events, inputs and the shapes that cross the wire.
//!
//! JSON in camelCase, the shapes of the pi agent packages' `AgentMessage` and `AgentEvent` (version 0.85.1), so that
//! their sessions load unchanged. Pure, and names no other part of the product.

pub mod error;
pub mod event;
pub mod fold;
pub mod input;
mod json;
pub mod marker;
pub mod message;
pub mod partial;
pub mod plan;
pub mod question;
mod record;
pub mod usage;
pub mod view;

#[cfg(test)]
mod tests;

pub use error::{Accepted, ErrorBody, ErrorDetail, ErrorKind};
pub use event::{AgentEvent, AssistantEvent};
pub use fold::fold;
pub use input::{Answer, InputEvent};
pub use marker::Marker;
pub use message::{
    AssistantMessage, Block, Content, CustomMessage, Message, Seq, StopReason, Stored, ToolCall, ToolResultMessage,
    UserMessage,
};
pub use plan::Plan;
pub use question::Question;
pub use usage::Usage;
