//! The list of chats beside every page.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::components::A;

use crate::app::api;
use crate::app::native::ErrorBody;
use crate::app::native::view::{ChatSummary, Next, Phase};
use crate::app::platform;

/// Counts what should make the list look anew.
#[derive(Clone, Copy)]
pub struct Changes(pub RwSignal<u32>);

/// The navigation "Chats". A deletion can be undone there.
#[component]
pub fn Chats() -> impl IntoView {
    let Changes(changes) = expect_context::<Changes>();
    let chats = Resource::new(move || changes.get(), |_| api::chats());
    let list =
        List { deleted: RwSignal::new(None), trouble: RwSignal::new(None), back: StoredValue::new(None), changes };
    view! {
        <nav class="chats" aria-label="Chats">
            <A href="/" attr:class="brand">"learnharness"</A>
            <div class="undo" role="status">
                {move || list.deleted.get().map(|chat| view! {
                    "Deleted “"{chat.title}"”. "
                    <button type="button" class="bare" on:click=move |_| list.undo()>"Undo"</button>
                })}
            </div>
            {move || list.trouble.get().map(|words| view! { <p class="trouble" role="alert">{words}</p> })}
            <Transition>
                {move || Suspend::new(async move {
                    let chats = chats.await;
                    list.bring_back();
                    match chats {
                        Ok(chats) if chats.is_empty() => view! { <p class="quiet">"Your lessons will stand here."</p> }.into_any(),
                        Ok(chats) => {
                            view! { <ul>{chats.into_iter().map(|chat| entry(list, chat)).collect_view()}</ul> }.into_any()
                        }
                        Err(error) => view! { <p class="quiet">{error.error.message}</p> }.into_any(),
                    }
                })}
            </Transition>
        </nav>
    }
    .into_any()
}

/// What the learner does to the list. Copies are the same list.
#[derive(Clone, Copy)]
struct List {
    /// The chat that was deleted last.
    deleted: RwSignal<Option<ChatSummary>>,
    trouble: RwSignal<Option<String>>,
    /// The chat that gets the focus once it is in the list again.
    back: StoredValue<Option<String>>,
    changes: RwSignal<u32>,
}

impl List {
    fn delete(self, chat: ChatSummary) {
        spawn_local(async move {
            let outcome = api::delete_chat(chat.id.clone()).await;
            if self.done(outcome) {
                let _ = self.deleted.try_set(Some(chat));
                platform::next_frame(|| platform::focus(".undo button"));
            }
        });
    }

    fn undo(self) {
        let Some(chat) = self.deleted.get_untracked() else { return };
        spawn_local(async move {
            let outcome = api::restore_chat(chat.id.clone()).await;
            self.back.try_set_value(Some(chat.id));
            if self.done(outcome) {
                let _ = self.deleted.try_set(None);
            }
        });
    }

    /// Looks anew, or says what went wrong.
    fn done(self, outcome: Result<(), ErrorBody>) -> bool {
        let done = outcome.is_ok();
        let _ = self.trouble.try_set(outcome.err().map(|error| error.error.message));
        let _ = self.changes.try_update(|count| *count += 1);
        done
    }

    fn bring_back(self) {
        if let Some(chat) = self.back.try_update_value(Option::take).flatten() {
            platform::next_frame(move || platform::focus(&format!(".chats a[href='/chat/{chat}']")));
        }
    }
}

/// A chat is opened as a document of its own: its page is rendered whole, and nothing of the one before is left over.
fn entry(list: List, chat: ChatSummary) -> impl IntoView {
    let state = state(&chat);
    let (title, name) = (chat.title.clone(), format!("Delete “{}”", chat.title));
    view! {
        <li>
            <A href=format!("/chat/{}", chat.id) attr:rel="external">{title}<small>{state}</small></A>
            <button type="button" class="bare delete" aria-label=name title="Delete" on:click=move |_| list.delete(chat.clone())>
                <span aria-hidden="true">"×"</span>
            </button>
        </li>
    }
}

fn state(chat: &ChatSummary) -> &'static str {
    if chat.running {
        return "your teacher is writing";
    }
    match (&chat.next, chat.phase) {
        (Next::Answer(_), _) => "a question waits for you",
        (Next::Verdict(_), _) => "the plan waits for you",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Probe) => "finding out what you know",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Plan) => "making a plan",
        (Next::Idle | Next::Reply | Next::Handoff, Phase::Teach) => "in the lesson",
    }
}
