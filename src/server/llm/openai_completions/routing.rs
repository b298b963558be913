//! Which upstreams answer behind OpenRouter: the model's own wishes (`order`, `only`, `ignore` …), and those to leave out
//! this time.

use serde_json::{Value, json};

/// The request's `provider` field; none when there is nothing to wish for.
pub(super) fn routing(wanted: Option<&Value>, avoided: &[String]) -> Option<Value> {
    let mut routing = wanted.cloned();
    if avoided.is_empty() || wanted.is_some_and(|wanted| leaves_none(wanted, avoided)) {
        return routing;
    }
    let fields = routing.get_or_insert_with(|| json!({})).as_object_mut()?;
    let ignored = fields.entry("ignore").or_insert_with(|| json!([])).as_array_mut()?;
    for name in avoided {
        if !ignored.iter().filter_map(Value::as_str).any(|known| is_same(known, name)) {
            ignored.push(name.as_str().into());
        }
    }
    routing
}

/// True when the model is pinned to upstreams that are all to be avoided: then they must do.
fn leaves_none(wanted: &Value, avoided: &[String]) -> bool {
    let names = |field: &str| wanted[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ordered = if wanted["allow_fallbacks"] == false { names("order") } else { Vec::new() };
    let pinned: Vec<Vec<&str>> = vec![names("only"), ordered];
    pinned
        .iter()
        .any(|pinned| !pinned.is_empty() && pinned.iter().all(|pin| avoided.iter().any(|name| is_same(pin, name))))
}

/// Answers have names (`Z.AI`), wishes have slugs (`z-ai`, `deepinfra/fp8`).
fn is_same(slug: &str, name: &str) -> bool {
    let plain = |text: &str| {
        let upstream = text.split('/').next().unwrap_or_default();
        upstream.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    plain(slug) == plain(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &Value, avoided: &[&str], expected: &Value) {
        let avoided: Vec<String> = avoided.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Some(wanted).filter(|wanted| !wanted.is_null());
        assert_eq!(routing(wanted, &avoided).unwrap_or_default(), *expected, "{wanted:?}");
    }

    #[test]
    fn what_is_to_be_avoided_joins_what_the_model_ignores() {
        check(&Value::Null, &[], &Value::Null);
        check(&Value::Null, &["Novita"], &json!({"ignore": ["Novita"]}));
        let pinned = json!({"order": ["deepinfra", "novita"], "ignore": ["z-ai"]});
        check(&pinned, &[], &pinned);
        check(&pinned, &["Novita"], &json!({"order": ["deepinfra", "novita"], "ignore": ["z-ai", "Novita"]}));
        check(&pinned, &["Z.AI"], &pinned);
    }

    #[test]
    fn a_model_is_never_left_without_an_upstream() {
        let only = json!({"only": ["deepinfra/fp8"]});
        check(&only, &["DeepInfra"], &only);
        let first = json!({"order": ["novita"], "allow_fallbacks": false});
        check(&first, &["Novita"], &first);
        let two = json!({"only": ["deepinfra", "novita"]});
        check(&two, &["Novita"], &json!({"only": ["deepinfra", "novita"], "ignore": ["Novita"]}));
    }
}
