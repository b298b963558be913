//! The pages, and the routes that lead to them.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{SsrMode, path};

/// The application in the body of the document.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    view! {
        <Title formatter=|title: String| format!("{title} · learnharness") text="learnharness"/>
        <Router>
            <Routes fallback=|| "nope">
                <Route path=path!("/") view=|| view!{<h1>"hello"</h1>} ssr=SsrMode::Async/>
            </Routes>
        </Router>
    }
}
