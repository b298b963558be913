//! What goes on, said for eyes and ears: the run's state, the last grading, and what went wrong.

use std::borrow::Cow;

use leptos::prelude::*;

use crate::app::native::InputEvent;
use crate::app::native::view::Next;
use crate::app::state::{Link, Session};

/// The status line above the composer.
#[component]
pub fn Status(session: Session) -> impl IntoView {
    let words = move || {
        let words = match (session.link.get(), session.submitted.get(), session.running.get()) {
            (Link::Lost, _, _) => "Connecting again…",
            (_, true, _) => "Sending…",
            (_, _, true) => match session.waits.get() {
                Some(ms) => return busy(ms).into(),
                None => "Your teacher is writing…",
            },
            (Link::Resting | Link::Streaming, false, false) => match session.outline.read().next {
                Next::Answer(_) => "A question waits for you.",
                Next::Verdict(_) => "The plan waits for your word.",
                Next::Reply | Next::Handoff => "Your teacher was cut off before the reply.",
                Next::Idle => "",
            },
        };
        Cow::Borrowed(words)
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

/// What a run says that waits for this long before it asks its model again.
fn busy(wait_ms: u64) -> String {
    format!("The provider is busy; trying again in {} s.", wait_ms.div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        assert_eq!(busy(3_000), "The provider is busy; trying again in 3 s.");
        assert_eq!(busy(2_500), busy(3_000));
        assert_eq!(busy(0), "The provider is busy; trying again in 0 s.");
    }
}
