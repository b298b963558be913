//! The teacher's words: Markdown as blocks, of which only the open one changes while they stream.

use leptos::prelude::*;

use crate::app::state::Keyed;
use crate::app::transcript::markdown::blocks;

/// Markdown that may still grow.
#[component]
pub fn Prose(
    /// The text so far.
    #[prop(into)]
    text: Signal<String>,
    /// True while more comes.
    #[prop(into)]
    open: Signal<bool>,
) -> impl IntoView {
    let rows = Keyed::new(numbered(&text.get_untracked()));
    let growing = rows.clone();
    Effect::new(move |_| growing.sync(numbered(&text.read())));
    view! {
        <div class="prose" class:open=open>
            <For each=move || rows.rows() key=|row| row.key let:row>
                <div class="block" inner_html=move || row.value.get()></div>
            </For>
        </div>
    }
}

fn numbered(text: &str) -> Vec<(usize, String)> {
    blocks(text).into_iter().map(Into::into).enumerate().collect()
}
