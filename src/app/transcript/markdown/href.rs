//! Which addresses a link may have.

/// An address that a link may go to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Href {
    /// Followed in place: on this site, or by a mail program.
    Here(String),
    /// On another site.
    Away(String),
}

/// Reads an address as a browser would, who looks through control characters; none for one that is not let through.
pub(super) fn href(address: &str) -> Option<Href> {
    let address: String = address.chars().filter(|character| !is_looked_through(*character)).collect();
    let address = address.trim();
    match scheme(address) {
        Some(scheme) if scheme.eq_ignore_ascii_case("mailto") => Some(Href::Here(address.to_owned())),
        Some(scheme) => {
            let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
            is_web.then(|| Href::Away(address.to_owned()))
        }
        // "//host" keeps the page's scheme and goes away; a browser takes a backslash for a slash.
        None if address.starts_with(['/', '\\']) && address[1..].starts_with(['/', '\\']) => None,
        None => (!address.is_empty()).then(|| Href::Here(address.to_owned())),
    }
}

/// What stands before a colon, unless the colon is part of a path, a query or a fragment.
fn scheme(address: &str) -> Option<&str> {
    let end = address.find([':', '/', '\\', '?', '#'])?;
    address[end..].starts_with(':').then_some(&address[..end])
}

fn is_looked_through(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_mail_and_relative_addresses_pass() {
        let here = |address: &str| Some(Href::Here(address.to_owned()));
        let away = |address: &str| Some(Href::Away(address.to_owned()));
        for (address, expected) in [
            ("https://a.test/b?c:d", away("https://a.test/b?c:d")),
            ("HTTP://a.test", away("HTTP://a.test")),
            ("mailto:a@b.test", here("mailto:a@b.test")),
            ("/settings", here("/settings")),
            ("notes/a:b", here("notes/a:b")),
            ("#part", here("#part")),
            ("javascript:alert(1)", None),
            (" \tJaVa\nScRiPt:alert(1)", None),
            ("java\u{200b}script:alert(1)", None),
            ("vbscript:x", None),
            ("data:text/html,x", None),
            ("blob:x", None),
            ("file:///etc/hostname", None),
            ("//evil.test/x", None),
            ("/\\evil.test/x", None),
            ("\\\\evil.test", None),
            ("\t//evil.test", None),
            ("", None),
        ] {
            assert_eq!(href(address), expected, "{address:?}");
        }
    }
}
