//! The commands of the house: `cargo xtask serve | site | test | check | cases | crash | bench`.
//!
//! - [`tools`] finds what the machine must have, and installs what it can;
//! - [`wasm`] makes the browser's module, [`site`] the folder that the server serves;
//! - [`serve`], [`test`], [`cases`], [`crash`] and [`bench`] are the commands; [`shell`] runs programs for all of them.
//!
//! Every function answers with `anyhow::Result`: an error here is always a sentence for the person who typed the command.

mod bench;
mod cases;
mod crash;
mod serve;
mod shell;
mod site;
mod test;
mod tools;
mod wasm;

use std::process::ExitCode;

use anyhow::Result;

/// One command: what is typed, what may follow it, what it does.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "serve",
        arguments: "[--release|--fast]",
        about: "build everything and start the server (--fast: quicker builds, slower program)",
        run: serve::serve,
    },
    Command {
        name: "site",
        arguments: "",
        about: "build what the browser loads, as learners get it, and say where it is",
        run: serve::site,
    },
    Command {
        name: "test",
        arguments: "[FILTER]",
        about: "run every check and test, the browser's included; with FILTER only the tests whose name has it",
        run: test::test,
    },
    Command {
        name: "check",
        arguments: "",
        about: "the quick loop: format, lints of both targets, cargo test",
        run: test::check,
    },
    Command {
        name: "cases",
        arguments: "[DIR…]",
        about: "hold models and loop against the cases of these folders, a line each; without DIR our own",
        run: cases::cases,
    },
    Command {
        name: "crash",
        arguments: "[--kills N] [--seed N]",
        about: "kill the server again and again while learners learn, and print a table of what became of it",
        run: crash::crash,
    },
    Command {
        name: "bench",
        arguments: "[NAME]",
        about: "measure a release build and print a table; with NAME only that measurement",
        run: bench::bench,
    },
    Command {
        name: "provider",
        arguments: "",
        about: "a model on a free port that answers by its address (/500x4/v1: 500 deltas of 4), for measurements",
        run: bench::provider::serve,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprint!("There is no command `{name}`.\n\n{}", usage());
        return ExitCode::FAILURE;
    };
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("cargo xtask <command>\n\n");
    for Command { name, arguments, about, .. } in COMMANDS {
        text += &format!("  {:<26}{about}\n", format!("{name} {arguments}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_every_command() {
        for command in COMMANDS {
            assert!(usage().contains(command.name), "{}", command.name);
        }
    }
}
