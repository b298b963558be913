//! The folder that the server serves, `target/site`: `pkg/` with the module and the style under content-hashed names,
//! their compressed twins and `manifest.json`, and beside it the files of `public/`.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use crate::shell::{root, target};
use crate::wasm::{self, Mode};

/// What the files of the site are called before their hash.
pub(crate) const NAME: &str = "learnharness";

/// How hard to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Most,
    Little,
}

/// Builds what is out of date of the site and returns its folder.
pub(crate) fn build(mode: Mode) -> Result<PathBuf> {
    let module = wasm::build(mode)?;
    let css = join_css(&root().join("style"))?;
    let mut site = Site { folder: target().join("site"), kept: BTreeSet::new() };

    site.copy_finished(&module.folder, "pkg")?;
    let css_name = format!("{NAME}.{}.css", hash(css.as_bytes()));
    site.put(&format!("pkg/{css_name}"), css.as_bytes())?;
    site.copy(&root().join("public"), "")?;
    // Last, and in one step: a server that starts now finds the old set of names or the new one.
    let manifest = json!({ "js": module.js, "wasm": module.wasm, "css": css_name });
    site.put_plain("pkg/manifest.json", format!("{manifest:#}\n").as_bytes())?;
    site.remove_the_rest()?;
    Ok(site.folder)
}

/// Sixteen hexadecimal digits that say which content this is. Not a defence against forgery: it names our own files.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

/// Writes a file with `.br` and `.gz` twins beside it, each only if it is smaller than the file.
pub(crate) fn write_compressed(path: &Path, bytes: &[u8], effort: Effort) -> Result<()> {
    for (ending, compressed) in [("br", brotli(bytes, effort)?), ("gz", gzip(bytes, effort)?)] {
        let twin = beside(path, ending);
        if compressed.len() < bytes.len() {
            write(&twin, &compressed)?;
        } else if twin.exists() {
            fs::remove_file(&twin)?;
        }
    }
    // Last: whoever finds the file finds it complete.
    write(path, bytes)
}

/// The site while it is built. `kept` are the files that belong to it, relative to `folder`; all others are left over.
struct Site {
    folder: PathBuf,
    kept: BTreeSet<PathBuf>,
}

