//! The folder of captures: one file each, by number; the oldest go when there are too many.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Failure;
use crate::server::llm::capture::Exchange;

/// Captures that are kept, and their bytes in all.
const MOST: usize = 200;
const LARGEST: u64 = 256 * 1024 * 1024;

/// Where the captures of a data folder are.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    most: usize,
    largest: u64,
}

impl Folder {
    #[must_use]
    pub fn of(data: &Path) -> Self {
        Self { path: data.join("captures"), most: MOST, largest: LARGEST }
    }

    /// The same with other bounds.
    #[must_use]
    pub fn bounded(self, most: usize, largest: u64) -> Self {
        Self { most, largest, ..self }
    }

    /// The numbers of the captures, the oldest first.
    ///
    /// # Errors
    /// When the folder cannot be read; one that is not there is empty.
    pub fn numbers(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let number = |name: &str| name.strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// # Errors
    /// When there is no such capture, or it cannot be read.
    pub fn read(&self, number: u64) -> Result<Exchange, Failure> {
        let bytes = fs::read(self.file(number)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("There is no capture {number}."),
            _ => format!("Capture {number} cannot be read: {error}"),
        })?;
        Exchange::read(&bytes).map_err(|error| format!("Capture {number} cannot be read: {error}").into())
    }

    /// Keeps one more and returns its number; drops what there is too much of.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn add(&self, exchange: &Exchange) -> io::Result<u64> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        let number = self.numbers()?.last().map_or(1, |last| last + 1);
        let unfinished = self.path.join("unfinished");
        write_private(&unfinished, &serde_json::to_vec(exchange)?)?;
        fs::rename(unfinished, self.file(number))?;
        self.trim()?;
        Ok(number)
    }

    fn trim(&self) -> io::Result<()> {
        let mut room = self.largest;
        for (kept, number) in self.numbers()?.into_iter().rev().enumerate() {
            let file = self.file(number);
            let length = fs::metadata(&file)?.len();
            if kept >= self.most || length > room {
                // What is older goes as well, so that those that are left follow each other.
                room = 0;
                fs::remove_file(file)?;
            } else {
                room -= length;
            }
        }
        Ok(())
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:06}.json"))
    }
}

/// Writes a file that nobody else may read: it holds what a learner said.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
