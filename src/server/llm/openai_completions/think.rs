//! Thinking that a server left in the text as `<think>…</think>` at the start of the answer.
//!
//! Only the very start counts: teachers quote such tags in the middle of a text. At most a tag's length is held back.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits text into thinking and answer, over deltas of any size.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    place: Place,
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Start,
    Thinking,
    /// Behind the closing tag, where line breaks are no text yet.
    Gap,
    Answer,
}

/// A piece of text by what it is.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
}

impl ThinkTags {
    /// Reads a delta. `reasoned` says that reasoning came in a field of its own: then a lone closing tag is a leftover.
    pub(super) fn push(&mut self, delta: &str, reasoned: bool) -> Vec<Piece> {
        self.held += delta;
        let mut pieces = Vec::new();
        while self.step(reasoned, &mut pieces) {}
        pieces
    }

    /// True when all that follows is text as it comes.
    pub(super) fn are_over(&self) -> bool {
        self.place == Place::Answer
    }

    /// What is held back when nothing follows.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return None;
        }
        Some(if self.place == Place::Thinking { Piece::Thinking(held) } else { Piece::Text(held) })
    }

    /// True when the place changed, so that there may be more to read.
    fn step(&mut self, reasoned: bool, pieces: &mut Vec<Piece>) -> bool {
        match self.place {
            Place::Start => {
                let next = [(OPEN, Place::Thinking), (CLOSE, Place::Gap)]
                    .into_iter()
                    .filter(|(tag, _)| *tag == OPEN || reasoned)
                    .find(|(tag, _)| self.held.starts_with(tag) || tag.starts_with(&self.held));
                match next {
                    Some((tag, place)) if self.held.len() >= tag.len() => {
                        self.held.drain(..tag.len());
                        self.place = place;
                    }
                    Some(_) => return false,
                    None => self.place = Place::Answer,
                }
            }
            Place::Thinking => {
                let (thought, closed) = match self.held.find(CLOSE) {
                    Some(at) => (at, true),
                    None => (self.held.len() - tail(&self.held), false),
                };
                let thinking: String = self.held.drain(..thought).collect();
                if !thinking.is_empty() {
                    pieces.push(Piece::Thinking(thinking));
                }
                if !closed {
                    return false;
                }
                self.held.drain(..CLOSE.len());
                self.place = Place::Gap;
            }
            Place::Gap => {
                let gap = self.held.len() - self.held.trim_start_matches(['\n', '\r']).len();
                self.held.drain(..gap);
                if self.held.is_empty() {
                    return false;
                }
                self.place = Place::Answer;
            }
            Place::Answer => {
                pieces.extend(self.finish());
                return false;
            }
        }
        true
    }
}

/// The length of the longest end of `text` that may begin the closing tag.
fn tail(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'a>(deltas: impl IntoIterator<Item = &'a str>, reasoned: bool) -> (String, String) {
        let mut tags = ThinkTags::default();
        let mut pieces: Vec<Piece> = deltas.into_iter().flat_map(|delta| tags.push(delta, reasoned)).collect();
        pieces.extend(tags.finish());
        let (mut thinking, mut text) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Thinking(piece) => thinking += &piece,
                Piece::Text(piece) => text += &piece,
            }
        }
        (thinking, text)
    }

    /// The same whole and cut in two at every position.
    fn check(answer: &str, reasoned: bool, thinking: &str, text: &str) {
        let expected = (thinking.to_owned(), text.to_owned());
        for cut in (0..=answer.len()).filter(|cut| answer.is_char_boundary(*cut)) {
            let (head, tail) = answer.split_at(cut);
            assert_eq!(split([head, tail], reasoned), expected, "{answer:?} cut at {cut}");
        }
    }

    #[test]
    fn tags_at_the_start_are_thinking() {
        check("<think>plan</think>\nAnswer", false, "plan", "Answer");
        check("<think>a < b </thin </think>Yes", false, "a < b </thin ", "Yes");
        check("<think>never closed", false, "never closed", "");
    }

    #[test]
    fn tags_elsewhere_are_text() {
        check("a < b and <thead> stays, `<think>` too", false, "", "a < b and <thead> stays, `<think>` too");
        check("<thead>", false, "", "<thead>");
        check("</think>Hi", false, "", "</think>Hi");
    }

    #[test]
    fn a_closing_tag_left_over_from_a_reasoning_field_is_dropped() {
        check("</think>Hi", true, "", "Hi");
    }

    #[test]
    fn at_most_a_tag_is_held_back() {
        let mut tags = ThinkTags::default();
        assert_eq!(tags.push("<th", false), []);
        assert_eq!(tags.push("e", false), [Piece::Text("<the".into())]);
        assert_eq!(tags.push("<think>", false), [Piece::Text("<think>".into())]);
    }
}
