//! The house rules of the source tree. What is an exception stands in a list with its reason; the lists may only shrink:
//! an entry that is needed no more fails as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A source file: its path below `src`, its lines, and those of them that are no tests.
struct Source {
    path: String,
    text: String,
    product: String,
}

/// Names that a rule finds where it should not, each with the reason why it stays.
type Exceptions = &'static [(&'static str, &'static str)];

#[test]
fn every_file_opens_with_a_sentence_that_says_what_it_is() {
    check(&[], |file| !file.text.starts_with("//! "));
}

#[test]
fn no_file_is_longer_than_800_lines() {
    check(&[], |file| file.text.lines().count() > 800);
}

#[test]
fn the_vocabulary_names_nobody() {
    check(&[], |file| {
        file.is_in("app/native/") && file.names(&["server", "client", "app::"]).iter().any(|name| !is_native(name))
    });
}

#[test]
fn the_view_model_names_only_the_vocabulary() {
    check(&[], |file| {
        let own = |name: &String| is_native(name) || name.starts_with("app::transcript");
        file.is_in("app/transcript/") && !file.names(&["server", "client", "app::"]).iter().all(own)
    });
}

#[test]
fn the_server_names_of_the_app_only_vocabulary_and_view_model() {
    const EXCEPTIONS: Exceptions = &[("server/http/mod.rs app::serve", "the pages are mounted beside the routes")];
    let mut found = BTreeSet::new();
    for file in sources().iter().filter(|file| file.is_in("server/") && file.path != "server/main.rs") {
        let allowed = |name: &String| is_native(name) || name.starts_with("app::transcript");
        for name in file.names(&["app::"]).into_iter().filter(|name| !allowed(name)) {
            found.insert(format!("{} {}", file.path, first_two(&name)));
        }
    }
    hold(&found, EXCEPTIONS);
}

#[test]
fn models_store_and_extraction_do_not_name_each_other() {
    let parts = ["llm", "store", "extract"];
    for part in parts {
        let others: Vec<String> =
            parts.iter().filter(|other| **other != part).map(|other| format!("server::{other}")).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        check(&[], |file| file.is_in(&format!("server/{part}/")) && !file.names(&others).is_empty());
    }
}

#[test]
fn only_server_functions_and_the_mount_name_the_server() {
    check(&[], |file| {
        let may = file.is_in("app/api/") || file.path == "app/serve.rs";
        file.is_in("app/") && !may && !file.names(&["server"]).is_empty()
    });
}

#[test]
fn only_the_platform_names_the_browser_side() {
    check(&[], |file| {
        let may = file.is_in("client/") || ["app/platform.rs", "lib.rs"].contains(&file.path.as_str());
        !may && !file.names(&["client"]).is_empty()
    });
}

#[test]
fn only_few_files_branch_on_the_side_that_they_are_built_for() {
    check(&[], |file| {
        let may = ["lib.rs", "app/mod.rs", "app/platform.rs"].contains(&file.path.as_str())
            || file.is_in("app/api/")
            || file.is_in("client/");
        !may && (file.product.contains("cfg(feature") || file.product.contains("cfg(not(feature"))
    });
}

#[test]
fn only_the_configuration_reads_the_environment() {
    check(&[], |file| file.path != "server/config.rs" && file.product.contains("env::var"));
}

#[test]
fn only_the_browser_side_calls_the_browser() {
    check(&[], |file| {
        let calls = ["web_sys", "js_sys", "gloo_", "wasm_bindgen"];
        !file.is_in("client/") && calls.iter().any(|call| file.product.contains(call))
    });
}

#[test]
fn no_task_is_spawned_without_an_owner_and_a_reason() {
    check(&[], |file| {
        let lines: Vec<&str> = file.product.lines().collect();
        lines.iter().enumerate().any(|(index, line)| {
            let expected = index > 0 && lines[index - 1].contains("clippy::disallowed_methods, reason = ");
            line.contains("tokio::spawn(") && !expected && !line.trim_start().starts_with("//")
        })
    });
}

