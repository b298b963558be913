//! The question that waits, docked where the hands are.

use leptos::html::Form;
use leptos::prelude::*;

use super::rich::Rich;
use crate::app::native::view::Pending;
use crate::app::native::{Answer, InputEvent, Question};
use crate::app::platform;
use crate::app::state::Session;

/// The form of the first question that waits; nothing when none does.
#[component]
pub fn Dock(session: Session) -> impl IntoView {
    let first = Memo::new(move |_| session.outline.read().pending.first().cloned());
    move || {
        first.get().and_then(|asked| {
            let question = Question::from_args(&asked.tool_name, &asked.args).ok()?;
            Some(view! { <Ask session asked question/> })
        })
    }
}

/// What is in the form.
#[derive(Clone, Copy)]
struct Draft {
    chosen: RwSignal<Vec<String>>,
    words: RwSignal<String>,
    /// False until the form is the page's: what was done in it before then stands in it alone.
    read: RwSignal<bool>,
    form: NodeRef<Form>,
}

impl Draft {
    /// What an answer was made of that was given back; else what stands in the form already.
    fn new(answer: Option<Answer>) -> Self {
        let read = RwSignal::new(answer.is_some());
        let answer = answer.unwrap_or_default();
        let words = answer.text.or(answer.other).unwrap_or_default();
        let draft =
            Self { chosen: RwSignal::new(answer.values), words: RwSignal::new(words), read, form: NodeRef::new() };
        Effect::new(move |_| {
            let Some(form) = draft.form.get() else { return };
            if !draft.read.get_untracked() {
                draft.chosen.set(platform::checked(&form));
                draft.words.set(platform::typed(&form));
                draft.read.set(true);
            }
        });
        draft
    }

    fn answer(self, question: &Question) -> Answer {
        let words = Some(self.words.get_untracked()).filter(|words| !words.trim().is_empty());
        let alone = question.options().is_empty();
        Answer {
            values: self.chosen.get_untracked(),
            text: words.clone().filter(|_| alone),
            other: words.filter(|_| !alone),
            ..Answer::default()
        }
    }

    fn is_empty(self) -> bool {
        self.chosen.read().is_empty() && self.words.read().trim().is_empty()
    }

    /// Chooses an option; where only one may be chosen, the others and the own words give way.
    fn choose(self, option: &str, several: bool, on: bool) {
        self.chosen.update(|chosen| {
            if several {
                chosen.retain(|other| other != option);
            } else {
                chosen.clear();
            }
            if on {
                chosen.push(option.to_owned());
            }
        });
        if !several && on {
            self.words.set(String::new());
        }
    }
}

#[component]
fn Ask(session: Session, asked: Pending, question: Question) -> impl IntoView {
    let draft = Draft::new(session.given(&asked.tool_call_id));
    let folded = RwSignal::new(false);
    let (asked, kept) = (StoredValue::new(asked), StoredValue::new(question.clone()));
    let idle = move || session.is_idle();
    let answer = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let answer = kept.with_value(|question| draft.answer(question));
        session.answer(&asked.get_value(), answer, false);
    };
    let dont_know = move |_| session.answer(&asked.get_value(), Answer { dont_know: true, ..Answer::default() }, false);
    let skip = move |_| session.answer(&asked.get_value(), Answer::default(), true);
    let digits = move |event: leptos::ev::KeyboardEvent| {
        let typing = platform::is_typing(&event);
        let digit = event.key().parse::<usize>().ok().filter(|digit| (1..=9).contains(digit) && !typing);
        let option = digit.and_then(|digit| kept.with_value(|question| question.options().get(digit - 1).cloned()));
        if let Some(option) = option {
            event.prevent_default();
            let several = kept.with_value(Question::takes_several);
            let on = !(several && draft.chosen.read_untracked().contains(&option));
            draft.choose(&option, several, on);
        }
    };
    // Nothing in the form can have the focus before it can be answered.
    Effect::new(move |_| {
        if idle() && platform::focus_is_free() {
            // Who is at work in it already is not moved.
            platform::next_frame(|| platform::focus(".ask:not(:focus-within) input"));
        }
    });
    view! {
        <form node_ref=draft.form class="ask" autocomplete="off" class:folded=folded aria-label="Question" on:submit=answer on:keydown=digits>
            <button type="button" class="fold bare" aria-expanded=move || (!folded.get()).to_string() on:click=move |_| folded.update(|folded| *folded = !*folded)>
                {move || if folded.get() { "Show question" } else { "Fold" }}
            </button>
            <fieldset disabled=move || !idle()>
                <legend><Rich text=question.text().to_owned()/></legend>
                <div class="body">
                    <Options question=question.clone() draft/>
                    <Words question=question.clone() draft/>
                    <Hint session asked=asked.get_value() question/>
                    <div class="row">
                        <button class="go" disabled=move || draft.is_empty()>"Answer"</button>
                        <button type="button" on:click=dont_know>"I don't know"</button>
                        <button type="button" class="bare" on:click=skip>"Skip"</button>
                    </div>
                </div>
            </fieldset>
        </form>
    }
    .into_any()
}

