//! What the machine must have: found, installed where that is possible, or named in one line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{self, program, run, say, succeeds, target, variable};

/// The target that the browser's module is compiled for.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Adds the compiler's wasm32 target if it is not there.
pub(crate) fn wasm_target() -> Result<()> {
    let sysroot = shell::read(program("rustc").args(["--print", "sysroot"]))?;
    if Path::new(&sysroot).join("lib/rustlib").join(WASM_TARGET).join("lib").is_dir() {
        return Ok(());
    }
    say(format!("Adding the {WASM_TARGET} target with rustup."));
    run(program("rustup").args(["target", "add", WASM_TARGET]))
        .with_context(|| format!("missing: Rust's {WASM_TARGET} target, and rustup could not add it"))
}

/// Adds rustfmt and clippy if they are not there.
pub(crate) fn components() -> Result<()> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if succeeds(program("cargo").args([subcommand, "--version"])) {
            continue;
        }
        say(format!("Adding {component} with rustup."));
        run(program("rustup").args(["component", "add", component]))
            .with_context(|| format!("missing: {component}, and rustup could not add it"))?;
    }
    Ok(())
}

/// Where `wasm-opt` is, installed from npm on first use; `None` (and a line that says why) if that can't be done.
pub(crate) fn wasm_opt() -> Option<PathBuf> {
    let folder = target().join("tools");
    let program = folder.join("node_modules/.bin/wasm-opt");
    match write_package(&folder).and_then(|()| install_packages(&folder, "wasm-opt")) {
        Ok(()) => Some(program),
        Err(error) => {
            say(format!("The module stays as compiled, without wasm-opt: {error:#}."));
            None
        }
    }
}

/// Runs `npm ci` in `folder` unless what its lock file asks for is there already.
pub(crate) fn install_packages(folder: &Path, what: &str) -> Result<()> {
    let lock = fs::read_to_string(folder.join("package-lock.json"))
        .with_context(|| format!("missing: {}", folder.join("package-lock.json").display()))?;
    let stamp = folder.join("node_modules/.installed-lock.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    require_npm()?;
    say(format!("Installing {what} with npm."));
    let mut npm = program("npm");
    npm.current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    run(npm.env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"))?;
    fs::write(stamp, lock)?;
    Ok(())
}

/// A Chromium to test with: `$CHROMIUM`, else the system's, else installed with apt by root.
pub(crate) fn chromium() -> Result<PathBuf> {
    if let Some(path) = variable("CHROMIUM") {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        bail!("missing: {}, which CHROMIUM names", path.display());
    }
    if let Some(path) = system_chromium() {
        return Ok(path);
    }
    let root = shell::read(program("id").arg("-u")).is_ok_and(|id| id == "0");
    if !root || !succeeds(program("apt-get").arg("--version")) {
        bail!("missing: Chromium; install it, or set CHROMIUM to its program (apt-get needs root to do it here)");
    }
    say("Installing Chromium with apt-get.");
    run(apt().args(["update", "-qq"]))?;
    run(apt().args(["install", "-y", "-qq", "chromium"]))
        .context("missing: Chromium, and apt-get could not install it")?;
    system_chromium().context("missing: Chromium, although apt-get installed it")
}

fn system_chromium() -> Option<PathBuf> {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

fn apt() -> std::process::Command {
    let mut apt = program("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

fn require_npm() -> Result<()> {
    for name in ["node", "npm"] {
        if !succeeds(program(name).arg("--version")) {
            bail!("missing: {name} (Node 20 or later, https://nodejs.org)");
        }
    }
    Ok(())
}

/// Writes down which `wasm-opt` is wanted.
fn write_package(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("package.json"), include_str!("../npm/package.json"))?;
    fs::write(folder.join("package-lock.json"), include_str!("../npm/package-lock.json"))?;
    Ok(())
}
