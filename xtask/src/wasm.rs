//! The browser's module: compiled, bound to JavaScript, made small, compressed, and kept until its inputs change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::shell::{cargo, program, root, run, say, succeeds, target};
use crate::site::{self, Effort, NAME};
use crate::tools::{self, WASM_TARGET};

/// How much is spent on making programs small and fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What learners get.
    Release,
    /// What a developer waits for: no link-time optimisation, no `wasm-opt`, light compression.
    Fast,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Release => "release",
            Mode::Fast => "fast",
        }
    }

    /// The profile that cargo compiles the module with, and the folder where it then lies.
    fn profile(self) -> (&'static str, &'static str) {
        match self {
            Mode::Release => ("wasm-release", "wasm-release"),
            Mode::Fast => ("dev", "debug"),
        }
    }

    pub(crate) fn effort(self) -> Effort {
        match self {
            Mode::Release => Effort::Most,
            Mode::Fast => Effort::Little,
        }
    }
}

/// The finished module: a folder whose content belongs into the site's `pkg/`, under names that hold content hashes.
pub(crate) struct Module {
    pub(crate) folder: PathBuf,
    /// File name of the JavaScript that loads the module.
    pub(crate) js: String,
    /// File name of the module itself.
    pub(crate) wasm: String,
}

/// Compiles and finishes the module, or returns the finished one if nothing has changed.
pub(crate) fn build(mode: Mode) -> Result<Module> {
    same_bindgen(&fs::read_to_string(root().join("Cargo.lock"))?)?;
    let compiled = compile(mode)?;
    let wasm_opt = match mode {
        Mode::Release => tools::wasm_opt(),
        Mode::Fast => None,
    };
    let bytes = fs::read(&compiled).with_context(|| format!("can't read {}", compiled.display()))?;
    // The recipe belongs to the key: a module that was made otherwise is another module.
    let recipe = format!("{} {}", wasm_opt.is_some(), include_str!("wasm.rs"));
    let key = format!("{}-{}{}", mode.name(), site::hash(&bytes), site::hash(recipe.as_bytes()));
    let shelf = target().join("wasm/finished");
    let finished = shelf.join(&key);
    if !finished.is_dir() {
        let work = target().join("wasm/work");
        empty(&work)?;
        finish(&compiled, wasm_opt.as_deref(), mode.effort(), &work)?;
        discard(&shelf, mode)?;
        fs::rename(work.join("pkg"), &finished)?;
    }
    opened(finished)
}

/// Fails unless the binder here and the module's `wasm-bindgen` have one version: the format between them has no other
/// promise than that.
fn same_bindgen(lock: &str) -> Result<()> {
    let version = |package: &str| {
        let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
        rest.split_once('"').map(|(version, _)| version)
    };
    let module = version("wasm-bindgen").context("Cargo.lock has no wasm-bindgen")?;
    let binder = version("wasm-bindgen-cli-support").context("Cargo.lock has no wasm-bindgen-cli-support")?;
    if module != binder {
        bail!(
            "Cargo.lock has wasm-bindgen {module} but wasm-bindgen-cli-support {binder}: \
             set wasm-bindgen-cli-support to \"={module}\" in xtask/Cargo.toml"
        );
    }
    Ok(())
}

/// Compiles the library for the browser; its own target folder, so that it can run beside the server's build.
fn compile(mode: Mode) -> Result<PathBuf> {
    tools::wasm_target()?;
    say("Compiling the browser's module (WebAssembly).");
    let (profile, folder) = mode.profile();
    let mut command = cargo(["build", "--lib", "--target", WASM_TARGET, "--no-default-features"]);
    command.args(["--features", "hydrate", "--profile", profile, "--target-dir"]).arg(target().join("wasm"));
    if mode == Mode::Release && takes_no_places() {
        let flags = format!("target.{WASM_TARGET}.rustflags=[\"{NO_PLACES}\"]");
        command.env("RUSTC_BOOTSTRAP", "1").args(["--config", &flags]);
    }
    run(&mut command)?;
    Ok(target().join("wasm").join(WASM_TARGET).join(folder).join(format!("{NAME}.wasm")))
}

/// Leaves out of panics the file and line that they came from: 12 kB of text that no learner reads. A flag of nightly
/// compilers, which stable ones take when told to.
const NO_PLACES: &str = "-Zlocation-detail=none";

/// Whether this compiler knows the flag.
fn takes_no_places() -> bool {
    succeeds(program("rustc").env("RUSTC_BOOTSTRAP", "1").args([NO_PLACES, "--print", "cfg"]))
}

/// Makes `work/pkg` out of the compiled module.
fn finish(compiled: &Path, wasm_opt: Option<&Path>, effort: Effort, work: &Path) -> Result<()> {
    say("Binding the module to JavaScript.");
    let bound = work.join("bound");
    Bindgen::new()
        .input_path(compiled)
        .out_name(NAME)
        .web(true)?
        .typescript(false)
        .remove_name_section(matches!(effort, Effort::Most))
        .remove_producers_section(true)
        .generate(&bound)
        .context("wasm-bindgen failed")?;
    let wasm = bound.join(format!("{NAME}_bg.wasm"));
    if let Some(wasm_opt) = wasm_opt {
        optimise(wasm_opt, &wasm)?;
    }
    say("Compressing the module.");
    let mut snippets = BTreeMap::new();
    gather(&bound.join("snippets"), "", &mut snippets)?;
    let files = hashed(&fs::read_to_string(bound.join(format!("{NAME}.js")))?, fs::read(wasm)?, snippets);
    let pkg = work.join("pkg");
    for (name, bytes) in files {
        site::write_compressed(&pkg.join(name), &bytes, effort)?;
    }
    Ok(())
}

