//! Packs as files: the built-in ones, those of a folder, and those that break a rule.

use super::super::pack::ProbeItem;
use super::*;

#[test]
fn the_built_in_packs_hold_a_whole_lesson_each() {
    let (packs, errors) = Packs::built_in();
    assert_eq!(errors, []);
    for pack in packs.all() {
        assert!(pack.probes().count() >= 4, "{}", pack.slug);
        assert!(pack.blocks.len() >= 5, "{}", pack.slug);
        assert!(pack.quizzes().count() >= 12, "{}", pack.slug);
        assert!(pack.probe.iter().any(|item| matches!(item, ProbeItem::Ask(_))), "{}", pack.slug);
        for (_, quiz) in pack.quizzes() {
            let mut wrong = quiz.options.iter().filter(|option| !quiz.correct.contains(option));
            assert!(wrong.all(|option| quiz.remedies.contains_key(option)), "{}", quiz.id);
        }
    }
}

#[test]
fn what_a_built_in_block_says_does_not_depend_on_the_blocks_around_it() {
    // What follows in the same block may be announced; after its last quiz comes whatever the plan has.
    let announces = ["next ", "next,", "now ", "last step", "last of", "completes", "brings us", "block"];
    for pack in Packs::built_in().0.all() {
        for (at, block) in pack.blocks.iter().enumerate() {
            let praise = &block.steps.last().unwrap().quiz.praise;
            assert!(!announces.iter().any(|word| praise.to_lowercase().contains(word)), "{}: {praise}", block.id);
            assert_eq!(block.bridge.is_empty(), at == 0, "{}", block.id);
            assert!(!block.can.ends_with('.') && !block.can.is_empty(), "{}", block.id);
        }
    }
}

/// The smallest file that is a pack.
const SMALL: &str = r##"+++
slug = "small"
title = "Small"
topics = ["small"]
summary = "A small lesson."
goal = "Know it."
+++

Hello.

# Probe

```quiz
id = "p1"
block = "one"
concept = "x"
kind = "single"
question = "P?"
options = ["a", "b"]
correct = ["a"]
```

# Block one: One

```block
objective = "O."
concepts = ["x"]
recap = "R."
```

Prose.

```quiz
id = "one-1"
concept = "x"
kind = "single"
question = "Q1?"
options = ["a", "b"]
correct = ["a"]
hint = "h"
explanation = "e"
praise = "p"
unsure = "u"
[remedies]
"b" = "r"
```

# Block two: Two

```block
objective = "O."
concepts = ["y"]
recap = "R."
```

```quiz
id = "two-1"
concept = "y"
kind = "short"
question = "Q2?"
correct = ["a"]
hint = "h"
explanation = "e"
praise = "p"
unsure = "u"
[remedies]
"*" = "r"
```

# Summary

Bye.
"##;

#[test]
fn a_pack_that_breaks_a_rule_is_reported_with_its_line_and_reason() {
    let pack = Pack::parse("small.md", SMALL).unwrap();
    assert_eq!((pack.blocks[0].steps[0].prose.as_str(), pack.blocks[1].steps[0].prose.as_str()), ("Prose.", ""));
    assert_eq!(Pack::parse("small.md", &SMALL.replace('\n', "\r\n")).unwrap(), pack);
    assert_eq!(pack.blocks[0].can, "o", "without words of its own, the objective");
    let check = |from: &str, to: &str, line: usize, words: &str| {
        assert!(SMALL.contains(from), "{from}");
        let error = Pack::parse("small.md", &SMALL.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(
            error.to_string().starts_with(&format!("small.md:{line}: ")) && error.reason.contains(words),
            "{error}"
        );
    };
    check("slug = \"small\"", "slug = \"Small One\"", 1, "must be");
    check("title = \"Small\"\n", "", 2, "title");
    check("goal =", "gaol =", 6, "gaol");
    check("topics = [\"small\"]", "topics = []", 1, "`topics` is empty");
    check("Hello.\n", "\n", 8, "opening words");
    check("# Probe", "# Prove", 11, "\"Prove\"");
    check("block = \"one\"", "block = \"three\"", 13, "no block \"three\"");
    check("kind = \"single\"", "kind = \"double\"", 17, "double");
    check("correct = [\"a\"]\n```\n\n# Block", "correct = [\"c\"]\n```\n\n# Block", 13, "not among the options");
    check("# Block one: One", "# Block one", 23, "# Block <id>: <title>");
    check("```block\n", "```toml\n", 23, "begins with a `block` fence");
    check("\"b\" = \"r\"\n", "", 33, "\"b\" has no remedy");
    check("\"b\" = \"r\"\n", "\"b\" = \"r\"\n\"a\" = \"r\"\n", 33, "\"a\" can never be said");
    check("\"*\" = \"r\"\n", "", 56, "needs the remedy");
    check("id = \"two-1\"", "id = \"one-1\"", 56, "line 33");
    check("\"Q2?\"", "\"Q1?\"", 56, "asked twice");
    check("# Block two", "# Block one", 48, "Two blocks");
    check("hint = \"h\"", "hint = 1", 40, "string");
    check("# Summary\n\nBye.\n", "", 1, "summary");
    check("recap = \"R.\"\n", "recap = \"R.\"\nbridge = \"B.\"\n", 23, "nothing comes before it");
}

#[test]
fn packs_of_a_folder_join_the_built_in_ones_and_take_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.md", SMALL);
    write("b.md", "no pack");
    write("c.md", &SMALL.replace("slug = \"small\"", "slug = \"fractions\"").replace("\"Small\"", "\"My fractions\""));
    write("notes.txt", "no pack either");
    let (packs, errors) = Packs::load(folder.path());
    let titles: Vec<_> = packs.all().iter().map(|pack| pack.title.as_str()).collect();
    assert_eq!(titles, ["My fractions", "Rust ownership", "Small"]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].file.ends_with("b.md") && errors[0].line == 1, "{errors:?}");
    assert_eq!(Packs::load(&folder.path().join("missing")), Packs::built_in());
}
