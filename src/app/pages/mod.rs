//! The pages, and the routes that lead to them.

pub mod chat;
pub mod home;
pub mod not_found;

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{SsrMode, path};

use super::parts::chats::Changes;
use chat::ChatPage;
use home::Home;
use not_found::NotFound;

/// The application in the body of the document. Pages are rendered whole before they are sent, so that they read well
/// without JavaScript and their status is known.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    provide_context(Changes(RwSignal::new(0)));
    view! {
        <Title formatter=titled/>
        <Router>
            <Routes fallback=|| view! { <NotFound/> }>
                <Route path=path!("/") view=Home ssr=SsrMode::Async/>
                <Route path=path!("/chat/:id") view=ChatPage ssr=SsrMode::Async/>
            </Routes>
        </Router>
    }
    .into_any()
}

#[expect(clippy::needless_pass_by_value, reason = "the formatter is handed its title")]
fn titled(title: String) -> String {
    if title.is_empty() { "learnharness".to_owned() } else { format!("{title} · learnharness") }
}
