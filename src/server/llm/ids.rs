//! Ids of tool calls that the asked provider accepts.
//!
//! An id that another model gave may be too long, or hold signs that are refused. It is mapped by a pure function, so
//! that call and result stay together and a request begins like the one before; the record keeps the original.

use std::borrow::Cow;

/// What a provider accepts as an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// Anything that it gave itself; of others what OpenAI accepts, which may stand behind it.
    Own,
    /// At most 40 characters.
    Short,
    /// Nine letters and digits.
    Nine,
    /// Letters, digits, `_` and `-`, at most 64 of them.
    Plain,
}

impl IdRule {
    /// `id`, which another model gave, as this rule has it.
    #[must_use]
    pub fn apply(self, id: &str) -> String {
        match self {
            // The two-part ids of the responses API are cut even where they would fit.
            Self::Own | Self::Short => joined(id).unwrap_or_else(|| fitted(id, 40, Self::Short.allows(id))),
            Self::Plain => fitted(id, 64, self.allows(id)),
            Self::Nine if self.allows(id) => id.to_owned(),
            Self::Nine => tail(&short_hash(id), 9),
        }
    }

    /// True for an id that may go as it is.
    #[must_use]
    pub fn allows(self, id: &str) -> bool {
        match self {
            Self::Own => !id.is_empty(),
            Self::Short => !id.is_empty() && id.encode_utf16().count() <= 40,
            Self::Plain => !id.is_empty() && id.len() <= 64 && id.bytes().all(is_plain),
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }
}

/// `name` as every provider takes it for the name of a tool: models call tools that nobody has offered.
#[must_use]
pub fn tool_name(name: &str) -> Cow<'_, str> {
    if IdRule::Plain.allows(name) {
        return name.into();
    }
    let name: String = plain(name).chars().take(64).collect();
    if name.is_empty() { "unnamed".into() } else { name.into() }
}

/// The two parts of `call|item` in one id of at most 40 characters; none for other ids.
fn joined(id: &str) -> Option<String> {
    let (call, item) = id.split_once('|')?;
    let (call, item) = (plain(call), plain(item));
    let whole = if item.is_empty() { call.clone() } else { format!("{call}_{item}") };
    Some(if whole.len() <= 40 { whole } else { marked(&call, id, 40) })
}

fn fitted(id: &str, limit: usize, fits: bool) -> String {
    if fits { id.to_owned() } else { marked(&plain(id), id, limit) }
}

/// As much of `start` as fits before a mark that only `id` has.
fn marked(start: &str, id: &str, limit: usize) -> String {
    let hash = short_hash(id);
    let mark = &hash[..hash.len().min(8)];
    let kept = start.len().min(limit - mark.len() - 1);
    format!("{}_{mark}", &start[..kept])
}

/// With `_` for every sign that is not plain; ASCII.
fn plain(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| u8::try_from(unit).ok().filter(|byte| is_plain(*byte)).map_or('_', char::from))
        .collect()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn tail(text: &str, length: usize) -> String {
    format!("{text:0>length$}")[text.len().saturating_sub(length)..].to_owned()
}

/// The hash that the reference packages shorten ids with: two rounds of multiplication over UTF-16 units, in base 36.
#[must_use]
pub fn short_hash(text: &str) -> String {
    let (mut first, mut second): (u32, u32) = (0xdead_beef, 0x41c6_ce57);
    for unit in text.encode_utf16() {
        first = (first ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        second = (second ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    let mix = |own: u32, other: u32| {
        (own ^ (own >> 16)).wrapping_mul(2_246_822_507) ^ (other ^ (other >> 13)).wrapping_mul(3_266_489_909)
    };
    first = mix(first, second);
    second = mix(second, first);
    base_36(second) + &base_36(first)
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::HashSet;

    /// Rows `{in, out}` made by the reference packages (0.85.1).
    const TABLE: &str = include_str!("../tests/fixtures/pi/tables/short-hash.json");

    #[test]
    fn hashes_are_those_of_the_reference() {
        for row in serde_json::from_str::<Vec<Value>>(TABLE).unwrap() {
            assert_eq!(short_hash(row["in"].as_str().unwrap()), row["out"], "{}", row["in"]);
        }
    }

    type IsLegal = fn(&str) -> bool;

    #[test]
    fn names_that_nobody_offered_are_legal() {
        assert_eq!(["ls", "search web", "a.b:ü", ""].map(tool_name), ["ls", "search_web", "a_b__", "unnamed"]);
        assert_eq!(tool_name(&"x".repeat(70)).len(), 64);
    }

    #[test]
    fn ids_of_any_provider_are_legal_and_different_for_the_next() {
        let ids = [
            "call_Zq81LmNp|fc_0a11bb22cc33dd44ee55ff66aa77bb88cc99dd00ee11ff22",
            "call_Zq81LmNq.2",
            "functions.ls:0",
            "call_Zq81LmNq-2",
            "call_Zq81LmNq_2",
            &"z".repeat(70),
            &"z".repeat(71),
        ];
        let rules: [(IdRule, IsLegal); 3] = [
            (IdRule::Short, |id| id.len() <= 40),
            (IdRule::Plain, |id| id.len() <= 64 && id.bytes().all(is_plain)),
            (IdRule::Nine, |id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ];
        for (rule, is_legal) in rules {
            let mapped: Vec<String> = ids.iter().map(|id| rule.apply(id)).collect();
            assert!(mapped.iter().all(|id| is_legal(id)), "{rule:?}: {mapped:?}");
            assert_eq!(mapped.iter().collect::<HashSet<_>>().len(), ids.len(), "{rule:?}: {mapped:?}");
            assert!(mapped.iter().all(|id| rule.apply(id) == *id), "a legal id stays: {mapped:?}");
        }
    }
}
