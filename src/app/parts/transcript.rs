//! The lesson as one continuous document: its units and their parts.

use leptos::prelude::*;

use super::plan_card::PlanCard;
use super::prose::Prose;
use super::question_card::QuestionCard;
use super::rich::Rich;
use crate::app::native::InputEvent;
use crate::app::native::plan::{BlockStatus, PLAN_PROGRESS, PROBE_DONE};
use crate::app::state::{Keyed, Session};
use crate::app::transcript::unit::{Body, Notice, Part, PartKey, Steer, ToolLine, ToolState, Unit, Who};

/// The transcript of a session.
#[component]
pub fn Transcript(session: Session) -> impl IntoView {
    let units = session.units();
    view! {
        <div class="lesson" role="log" aria-label="Lesson" aria-busy=move || session.running.get().to_string()>
            <For each=move || units.rows() key=|row| row.key let:row>
                <UnitView session unit=row.value/>
            </For>
        </div>
    }
    .into_any()
}

#[component]
fn UnitView(session: Session, unit: ArcRwSignal<Unit>) -> impl IntoView {
    let first = unit.get_untracked();
    let (class, name) = match first.who {
        Who::Learner => ("unit learner", "You"),
        Who::Teacher => ("unit teacher", "Teacher"),
        Who::Lesson => ("unit marker", "Lesson"),
    };
    let parts = Keyed::new(keyed(first.parts));
    let growing = parts.clone();
    Effect::new(move |_| growing.sync(keyed(unit.get().parts)));
    view! {
        <article class=class aria-label=name>
            <For each=move || parts.rows() key=|row| row.key let:row>
                <PartView session body=row.value/>
            </For>
        </article>
    }
    .into_any()
}

/// Parts by key and kind: a part that becomes another kind is another part.
fn keyed(parts: Vec<Part>) -> Vec<((PartKey, std::mem::Discriminant<Body>), Body)> {
    parts.into_iter().map(|part| ((part.key, std::mem::discriminant(&part.body)), part.body)).collect()
}

#[component]
fn PartView(session: Session, body: ArcRwSignal<Body>) -> impl IntoView {
    let grows = matches!(*body.read_untracked(), Body::Prose { .. } | Body::Thinking { .. });
    if !grows {
        return (move || still(session, body.get())).into_any();
    }
    let words = body.clone();
    let text = Signal::derive(move || match &*words.read() {
        Body::Prose { text, .. } | Body::Thinking { text, .. } => text.clone(),
        _ => String::new(),
    });
    let thinks = matches!(*body.read_untracked(), Body::Thinking { .. });
    let open = Signal::derive(move || {
        matches!(&*body.read(), Body::Prose { open: true, .. } | Body::Thinking { open: true, .. })
    });
    if thinks { view! { <Thinking text open/> }.into_any() } else { view! { <Prose text open/> }.into_any() }
}

/// A part that is shown anew when it changes.
fn still(session: Session, body: Body) -> AnyView {
    match body {
        Body::Said { text, images } => view! { <Said text images/> }.into_any(),
        Body::Question(card) => view! { <QuestionCard card=*card/> }.into_any(),
        Body::Plan(card) => view! { <PlanCard session card=*card/> }.into_any(),
        Body::Tool(line) => view! { <ToolView line=*line/> }.into_any(),
        Body::Separator => view! { <hr class="step"/> }.into_any(),
        Body::Progress { block_id, title, status } => {
            let verb = match status {
                BlockStatus::Open => "Open",
                BlockStatus::Started => "Started",
                BlockStatus::Done => "Finished",
            };
            view! { <p class="quiet">{verb}": "<b><Rich text=title.unwrap_or(block_id)/></b></p> }.into_any()
        }
        Body::Stopped { can_retry, .. } => view! {
            <p class="quiet">"You stopped the teacher here."</p>
            {can_retry.then(|| view! { <Retry session/> })}
        }
        .into_any(),
        Body::Failed { words, can_retry } => view! { <Failed session words can_retry/> }.into_any(),
        Body::Notice(notice) => view! { <p class="quiet notice">{notice_words(notice)}</p> }.into_any(),
        Body::Verdict { accepted: true, .. } => {
            view! { <p class="quiet verdict">"You accepted the plan."</p> }.into_any()
        }
        Body::Verdict { accepted: false, note } => view! {
            <p class="quiet verdict">"You asked for changes to the plan."</p>
            {note.map(|text| view! { <Said text images=0/> })}
        }
        .into_any(),
        Body::Handoff(assessment) => view! { <Handoff assessment/> }.into_any(),
        Body::Steer(steer) => view! { <SteerView steer/> }.into_any(),
        Body::Note { text } => view! { <p class="quiet">{text}</p> }.into_any(),
        // Those grow, and have a view of their own.
        Body::Prose { .. } | Body::Thinking { .. } => ().into_any(),
    }
}

