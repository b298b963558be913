//! A text that grows, rendered again only from where it can have changed.

use std::borrow::Cow;

use super::{Html, Rendered, blocks, rendered, repair};

/// The blocks of a growing text.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    blocks: Vec<Html>,
    /// The text of the blocks that can't change any more.
    settled: String,
    /// How many these are.
    count: usize,
}

impl Stream {
    /// Takes the text as it is now, which goes on. Returns the index of the first block that may have changed.
    pub fn grow(&mut self, text: &str) -> usize {
        if !text.starts_with(&self.settled) {
            *self = Self::default();
        }
        let before = self.count;
        let tail = &text[self.settled.len()..];
        let fresh = rendered(tail);
        if fresh.entangled {
            *self = Self { blocks: blocks(&repair::repaired(text)), ..Self::default() };
            return 0;
        }
        self.blocks.truncate(before);
        let settled = settled(&fresh, tail);
        let open = fresh.blocks.get(settled).map_or(0, |block| block.start);
        self.count += settled;
        self.blocks.extend(fresh.blocks.into_iter().map(|block| block.html));
        self.settled.push_str(&tail[..open]);
        match repair::repaired(&tail[open..]) {
            Cow::Borrowed(same) if same.len() == tail.len() - open => {}
            completed => {
                self.blocks.truncate(self.count);
                self.blocks.extend(blocks(&completed));
            }
        }
        before
    }

    /// Takes the text as it stays, with nothing shown but what it says. Returns as [`Stream::grow`] does.
    pub fn finish(&mut self, text: &str) -> usize {
        let before = if text.starts_with(&self.settled) { self.count } else { 0 };
        *self = Self { blocks: blocks(text), ..Self::default() };
        before
    }

    #[must_use]
    pub fn blocks(&self) -> &[Html] {
        &self.blocks
    }
}

/// How many blocks can't change any more: all before the last that has a whole line. The line that is being written may
/// still join the block before it.
fn settled(fresh: &Rendered, text: &str) -> usize {
    let line = text.rfind('\n').map_or(0, |newline| newline + 1);
    fresh.blocks.iter().rposition(|block| block.start < line).unwrap_or(0)
}
