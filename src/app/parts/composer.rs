//! Where the learner writes.

use leptos::prelude::*;

use crate::app::native::input::is_blank;
use crate::app::platform;
use crate::app::state::{Fate, Session};

/// The composer of a chat. Enter sends, Shift+Enter breaks the line; what is typed survives a reload.
#[component]
pub fn Composer(session: Session) -> impl IntoView {
    let text = RwSignal::new(String::new());
    let chat = session.chat;
    Effect::new(move |_| {
        let draft = platform::draft(&chat.get_value());
        if !draft.is_empty() {
            text.set(draft);
        }
    });
    let write = move |words: String| {
        platform::remember_draft(&chat.get_value(), &words);
        text.set(words);
    };
    let send = move || {
        let words = text.get_untracked();
        if is_blank(&words) || session.submitted.get_untracked() || session.running.get_untracked() {
            return;
        }
        // The draft is kept until the words are taken.
        text.set(String::new());
        let (id, kept) = (chat.get_value(), words.clone());
        session.say(words, move |fate| match (fate, text.try_get_untracked()) {
            (Fate::Taken, Some(typed)) => write(typed),
            (Fate::Refused, Some(typed)) if !typed.is_empty() => write(format!("{kept}\n{typed}")),
            (Fate::Refused, Some(_)) => write(kept),
            (Fate::Taken, None) if platform::draft(&id) == kept => platform::remember_draft(&id, ""),
            // The page is left, and the draft kept.
            (Fate::Taken | Fate::Refused, None) => {}
        });
    };
    view! {
        <form class="compose" on:submit=move |event| { event.prevent_default(); send(); }>
            <textarea
                aria-label="Message"
                rows="1"
                dir="auto"
                placeholder="Write to your teacher"
                prop:value=move || text.get()
                on:input=move |event| write(event_target_value(&event))
                on:keydown=move |event| if sends(&event) { event.prevent_default(); send(); }
            ></textarea>
            <Show
                when=move || session.running.get()
                fallback=move || view! {
                    <button class="go" disabled=move || is_blank(&text.read()) || session.submitted.get()>"Send"</button>
                }
            >
                <button type="button" class="stop" on:click=move |_| session.stop()>"Stop"</button>
            </Show>
        </form>
    }
    .into_any()
}

/// True for Enter alone, outside of an input method's composition.
pub fn sends(event: &leptos::ev::KeyboardEvent) -> bool {
    event.key() == "Enter" && !event.shift_key() && !event.is_composing()
}
