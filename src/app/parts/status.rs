//! What goes on, said for eyes and ears: the run's state, the last grading, and what went wrong.

use leptos::prelude::*;
use leptos_router::components::A;

use super::chats::Changes;
use crate::app::native::InputEvent;
use crate::app::native::view::{Next, Retry};
use crate::app::state::Session;

/// The status line above the composer, and what can be done about it.
#[component]
pub fn Status(session: Session) -> impl IntoView {
    let works = move || session.running.get() || session.submitted.get();
    let reaches = move || !session.lost.get() && !session.gone.get();
    let cut_off = move || {
        let owed = matches!(session.outline.read().next, Next::Reply | Next::Handoff);
        owed && !works() && reaches()
    };
    view! {
        <p class="status" class:busy=move || works() && reaches() role="status">{move || words(session)}</p>
        <Show when=cut_off>
            <button type="button" on:click=move |_| session.input(InputEvent::Retry)>"Retry"</button>
        </Show>
        <Show when=move || session.gone.get()>
            <Gone session/>
        </Show>
        <p class="hidden" role="status">{move || session.feedback.get()}</p>
        {move || session.trouble.get().map(|error| view! { <p class="trouble" role="alert">{error.error.message}</p> })}
    }
    .into_any()
}

fn words(session: Session) -> String {
    if session.gone.get() {
        return "This lesson was deleted. What you have typed stays here.".to_owned();
    }
    let words = match (session.lost.get(), session.submitted.get(), session.running.get()) {
        (true, _, _) if session.stopping.get() => "Reconnecting to stop your teacher…",
        (_, _, true) if session.stopping.get() => "Stopping…",
        (true, _, _) => "Reconnecting…",
        (false, true, _) => "Sending…",
        (false, false, true) => match session.waits.get() {
            Some(retry) => return waits(&retry),
            None => "Your teacher is writing…",
        },
        (false, false, false) => match session.outline.read().next {
            Next::Answer(_) => "A question waits for you.",
            Next::Verdict(_) => "The plan waits for your word.",
            Next::Reply | Next::Handoff => "Your teacher was cut off before the reply.",
            Next::Idle => "",
        },
    };
    words.to_owned()
}

/// The ways out of a lesson that was deleted.
#[component]
fn Gone(session: Session) -> impl IntoView {
    let changes = expect_context::<Changes>();
    let restore = move |_| session.restore(move || changes.0.update(|count| *count += 1));
    view! {
        <p class="row">
            <button type="button" on:click=restore>"Restore"</button>
            <A href="/">"Start a new lesson"</A>
        </p>
    }
    .into_any()
}

/// What a run says that waits before it asks its model again.
fn waits(retry: &Retry) -> String {
    format!("{} Trying again in {} s.", retry.reason, retry.wait_ms.div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_with_its_reason_and_in_whole_seconds() {
        let check = |wait_ms, shown: &str| {
            assert_eq!(
                waits(&Retry { attempt: 1, wait_ms, reason: "The provider cannot be reached.".to_owned() }),
                shown
            );
        };
        check(3_000, "The provider cannot be reached. Trying again in 3 s.");
        check(2_500, "The provider cannot be reached. Trying again in 3 s.");
        check(0, "The provider cannot be reached. Trying again in 0 s.");
    }
}
