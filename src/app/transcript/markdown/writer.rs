//! Writes one block's events as HTML. Iterative, so that no nesting overflows a stack.

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, LinkType, Tag, TagEnd};

use super::formula::readable;
use super::href::{Href, href};

/// Elements inside each other; what is deeper is text.
const DEPTH: usize = 40;

/// Events and bytes between `\(` and `\)`; what is longer is no formula, and the search stays linear.
const FORMULA_EVENTS: usize = 400;
const FORMULA_BYTES: usize = 4096;

type Events<'e, 'a> = &'e [(Event<'a>, Range<usize>)];

pub(super) struct Writer<'a> {
    source: &'a str,
    out: String,
    frames: Vec<Frame>,
    /// Columns of the table that is open.
    columns: Vec<Alignment>,
    column: usize,
    is_head: bool,
    /// What an image stands for, while its description is read.
    image: Option<Image>,
    /// The number of each footnote, by its label.
    notes: HashMap<CowStr<'a>, usize>,
    /// Where the next `\)` and the next `\]` stand that were looked for; searching again from before them is not needed.
    closings: [usize; 2],
}

/// What the end of a tag has to do.
enum Frame {
    Close(&'static str),
    /// Opened by its first content, and closed for a formula that stands alone.
    Paragraph {
        open: bool,
    },
    Link,
    /// A table cell, with where its content begins.
    Cell(usize),
    Image,
    /// No element of its own; its content goes into the parent.
    Bare,
    /// Too deep; so is all that is in it.
    Deep,
}

struct Image {
    address: String,
    description: String,
}

impl<'a> Writer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            out: String::new(),
            frames: Vec::new(),
            columns: Vec::new(),
            column: 0,
            is_head: false,
            image: None,
            notes: HashMap::new(),
            closings: [0; 2],
        }
    }

    /// The HTML of one block's events.
    pub(super) fn block(&mut self, events: Events<'_, 'a>) -> String {
        let mut index = 0;
        while index < events.len() {
            index = self.step(events, index);
        }
        self.frames.clear();
        self.image = None;
        std::mem::take(&mut self.out)
    }

    /// Writes the event at `index`; the index of the next one to write.
    fn step(&mut self, events: Events<'_, 'a>, index: usize) -> usize {
        let (event, range) = &events[index];
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => {
                if let Some(end) = self.bracketed(events, index) {
                    return end;
                }
                self.text(text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.text(text),
            Event::Code(code) => self.code("<code>", code),
            Event::InlineMath(formula) => {
                // "$5-$10" is money.
                if self.source[range.end..].starts_with(|next: char| next.is_ascii_digit()) {
                    self.text(&self.source[range.clone()]);
                } else {
                    self.code("<code class=\"math\">", &readable(formula));
                }
            }
            Event::DisplayMath(formula) => self.display(formula),
            Event::FootnoteReference(label) => {
                let number = self.number(label);
                self.inline(&format!("<sup class=\"footnote-ref\">[{number}]</sup>"));
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.inline("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(true) => self.inline("<span role=\"img\" aria-label=\"Done\">☑</span> "),
            Event::TaskListMarker(false) => self.inline("<span role=\"img\" aria-label=\"To do\">☐</span> "),
        }
        index + 1
    }

    fn start(&mut self, tag: &Tag<'a>) {
        let room = match tag {
            Tag::List(_) | Tag::Table(_) => 4,
            _ => 1,
        };
        let is_deep = matches!(self.frames.last(), Some(Frame::Deep)) || self.frames.len() + room > DEPTH;
        let frame = match tag {
            _ if is_deep => Frame::Deep,
            _ if self.image.is_some() => Frame::Bare,
            Tag::Paragraph | Tag::HtmlBlock => Frame::Paragraph { open: false },
            Tag::Heading { level, .. } => self.heading(*level as usize),
            Tag::BlockQuote(_) => self.open("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => self.code_block(kind),
            Tag::List(None) => self.open("<ul>", "</ul>"),
            Tag::List(Some(1)) => self.open("<ol>", "</ol>"),
            Tag::List(Some(first)) => self.open(&format!("<ol start=\"{first}\">"), "</ol>"),
            Tag::Item => self.open("<li>", "</li>"),
            Tag::FootnoteDefinition(label) => {
                let number = self.number(label);
                self.open(&format!("<div class=\"footnote\" role=\"note\"><sup>{number}</sup>"), "</div>")
            }
            Tag::Table(columns) => {
                self.columns.clone_from(columns);
                let open = "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>";
                self.open(open, "</tbody></table></div>")
            }
            Tag::TableHead => {
                (self.is_head, self.column) = (true, 0);
                self.open("<thead><tr>", "</tr></thead><tbody>")
            }
            Tag::TableRow => {
                (self.is_head, self.column) = (false, 0);
                self.open("<tr>", "</tr>")
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.span("<em>", "</em>"),
            Tag::Strong => self.span("<strong>", "</strong>"),
            Tag::Strikethrough => self.span("<del>", "</del>"),
            Tag::Link { link_type, dest_url, .. } => self.link(*link_type, dest_url),
            Tag::Image { dest_url, .. } => {
                self.image = Some(Image { address: dest_url.to_string(), description: String::new() });
                Frame::Image
            }
            // Extensions that are not turned on.
            _ => Frame::Bare,
        };
        self.frames.push(frame);
    }

    fn end(&mut self, tag: TagEnd) {
        match self.frames.pop() {
            Some(Frame::Close(close)) => self.out.push_str(close),
            Some(Frame::Paragraph { open: true }) => self.out.push_str("</p>"),
            Some(Frame::Link) => self.out.push_str("</a>"),
            Some(Frame::Cell(start)) => self.end_cell(start),
            Some(Frame::Image) => self.end_image(),
            // Words of different blocks don't run into each other.
            Some(Frame::Deep) if !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                self.out.push('\n');
            }
            Some(Frame::Paragraph { open: false } | Frame::Bare | Frame::Deep) | None => {}
        }
    }

    fn open(&mut self, open: &str, close: &'static str) -> Frame {
        self.out.push_str(open);
        Frame::Close(close)
    }

    fn span(&mut self, open: &str, close: &'static str) -> Frame {
        self.inline(open);
        Frame::Close(close)
    }

    /// The page has a heading of its own, so the text's outline begins at the third level.
    fn heading(&mut self, level: usize) -> Frame {
        match level {
            1 => self.open("<h3>", "</h3>"),
            2 => self.open("<h4>", "</h4>"),
            3 => self.open("<h5>", "</h5>"),
            _ => self.open("<h6>", "</h6>"),
        }
    }

    fn code_block(&mut self, kind: &CodeBlockKind<'a>) -> Frame {
        let language = match kind {
            CodeBlockKind::Indented => None,
            CodeBlockKind::Fenced(info) => language(info),
        };
        self.out.push_str("<figure class=\"code\">");
        match language {
            Some(name) => {
                let code =
                    format!("<figcaption>{name}</figcaption><pre tabindex=\"0\"><code class=\"language-{name}\">");
                self.out.push_str(&code);
            }
            None => self.out.push_str("<pre tabindex=\"0\"><code>"),
        }
        Frame::Close("</code></pre></figure>")
    }

    fn cell(&mut self) -> Frame {
        let name = if self.is_head { "th scope=\"col\"" } else { "td" };
        let class = match self.columns.get(self.column) {
            Some(Alignment::Left) => " class=\"left\"",
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::None) | None => "",
        };
        self.out.push_str(&format!("<{name}{class}>"));
        self.column += 1;
        Frame::Cell(self.out.len())
    }

    /// A header without words has a name for those who can't see where it stands.
    fn end_cell(&mut self, start: usize) {
        if !self.is_head {
            return self.out.push_str("</td>");
        }
        if self.out[start..].trim().is_empty() {
            match self.column {
                1 => self.out.push_str("<span class=\"hidden\">Row</span>"),
                column => self.out.push_str(&format!("<span class=\"hidden\">Column {column}</span>")),
            }
        }
        self.out.push_str("</th>");
    }

    fn link(&mut self, kind: LinkType, address: &str) -> Frame {
        let address = if kind == LinkType::Email { format!("mailto:{address}") } else { address.to_owned() };
        match href(&address) {
            Some(href) => {
                self.anchor(&href);
                Frame::Link
            }
            None => Frame::Bare,
        }
    }

    fn anchor(&mut self, href: &Href) {
        let (address, rest) = match href {
            Href::Here(address) => (address, "\">"),
            Href::Away(address) => (address, "\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">"),
        };
        self.inline("<a href=\"");
        escape(&mut self.out, &address.replace(' ', "%20"));
        self.out.push_str(rest);
    }

    /// Nothing is loaded: an image is a link to it, or the text that describes it where a link can't be.
    fn end_image(&mut self) {
        let Some(Image { address, description }) = self.image.take() else { return };
        let description = if description.trim().is_empty() { "Image" } else { &description };
        let is_linked = self.frames.iter().any(|frame| matches!(frame, Frame::Link));
        match href(&address).filter(|_| !is_linked) {
            Some(href) => {
                self.anchor(&href);
                self.text(description);
                self.out.push_str("</a>");
            }
            None => self.text(description),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(image) = &mut self.image {
            image.description.push_str(text);
            return;
        }
        let text = if self.is_between_paragraphs() { text.trim_start() } else { text };
        if !text.is_empty() {
            self.inline("");
            escape(&mut self.out, text);
        }
    }

    fn code(&mut self, open: &str, code: &str) {
        if self.image.is_some() {
            return self.text(code);
        }
        self.inline(open);
        escape(&mut self.out, code);
        self.out.push_str("</code>");
    }

    /// A formula on its own lines. A paragraph can't hold it, so it ends before and may go on after.
    fn display(&mut self, formula: &str) {
        let Some(Frame::Paragraph { open }) = self.frames.last_mut() else {
            return self.code("<code class=\"math display\">", &readable(formula.trim()));
        };
        if std::mem::take(open) {
            self.out.push_str("</p>");
        }
        self.out.push_str("<pre class=\"math\" tabindex=\"0\">");
        escape(&mut self.out, &readable(formula.trim()));
        self.out.push_str("</pre>");
    }

    /// Writes our own HTML where text may stand.
    fn inline(&mut self, html: &str) {
        if let Some(Frame::Paragraph { open: open @ false }) = self.frames.last_mut() {
            *open = true;
            self.out.push_str("<p>");
        }
        if self.image.is_none() {
            self.out.push_str(html);
        }
    }

    fn is_between_paragraphs(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Paragraph { open: false }))
    }

    fn number(&mut self, label: &CowStr<'a>) -> usize {
        let next = self.notes.len() + 1;
        *self.notes.entry(label.clone()).or_insert(next)
    }

    /// Writes a formula in `\(…\)` or `\[…\]` that begins at this text; the index of the event to go on with. To Markdown
    /// these are escaped brackets, so the formula is taken from the source, with the marks that it read as its own.
    fn bracketed(&mut self, events: Events<'_, 'a>, index: usize) -> Option<usize> {
        let (open, close) = match self.escaped(&events[index])? {
            '(' => ('(', ')'),
            '[' => ('[', ']'),
            _ => return None,
        };
        let start = events[index].1.start + 1;
        // Inside containers a line begins with the container's marks, which are no part of a formula.
        let is_alone = self.frames.len() == 1 && matches!(self.frames.last(), Some(Frame::Paragraph { .. }));
        if self.next_closing(start, close) > start.saturating_add(FORMULA_BYTES) {
            return None;
        }
        let end = self.closing(events, index, close)?;
        let formula = self.source.get(start..events[end].1.start - 1)?;
        let is_formula = !formula.trim().is_empty() && (is_alone || !formula.contains('\n'));
        if !is_formula || self.image.is_some() {
            return None;
        }
        if open == '(' {
            self.code("<code class=\"math\">", &readable(formula.trim()));
        } else {
            self.display(formula);
        }
        if let Event::Text(rest) = &events[end].0 {
            self.text(&rest[close.len_utf8()..]);
        }
        Some(end + 1)
    }

    /// Where the next escaped `close` stands; the end of everything when there is none.
    fn next_closing(&mut self, start: usize, close: char) -> usize {
        let (slot, mark) = if close == ')' { (0, "\\)") } else { (1, "\\]") };
        if self.closings[slot] < start {
            self.closings[slot] = self.source[start..].find(mark).map_or(usize::MAX, |index| start + index);
        }
        self.closings[slot]
    }

    /// The event that begins with the escaped `close`, in the same element.
    fn closing(&self, events: Events<'_, 'a>, index: usize, close: char) -> Option<usize> {
        let mut depth = 0_usize;
        for (offset, (event, range)) in events[index..].iter().enumerate().skip(1).take(FORMULA_EVENTS) {
            if range.start > events[index].1.start.saturating_add(FORMULA_BYTES) {
                return None;
            }
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth = depth.checked_sub(1)?,
                Event::Text(_) if depth == 0 && self.escaped(&events[index + offset]) == Some(close) => {
                    return Some(index + offset);
                }
                _ => {}
            }
        }
        None
    }

    /// The character that a text begins with, if a backslash escapes it.
    fn escaped(&self, (event, range): &(Event<'a>, Range<usize>)) -> Option<char> {
        let Event::Text(text) = event else { return None };
        let before = self.source.get(..range.start)?;
        text.chars().next().filter(|first| before.ends_with('\\') && self.source[range.start..].starts_with(*first))
    }
}

/// The first word of a fence's info, if it can be the name of a language.
fn language(info: &str) -> Option<&str> {
    let name = info.split([' ', ',', '\t', '{']).next().unwrap_or_default();
    let is_name = |character: char| character.is_ascii_alphanumeric() || "+#._-".contains(character);
    (!name.is_empty() && name.len() <= 32 && name.chars().all(is_name)).then_some(name)
}

/// Appends text so that it is nothing but text, in elements and in attributes.
pub(super) fn escape(out: &mut String, text: &str) {
    let mut written = 0;
    for (index, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            0 => "\u{fffd}",
            _ => continue,
        };
        out.push_str(&text[written..index]);
        out.push_str(entity);
        written = index + 1;
    }
    out.push_str(&text[written..]);
}
