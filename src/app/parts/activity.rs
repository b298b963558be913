//! The background work of a chat.

use leptos::prelude::*;

/// The jobs; there is no kind of job yet, so it says that nothing runs.
#[component]
pub fn Activity() -> impl IntoView {
    view! {
        <section>
            <h2>"Activity"</h2>
            <p class="quiet">"Nothing runs in the background."</p>
        </section>
    }
    .into_any()
}
