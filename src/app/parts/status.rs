//! What goes on, said for eyes and ears: the run's state, the last grading, and what went wrong.

use leptos::prelude::*;

use crate::app::native::InputEvent;
use crate::app::native::view::Next;
use crate::app::state::{Link, Session};

/// The status line above the composer.
#[component]
pub fn Status(session: Session) -> impl IntoView {
    let words = move || match (session.link.get(), session.submitted.get(), session.running.get()) {
        (Link::Lost, _, _) => "Connecting again…",
        (_, true, _) => "Sending…",
        (_, _, true) => "Your teacher is writing…",
        (Link::Resting | Link::Streaming, false, false) => match session.outline.read().next {
            Next::Answer(_) => "A question waits for you.",
            Next::Verdict(_) => "The plan waits for your word.",
            Next::Reply | Next::Handoff => "Your teacher was cut off before the reply.",
            Next::Idle => "",
        },
    };
    let cut_off = move || {
        let owed = matches!(session.outline.read().next, Next::Reply | Next::Handoff);
        owed && !session.running.get() && !session.submitted.get() && session.link.get() != Link::Lost
    };
    view! {
        <p class="status" class:busy=move || session.running.get() || session.submitted.get() role="status">{words}</p>
        <Show when=cut_off>
            <button type="button" on:click=move |_| session.input(InputEvent::Retry)>"Retry"</button>
        </Show>
        <p class="hidden" role="status">{move || session.feedback.get()}</p>
        {move || session.trouble.get().map(|words| view! { <p class="trouble" role="alert">{words}</p> })}
    }
    .into_any()
}
