//! Short texts with Markdown in them, such as a question or an option.

#![expect(clippy::needless_pass_by_value, reason = "a component owns its props")]

use leptos::prelude::*;

use crate::app::transcript::markdown::{Html, blocks};

/// A text that is there whole; a single paragraph loses its `<p>`, so that it fits into a label.
#[component]
pub fn Rich(#[prop(into)] text: String) -> impl IntoView {
    view! { <span class="rich" inner_html=html(&text)></span> }
}

fn html(text: &str) -> String {
    let whole: String = blocks(text).iter().map(Html::as_str).collect();
    let inner = whole.trim().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        // Blocks do not fit where a phrase stands; the text as it is does.
        _ => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
    }
}
