//! The list of chats beside every page.

use leptos::prelude::*;
use leptos_router::components::A;

use crate::app::api;
use crate::app::native::view::{ChatSummary, Next, Phase};

/// Counts what should make the list look anew.
#[derive(Clone, Copy)]
pub struct Changes(pub RwSignal<u32>);

/// The navigation "Chats".
#[component]
pub fn Chats() -> impl IntoView {
    let changes = expect_context::<Changes>();
    let chats = Resource::new(move || changes.0.get(), |_| api::chats());
    view! {
        <nav class="chats" aria-label="Chats">
            <A href="/" attr:class="brand">"learnharness"</A>
            <Transition>
                {move || Suspend::new(async move {
                    match chats.await {
                        Ok(chats) if chats.is_empty() => view! { <p class="quiet">"Your lessons will stand here."</p> }.into_any(),
                        Ok(chats) => view! { <ul>{chats.into_iter().map(entry).collect_view()}</ul> }.into_any(),
                        Err(error) => view! { <p class="quiet">{error.error.message}</p> }.into_any(),
                    }
                })}
            </Transition>
        </nav>
    }
    .into_any()
}

/// A chat is opened as a document of its own: its page is rendered whole, and nothing of the one before is left over.
fn entry(chat: ChatSummary) -> impl IntoView {
    let state = state(&chat);
    view! { <li><A href=format!("/chat/{}", chat.id) attr:rel="external">{chat.title}<small>{state}</small></A></li> }
}

fn state(chat: &ChatSummary) -> &'static str {
    if chat.running {
        return "your teacher is writing";
    }
    match (&chat.next, chat.phase) {
        (Next::Answer(_), _) => "a question waits for you",
        (Next::Verdict(_), _) => "the plan waits for you",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Probe) => "finding out what you know",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Plan) => "making a plan",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Teach) => "in the lesson",
    }
}
