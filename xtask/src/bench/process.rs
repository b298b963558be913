//! What a process has used so far, read from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time of all its threads.
pub(super) fn cpu(pid: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("the process is gone, or this is not Linux")? {
        // A thread may end while it is looked at.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The memory that it has now, in bytes.
pub(super) fn memory(pid: u32) -> Result<u64> {
    status(pid, "VmRSS:")
}

/// The most memory that it has had at once, in bytes.
pub(super) fn peak_memory(pid: u32) -> Result<u64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_memory_of_this_process_are_seen() {
        let pid = std::process::id();
        let before = cpu(pid).unwrap();
        let sum = (0..5_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        assert!(cpu(pid).unwrap() > before, "{sum}");
        assert!(memory(pid).unwrap() > 1_000_000);
        assert!(peak_memory(pid).unwrap() >= memory(pid).unwrap());
    }
}
