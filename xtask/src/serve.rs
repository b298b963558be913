//! `cargo xtask serve`: builds the site and the server, then becomes the server.

use std::path::PathBuf;

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
    let site = site::build(mode)?;
    let server = build_server(mode)?;
    say("Starting the server; it says below where it answers. Ctrl-C stops it.");
    become_program(program(server).env("LEARNHARNESS_SITE", site))
}

/// Builds the site alone, beside a server that runs already.
pub(crate) fn site(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask site");
    }
    let site = site::build(Mode::Release)?;
    say(&format!("The site is in {}.", site.display()));
    Ok(())
}

/// Compiles the server and returns where it is.
pub(crate) fn build_server(mode: Mode) -> Result<PathBuf> {
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
