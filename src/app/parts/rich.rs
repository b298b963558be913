//! Short texts with Markdown in them, such as a question or an option.

#![expect(clippy::needless_pass_by_value, reason = "a component owns its props")]

use leptos::prelude::*;

use crate::app::transcript::markdown::phrase;

/// A text that is there whole; a single paragraph loses its `<p>`, so that it fits into a label.
#[component]
pub fn Rich(#[prop(into)] text: String) -> impl IntoView {
    view! { <span class="rich" inner_html=phrase(&text).into_string()></span> }
}
