//! What a browser loads when it opens `/` for the first time: bytes by kind, as sent and decoded.
//!
//! The page is not run: what it asks for is read out of its HTML (scripts, styles, pictures, preloads, and the paths under
//! `/pkg/` in its own script).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use anyhow::{Result, bail};

use super::Row;
use super::server::{Response, Server};
use crate::serve::Built;

/// All bytes of a first load, as sent.
const GOAL: usize = 450_000;

/// Bytes on the wire (bodies, without headers) and after decoding.
#[derive(Clone, Copy, Default)]
struct Size {
    sent: usize,
    decoded: usize,
}

pub(super) fn measure(built: &Built) -> Result<Vec<Row>> {
    let server = Server::start(built)?;
    let mut kinds: BTreeMap<String, Size> = BTreeMap::new();
    let page = load(&server, "/", &mut kinds)?;
    for path in asked_for(&String::from_utf8_lossy(&page)) {
        load(&server, &path, &mut kinds)?;
    }
    let mut rows: Vec<Row> = kinds.iter().map(|(kind, size)| row(kind, *size, "")).collect();
    let sent = kinds.values().map(|size| size.sent).sum();
    let decoded = kinds.values().map(|size| size.decoded).sum();
    rows.push(row("in all", Size { sent, decoded }, &format!("≤ {} kB", GOAL / 1000)));
    Ok(rows)
}

/// Loads one path, adds its size to its kind, and returns its decoded body.
fn load(server: &Server, path: &str, kinds: &mut BTreeMap<String, Size>) -> Result<Vec<u8>> {
    let response = server.get(path)?;
    if response.status != 200 {
        bail!("GET {path} answers with {}", response.status);
    }
    let decoded = decode(&response)?;
    let size = kinds.entry(kind(response.header("content-type"))).or_default();
    size.sent += response.body.len();
    size.decoded += decoded.len();
    Ok(decoded)
}

fn decode(response: &Response) -> Result<Vec<u8>> {
    let mut decoded = Vec::new();
    match response.header("content-encoding") {
        "" => decoded.clone_from(&response.body),
        "br" => brotli::BrotliDecompress(&mut response.body.as_slice(), &mut decoded)?,
        "gzip" => drop(flate2::read::GzDecoder::new(response.body.as_slice()).read_to_end(&mut decoded)?),
        other => bail!("unknown content coding `{other}`"),
    }
    Ok(decoded)
}

/// The kind's name in the table.
fn kind(content_type: &str) -> String {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "text/html" => "html",
        "text/javascript" | "application/javascript" => "js",
        "application/wasm" => "wasm",
        "text/css" => "css",
        other => other,
    }
    .to_owned()
}

/// The paths on this server that a browser loads with the page.
fn asked_for(html: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for tag in html.split('<').skip(1) {
        let name = tag.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
        let (attributes, text) = tag.split_once('>').unwrap_or((tag, ""));
        if matches!(name, "script" | "link" | "img") {
            paths.extend(quoted(attributes).filter(|path| path.starts_with('/') && !path.starts_with("//")));
        }
        if name == "script" {
            paths.extend(quoted(text).filter(|path| path.starts_with("/pkg/") && path.contains('.')));
        }
    }
    paths
}

/// What stands between quotes of either kind.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(['"', '\''])?;
        let quote = &rest[start..=start];
        let (inside, after) = rest[start + 1..].split_once(quote)?;
        rest = after;
        Some(inside.to_owned())
    })
}

fn row(name: &str, size: Size, goal: &str) -> Row {
    let value = format!("{:>8.1} kB sent {:>8.1} kB decoded", size.sent as f64 / 1e3, size.decoded as f64 / 1e3);
    Row { name: name.to_owned(), value, goal: goal.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_page_loads_is_found_and_links_to_other_pages_are_not() {
        let html = r#"<!DOCTYPE html><html><head>
            <link rel="stylesheet" href="/pkg/a.css"><link rel="icon" href='/icon.svg'>
            <script type="module" nonce="x">import init from '/pkg/a.js'; await init({module_or_path: "/pkg/a.wasm"});</script>
            <script src="//elsewhere.example/x.js"></script></head>
            <body><a href="/settings">Settings</a><img src="/picture.png" alt="it's"></body></html>"#;
        let found: Vec<String> = asked_for(html).into_iter().collect();
        assert_eq!(found, ["/icon.svg", "/picture.png", "/pkg/a.css", "/pkg/a.js", "/pkg/a.wasm"]);
    }

    #[test]
    fn kinds_have_short_names() {
        assert_eq!(kind("text/html; charset=utf-8"), "html");
        assert_eq!(kind("application/wasm"), "wasm");
        assert_eq!(kind("image/svg+xml"), "image/svg+xml");
    }
}
