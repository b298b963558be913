//! The page for an address that leads nowhere.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::components::A;

use crate::app::api;
use crate::app::parts::chats::Chats;

/// Says so (404), and where to go instead.
#[component]
pub fn NotFound() -> impl IntoView {
    api::answer_not_found();
    view! {
        <Title text="Not found"/>
        <div class="frame">
            <Chats/>
            <main class="page">
                <h1>"There is nothing here"</h1>
                <p>"This lesson does not exist, or the address has a mistake in it. Your lessons are in the list of chats."</p>
                <p><A href="/">"Start a new lesson"</A></p>
            </main>
        </div>
    }
    .into_any()
}