/// Replaces the module by what `wasm-opt` makes of it. A compiler that is newer than `wasm-opt` may write what it can't
/// read; the module then stays as it is.
fn optimise(wasm_opt: &Path, wasm: &Path) -> Result<()> {
    say("Making the module smaller with wasm-opt.");
    let smaller = wasm.with_extension("smaller");
    let mut command = program(wasm_opt);
    // -Oz makes a smaller module, but a larger one once compressed.
    command.arg("-Os").arg(wasm).arg("-o").arg(&smaller);
    // The proposals that rustc's default target features already use.
    command.args([
        "--enable-bulk-memory",
        "--enable-bulk-memory-opt",
        "--enable-multivalue",
        "--enable-mutable-globals",
        "--enable-nontrapping-float-to-int",
        "--enable-reference-types",
        "--enable-sign-ext",
    ]);
    match run(&mut command) {
        Ok(()) => Ok(fs::rename(smaller, wasm)?),
        Err(error) => {
            say(format!("The module stays as compiled: {error:#}."));
            Ok(())
        }
    }
}

/// Names every file by its content, from the inside out, and mends the names by which they call each other.
fn hashed(js: &str, wasm: Vec<u8>, snippets: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let wasm_name = format!("{NAME}.{}.wasm", site::hash(&wasm));
    let mut js = js.replace(&format!("{NAME}_bg.wasm"), &wasm_name);
    if !snippets.is_empty() {
        // Snippets may import each other by relative paths, so they move together, under one hash of them all.
        let all: Vec<u8> = snippets.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes].concat()).collect();
        let folder = format!("snippets.{}", site::hash(&all));
        js = js.replace("'./snippets/", &format!("'./{folder}/")).replace("\"./snippets/", &format!("\"./{folder}/"));
        files.extend(snippets.into_iter().map(|(name, bytes)| (format!("{folder}/{name}"), bytes)));
    }
    files.insert(format!("{NAME}.{}.js", site::hash(js.as_bytes())), js.into_bytes());
    files.insert(wasm_name, wasm);
    files
}

/// All files under `folder`, by their paths with `/` after `prefix`.
fn gather(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Removes earlier modules of this mode.
fn discard(shelf: &Path, mode: Mode) -> Result<()> {
    fs::create_dir_all(shelf)?;
    for entry in fs::read_dir(shelf)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(mode.name()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

fn opened(folder: PathBuf) -> Result<Module> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let with_ending = |ending: &str| {
        let name = names.iter().find(|name| name.ends_with(ending)).cloned();
        name.with_context(|| format!("{} holds no {ending} file; remove it", folder.display()))
    };
    let (js, wasm) = (with_ending(".js")?, with_ending(".wasm")?);
    Ok(Module { folder, js, wasm })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(module: &str, binder: &str) -> String {
        format!(
            "[[package]]\nname = \"wasm-bindgen\"\nversion = \"{module}\"\n\n\
             [[package]]\nname = \"wasm-bindgen-cli-support\"\nversion = \"{binder}\"\n"
        )
    }

    #[test]
    fn two_versions_of_wasm_bindgen_are_refused_with_the_cure() {
        same_bindgen(&lock("0.2.130", "0.2.130")).unwrap();
        let error = same_bindgen(&lock("0.2.131", "0.2.130")).unwrap_err().to_string();
        assert!(error.contains("set wasm-bindgen-cli-support to \"=0.2.131\" in xtask/Cargo.toml"), "{error}");
    }

    #[test]
    fn a_module_that_wasm_opt_refuses_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let wasm = folder.path().join("a.wasm");
        fs::write(&wasm, "module").unwrap();
        optimise(Path::new("false"), &wasm).unwrap();
        assert_eq!(fs::read(&wasm).unwrap(), b"module");
    }

    #[test]
    fn the_javascript_calls_the_other_files_by_their_hashed_names() {
        let js = "import * as a from './snippets/x-1/inline0.js';\nnew URL('learnharness_bg.wasm', import.meta.url);";
        let snippets = BTreeMap::from([("x-1/inline0.js".to_owned(), b"export {}".to_vec())]);
        let files = hashed(js, b"module".to_vec(), snippets);
        let (_, js) =
            files.iter().find(|(name, _)| name.starts_with("learnharness.") && name.ends_with(".js")).unwrap();
        let js = String::from_utf8(js.clone()).unwrap();
        for name in files.keys().filter(|name| !name.ends_with(".js") || name.contains('/')) {
            assert!(js.contains(name.as_str()), "{name} is not in {js}");
        }
        assert!(!js.contains("_bg.wasm") && !js.contains("./snippets/"), "{js}");
    }

    #[test]
    fn another_module_gets_other_names_for_itself_and_its_javascript() {
        let js = "new URL('learnharness_bg.wasm', import.meta.url);";
        let one = hashed(js, b"one".to_vec(), BTreeMap::new());
        let two = hashed(js, b"two".to_vec(), BTreeMap::new());
        assert!(one.keys().all(|name| !two.contains_key(name)));
    }
}