#[component]
fn Options(question: Question, draft: Draft) -> impl IntoView {
    let several = question.takes_several();
    let kind = if several { "checkbox" } else { "radio" };
    question
        .options()
        .iter()
        .enumerate()
        .map(|(index, option)| {
            let (value, shown) = (option.clone(), option.clone());
            let (is, choose) = (value.clone(), value.clone());
            let chosen = move || draft.chosen.read().contains(&is);
            let marked = chosen.clone();
            let digit = (index < 9).then(|| view! { <kbd aria-hidden="true">{index + 1}</kbd> });
            view! {
                <label class="option" class:on=marked>
                    <input
                        type=kind
                        name="answer"
                        value=value
                        prop:checked=move || draft.read.get().then(&chosen)
                        on:change=move |event| draft.choose(&choose, several, event_target_checked(&event))
                    />
                    <Rich text=shown/>
                    {digit}
                </label>
            }
        })
        .collect_view()
}

/// The field for own words, where they may be written.
#[component]
fn Words(question: Question, draft: Draft) -> impl IntoView {
    let several = question.takes_several();
    let alone = question.options().is_empty();
    question.takes_text().then(|| {
        let write = move |event| {
            let words = event_target_value(&event);
            if !several && !words.trim().is_empty() {
                draft.chosen.set(Vec::new());
            }
            draft.words.set(words);
        };
        let name = if alone { "Your answer" } else { "In your own words" };
        view! {
            <input
                type="text"
                class="words"
                autocomplete="off"
                aria-label=name
                placeholder=name
                prop:value=move || draft.read.get().then(|| draft.words.get())
                on:input=write
            />
        }
    })
}

#[component]
fn Hint(session: Session, asked: Pending, question: Question) -> impl IntoView {
    let asked_for = RwSignal::new(false);
    let hint = match question {
        Question::Quiz(quiz) => quiz.hint,
        Question::Ask(_) => None,
    };
    hint.map(|hint| {
        let id = StoredValue::new(asked.tool_call_id);
        let recorded = move || session.outline.with(|outline| id.with_value(|id| outline.hinted.contains(id)));
        let shown = Memo::new(move |_| asked_for.get() || recorded());
        let show = move |_| {
            asked_for.set(true);
            session.hint(InputEvent::Hint { tool_call_id: id.get_value() });
            // The button has gone: whoever has read the hint goes on with the options, at the one that is chosen.
            platform::next_frame(|| {
                platform::focus(".ask input");
                platform::focus(".ask input:checked");
            });
        };
        view! {
            <Show
                when=move || shown.get()
                fallback=move || view! { <button type="button" class="bare hint" on:click=show>"Show a hint"</button> }
            >
                <p class="hint" role="note"><Rich text=hint.clone()/></p>
            </Show>
        }
    })
}