#[test]
fn nobody_gives_up_with_a_panic_or_leaves_work_for_later() {
    check(&[], |file| {
        let words = [".unwrap()", ".expect(\"", "todo!(", "unimplemented!(", "dbg!(", "unsafe {"];
        words.iter().any(|word| file.product.contains(word))
    });
}

#[test]
fn names_are_found_in_uses_paths_and_groups() {
    let file = Source::of("x.rs", "use crate::app::{native::Seq, pages::App};\nlet a = super::super::server::x();\n");
    assert_eq!(file.names(&["app::", "server"]), ["app::native::Seq", "app::pages::App", "server::x"]);
}

/// Holds a rule against every file; exceptions are named by path.
fn check(exceptions: Exceptions, broken: impl Fn(&Source) -> bool) {
    let found = sources().iter().filter(|file| broken(file)).map(|file| file.path.clone()).collect();
    hold(&found, exceptions);
}

fn hold(found: &BTreeSet<String>, exceptions: Exceptions) {
    let known: BTreeSet<String> = exceptions.iter().map(|(name, _)| (*name).to_owned()).collect();
    let new: Vec<&String> = found.difference(&known).collect();
    assert!(new.is_empty(), "against the rules of the house: {new:#?}");
    let gone: Vec<&String> = known.difference(found).collect();
    assert!(gone.is_empty(), "exceptions that are needed no more: {gone:#?}");
}

fn is_native(name: &str) -> bool {
    name.starts_with("app::native")
}

fn first_two(name: &str) -> String {
    name.split("::").take(2).collect::<Vec<_>>().join("::")
}

/// All files below `src` but the tests' own.
fn sources() -> Vec<Source> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut sources: Vec<Source> = files
        .iter()
        .map(|path| (path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), path))
        .map(|(name, path)| Source::of(&name, &std::fs::read_to_string(path).unwrap()))
        .collect();
    let tests: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    let is_test = |path: &str| tests.iter().any(|module| path.starts_with(module)) || path.starts_with("server/tests/");
    sources.retain(|file| !is_test(&file.path));
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 50);
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

impl Source {
    fn of(path: &str, text: &str) -> Self {
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
        Self { path: path.to_owned(), text: text.to_owned(), product }
    }

    /// The modules in files of their own that only tests are built with, as the beginnings of their paths.
    fn test_modules(&self) -> Vec<String> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let lines: Vec<&str> = self.text.lines().collect();
        let modules = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").filter_map(|pair| {
            let name = pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';')?;
            let inside = if self.path.ends_with("/mod.rs") { folder.to_owned() } else { self.path.replace(".rs", "") };
            Some([format!("{inside}/{name}.rs"), format!("{inside}/{name}/")])
        });
        modules.flatten().collect()
    }

    fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The paths from the crate's root that this file names and that begin with one of `roots`; groups are opened.
    fn names(&self, roots: &[&str]) -> Vec<String> {
        let code: String =
            self.product.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let mut names = Vec::new();
        for prefix in ["crate::", "learnharness::", "super::super::"] {
            for (at, _) in code.match_indices(prefix) {
                names.extend(paths(&code[at + prefix.len()..]));
            }
        }
        let wanted = |name: &String| {
            roots.iter().any(|root| {
                name.strip_prefix(root)
                    .is_some_and(|rest| root.ends_with(':') || rest.is_empty() || rest.starts_with("::"))
            })
        };
        names.retain(wanted);
        names
    }
}

/// The paths that `text` begins with, with the first level of a group opened.
fn paths(text: &str) -> Vec<String> {
    let part = |text: &str| -> String {
        text.chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_' || *sign == ':').collect()
    };
    let head = part(text);
    let rest = &text[head.len()..];
    if !head.ends_with("::") || !rest.starts_with('{') {
        return vec![head.trim_end_matches(':').to_owned()];
    }
    let mut depth = 0;
    let mut items = vec![String::new()];
    for sign in rest.chars() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => items.push(String::new()),
            _ => items.last_mut().unwrap().push(sign),
        }
        if depth == 0 {
            break;
        }
    }
    items
        .iter()
        .map(|item| item.trim())
        .filter(|item| !item.is_empty())
        .map(|item| format!("{head}{}", part(item)))
        .collect()
}
