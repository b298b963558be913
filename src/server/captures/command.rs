//! `learnharness capture …`: what can be done with captures at the command line.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;

use super::{Changes, Failure, Folder, folder, replay, show};
use crate::server::config::Config;
use crate::server::llm::capture::Exchange;

#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum CaptureCommand {
    /// Lists the captures, the oldest first.
    List,
    /// Shows a capture: both heads, the request, and the response piece by piece with its times.
    Show { number: u64 },
    /// Sends a request again, with the key that is configured for its address, and shows the answer as it comes.
    Replay {
        /// A capture's number, or a file that `export` wrote.
        #[arg(value_name = "NUMBER|FILE")]
        what: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Writes a capture without keys, for others to look into.
    Export {
        number: u64,
        /// Where to; without it, to the standard output.
        file: Option<PathBuf>,
    },
}

/// Does what `command` says, and tells it to `out`.
///
/// # Errors
/// In words for the one at the command line.
pub async fn run(command: CaptureCommand, config: &Config, out: &mut (dyn Write + Send)) -> Result<(), Failure> {
    let folder = Folder::of(&config.data);
    match command {
        CaptureCommand::List => list(&folder, out),
        CaptureCommand::Show { number } => Ok(show::show(number, &folder.read(number)?, out)?),
        CaptureCommand::Replay { what, changes } => {
            let exchange = match what.parse() {
                Ok(number) => folder.read(number)?,
                Err(_) => read(&what)?,
            };
            replay::replay(&exchange, &changes, config, out).await
        }
        CaptureCommand::Export { number, file } => {
            let mut json = serde_json::to_vec_pretty(&folder.read(number)?)?;
            json.push(b'\n');
            let Some(file) = file else { return Ok(out.write_all(&json)?) };
            folder::write_private(&file, &json)
                .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
            Ok(writeln!(out, "Capture {number} is in {}.", file.display())?)
        }
    }
}

fn list(folder: &Folder, out: &mut dyn Write) -> Result<(), Failure> {
    let numbers = folder.numbers()?;
    if numbers.is_empty() {
        writeln!(out, "There are no captures. A server that runs with LEARNHARNESS_CAPTURE=1 makes them.")?;
    }
    for number in numbers {
        match folder.read(number) {
            Ok(exchange) => show::line(number, &exchange, out)?,
            // It may have gone meanwhile; the others are of use all the same.
            Err(failure) => writeln!(out, "{failure}")?,
        }
    }
    Ok(())
}

fn read(file: &str) -> Result<Exchange, Failure> {
    let bytes = fs::read(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
    Exchange::read(&bytes).map_err(|error| format!("{file} cannot be read: {error}").into())
}
