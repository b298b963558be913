//! Cutting a pack's file into front matter, sections, prose and data blocks. It knows lines and fences, not lessons.

/// A file cut at its level-1 headings. Lines count from 1.
#[derive(Debug, PartialEq)]
pub(super) struct Document {
    /// The TOML between the `+++` lines, and the line on which it begins.
    pub(super) front: (usize, String),
    /// The first section is what comes before any heading; its heading is empty.
    pub(super) sections: Vec<Section>,
}

/// What stands under one level-1 heading.
#[derive(Debug, PartialEq)]
pub(super) struct Section {
    pub(super) line: usize,
    pub(super) heading: String,
    pub(super) parts: Vec<Part>,
}

/// Prose, or the inside of a fence whose info string says that it is data.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Prose { line: usize, text: String },
    Data { line: usize, info: String, text: String },
}

/// Info strings of fences that hold data.
const DATA: [&str; 3] = ["quiz", "ask", "block"];

/// Where a file stops making sense, and why.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// Cuts `text`, whose line ends are `\n`.
pub(super) fn cut(text: &str) -> Result<Document, Fault> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.first().map(|line| line.trim_end()) != Some("+++") {
        return Err(Fault::new(1, "The file must begin with front matter between two `+++` lines."));
    }
    let Some(end) = lines.iter().skip(1).position(|line| line.trim_end() == "+++") else {
        return Err(Fault::new(1, "The front matter is never closed by a `+++` line."));
    };
    let front = (2, lines[1..=end].join("\n"));
    let mut cutter = Cutter::new(end + 3);
    for (index, line) in lines.iter().enumerate().skip(end + 2) {
        cutter.take(index + 1, line)?;
    }
    Ok(Document { front, sections: cutter.finish()? })
}

struct Cutter {
    sections: Vec<Section>,
    prose: Vec<String>,
    prose_line: usize,
    fence: Option<Fence>,
}

/// An open fence; `data` is none for code, which stays prose.
struct Fence {
    line: usize,
    mark: char,
    length: usize,
    data: Option<(String, Vec<String>)>,
}

impl Cutter {
    fn new(line: usize) -> Self {
        let opening = Section { line, heading: String::new(), parts: Vec::new() };
        Self { sections: vec![opening], prose: Vec::new(), prose_line: line, fence: None }
    }

    fn take(&mut self, number: usize, line: &str) -> Result<(), Fault> {
        if let Some(mut fence) = self.fence.take() {
            self.inside(&mut fence, line);
            if !fence.is_closed_by(line) {
                self.fence = Some(fence);
            } else if let Some((info, lines)) = fence.data {
                self.push(Part::Data { line: fence.line, info, text: lines.join("\n") });
                self.prose_line = number + 1;
            }
            return Ok(());
        }
        if let Some((fence, info)) = open_fence(number, line) {
            let is_data = DATA.contains(&info);
            if is_data {
                self.end_prose();
            } else {
                self.prose.push(line.to_owned());
            }
            self.fence = Some(Fence { data: is_data.then(|| (info.to_owned(), Vec::new())), ..fence });
            return Ok(());
        }
        if let Some(heading) = line.strip_prefix("# ") {
            self.end_prose();
            self.sections.push(Section { line: number, heading: heading.trim().to_owned(), parts: Vec::new() });
            self.prose_line = number + 1;
            return Ok(());
        }
        if line.starts_with("## ") {
            return Err(Fault::new(number, "Prose uses headings of level 3 (`###`) at most."));
        }
        self.prose.push(line.to_owned());
        Ok(())
    }

    fn inside(&mut self, fence: &mut Fence, line: &str) {
        let closes = fence.is_closed_by(line);
        match &mut fence.data {
            Some((_, lines)) if !closes => lines.push(line.to_owned()),
            Some(_) => {}
            None => self.prose.push(line.to_owned()),
        }
    }

    fn end_prose(&mut self) {
        let text = self.prose.join("\n");
        let blank = self.prose.iter().take_while(|line| line.trim().is_empty()).count();
        self.prose.clear();
        if !text.trim().is_empty() {
            let part = Part::Prose { line: self.prose_line + blank, text: text.trim().to_owned() };
            self.push(part);
        }
    }

    fn push(&mut self, part: Part) {
        if let Some(section) = self.sections.last_mut() {
            section.parts.push(part);
        }
    }

    fn finish(mut self) -> Result<Vec<Section>, Fault> {
        if let Some(fence) = &self.fence {
            return Err(Fault::new(fence.line, "This fence is never closed."));
        }
        self.end_prose();
        Ok(self.sections)
    }
}

impl Fence {
    fn is_closed_by(&self, line: &str) -> bool {
        let trimmed = line.trim();
        trimmed.len() >= self.length && trimmed.chars().all(|character| character == self.mark)
    }
}

fn open_fence(number: usize, line: &str) -> Option<(Fence, &str)> {
    let trimmed = line.trim_start();
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = trimmed.chars().take_while(|&character| character == mark).count();
    let info = trimmed[length..].trim();
    let opens = line.len() - trimmed.len() <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
    opens.then_some((Fence { line: number, mark, length, data: None }, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Vec<Part> {
        cut(&format!("+++\n+++\n{body}")).unwrap().sections.remove(0).parts
    }

    fn prose(line: usize, text: &str) -> Part {
        Part::Prose { line, text: text.to_owned() }
    }

    #[test]
    fn a_heading_inside_a_fence_is_code() {
        assert_eq!(
            parts("\nOne.\n\n```sh\n# not a heading\n```\nTwo.\n"),
            [prose(4, "One.\n\n```sh\n# not a heading\n```\nTwo.")]
        );
    }

    #[test]
    fn a_longer_fence_holds_a_shorter_one() {
        let data = Part::Data { line: 3, info: "quiz".to_owned(), text: "```rust\nx\n```".to_owned() };
        assert_eq!(parts("````quiz\n```rust\nx\n```\n````\nAfter."), [data, prose(8, "After.")]);
    }

    #[test]
    fn sections_begin_at_level_one_headings() {
        let document = cut("+++\nslug = 1\n+++\nHello.\n# Probe\n# Block a: A\nText.").unwrap();
        assert_eq!(document.front, (2, "slug = 1".to_owned()));
        let headings: Vec<_> =
            document.sections.iter().map(|section| (section.line, section.heading.as_str())).collect();
        assert_eq!(headings, [(4, ""), (5, "Probe"), (6, "Block a: A")]);
    }

    #[test]
    fn what_is_never_closed_is_reported_where_it_opens() {
        let check = |text: &str, line: usize, words: &str| {
            let fault = cut(text).unwrap_err();
            assert_eq!(fault.line, line, "{fault:?}");
            assert!(fault.reason.contains(words), "{fault:?}");
        };
        check("Hello.", 1, "must begin");
        check("+++\nslug", 1, "never closed");
        check("+++\n+++\n\n```quiz\nid", 4, "never closed");
        check("+++\n+++\n## Two", 3, "level 3");
    }
}
