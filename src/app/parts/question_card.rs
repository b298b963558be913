//! A question in the transcript, once it has an answer.

use leptos::prelude::*;

use super::rich::Rich;
use crate::app::native::question::{Graded, Verdict};
use crate::app::transcript::unit::{self, Judgement, QuestionState};

/// The question, what was answered and what became of it; nothing while it waits, for then the dock asks it.
#[component]
pub fn QuestionCard(card: unit::QuestionCard) -> impl IntoView {
    let question = card.question.text().to_owned();
    let (class, outcome) = match card.state {
        QuestionState::Pending => return ().into_any(),
        QuestionState::Answered(graded) if card.of_probe => ("card asked", noted(&graded)),
        QuestionState::Answered(graded) => {
            let right = graded.right(&card.question);
            (class_of(&graded, card.judgement.as_ref()), outcome(graded, right, card.judgement))
        }
        QuestionState::Told(text) => ("card asked", view! { <p class="answer">{text}</p> }.into_any()),
        QuestionState::Closed => ("card asked", view! { <p class="answer">"Not answered."</p> }.into_any()),
    };
    view! {
        <section class=class aria-label="Question and answer">
            <p class="asks"><Rich text=question/></p>
            {outcome}
            {card.objection.map(|reason| view! { <p class="answer">"You objected: "{reason}</p> })}
        </section>
    }
    .into_any()
}

fn class_of(graded: &Graded, judgement: Option<&Judgement>) -> &'static str {
    match (graded.verdict, judgement.map(|judgement| judgement.verdict.as_str())) {
        (Verdict::Correct, _) | (Verdict::Open, Some("correct")) => "card asked good",
        (Verdict::Wrong, _) | (Verdict::Open, Some(_)) => "card asked bad",
        (Verdict::Open | Verdict::DontKnow | Verdict::Skipped | Verdict::Noted | Verdict::NotAnswered, _) => {
            "card asked"
        }
    }
}

/// The answer alone: what was right comes with the lesson.
fn noted(graded: &Graded) -> AnyView {
    let shown = graded.answer.shown();
    match graded.verdict {
        Verdict::DontKnow => view! { <p class="answer">"You don't know this yet."</p> }.into_any(),
        Verdict::Skipped => view! { <p class="answer">"Skipped."</p> }.into_any(),
        Verdict::NotAnswered => view! { <p class="answer">"Not answered."</p> }.into_any(),
        Verdict::Correct | Verdict::Wrong | Verdict::Open | Verdict::Noted => {
            view! { <p class="answer">"You answered "<b><Rich text=shown/></b>"."</p> }.into_any()
        }
    }
}

fn outcome(graded: Graded, right: String, judgement: Option<Judgement>) -> AnyView {
    let shown = graded.answer.shown();
    let tag = match (graded.verdict, judgement.as_ref().map(|judgement| judgement.verdict.as_str())) {
        (Verdict::Correct, _) | (Verdict::Open, Some("correct")) => "Correct.",
        (Verdict::Wrong, _) | (Verdict::Open, Some(_)) => "Not quite.",
        (Verdict::Open, None) => "Your teacher looks at it.",
        (Verdict::DontKnow, _) => "You don't know this yet.",
        (Verdict::Skipped, _) => "Skipped.",
        (Verdict::NotAnswered, _) => "Not answered.",
        (Verdict::Noted, _) => "",
    };
    let is_told = matches!(graded.verdict, Verdict::Wrong | Verdict::DontKnow) && !right.is_empty();
    let right = is_told.then_some(right);
    view! {
        <p class="answer">
            {(!tag.is_empty()).then(|| view! { <strong class="tag">{tag}</strong>" " })}
            {(!shown.is_empty()).then(|| view! { "You answered " <b><Rich text=shown/></b> "." })}
            {right.map(|right| view! { " Right is " <b><Rich text=right/></b> "." })}
        </p>
        {graded.note.map(|note| view! { <p class="why"><Rich text=note/></p> })}
        {judgement.map(|judgement| view! { <p class="why"><Rich text=judgement.reason/></p> })}
    }
    .into_any()
}
