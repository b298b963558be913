//! A small disk of its own, to be full or read-only: a tmpfs, where the tests may mount one.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

pub(crate) struct Disk(TempDir);

impl Disk {
    /// A disk of this size, such as `1m`; none where nothing may be mounted.
    pub(crate) fn of(size: &str) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let options = format!("size={size}");
        let mounted = mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], dir.path());
        mounted.then_some(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn read_only(&self) {
        assert!(mount(&["-o", "remount,ro"], self.path()));
    }

    /// Fills it to the last byte.
    pub(crate) fn fill(&self) {
        let mut filler = std::fs::File::create(self.path().join("filler")).unwrap();
        for size in [4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Frees what [`Disk::fill`] took.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn mount(options: &[&str], at: &Path) -> bool {
    Command::new("mount").args(options).arg(at).output().is_ok_and(|output| output.status.success())
}
