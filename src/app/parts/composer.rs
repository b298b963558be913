//! Where the learner writes.

use leptos::html::Textarea;
use leptos::prelude::*;

use crate::app::native::input::is_blank;
use crate::app::platform;
use crate::app::state::{Fate, Session};

/// Words that are being written; they survive a reload. Copies are the same words.
#[derive(Clone, Copy)]
pub struct Draft {
    /// None until the field is the page's: what was typed into it before then stands in it alone.
    text: RwSignal<Option<String>>,
    key: StoredValue<String>,
    /// The field that the words are written in.
    pub field: NodeRef<Textarea>,
}

impl Draft {
    /// What stands in the field already; else what was written under `key` before.
    #[must_use]
    pub fn new(key: String) -> Self {
        let draft = Self { text: RwSignal::new(None), key: StoredValue::new(key), field: NodeRef::new() };
        Effect::new(move |_| {
            let Some(field) = draft.field.get() else { return };
            if draft.text.read_untracked().is_some() {
                return;
            }
            let typed = field.value();
            if typed.is_empty() {
                draft.text.set(Some(platform::draft(&draft.key.get_value())));
            } else {
                draft.write(typed);
            }
        });
        draft
    }

    pub fn write(self, words: String) {
        platform::remember_draft(&self.key.get_value(), &words);
        self.text.set(Some(words));
    }

    /// True while there is nothing that could be sent.
    #[must_use]
    pub fn is_blank(self) -> bool {
        self.text.read().as_deref().is_none_or(is_blank)
    }

    /// The words, for the field; none leaves it as it is.
    #[must_use]
    pub fn shown(self) -> Option<String> {
        self.text.get()
    }

    /// The words as they are now.
    #[must_use]
    pub fn words(self) -> String {
        self.text.get_untracked().unwrap_or_default()
    }
}

/// The field "Message". Enter sends, Shift+Enter breaks the line.
#[component]
pub fn Field(draft: Draft, rows: u8, placeholder: &'static str, send: impl Fn() + 'static) -> impl IntoView {
    view! {
        <textarea
            node_ref=draft.field
            aria-label="Message"
            rows=rows
            dir="auto"
            placeholder=placeholder
            prop:value=move || draft.shown()
            on:input=move |event| draft.write(event_target_value(&event))
            on:keydown=move |event| if sends(&event) { event.prevent_default(); send(); }
        ></textarea>
    }
    .into_any()
}

/// The composer of a chat.
#[component]
pub fn Composer(session: Session) -> impl IntoView {
    let draft = Draft::new(session.chat.get_value());
    let send = move || {
        let words = draft.words();
        if is_blank(&words) || !untrack(|| session.is_idle()) {
            return;
        }
        // The draft is kept until the words are taken.
        draft.text.set(Some(String::new()));
        let (id, kept) = (session.chat.get_value(), words.clone());
        session.say(words, move |fate| match (fate, draft.text.try_get_untracked().map(Option::unwrap_or_default)) {
            (Fate::Taken, Some(typed)) => draft.write(typed),
            (Fate::Refused, Some(typed)) if !typed.is_empty() => draft.write(format!("{kept}\n{typed}")),
            (Fate::Refused, Some(_)) => draft.write(kept),
            (Fate::Taken, None) if platform::draft(&id) == kept => platform::remember_draft(&id, ""),
            // The page is left, and the draft kept.
            (Fate::Taken | Fate::Refused, None) => {}
        });
    };
    view! {
        <form class="compose" on:submit=move |event| { event.prevent_default(); send(); }>
            <Field draft rows=1 placeholder="Write to your teacher" send/>
            <Show
                when=move || session.running.get()
                fallback=move || view! {
                    <button class="go" disabled=move || draft.is_blank() || session.submitted.get() || session.gone.get()>"Send"</button>
                }
            >
                <button type="button" class="stop" disabled=move || session.stopping.get() on:click=move |_| session.stop()>"Stop"</button>
            </Show>
        </form>
    }
    .into_any()
}

/// True for Enter alone, outside of an input method's composition.
fn sends(event: &leptos::ev::KeyboardEvent) -> bool {
    event.key() == "Enter" && !event.shift_key() && !event.is_composing()
}
