//! What a chat has used: tokens, cost and context.

use leptos::prelude::*;

use crate::app::state::Session;

/// The usage region.
#[component]
pub fn UsageView(session: Session) -> impl IntoView {
    let row = |name: &'static str, value: Signal<String>| view! { <div><dt>{name}</dt><dd>{value}</dd></div> };
    let tokens = move |count: fn(&crate::app::native::Usage) -> u64| {
        Signal::derive(move || grouped(count(&session.outline.read().usage)))
    };
    view! {
        <section aria-label="Usage">
            <h2>"Usage"</h2>
            <dl class="usage">
                {row("Tokens in", tokens(|usage| usage.input + usage.cache_read + usage.cache_write))}
                {row("cached", tokens(|usage| usage.cache_read))}
                {row("Tokens out", tokens(|usage| usage.output))}
                {row("Cost", Signal::derive(move || format!("${:.4}", session.outline.read().usage.cost.total)))}
                {row("Context", Signal::derive(move || grouped(session.outline.read().context)))}
            </dl>
        </section>
    }
    .into_any()
}

/// 41208 as 41,208.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        let check = |count, shown: &str| assert_eq!(grouped(count), shown);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(41_208, "41,208");
        check(1_234_567, "1,234,567");
    }
}
