//! A plan in the transcript, with the learner's word on it while it waits.

use leptos::prelude::*;

use super::composer::Draft;
use super::rich::Rich;
use crate::app::native::InputEvent;
use crate::app::platform;
use crate::app::state::Session;
use crate::app::transcript::unit::{self, PlanState};

/// The plan's blocks; the one that waits has the verdict below.
#[component]
pub fn PlanCard(session: Session, card: unit::PlanCard) -> impl IntoView {
    let note = match card.state {
        PlanState::Waiting => None,
        PlanState::Accepted => Some("Accepted"),
        PlanState::SentBack => Some("Sent back"),
        PlanState::Superseded => Some("Replaced by a later plan"),
    };
    let blocks = card
        .plan
        .blocks
        .into_iter()
        .map(|block| view! { <li><Rich text=block.title/><small><Rich text=block.objective/></small></li> })
        .collect_view();
    let waits = card.state == PlanState::Waiting;
    // Only the plan that holds is a region of its own; earlier ones are part of the text.
    let holds = waits || card.state == PlanState::Accepted;
    view! {
        <section
            class="card plan"
            class:past=!holds
            aria-label=holds.then_some("Plan")
            tabindex=waits.then_some("-1")
        >
            <h2>{card.plan.title}</h2>
            <p>{card.plan.goal}</p>
            <ol>{blocks}</ol>
            {note.map(|note| view! { <p class="quiet">{note}</p> })}
            {waits.then(|| view! { <VerdictForm session/> })}
        </section>
    }
    .into_any()
}

#[component]
fn VerdictForm(session: Session) -> impl IntoView {
    let changing = RwSignal::new(false);
    let note = Draft::new(format!("{}/plan", session.chat.get_value()));
    let idle = move || session.is_idle();
    let accept = move |_| session.input(InputEvent::Verdict { accepted: true, note: None });
    let change = move |_| {
        changing.set(true);
        platform::next_frame(|| platform::focus("#plan-changes"));
    };
    // The region gets the focus and not its button: an Enter too many must not accept a plan.
    Effect::new(move |_| {
        if platform::focus_is_free() {
            platform::next_frame(|| platform::focus(".plan[tabindex]"));
        }
    });
    let send = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        session.input(InputEvent::Verdict { accepted: false, note: Some(note.words()) });
        note.write(String::new());
    };
    view! {
        <Show
            when=move || changing.get()
            fallback=move || view! {
                <div class="row">
                    <button type="button" class="go" on:click=accept disabled=move || !idle()>"Accept plan"</button>
                    <button type="button" on:click=change disabled=move || !idle()>"Ask for changes"</button>
                </div>
            }
        >
            <form on:submit=send class="changes">
                <label for="plan-changes">"What should change?"</label>
                <textarea
                    node_ref=note.field
                    id="plan-changes"
                    rows="2"
                    placeholder="For example: skip the first block, or make it shorter"
                    prop:value=move || note.shown()
                    on:input=move |event| note.write(event_target_value(&event))
                ></textarea>
                <div class="row">
                    <button class="go" disabled=move || !idle() || note.is_blank()>"Send changes"</button>
                    <button type="button" class="bare" on:click=move |_| changing.set(false)>"Cancel"</button>
                </div>
            </form>
        </Show>
    }
    .into_any()
}
