//! A disk that is full, and one that may only be read: what cannot be stored is refused and never shown as stored, and when
//! there is room again all goes on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::process::Command;

use super::campaign::{Class, Size};
use super::client::Client;
use super::house::{House, Teacher};
use super::ledger::Fault;

/// How often the disk is filled and freed.
const ROUNDS: u32 = 3;
/// Inputs that must have been refused before it is freed.
const REFUSALS: u32 = 5;
const BALLAST: &str = "ballast";

/// A small disk in memory, gone with its value.
pub(super) struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// Mounts one.
    ///
    /// # Errors
    /// Why that cannot be done here: mostly that we are not root.
    pub(super) async fn new(megabytes: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], folder.path()).await?;
        Ok(Self { folder })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Takes every byte that is left, and again what was freed meanwhile.
    fn fill(&self) {
        let path = self.folder.path().join(BALLAST);
        let mut ballast = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        // It may be free already.
        let _ = std::fs::remove_file(self.folder.path().join(BALLAST));
    }

    async fn read_only(&self) -> Result<(), String> {
        mount(&["-o", "remount,ro"], self.folder.path()).await
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
    }
}

async fn mount(arguments: &[&str], folder: &Path) -> Result<(), String> {
    let mut command = Command::new("mount");
    command.args(arguments).arg(folder).stdin(Stdio::null());
    let output = command.output().await.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// Lessons on a disk that is filled and freed, with a kill while it is full.
pub(super) async fn full(house: Arc<House>, disk: &Disk, size: Size) {
    let begun = Instant::now();
    let mut rng = StdRng::seed_from_u64(size.seed);
    if let Err(words) = house.start().await {
        return house.ledger.fault(Fault::Stuck, words);
    }
    let class = Class::begin(&house, size, &mut rng);
    for round in 0..ROUNDS {
        tokio::time::sleep(size.life.mul_f64(rng.random_range(0.2..1.0))).await;
        fill_until_refused(&house, disk, size.patience).await;
        if round == 1
            && let Err(words) = restart(&house, disk).await
        {
            return house.ledger.fault(Fault::Stuck, words);
        }
        disk.free();
    }
    class.finish(size.patience).await;
    house.ledger.count(|figures| figures.took = begun.elapsed());
}

/// Keeps the disk full until inputs have been refused for it.
async fn fill_until_refused(house: &House, disk: &Disk, patience: Duration) {
    let before = house.ledger.figures().refused;
    let until = Instant::now() + patience;
    while house.ledger.figures().refused < before + REFUSALS {
        disk.fill();
        tokio::time::sleep(Duration::from_millis(20)).await;
        if Instant::now() > until {
            return house.ledger.fault(Fault::Server, "the disk is full and nothing is refused");
        }
    }
}

/// Kills a server on a full disk. One that cannot start there says so, and starts when there is room.
async fn restart(house: &House, disk: &Disk) -> Result<(), String> {
    house.kill().await;
    let Err(words) = house.start().await else { return Ok(()) };
    if !is_clear(&words) {
        house.ledger.fault(Fault::Server, format!("an unclear refusal to start: {words}"));
    }
    disk.free();
    house.start().await.map(drop)
}

/// A server whose data may only be read says so and ends; what it said.
pub(super) async fn read_only(size: Size) -> Result<String, String> {
    let disk = Disk::new(16).await.map_err(|words| format!("skipped: {words}"))?;
    let house = House::new(Teacher::Lesson, Some(disk.data()));
    house.start().await?;
    house.kill().await;
    disk.read_only().await?;
    let words = match house.start_another(size.patience).await? {
        (status, words) if !status.success() && is_clear(&words) => words,
        (status, words) => return Err(format!("{status}: {words}")),
    };
    Ok(words.rsplit(" / ").next().unwrap_or_default().to_owned())
}

/// A second server on the same data says so and ends while the first one goes on; how long that took.
pub(super) async fn second(size: Size) -> Result<Duration, String> {
    let house = Arc::new(House::new(Teacher::Lesson, None));
    house.start().await?;
    let client = Client::new(house.clone());
    let chat = client.create().await;
    let begun = Instant::now();
    let (status, words) = house.start_another(size.patience).await?;
    let took = begun.elapsed();
    if status.success() || !words.contains("belongs to another learnharness") {
        return Err(format!("{status}: {words}"));
    }
    client.show(&chat).await.map_err(|_| "the first has lost a chat")?;
    house.kill().await;
    Ok(took)
}

/// Words for the owner, and no panic.
fn is_clear(words: &str) -> bool {
    words.contains("learnharness: ") && !words.contains("panicked")
}
