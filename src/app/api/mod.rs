//! What the page asks of the server: server functions for what changes something, typed reads for the rest.
//!
//! A body is a few lines into `server`; errors have the one shape of [`ErrorBody`].

mod error;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use server_fn::codec::Json;

use super::native::view::{ChatSummary, ChatView};
use super::native::{Accepted, ErrorBody, InputEvent, Seq};

/// A chat that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub id: String,
}

/// What a stop met: false when nothing ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    pub stopped: bool,
}

/// Makes an empty chat (201).
#[server(name = CreateChat, prefix = "/api", endpoint = "chats", input = Json, output = Json)]
pub async fn create_chat() -> Result<Made, ErrorBody> {
    let made = error::services()?.runs.create_chat().await.map(|id| Made { id });
    error::respond(made, 201)
}

/// Takes an input event into a chat (202). The same `inputId` gets the same acceptance again.
#[server(name = TakeInput, prefix = "/api", endpoint = "chat", input = Json, output = Json)]
pub async fn take_input(
    #[server(rename = "chatId")] chat_id: String,
    #[server(rename = "inputId")]
    #[server(default)]
    input_id: Option<String>,
    input: InputEvent,
) -> Result<Accepted, ErrorBody> {
    let accepted = error::services()?.runs.accept(&chat_id, input_id, input).await;
    error::respond(accepted, 202)
}

/// Stops what runs in a chat (202), or says that nothing did (200).
#[server(name = Abort, prefix = "/api", endpoint = "activity/abort", input = Json, output = Json)]
pub async fn abort(#[server(rename = "chatId")] chat_id: String) -> Result<Stopped, ErrorBody> {
    use crate::server::runs;
    match error::services()?.runs.stop(&chat_id).await {
        Ok(runs::Stopped::Something) => error::respond(Ok(Stopped { stopped: true }), 202),
        Ok(runs::Stopped::Nothing) => error::respond(Ok(Stopped { stopped: false }), 200),
        Err(refusal) => error::respond(Err(refusal), 200),
    }
}

/// Deletes a chat (200); it can be restored for seven days.
#[server(name = DeleteChat, prefix = "/api", endpoint = "chats/delete", input = Json, output = Json)]
pub async fn delete_chat(#[server(rename = "chatId")] chat_id: String) -> Result<(), ErrorBody> {
    error::respond(error::services()?.runs.delete_chat(&chat_id).await, 200)
}

/// Undoes the deletion of a chat (200).
#[server(name = RestoreChat, prefix = "/api", endpoint = "chats/restore", input = Json, output = Json)]
pub async fn restore_chat(#[server(rename = "chatId")] chat_id: String) -> Result<(), ErrorBody> {
    error::respond(error::services()?.runs.restore_chat(&chat_id).await, 200)
}

/// All chats, the latest first.
///
/// # Errors
/// What `GET /api/chats` answers with.
pub async fn chats() -> Result<Vec<ChatSummary>, ErrorBody> {
    #[cfg(feature = "ssr")]
    return error::services()?.runs.chats().await;
    #[cfg(not(feature = "ssr"))]
    return super::platform::get("/api/chats").await;
}

/// A chat as of now, with its messages after `after`.
///
/// # Errors
/// What `GET /api/chats/{id}` answers with.
pub async fn chat(id: &str, after: Seq) -> Result<ChatView, ErrorBody> {
    #[cfg(feature = "ssr")]
    return error::services()?.runs.view(id, after).await;
    #[cfg(not(feature = "ssr"))]
    return super::platform::get(&format!("/api/chats/{id}?after={after}")).await;
}

/// Gives the page that is being rendered the status 404.
pub fn answer_not_found() {
    #[cfg(feature = "ssr")]
    error::set_status(404);
}
