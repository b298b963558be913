//! `/chat/{id}`: a lesson.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_meta::Title;
use leptos_router::components::A;
use leptos_router::hooks::use_params_map;

use super::not_found::NotFound;
use crate::app::api;
use crate::app::native::view::{ChatView, Phase};
use crate::app::native::{ErrorKind, Seq};
use crate::app::parts::activity::Activity;
use crate::app::parts::chats::{Changes, Chats};
use crate::app::parts::composer::Composer;
use crate::app::parts::dock::Dock;
use crate::app::parts::progress::Progress;
use crate::app::parts::status::Status;
use crate::app::parts::transcript::Transcript;
use crate::app::parts::usage::UsageView;
use crate::app::platform::{self, Moved};
use crate::app::state::Session;

/// The page of one chat.
#[component]
pub fn ChatPage() -> impl IntoView {
    let params = use_params_map();
    let id = move || params.read().get("id").unwrap_or_default();
    let chat = Resource::new(id, |id| async move { api::chat(&id, Seq::START).await });
    view! {
        <Suspense>
            {move || Suspend::new(async move {
                match chat.await {
                    Ok(view) => view! { <Lesson view/> }.into_any(),
                    Err(error) if error.error.kind == ErrorKind::NotFound => view! { <NotFound/> }.into_any(),
                    Err(error) if error.error.kind == ErrorKind::Gone => {
                        view! { <Deleted id=params.read_untracked().get("id").unwrap_or_default() again=move || chat.refetch()/> }.into_any()
                    }
                    Err(error) => view! { <Unreadable words=error.error.message/> }.into_any(),
                }
            })}
        </Suspense>
    }
    .into_any()
}

/// A lesson that was deleted and can be restored.
#[component]
fn Deleted(id: String, again: impl Fn() + Copy + Send + 'static) -> impl IntoView {
    api::answer_not_found();
    let changes = expect_context::<Changes>();
    let trouble = RwSignal::new(None::<String>);
    let kept = StoredValue::new(id.clone());
    Effect::new(move |_| {
        spawn_local(async move {
            restored(kept).await;
            if !kept.is_disposed() {
                changes.0.update(|count| *count += 1);
                again();
            }
        });
    });
    let restore = move |_| {
        let id = id.clone();
        spawn_local(async move {
            match api::restore_chat(id).await {
                Ok(()) => {
                    changes.0.update(|count| *count += 1);
                    again();
                }
                Err(error) => {
                    let _ = trouble.try_set(Some(error.error.message));
                }
            }
        });
    };
    view! {
        <Title text="Deleted"/>
        <div class="frame">
            <Chats/>
            <main class="page">
                <h1>"This lesson was deleted"</h1>
                <p>"It can be restored for a week after that."</p>
                <p class="row">
                    <button type="button" class="go" on:click=restore>"Restore"</button>
                    <A href="/">"Start a new lesson"</A>
                </p>
                {move || trouble.get().map(|words| view! { <p class="trouble" role="alert">{words}</p> })}
            </main>
        </div>
    }
    .into_any()
}

/// Milliseconds between two looks whether a deleted lesson was restored.
const RESTORED_LOOK_MS: u32 = 4_000;

/// Waits until the chat was restored elsewhere, or its page is left.
async fn restored(chat: StoredValue<String>) {
    loop {
        platform::sleep(RESTORED_LOOK_MS).await;
        let Some(id) = chat.try_get_value() else { return };
        if platform::is_visible() && api::chat(&id, Seq::START).await.is_ok() {
            return;
        }
    }
}

#[component]
fn Unreadable(words: String) -> impl IntoView {
    view! {
        <div class="frame">
            <Chats/>
            <main class="page"><h1>"This lesson cannot be shown"</h1><p role="alert">{words}</p></main>
        </div>
    }
    .into_any()
}

#[component]
fn Lesson(view: ChatView) -> impl IntoView {
    let session = Session::new(view);
    let sheet = RwSignal::new(None::<&'static str>);
    begin(session);
    let status = move || match (session.running.get(), session.submitted.get()) {
        (true, _) => "streaming",
        (false, true) => "submitted",
        (false, false) => "ready",
    };
    let phase = move || match session.outline.read().phase {
        Phase::Probe => "probe",
        Phase::Plan => "plan",
        Phase::Teach => "teach",
    };
    // The document's title outlives the page by a moment.
    let title = move || {
        let title = session.outline.try_with(|outline| outline.title.clone()).unwrap_or_default();
        platform::document_title(&title)
    };
    let escape = move |event: leptos::ev::KeyboardEvent| {
        if event.key() == "Escape" {
            sheet.set(None);
        }
    };
    Effect::new(move |_| {
        if session.submitted.get() {
            sheet.set(None);
        }
    });
    view! {
        <Title text=title/>
        <div class="frame with-rail" on:keydown=escape data-sheet=move || sheet.get().unwrap_or("none")>
            <Chats/>
            <main data-status=status data-phase=phase>
                <div class="sheets">
                    <SheetButton sheet name="chats" label="Chats"/>
                    <SheetButton sheet name="progress" label="Progress"/>
                </div>
                <div class="column">
                    <h1>{move || session.outline.read().title.clone()}</h1>
                    <Transcript session/>
                </div>
                <div class="dock">
                    <Dock session/>
                    <div class="hands">
                        <Status session/>
                        <Composer session/>
                    </div>
                </div>
            </main>
            <aside class="rail" aria-label="Activity">
                <Progress session/>
                <Activity/>
                <UsageView session/>
            </aside>
        </div>
    }
    .into_any()
}

/// On a small screen the rails are sheets; this opens and closes one.
#[component]
fn SheetButton(sheet: RwSignal<Option<&'static str>>, name: &'static str, label: &'static str) -> impl IntoView {
    let open = move || sheet.get() == Some(name);
    view! {
        <button type="button" class="bare" aria-expanded=move || open().to_string() on:click=move |_| sheet.set((!open()).then_some(name))>
            {move || if open() { "Close" } else { label }}
        </button>
    }
    .into_any()
}

/// What the learner did last, or has to decide now: what came after it is read from there on.
const LAST_DONE: &str = ".said, .asked, .verdict, .plan[tabindex]";

/// What the page does in the browser beside showing: follow the chat, keep the end in sight, keep the list of chats true.
fn begin(session: Session) {
    let changes = expect_context::<Changes>();
    let pinned = session.pinned;
    let listening = StoredValue::new(None);
    let follow = move || {
        if pinned.try_get_untracked() == Some(true) {
            platform::next_frame(|| platform::scroll_to_end(LAST_DONE));
        }
    };
    Effect::new(move |_| {
        session.begin();
        let scrolled = platform::on_scroll(move |moved| {
            let _ = pinned.try_set(moved == Moved::ToEnd);
        });
        listening.set_value(Some((scrolled, platform::on_resize(follow))));
    });
    on_cleanup(move || {
        listening.try_set_value(None);
    });
    Effect::new(move |_| {
        session.shown.track();
        session.running.track();
        follow();
    });
    // A chat that is deleted or restored in the list may be this one; one that runs is told so by its stream.
    Effect::new(move |before: Option<()>| {
        changes.0.track();
        if before.is_some() && !session.running.get_untracked() {
            session.look_now();
        }
    });
    // The list says which chats run, and has those that were not deleted.
    Effect::new(move |before: Option<(bool, bool)>| {
        let now = (session.running.get(), session.gone.get());
        if before.is_some_and(|before| before != now) {
            changes.0.update(|count| *count += 1);
        }
        now
    });
}