#[component]
fn Said(text: String, images: usize) -> impl IntoView {
    let pictures = (images > 0).then(|| view! { <small>{images}" picture(s)"</small> });
    view! { <div class="said" dir="auto">{text}{pictures}</div> }
}

#[component]
fn Thinking(text: Signal<String>, open: Signal<bool>) -> impl IntoView {
    view! {
        <details class="thinking">
            <summary>{move || if open.get() { "Thinking…" } else { "Thought" }}</summary>
            <div class="thought">{text}</div>
        </details>
    }
    .into_any()
}

#[component]
fn ToolView(line: ToolLine) -> impl IntoView {
    let state = match line.state {
        ToolState::Writing | ToolState::Running => "…",
        ToolState::Done => "",
        ToolState::Failed => " failed",
        ToolState::Cut => " was cut off",
    };
    // What these do shows as a line or a card of its own.
    let speaks_for_itself = matches!(line.name.as_str(), PLAN_PROGRESS | PROBE_DONE);
    if speaks_for_itself && !matches!(line.state, ToolState::Failed | ToolState::Cut) {
        return ().into_any();
    }
    let args = serde_json::to_string_pretty(&line.args).unwrap_or_default();
    view! {
        <details class="tool" class:failed={line.state == ToolState::Failed}>
            <summary>{line.label}{state}</summary>
            <pre tabindex="0">{args}</pre>
            {(!line.text.is_empty()).then(|| view! { <pre tabindex="0">{line.text}</pre> })}
        </details>
    }
    .into_any()
}

#[component]
fn Failed(session: Session, words: String, can_retry: bool) -> impl IntoView {
    view! {
        <div class="card failed" role="alert">
            <p>{words}</p>
            {can_retry.then(|| view! { <Retry session/> })}
        </div>
    }
    .into_any()
}

/// Asks for the last answer again.
#[component]
fn Retry(session: Session) -> impl IntoView {
    let retry = move |_| session.input(InputEvent::Retry);
    view! { <button type="button" class="retry" on:click=retry disabled=move || session.submitted.get()>"Retry"</button> }
        .into_any()
}

#[component]
fn Handoff(assessment: crate::app::native::marker::Assessment) -> impl IntoView {
    let row = |name: &'static str, concepts: Vec<String>| {
        (!concepts.is_empty()).then(|| view! { <div><dt>{name}</dt><dd>{concepts.join(", ")}</dd></div> })
    };
    view! {
        <section class="card handoff" aria-label="Assessment">
            <h2>"Where you stand"</h2>
            <dl>
                {row("Known", assessment.known)}
                {row("Shaky", assessment.shaky)}
                {row("New to you", assessment.unknown)}
            </dl>
        </section>
    }
    .into_any()
}

/// What a background job brought, or that it brought nothing.
#[component]
fn SteerView(steer: Steer) -> impl IntoView {
    let kind = match steer.kind.as_str() {
        "research" => "Research".to_owned(),
        "pdf" => "PDF".to_owned(),
        "demo" => "Demo".to_owned(),
        "visual" => "Picture".to_owned(),
        _ => steer.kind,
    };
    let is_failed = steer.outcome == "failed";
    let outcome = match steer.outcome.as_str() {
        "done" => String::new(),
        "failed" => ": failed".to_owned(),
        "aborted" => ": stopped".to_owned(),
        other => format!(": {other}"),
    };
    view! {
        <section class="card steer" class:failed=is_failed aria-label="From the background">
            <h2>{format!("{kind}{outcome}")}</h2>
            <p dir="auto">{steer.summary}</p>
        </section>
    }
    .into_any()
}

fn notice_words(notice: Notice) -> String {
    let words = match notice {
        Notice::TurnCap => "The teacher has worked long enough on this; write to go on.",
        Notice::Storage => "The server could not save what came next.",
        Notice::Loop => "The teacher went in circles and has stopped; write to go on.",
        Notice::CallAsText => "The model wrote a tool call as text; it may not be able to use tools.",
        Notice::CutPrompt { counted, estimated } => {
            return format!(
                "The model's server seems to have read only {counted} of about {estimated} tokens. Raise its context length."
            );
        }
        Notice::EmptyAnswer => "The model ended without an answer, so it was asked once more.",
        Notice::Length => "This answer is as long as the model may write.",
        Notice::CutTwice => "The server stopped twice during this answer, so it was left; try it again.",
        Notice::Interrupted => "The server went down here; the teacher goes on below.",
    };
    words.to_owned()
}
