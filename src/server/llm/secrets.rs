//! Keys, taken out of what is kept or shown: those that are known, and words that look like one.

use memchr::memmem::find;
use reqwest::Url;

/// What stands in the place of a header or a parameter that holds a key.
pub const REMOVED: &str = "(removed)";

/// What the keys of well-known services begin with.
const BEGINNINGS: [&str; 13] =
    ["sk-", "sk_", "pk-", "rk-", "AIza", "gsk_", "xai-", "hf_", "ghp_", "github_pat_", "nvapi-", "csk-", "Bearer "];
/// Signs that follow such a beginning at least.
const LENGTH: usize = 16;
/// A shorter text is no key: to take it out everywhere would only spoil other words.
const SHORTEST: usize = 6;

/// The keys of one exchange.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    pub fn add(&mut self, secret: &str) {
        let secret = secret.rsplit(' ').next().unwrap_or_default();
        if secret.len() >= SHORTEST {
            self.0.push(secret.into());
            if secret.contains('/') {
                // As some servers write it in JSON.
                self.0.push(secret.replace('/', "\\/").into());
            }
        }
    }

    /// Overwrites every key in `bytes`, which stay as many.
    pub fn blot(&self, bytes: &mut [u8]) {
        for secret in &self.0 {
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], secret) {
                bytes[from + at..from + at + secret.len()].fill(b'*');
                from += at + secret.len();
            }
            // What was cut in the middle of a key.
            let begun = (SHORTEST - 2..secret.len()).rev().find(|length| bytes.ends_with(&secret[..*length]));
            let end = bytes.len();
            bytes[end - begun.unwrap_or(0)..].fill(b'*');
        }
        for beginning in BEGINNINGS {
            blot_words(bytes, beginning.as_bytes());
        }
    }

    /// `text` without keys.
    #[must_use]
    pub fn without(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.blot(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// `headers` without keys; those that hold nothing else lose their value.
    #[must_use]
    pub fn without_in(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let value = |name: &str, value: &str| if is_secret(name) { REMOVED.to_owned() } else { self.without(value) };
        headers.iter().map(|(name, text)| (name.clone(), value(name, text))).collect()
    }

    /// An address without keys, user and password.
    #[must_use]
    pub fn without_in_url(&self, url: &str) -> String {
        let Ok(mut url) = Url::parse(url) else { return self.without(url) };
        // These fail only where an address can have neither.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if url.query().is_some() {
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            let pairs = self.without_in(&pairs);
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
        self.without(url.as_str())
    }
}

/// True for the name of a header or a parameter that holds a key, a cookie or the like.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let holds = ["authorization", "cookie", "secret", "password", "token", "apikey", "api-key", "api_key"];
    name == "key"
        || name.ends_with("-key")
        || holds.iter().any(|part| name.contains(part) && !name.contains("ratelimit"))
}

/// Overwrites what follows `beginning` where a word begins with it.
fn blot_words(bytes: &mut [u8], beginning: &[u8]) {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], beginning) {
        let (start, begin) = (from + at, from + at + beginning.len());
        let length = bytes[begin..].iter().take_while(|byte| is_sign(byte)).count();
        // Signatures and pictures are long words too, in which anything may stand.
        let is_inside = start > 0 && (is_sign(&bytes[start - 1]) || matches!(bytes[start - 1], b'/' | b'+'));
        if length >= LENGTH && !is_inside {
            bytes[begin..begin + length].fill(b'*');
        }
        from = begin + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut secrets = Secrets::default();
        secrets.add("Bearer my/secret+key");
        secrets.add("no");
        assert_eq!(secrets.without(text), expected);
    }

    #[test]
    fn a_known_key_is_blotted_out_wherever_it_stands() {
        check("Wrong key: my/secret+key, no!", "Wrong key: *************, no!");
        check(r#"{"key":"my\/secret+key"}"#, r#"{"key":"**************"}"#);
        check("cut in my/secr", "cut in *******");
        check("all in my/", "all in my/");
    }

    #[test]
    fn a_word_that_looks_like_a_key_is_blotted_out() {
        check("sk-or-v1-0123456789abcdef!", "sk-**********************!");
        check(r#""Bearer abcdefghijklmnop""#, r#""Bearer ****************""#);
        check("a sk-short one", "a sk-short one");
        check("c2lnsk-0123456789abcdefgh", "c2lnsk-0123456789abcdefgh");
    }

    #[test]
    fn headers_and_addresses_lose_their_keys() {
        let names = ["authorization", "X-Api-Key", "set-cookie", "x-goog-api-key", "key", "access_token"];
        assert!(names.into_iter().all(is_secret));
        assert!(
            !["x-ratelimit-remaining-tokens", "content-type", "anthropic-version", "alt"].into_iter().any(is_secret)
        );
        let url = Secrets::default().without_in_url("https://me:pw@host/v1?alt=sse&key=abc");
        assert_eq!(url, "https://host/v1?alt=sse&key=%28removed%29");
        assert_eq!(Secrets::default().without_in_url("http://host/v1/messages"), "http://host/v1/messages");
    }
}