impl Site {
    /// Puts a file there with its compressed twins, unless it lies there already.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        if fs::read(&path).ok().as_deref() != Some(bytes) {
            if compressible(&path) {
                write_compressed(&path, bytes, Effort::Most)?;
            } else {
                write(&path, bytes)?;
            }
        }
        self.kept.extend(["", "br", "gz"].map(|ending| beside(Path::new(name), ending)));
        Ok(())
    }

    /// Puts a file there as it is.
    fn put_plain(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        if fs::read(&path).ok().as_deref() != Some(bytes) {
            write(&path, bytes)?;
        }
        self.kept.insert(PathBuf::from(name));
        Ok(())
    }

    /// Copies a folder of files, compressing them.
    fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        for (path, name) in listed(from, to)? {
            self.put(&name, &fs::read(path)?)?;
        }
        Ok(())
    }

    /// Copies a folder of files that are compressed already.
    fn copy_finished(&mut self, from: &Path, to: &str) -> Result<()> {
        for (path, name) in listed(from, to)? {
            self.put_plain(&name, &fs::read(path)?)?;
        }
        Ok(())
    }

    fn remove_the_rest(&self) -> Result<()> {
        for (path, name) in listed(&self.folder, "")? {
            if !self.kept.contains(Path::new(&name)) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The style as one text: `main.css` is a list of `@import "./x.css";` lines, which give the order.
fn join_css(folder: &Path) -> Result<String> {
    let main = folder.join("main.css");
    let list = fs::read_to_string(&main).with_context(|| format!("missing: {}", main.display()))?;
    let mut joined = String::new();
    let mut imported = BTreeSet::from(["main.css".to_owned()]);
    for line in without_comments(&list).lines().map(str::trim).filter(|line| !line.is_empty()) {
        let name = line.strip_prefix("@import \"./").and_then(|rest| rest.strip_suffix("\";"));
        let name =
            name.with_context(|| format!("style/main.css holds only lines `@import \"./x.css\";`, not `{line}`"))?;
        let css = fs::read_to_string(folder.join(name))
            .with_context(|| format!("style/main.css imports {name}, which can't be read"))?;
        joined += without_comments(&css).trim();
        joined.push('\n');
        imported.insert(name.to_owned());
    }
    for (_, name) in listed(folder, "")? {
        if name.ends_with(".css") && !imported.contains(&name) {
            bail!("style/{name} is not imported by style/main.css");
        }
    }
    Ok(joined)
}

/// The style without `/* … */`; what stands between quotes is no comment.
fn without_comments(css: &str) -> String {
    let mut text = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(position) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(position);
        text += before;
        let length = match from.as_bytes() {
            [b'/', b'*', ..] => {
                rest = from.split_once("*/").map_or("", |(_, after)| after);
                continue;
            }
            [b'/', ..] => 1,
            quoted => string_length(quoted),
        };
        text += &from[..length];
        rest = &from[length..];
    }
    text + rest
}

/// Bytes of the quoted string that `css` begins with, both quotes counted.
fn string_length(css: &[u8]) -> usize {
    let mut position = 1;
    while position < css.len() {
        match css[position] {
            b'\\' => position += 2,
            byte if byte == css[0] => return position + 1,
            _ => position += 1,
        }
    }
    css.len()
}

/// Every file under `folder` (none if it does not exist) with its path, by `/`, below `prefix`.
fn listed(folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("can't list {}", folder.display()))? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = if prefix.is_empty() { own } else { format!("{prefix}/{own}") };
        if entry.file_type()?.is_dir() {
            files.extend(listed(&entry.path(), &name)?);
        } else {
            files.push((entry.path(), name));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether compressing such a file gains anything.
fn compressible(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    matches!(&*ending, "css" | "html" | "js" | "json" | "md" | "svg" | "txt" | "wasm" | "webmanifest" | "xml")
}

/// The path with one more ending; no ending, no change.
fn beside(path: &Path, ending: &str) -> PathBuf {
    if ending.is_empty() {
        return path.to_path_buf();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes by renaming, so that nobody reads half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let context = || format!("can't write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    let unfinished = beside(path, "unfinished");
    fs::write(&unfinished, bytes).with_context(context)?;
    fs::rename(&unfinished, path).with_context(context)
}

fn brotli(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let quality = match effort {
        Effort::Most => 11,
        Effort::Little => 4,
    };
    let parameters =
        brotli::enc::BrotliEncoderParams { quality, lgwin: 22, size_hint: bytes.len(), ..Default::default() };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &parameters)?;
    Ok(compressed)
}

fn gzip(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let level = match effort {
        Effort::Most => Compression::best(),
        Effort::Little => Compression::fast(),
    };
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        folder
    }

    #[test]
    fn css_is_joined_in_the_order_of_main() {
        let style = folder(&[
            ("main.css", "/* The order matters. */\n@import \"./tokens.css\";\n@import \"./parts/card.css\";\n"),
            ("parts/card.css", ".card { color: var(--ink); }\n"),
            ("tokens.css", "/* Ink. */\n:root { --ink: black; }\n"),
        ]);
        assert_eq!(join_css(style.path()).unwrap(), ":root { --ink: black; }\n.card { color: var(--ink); }\n");
    }

    #[test]
    fn css_that_nobody_imports_is_an_error() {
        let style = folder(&[("main.css", ""), ("lost.css", "")]);
        assert_eq!(join_css(style.path()).unwrap_err().to_string(), "style/lost.css is not imported by style/main.css");
    }

    #[test]
    fn main_css_holds_imports_only() {
        let style = folder(&[("main.css", "a { color: red }")]);
        let error = join_css(style.path()).unwrap_err().to_string();
        assert!(error.ends_with("not `a { color: red }`"), "{error}");
    }

    #[test]
    fn comments_go_and_strings_stay() {
        let css = "a::before { content: \"/* \\\" no */\" } /* yes */ b { background: url('/x/*.svg') } c { width: 1px/2 } /*";
        let expected =
            "a::before { content: \"/* \\\" no */\" }  b { background: url('/x/*.svg') } c { width: 1px/2 } ";
        assert_eq!(without_comments(css), expected);
    }

    #[test]
    fn both_twins_of_a_file_hold_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.css");
        let text = ".a { color: red }\n".repeat(50);
        write_compressed(&path, text.as_bytes(), Effort::Most).unwrap();

        let mut plain = Vec::new();
        brotli::BrotliDecompress(&mut fs::File::open(beside(&path, "br")).unwrap(), &mut plain).unwrap();
        assert_eq!(plain, text.as_bytes());
        let mut plain = Vec::new();
        let mut decoder = flate2::write::GzDecoder::new(&mut plain);
        decoder.write_all(&fs::read(beside(&path, "gz")).unwrap()).unwrap();
        decoder.finish().unwrap();
        assert_eq!(plain, text.as_bytes());
    }

    #[test]
    fn a_twin_that_is_no_smaller_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.css");
        write_compressed(&path, "a{}".repeat(99).as_bytes(), Effort::Most).unwrap();
        assert!(beside(&path, "br").exists());
        write_compressed(&path, b"a{}", Effort::Most).unwrap();
        assert!(!beside(&path, "br").exists() && !beside(&path, "gz").exists());
    }

    #[test]
    fn what_no_longer_belongs_to_the_site_is_removed() {
        let public = folder(&[("icons/a.svg", "<svg/>"), ("b.png", "png")]);
        let out =
            folder(&[("pkg/learnharness.0123456789abcdef.css", "old"), ("gone.txt", "old"), ("gone.txt.br", "old")]);
        let mut site = Site { folder: out.path().to_path_buf(), kept: BTreeSet::new() };
        site.copy(public.path(), "").unwrap();
        site.put("pkg/learnharness.new.css", b"new").unwrap();
        site.remove_the_rest().unwrap();
        let names: Vec<String> = listed(out.path(), "").unwrap().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["b.png", "icons/a.svg", "pkg/learnharness.new.css"]);
    }
}
