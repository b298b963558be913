//! `cargo xtask serve`: builds the site and the server, then becomes the server.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, program, run, say, target};
use crate::site::{self, NAME};
use crate::wasm::Mode;

/// Builds whatever is out of date and runs the server until it is stopped.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let mode = match arguments {
        [] => Mode::Release,
        [flag] if flag == "--release" => Mode::Release,
        [flag] if flag == "--fast" => Mode::Fast,
        _ => bail!("usage: cargo xtask serve [--release|--fast]"),
    };
    let Built { site, server } = build(mode, Parts::All)?;
    say("Starting the server; it says below where it answers. Ctrl-C stops it.");
    become_program(program(server).env("LEARNHARNESS_SITE", site))
}

/// Builds the site alone, beside a server that runs already.
pub(crate) fn site(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask site");
    }
    let site = site::build(Mode::Release)?;
    say(format!("The site is in {}.", site.display()));
    Ok(())
}

/// What a server needs to run: its program and the folder that it serves.
pub(crate) struct Built {
    pub(crate) server: PathBuf,
    pub(crate) site: PathBuf,
}

/// How much of it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Parts {
    /// The server without its pages' scripts and styles.
    Server,
    All,
}

/// Builds the site and the server side by side: each has stretches that keep one core only busy.
pub(crate) fn build(mode: Mode, parts: Parts) -> Result<Built> {
    let (site, server) = thread::scope(|scope| {
        let server = scope.spawn(|| build_server(mode));
        let site = match parts {
            Parts::Server => Ok(target().join("no-site")),
            Parts::All => site::build(mode),
        };
        (site, server.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    Ok(Built { site: site?, server: server? })
}

/// Compiles the server and returns where it is.
fn build_server(mode: Mode) -> Result<PathBuf> {
    say("Compiling the server.");
    let (profile, folder) = match mode {
        Mode::Release => ("release", "release"),
        Mode::Fast => ("dev", "debug"),
    };
    run(&mut cargo(["build", "--bin", NAME, "--features", "ssr", "--profile", profile]))?;
    Ok(target().join(folder).join(NAME))
}

/// Replaces this process: signals reach the server itself, and nothing is left over whatever ends it.
#[cfg(unix)]
fn become_program(command: &mut std::process::Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec()).context("can't start the server")
}

#[cfg(not(unix))]
fn become_program(command: &mut std::process::Command) -> Result<()> {
    run(command)
}
