//! The teacher's words: Markdown as blocks, of which only the open one changes while they stream.

use leptos::prelude::*;

use crate::app::state::Keyed;
use crate::app::transcript::markdown::{Html, Stream};

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
    let mut stream = Stream::default();
    let mut shown = move || {
        let text = text.get();
        if open.get() {
            stream.grow(&text)
        } else {
            stream.finish(&text)
        };
        numbered(stream.blocks())
    };
    let rows = Keyed::new(untrack(&mut shown));
    let growing = rows.clone();
    Effect::new(move |_| growing.sync(shown()));
    view! {
        <div class="prose" class:open=open>
            <For each=move || rows.rows() key=|row| row.key let:row>
                <div class="block" inner_html=move || row.value.get().into_string()></div>
            </For>
        </div>
    }
    .into_any()
}

fn numbered(blocks: &[Html]) -> Vec<(usize, Html)> {
    blocks.iter().cloned().enumerate().collect()
}
