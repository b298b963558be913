//! The command line of the server.

use clap::{Parser, Subcommand};

use super::captures::CaptureCommand;

/// Serves lessons; what can be set is set by environment variables, which the README lists.
#[derive(Clone, Debug, Parser, PartialEq)]
#[command(name = "learnharness", version)]
pub struct Cli {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Looks into what went over the wire to models (a server keeps it with LEARNHARNESS_CAPTURE=1).
    #[command(subcommand)]
    Capture(CaptureCommand),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::captures::Changes;

    fn read(line: &str) -> Option<Command> {
        Cli::try_parse_from(line.split(' ')).map_err(|error| panic!("{error}")).unwrap().command
    }

    #[test]
    fn without_a_command_the_server_serves() {
        assert_eq!(read("learnharness"), None);
    }

    #[test]
    fn captures_have_four_commands() {
        assert_eq!(read("learnharness capture list"), Some(Command::Capture(CaptureCommand::List)));
        let show = CaptureCommand::Show { number: 7 };
        assert_eq!(read("learnharness capture show 7"), Some(Command::Capture(show)));
        let export = CaptureCommand::Export { number: 7, file: Some("seven.json".into()) };
        assert_eq!(read("learnharness capture export 7 seven.json"), Some(Command::Capture(export)));
        let changes = Changes {
            drop_reasoning: true,
            strip_thinking: true,
            split_parallel: true,
            shorten_results: Some(100),
            pad_results: Some(50),
            max_tokens: Some(9),
            model: Some("m".to_owned()),
        };
        let replay = CaptureCommand::Replay { what: "seven.json".to_owned(), changes };
        let line = "learnharness capture replay seven.json --drop-reasoning --strip-thinking --split-parallel \
                    --shorten-results 100 --pad-results 50 --max-tokens 9 --model m";
        assert_eq!(read(line), Some(Command::Capture(replay)));
        assert!(Cli::try_parse_from(["learnharness", "capture", "replay", "7", "--faster"]).is_err());
    }
}
