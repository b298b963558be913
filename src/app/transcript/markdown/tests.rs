//! What a text becomes, that nothing gets through, and that work and size are bounded.

use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::Value;

use super::{Html, Stream, blocks, open_blocks, phrase};

fn joined(blocks: &[Html]) -> String {
    blocks.iter().map(Html::as_str).collect::<Vec<_>>().join("\n")
}

fn check(text: &str, expected: &Expect) {
    let html = joined(&blocks(text));
    assert_safe(&html);
    expected.assert_eq(&html);
}

fn fault(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(index, _)| &text[..index]).chain([text])
}

#[test]
fn a_phrase_is_one_paragraph_in_line_or_the_text_as_it_is() {
    let check = |text: &str, html: &str| assert_eq!(phrase(text).as_str(), html, "{text}");
    check("What is `1 < 2`?", "What is <code>1 &lt; 2</code>?");
    check("", "");
    check("- a < b", "- a &lt; b");
    check("one\n\ntwo's", "one\n\ntwo&#39;s");
    check("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;");
}

#[test]
fn each_top_level_block_is_its_own() {
    check(
        "One *two* **three** ~~four~~ `five`\nsix\\\nseven\n\n- [x] a\n- [ ] b\n\n3. c\n\n> d\n\n---",
        &expect![[r#"
            <p>One <em>two</em> <strong>three</strong> <del>four</del> <code>five</code>
            six<br>seven</p>
            <ul><li><span role="img" aria-label="Done">☑</span> a</li><li><span role="img" aria-label="To do">☐</span> b</li></ul>
            <ol start="3"><li>c</li></ol>
            <blockquote><p>d</p></blockquote>
            <hr>"#]],
    );
}

#[test]
fn headings_begin_below_the_page_s_own() {
    check(
        "# a\n## b\n### c\n#### d\n###### e",
        &expect![[r#"
        <h3>a</h3>
        <h4>b</h4>
        <h5>c</h5>
        <h6>d</h6>
        <h6>e</h6>"#]],
    );
}

#[test]
fn code_says_its_language_and_nothing_else() {
    check(
        "```rust ignore\nlet a = \"<b>\";\n```\n\n```\nplain\n```\n\n    indented\n\n```\"><img>\nx\n```",
        &expect![[r#"
            <figure class="code"><figcaption>rust</figcaption><pre tabindex="0"><code class="language-rust">let a = &quot;&lt;b&gt;&quot;;
            </code></pre></figure>
            <figure class="code"><pre tabindex="0"><code>plain
            </code></pre></figure>
            <figure class="code"><pre tabindex="0"><code>indented
            </code></pre></figure>
            <figure class="code"><pre tabindex="0"><code>x
            </code></pre></figure>"#]],
    );
}

#[test]
fn a_table_can_be_scrolled_and_its_headers_have_names() {
    check(
        "| | a | |\n|---|:-:|--:|\n| 1 | *2* | 3 |",
        &expect![[
            r#"<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead><tr><th scope="col"><span class="hidden">Row</span></th><th scope="col" class="center">a</th><th scope="col" class="right"><span class="hidden">Column 3</span></th></tr></thead><tbody><tr><td>1</td><td class="center"><em>2</em></td><td class="right">3</td></tr></tbody></table></div>"#
        ]],
    );
}

#[test]
fn links_go_to_the_web_or_stay_and_images_are_links() {
    check(
        "[a](https://a.test/?b&c \"t\") [b](/settings) <c@d.test> ![cat](https://a.test/p.png) [![x](/y.png)](/z) \
         ![](data:image/png;base64,AA)",
        &expect![[
            r#"<p><a href="https://a.test/?b&amp;c" rel="noopener noreferrer nofollow" target="_blank">a</a> <a href="/settings">b</a> <a href="mailto:c@d.test">c@d.test</a> <a href="https://a.test/p.png" rel="noopener noreferrer nofollow" target="_blank">cat</a> <a href="/z">x</a> Image</p>"#
        ]],
    );
}

#[test]
fn formulas_are_source_for_now() {
    check(
        "The sum $a_1 + b_1$ and \\(x_1 < y_1\\), then\n\\[\n\\frac{a}{b}\n\\]\nand $$c^2$$ end.",
        &expect![[r#"
            <p>The sum <code class="math">a_1 + b_1</code> and <code class="math">x_1 &lt; y_1</code>, then
            </p><pre class="math" tabindex="0">a/b</pre><p>and </p><pre class="math" tabindex="0">c^2</pre><p>end.</p>"#]],
    );
    check(
        "- \\[ x \\]\n- $$y$$\n\n**\\(z\\) $$w$$**",
        &expect![[r#"
        <ul><li><code class="math display">x</code></li><li><code class="math display">y</code></li></ul>
        <p><strong><code class="math">z</code> <code class="math display">w</code></strong></p>"#]],
    );
}

#[test]
fn money_and_brackets_are_no_formulas() {
    check(
        "$5 and $10, or $5-$10, \\(open and \\\\(x\\\\) and \\[ ] `\\(x\\)`",
        &expect![[r#"<p>$5 and $10, or $5-$10, (open and \(x\) and [ ] <code>\(x\)</code></p>"#]],
    );
}

#[test]
fn footnotes_are_numbered_and_have_no_ids() {
    check(
        "A[^app] b[^2].\n\n[^2]: two\n\n[^app]: one",
        &expect![[r#"
        <p>A<sup class="footnote-ref">[1]</sup> b<sup class="footnote-ref">[2]</sup>.</p>
        <div class="footnote" role="note"><sup>2</sup><p>two</p></div>
        <div class="footnote" role="note"><sup>1</sup><p>one</p></div>"#]],
    );
}

#[test]
fn raw_html_is_text() {
    check(
        "<div id=app>\n*x*\n</div>\n\na <b onclick=x>c</b> d",
        &expect![[r#"
        <p>&lt;div id=app&gt;
        *x*
        &lt;/div&gt;
        </p>
        <p>a &lt;b onclick=x&gt;c&lt;/b&gt; d</p>"#]],
    );
}

#[test]
fn nothing_gets_through_and_nothing_loads() {
    let fault = fault(include_str!("../../../server/tests/fixtures/faults/79-markdown-xss-and-beacons.json"));
    for input in fault["stimulus"]["inputs"].as_array().unwrap() {
        for prefix in prefixes(input.as_str().unwrap()) {
            assert_safe(&joined(&blocks(prefix)));
            assert_safe(&joined(&open_blocks(prefix)));
        }
    }
}

#[test]
fn an_open_fence_is_code_to_the_end_in_every_prefix() {
    let fault = fault(include_str!("../../../server/tests/fixtures/faults/58-open-fence-and-dollars.json"));
    let text = fault["stimulus"]["doc"].as_str().unwrap();
    let mut stream = Stream::default();
    for prefix in prefixes(text) {
        stream.grow(prefix);
        for html in [joined(&blocks(prefix)), joined(&open_blocks(prefix)), joined(stream.blocks())] {
            assert!(!html.contains("math"), "{prefix:?}");
            if prefix.contains("````sh\n") {
                assert!(html.contains("<pre"), "{prefix:?}: {html}");
                assert!(!html.contains("<p>echo"), "{prefix:?}: {html}");
            }
        }
        assert!(!joined(stream.blocks()).contains("<p>`"), "{prefix:?}");
    }
    let whole = joined(&blocks(text));
    assert_eq!(whole.matches("<pre").count(), 2);
    assert!(!whole[whole.rfind("<pre").unwrap()..].contains('`'));
    stream.finish(text);
    assert_eq!(joined(stream.blocks()), whole);
}

/// Inputs that are known to blow up parsers, and a long one of every kind of block.
fn pathological() -> Vec<(&'static str, String)> {
    vec![
        ("reference expansion", format!("[k]: {}\n{}", "u".repeat(4000), "[k]\n".repeat(4000))),
        ("brackets", "[ ".repeat(40_000)),
        ("quotes", format!("{}q", "> ".repeat(20_000))),
        ("lists", (0..400).map(|depth| format!("{}- a\n", " ".repeat(2 * depth))).collect()),
        ("emphasis", "*a_".repeat(30_000)),
        ("cdata", "a <![CDATA[".repeat(20_000)),
        ("table", format!("{}\n{}", "|".repeat(50_000), "|-".repeat(50_000))),
        ("wide table", format!("{}|\n{}|\n{}", "|a".repeat(5_000), "|-".repeat(5_000), "|\n".repeat(20_000))),
        ("odd", "2<-.z_\n-\n-\n\n-\n`[1[^]:\n\t-\u{10}\n".to_owned()),
        ("odd characters", "a\0b\u{202e}\u{2028}c".to_owned()),
        ("one line", "word ".repeat(200_000)),
        ("one word", "a".repeat(1_000_000)),
        ("strong", "**a ".repeat(100_000)),
        ("half links", "[a](b ".repeat(100_000)),
        ("half formulas", "\\(".repeat(200_000)),
        ("formulas", "$a$ ".repeat(100_000)),
        ("backticks", (0..1000).map(|count| format!("{} ", "`".repeat(count))).collect()),
        ("quoted lines", format!("{}q\n{}", "> ".repeat(10_000), "q\n".repeat(100_000))),
        ("listed lines", format!("{}q\n{}", "- ".repeat(10_000), "q\n".repeat(100_000))),
        ("numbered lines", format!("{}q\n{}", "1. > ".repeat(10_000), "q\n".repeat(100_000))),
        ("footnotes", "[^a]\n\n[^a]: x\n\n".repeat(20_000)),
    ]
}

#[test]
fn work_size_and_depth_are_bounded() {
    for (name, text) in pathological() {
        for render in [blocks, open_blocks] {
            let begun = Instant::now();
            let html = render(&text);
            let took = begun.elapsed();
            // Roomy, for a busy machine and a build without optimisation; quadratic work takes minutes.
            assert!(took < Duration::from_secs(8), "{name} took {took:?}");
            let size: usize = html.iter().map(|block| block.as_str().len()).sum();
            assert!(size <= (1 << 20).max(20 * text.len()), "{name}: {size} bytes");
            assert_safe(&joined(&html));
        }
    }
}

#[test]
fn a_text_that_is_too_long_goes_on_as_it_is() {
    let text = "**a** b\n".repeat(100_000);
    let html = joined(&blocks(&text));
    assert!(html.starts_with("<p><strong>a</strong> b"));
    assert!(html.ends_with("**a** b\n</p>"));
}

#[test]
fn a_growing_text_touches_only_its_last_block() {
    let mut stream = Stream::default();
    let mut check = |text: &str, changed: usize, count: usize| {
        assert_eq!(stream.grow(text), changed, "{text:?}");
        assert_eq!(stream.blocks().len(), count, "{text:?}");
    };
    check("One", 0, 1);
    check("One two\n\n# Th", 0, 2);
    check("One two\n\n# Three\n\n- a", 0, 3);
    check("One two\n\n# Three\n\n- a\n- b", 1, 3);
    check("One two\n\n# Three\n\n- a\n- b", 2, 3);
    check("Another", 0, 1);
    assert_eq!(stream.finish("Another [a](b"), 0);
    assert_eq!(joined(stream.blocks()), "<p>Another [a](b</p>");
}

/// Pieces that texts are made of here.
const PIECES: [&str; 36] = [
    "word ",
    "two words",
    "\n",
    "\n\n",
    "- item\n",
    "  more\n",
    "1. one\n",
    "> quoted\n",
    ">> deep\n",
    "# Title\n",
    "===\n",
    "---\n",
    "```rust\n",
    "```\n",
    "~~~\n",
    "    code\n",
    "| a | b |\n",
    "|---|---|\n",
    "| 1 | 2 |\n",
    "**",
    "*",
    "_",
    "`",
    "[text](",
    "https://a.test)",
    "[x]",
    "<div>",
    "</div>\n",
    "<!-- ",
    "$x$",
    "$$\n",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "ü\t",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(0..PIECES.len(), 0..40)
        .prop_map(|pieces| pieces.into_iter().map(|piece| PIECES[piece]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_blocks_but_the_last_stay_when_text_is_appended_after_a_line(text in text(), cut in 0usize..400) {
        let cut = text.floor_char_boundary(cut.min(text.len()));
        let lines = text[..cut].rfind('\n').map_or(0, |newline| newline + 1);
        let (before, after) = (blocks(&text[..lines]), blocks(&text));
        let settled = before.len().saturating_sub(1);
        prop_assert_eq!(&before[..settled], &after[..settled]);
    }

    #[test]
    fn a_stream_shows_what_the_text_at_that_moment_shows(text in text(), cuts in proptest::collection::vec(0usize..400, 1..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut.min(text.len()))).collect();
        cuts.sort_unstable();
        let mut stream = Stream::default();
        for cut in cuts {
            let before = stream.blocks().to_vec();
            let changed = stream.grow(&text[..cut]);
            prop_assert_eq!(&stream.blocks()[..changed], &before[..changed]);
            // Only the end of the text may be completed.
            let lines = text[..cut].rfind('\n').map_or(0, |newline| newline + 1);
            let whole = blocks(&text[..lines]);
            let settled = whole.len().saturating_sub(1);
            prop_assert_eq!(&stream.blocks()[..settled], &whole[..settled]);
            assert_safe(&joined(stream.blocks()));
        }
        stream.finish(&text);
        prop_assert_eq!(stream.blocks(), blocks(&text));
    }

    #[test]
    fn any_text_makes_safe_html(text in ".{0,200}") {
        assert_safe(&joined(&blocks(&text)));
        assert_safe(&joined(&open_blocks(&text)));
    }
}

/// Elements that may stand inside a paragraph and its like.
const INLINE: [&str; 8] = ["a", "br", "code", "del", "em", "span", "strong", "sup"];
const BLOCK: [&str; 20] = [
    "blockquote",
    "div",
    "figcaption",
    "figure",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];
const ATTRIBUTES: [&str; 9] = ["class", "href", "rel", "target", "tabindex", "role", "aria-label", "scope", "start"];

/// Reads HTML strictly: allowed elements and attributes only, everything escaped, opened and closed in order, nothing
/// where a browser would move it, addresses of allowed kinds, at most 200 deep.
fn assert_safe(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains(['>', '"', '\'']), "unescaped: {rest}");
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order: {html}");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(INLINE.contains(&name) || BLOCK.contains(&name), "element {name}: {html}");
        let holds_text =
            open.iter().any(|open| INLINE.contains(open) || ["p", "h3", "h4", "h5", "h6", "pre"].contains(open));
        assert!(!holds_text || INLINE.contains(&name), "{name} inside {open:?}: {html}");
        assert!(name != "a" || !open.contains(&"a"), "a link in a link: {html}");
        assert_attributes(attributes);
        if name != "br" && name != "hr" {
            open.push(name);
        }
        assert!(open.len() <= 200, "too deep");
    }
    assert!(!rest.contains(['>', '"', '\'']), "unescaped: {rest}");
    assert!(open.is_empty(), "left open: {open:?}");
}

fn assert_attributes(attributes: &str) {
    let mut rest = attributes;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap();
        let (value, after) = after.split_once('"').unwrap();
        assert!(ATTRIBUTES.contains(&name), "attribute {name}");
        assert!(!value.contains(['<', '>']), "unescaped: {attributes}");
        if name == "href" {
            let is_web = ["http:", "https:", "mailto:"].iter().any(|scheme| value.to_lowercase().starts_with(scheme));
            assert!(is_web || !value.split(['/', '?', '#']).next().unwrap().contains(':'), "address {value}");
            assert!(!value.starts_with("//"), "address {value}");
        }
        rest = after.trim_start();
    }
}
