//! Server-sent events: bytes in pieces of any size become whole events.
//!
//! Our own decoder, because providers need more than the standard's parser gives: a bound on the length of an event, the
//! last event of a body that ends without its blank line, and time linear in the bytes however they were cut.
//! Source: WHATWG HTML, "Server-sent events", section "Interpreting an event stream".

use memchr::memchr2;

/// Bytes of data that one event may have; a longer one is refused so that memory stays bounded.
pub const EVENT_LIMIT: usize = 8 * 1024 * 1024;
/// What stands before the data of a line.
const FIELD: usize = "data: ".len();

/// One event: its data, and the name that it came under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty for none.
    pub name: String,
    pub data: String,
}

/// Decodes one event stream. Comments, `id` and `retry` are read and dropped; so is an event without data.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The start of a line whose end has not come. Text is decoded as UTF-8 only when its event is whole.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    has_data: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    after_bom: bool,
}

/// An event grew beyond [`EVENT_LIMIT`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Decoder {
    /// Reads `bytes` and appends each event that they complete.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + piece.len() > EVENT_LIMIT + FIELD {
                return Err(TooLong);
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                break;
            };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(if self.line.is_empty() {
                self.read_line(piece)
            } else {
                self.line.extend_from_slice(piece);
                self.end_line()
            });
        }
        Ok(())
    }

    /// The event that the end of the body left without its blank line.
    #[must_use]
    pub fn finish(mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.dispatch()
    }

    /// Reads the line that came in pieces.
    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        let event = self.read_line(&line);
        line.clear();
        self.line = line;
        event
    }

    fn read_line(&mut self, mut line: &[u8]) -> Option<Event> {
        if !std::mem::replace(&mut self.after_bom, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        if let Some(value) = field(line, b"data") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        } else if let Some(value) = field(line, b"event") {
            self.name = value.to_vec();
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.has_data = false;
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        (!data.is_empty()).then(|| Event { name: text(name), data: text(data) })
    }
}

/// The value of a line of the field `name`.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        value @ [] | [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        events.extend(decoder.finish());
        events.into_iter().map(|event| event.data).collect()
    }

    /// Decodes `stream` whole, byte by byte, and cut in two at every position.
    fn check(stream: &str, expected: &[&str]) {
        let bytes = stream.as_bytes();
        assert_eq!(decode([bytes]), expected, "whole: {stream:?}");
        assert_eq!(decode(bytes.chunks(1)), expected, "byte by byte: {stream:?}");
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(decode([head, tail]), expected, "cut at {cut}: {stream:?}");
        }
    }

    #[test]
    fn line_ends_of_every_kind_end_a_line() {
        check("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n", &["a", "b", "c", "d"]);
    }

    #[test]
    fn data_lines_of_one_event_are_joined_across_comments() {
        check("event: x\r\ndata: {\"a\":\r\n: keep\r\ndata: 1}\r\n\r\n", &["{\"a\":\n1}"]);
    }

    #[test]
    fn data_needs_no_space_and_keeps_the_second() {
        check("data:a\n\ndata:  b\n\ndata: c \n\n", &["a", " b", "c "]);
    }

    #[test]
    fn characters_survive_every_cut() {
        check("data: Ångström 水 🌱\n\n", &["Ångström 水 🌱"]);
    }

    #[test]
    fn comments_other_fields_and_empty_events_are_dropped() {
        check(": ping\n\nevent: ping\ndata: \n\nid: 7\nretry: 3\ndatabase: x\n\ndata\n\ndata: y\n\n", &["y"]);
    }

    #[test]
    fn an_event_keeps_its_name_and_leaves_none_to_the_next() {
        let mut events = Vec::new();
        Decoder::default().push(b"event: error\ndata: a\n\ndata: b\nevent:late\n\ndata: c\n\n", &mut events).unwrap();
        let names: Vec<_> = events.into_iter().map(|event| (event.name, event.data)).collect();
        assert_eq!(names, [("error", "a"), ("late", "b"), ("", "c")].map(|(name, data)| (name.into(), data.into())));
    }

    #[test]
    fn a_last_event_without_its_blank_line_is_kept() {
        check("data: a\n\ndata: b", &["a", "b"]);
        check("data: a\n\ndata: b\n", &["a", "b"]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_once() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_lose_the_event() {
        assert_eq!(decode([b"data: a\xFFb\n\n".as_slice()]), ["a\u{fffd}b"]);
    }

    #[test]
    fn long_lines_work_up_to_the_limit_and_fail_beyond_it() {
        let piece = vec![b'q'; 16 * 1024];
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        decoder.push(b"data: ", &mut events).unwrap();
        for _ in 0..512 {
            decoder.push(&piece, &mut events).unwrap();
        }
        decoder.push(b"\n\n", &mut events).unwrap();
        assert_eq!(events.pop().map(|event| event.data.len()), Some(EVENT_LIMIT));
        decoder.push(b"data: ", &mut events).unwrap();
        for _ in 0..512 {
            decoder.push(&piece, &mut events).unwrap();
        }
        assert_eq!(decoder.push(b"q", &mut events), Err(TooLong));
    }
}
