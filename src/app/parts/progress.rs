//! How far the lesson is: its phases, and the blocks of its plan.

use leptos::prelude::*;

use super::rich::Rich;
use crate::app::native::plan::BlockStatus;
use crate::app::native::view::{Phase, PlanVerdict};
use crate::app::state::Session;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Ahead,
    Now,
    Done,
}

/// The progress list.
#[component]
pub fn Progress(session: Session) -> impl IntoView {
    view! {
        <section>
            <h2 id="progress">"Progress"</h2>
            <ol class="progress" aria-labelledby="progress">
                {move || steps(session).into_iter().map(item).collect_view()}
            </ol>
        </section>
    }
    .into_any()
}

fn steps(session: Session) -> Vec<(String, Step)> {
    let outline = session.outline.read();
    let (probe, plan) = match outline.phase {
        Phase::Probe => (Step::Now, Step::Ahead),
        Phase::Plan => (Step::Done, Step::Now),
        Phase::Teach => (Step::Done, Step::Done),
    };
    let mut steps = vec![("Probe".to_owned(), probe), ("Plan".to_owned(), plan)];
    let accepted =
        outline.plan.as_ref().filter(|view| view.verdict == PlanVerdict::Accepted || outline.phase == Phase::Teach);
    if let Some(view) = accepted {
        steps.extend(view.plan.blocks.iter().zip(&view.progress).map(|(block, status)| {
            let step = match status {
                BlockStatus::Open => Step::Ahead,
                BlockStatus::Started => Step::Now,
                BlockStatus::Done => Step::Done,
            };
            (block.title.clone(), step)
        }));
    }
    steps
}

fn item((name, step): (String, Step)) -> impl IntoView {
    let (class, said) = match step {
        Step::Ahead => ("", ""),
        Step::Now => ("now", " (now)"),
        Step::Done => ("done", " (done)"),
    };
    let current = (step == Step::Now).then_some("step");
    view! { <li class=class aria-current=current><Rich text=name/><span class="hidden">{said}</span></li> }
}
