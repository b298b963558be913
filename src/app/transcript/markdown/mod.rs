//! Markdown to sanitized HTML, block by block, so that a page touches only what changes while a text streams.
//!
//! What comes out holds elements and attributes of the writer's own and escaped text, nothing else: raw HTML is shown as
//! text, links go to http, https, mailto and relative addresses, images are links to click. Depth and length are bounded.
//!
//! # What stays the same
//!
//! When text is appended after a line's end, all blocks but the last stay as they are; a line that is still being written
//! may join the block before it. Two things reach further back: a reference definition (`[name]: address`) makes links of
//! what named it, and a footnote's definition makes notes of its references. [`Stream`] builds on this.

mod depth;
mod formula;
mod href;
mod repair;
mod stream;
mod writer;

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser};

pub use self::stream::Stream;
use self::writer::{Writer, escape};

/// Bytes that are read as Markdown; what is beyond is shown as it is.
const LENGTH: usize = 512 * 1024;

/// Bytes of HTML that a block may always have.
const OUTPUT: usize = 1024 * 1024;

/// Bytes of HTML a byte of source, for longer blocks.
const GROWTH: usize = 20;

/// Safe HTML: made only by this module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// The top-level blocks of a whole text.
#[must_use]
pub fn blocks(text: &str) -> Vec<Html> {
    rendered(text).blocks.into_iter().map(|block| block.html).collect()
}

/// The top-level blocks of a text that goes on: what has been opened at its very end (a link, a table, emphasis, a fence)
/// shows as what it will be, not as its marks.
#[must_use]
pub fn open_blocks(text: &str) -> Vec<Html> {
    blocks(&repair::repaired(text))
}

/// A short text in line: a single paragraph without its element. Blocks do not fit where a phrase stands; such a text is
/// shown as it is.
#[must_use]
pub fn phrase(text: &str) -> Html {
    let blocks = blocks(text);
    let inner = match blocks.as_slice() {
        [Html(only)] => only.trim().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>")),
        _ => None,
    };
    Html(inner.map_or_else(
        || {
            let mut html = String::with_capacity(text.len());
            escape(&mut html, text);
            html
        },
        str::to_owned,
    ))
}

/// A text as blocks.
struct Rendered {
    blocks: Vec<Block>,
    /// Its blocks can't be rendered one by one: it has reference definitions or footnotes, or was made less deep.
    entangled: bool,
}

struct Block {
    html: Html,
    /// Where the line begins on which the block does.
    start: usize,
}

fn rendered(text: &str) -> Rendered {
    let (text, rest) = text.split_at(limit(text));
    let shallow = depth::shallow(text);
    let text = shallow.as_ref();
    let parser = Parser::new_ext(text, options());
    let is_changed = matches!(shallow, Cow::Owned(_));
    let entangled = is_changed || text.contains("[^") || parser.reference_definitions().iter().next().is_some();
    let mut writer = Writer::new(text);
    let mut blocks = Vec::new();
    let mut events = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        events.push((event, range));
        if depth == 0 {
            blocks.push(block(text, &mut writer, &events));
            events.clear();
        }
    }
    if !rest.is_empty() {
        blocks.push(Block { html: plain(rest), start: text.len() });
    }
    Rendered { blocks, entangled }
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_MATH
}

fn block<'a>(text: &'a str, writer: &mut Writer<'a>, events: &[(Event<'a>, Range<usize>)]) -> Block {
    let (start, end) = match (events.first(), events.last()) {
        (Some((_, first)), Some((_, last))) => (first.start, first.end.max(last.end)),
        _ => (0, 0),
    };
    let source = &text[start..end];
    let html = writer.block(events);
    let bounded = html.len() <= OUTPUT.max(GROWTH * source.len());
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    Block { html: if bounded { Html(html) } else { plain(source) }, start }
}

fn plain(text: &str) -> Html {
    let mut html = "<p class=\"plain\">".to_owned();
    escape(&mut html, text);
    html.push_str("</p>");
    Html(html)
}

/// Where the Markdown ends, at the end of a line where there is one.
fn limit(text: &str) -> usize {
    if text.len() <= LENGTH {
        return text.len();
    }
    let end = text.floor_char_boundary(LENGTH);
    text[..end].rfind('\n').map_or(end, |newline| newline + 1)
}

#[cfg(test)]
mod tests;
