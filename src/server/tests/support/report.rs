//! A list of known differences, held against what differs.

/// Names of what differs on purpose, each with its reason.
pub(crate) type Listed = &'static [(&'static str, &'static str)];

/// Collects what differs; each difference must stand in the list with its reason, and each entry must differ.
pub(crate) struct Report {
    listed: Listed,
    wrong: Vec<String>,
}

impl Report {
    pub(crate) fn new(listed: Listed) -> Self {
        Self { listed, wrong: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, difference: Option<String>) {
        let listed = self.listed.iter().any(|(known, _)| *known == name);
        match difference {
            Some(difference) if !listed => self.wrong.push(format!("{name} {difference}")),
            None if listed => self.wrong.push(format!("{name} is listed but no longer differs")),
            _ => {}
        }
    }

    pub(crate) fn close(self) {
        assert!(self.wrong.is_empty(), "{} cases:\n{}", self.wrong.len(), self.wrong.join("\n"));
    }
}
