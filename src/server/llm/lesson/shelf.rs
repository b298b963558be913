//! All lesson packs: the built-in ones and those of a folder, and finding the one that a learner asks for.

use std::path::Path;

use super::pack::{Pack, PackError};
use super::words::{holds, words};

/// The built-in packs, in the order of the menu.
const BUILT_IN: [(&str, &str); 2] = [
    ("fractions.md", include_str!("../../../../lessons/fractions.md")),
    ("rust-ownership.md", include_str!("../../../../lessons/rust-ownership.md")),
];

/// The packs that can be played, in the order of the menu.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packs {
    packs: Vec<Pack>,
}

impl Packs {
    /// The packs that come with the program.
    #[must_use]
    pub fn built_in() -> (Self, Vec<PackError>) {
        let mut packs = Self::default();
        let mut errors = Vec::new();
        for (file, text) in BUILT_IN {
            packs.take(file, text, &mut errors);
        }
        (packs, errors)
    }

    /// The built-in packs joined by every `*.md` of `folder`, in the order of their file names. A pack with the slug of
    /// an earlier one takes its place. A folder that is not there is an empty one; a file that is no pack is skipped.
    #[must_use]
    pub fn load(folder: &Path) -> (Self, Vec<PackError>) {
        let (mut packs, mut errors) = Self::built_in();
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (packs, errors),
            Err(error) => {
                errors.push(unreadable(folder, &error));
                return (packs, errors);
            }
        };
        let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
        files.sort();
        for file in files {
            match std::fs::read_to_string(&file) {
                Ok(text) => packs.take(&file.to_string_lossy(), &text, &mut errors),
                Err(error) => errors.push(unreadable(&file, &error)),
            }
        }
        (packs, errors)
    }

    /// Every pack, in the order of the menu.
    #[must_use]
    pub fn all(&self) -> &[Pack] {
        &self.packs
    }

    /// The pack that `text` asks for: the one with the most words of matching topics, title and slug; the earlier of
    /// equals.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Pack> {
        let mut best: Option<(usize, &Pack)> = None;
        for pack in &self.packs {
            let score = score(pack, text);
            if score > best.map_or(0, |(score, _)| score) {
                best = Some((score, pack));
            }
        }
        best.map(|(_, pack)| pack)
    }

    /// The pack with this title, letter for letter.
    #[must_use]
    pub fn titled(&self, title: &str) -> Option<&Pack> {
        self.packs.iter().find(|pack| pack.title == title)
    }

    fn take(&mut self, file: &str, text: &str, errors: &mut Vec<PackError>) {
        match Pack::parse(file, text) {
            Ok(pack) => match self.packs.iter_mut().find(|earlier| earlier.slug == pack.slug) {
                Some(earlier) => *earlier = pack,
                None => self.packs.push(pack),
            },
            Err(error) => errors.push(error),
        }
    }
}

impl From<Vec<Pack>> for Packs {
    fn from(packs: Vec<Pack>) -> Self {
        Self { packs }
    }
}

/// How strongly `text` asks for `pack`; 0 when it does not.
pub(super) fn score(pack: &Pack, text: &str) -> usize {
    let names = pack.topics.iter().chain([&pack.title, &pack.slug]);
    names.filter(|name| holds(text, name)).map(|name| words(name).len()).sum()
}

fn unreadable(path: &Path, error: &std::io::Error) -> PackError {
    PackError { file: path.to_string_lossy().into_owned(), line: 0, reason: error.to_string() }
}
