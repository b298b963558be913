//! `/`: where a lesson begins.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_meta::Title;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::app::api;
use crate::app::native::input::is_blank;
use crate::app::native::{ErrorBody, InputEvent};
use crate::app::parts::chats::{Changes, Chats};
use crate::app::parts::composer::{Draft, Field};
use crate::app::platform;

/// The home page.
#[component]
pub fn Home() -> impl IntoView {
    view! {
        <Title text="learnharness" formatter=|title| title/>
        <div class="frame">
            <Chats/>
            <main class="page home">
                <h1>"What do you want to learn?"</h1>
                <p class="lead">
                    "A teacher asks a few questions first, proposes a plan, and then teaches in small steps, each with a quiz."
                </p>
                <Begin/>
            </main>
        </div>
    }
    .into_any()
}

#[component]
fn Begin() -> impl IntoView {
    let draft = Draft::new("new".to_owned());
    let busy = RwSignal::new(false);
    let trouble = RwSignal::new(None::<String>);
    let changes = expect_context::<Changes>();
    let navigate = StoredValue::new(use_navigate());
    let first = StoredValue::new(None::<First>);
    let start = move || {
        let words = draft.words();
        if is_blank(&words) || busy.get_untracked() {
            return;
        }
        busy.set(true);
        trouble.set(None);
        spawn_local(async move {
            match begun(first, words).await {
                Ok(chat) => {
                    draft.write(String::new());
                    changes.0.update(|count| *count += 1);
                    navigate.with_value(|go| go(&format!("/chat/{chat}"), NavigateOptions::default()));
                }
                Err(error) => {
                    let _ = trouble.try_set(Some(error.error.message));
                    let _ = busy.try_set(false);
                }
            }
        });
    };
    view! {
        <form class="begin" on:submit=move |event| { event.prevent_default(); start(); }>
            <Field draft rows=3 placeholder="Teach me fractions" send=start/>
            <button class="go" disabled=move || draft.is_blank() || busy.get()>"Start"</button>
            <p class="status" role="status">{move || if busy.get() { "Starting…" } else { "" }}</p>
            {move || trouble.get().map(|words| view! { <p class="trouble" role="alert">{words}</p> })}
        </form>
        <ul class="ideas" aria-label="Ideas">
            {["Teach me fractions", "Teach me Rust ownership"].map(|idea| view! {
                <li><button type="button" class="bare" on:click=move |_| { draft.write(idea.to_owned()); start(); }>{idea}</button></li>
            }).collect_view()}
        </ul>
    }
    .into_any()
}

/// The first words of a lesson on their way: trying again does not begin a second lesson.
#[derive(Clone)]
struct First {
    chat: String,
    input: String,
    words: String,
}

/// Makes a chat and says the first words in it.
async fn begun(kept: StoredValue<Option<First>>, words: String) -> Result<String, ErrorBody> {
    let known = kept.try_get_value().flatten().filter(|first| first.words == words);
    let first = match known {
        Some(first) => first,
        None => First { chat: api::create_chat().await?.id, input: platform::new_id(), words },
    };
    kept.try_set_value(Some(first.clone()));
    let input = InputEvent::Text { text: first.words, note: None };
    api::take_input(first.chat.clone(), Some(first.input), input).await?;
    Ok(first.chat)
}
