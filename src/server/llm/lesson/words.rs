//! Comparing what a learner writes with the words of a lesson: lower case, whole words, plurals and other endings.

/// A set of words, written as one text with spaces between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set(pub(super) &'static str);

impl Set {
    pub(super) fn has(self, word: &str) -> bool {
        self.0.split_ascii_whitespace().any(|own| own == word)
    }

    /// True when one of `words` is in the set.
    pub(super) fn is_in(self, words: &[String]) -> bool {
        words.iter().any(|word| self.has(word))
    }
}

/// The words of a text in lower case: runs of letters and digits.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// A word without its plural ending.
pub(super) fn singular(word: &str) -> String {
    let ends = |ending: &str| word.len() > ending.len() + 2 && word.ends_with(ending);
    if ends("ies") {
        return format!("{}y", &word[..word.len() - 3]);
    }
    if ["sses", "xes", "ches", "shes"].into_iter().any(ends) {
        return word[..word.len() - 2].to_owned();
    }
    if ends("s") && !["ss", "us", "is"].into_iter().any(ends) {
        return word[..word.len() - 1].to_owned();
    }
    word.to_owned()
}

/// True when `phrase` stands in `text` as whole words, in any number.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    let stems = |text: &str| words(text).iter().map(|word| singular(word)).collect::<Vec<_>>();
    let (text, phrase) = (stems(text), stems(phrase));
    !phrase.is_empty() && text.windows(phrase.len()).any(|window| window == phrase)
}

/// True when two words have the same root, as "dividing" and "division" have.
pub(super) fn akin(one: &str, other: &str) -> bool {
    let (one, other) = (root(one), root(other));
    if one == other {
        return true;
    }
    let shared = one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    let longest = one.chars().count().max(other.chars().count());
    shared >= 4 && shared * 10 >= longest * 6
}

fn root(word: &str) -> String {
    let word = singular(word);
    let endings = ["ication", "ation", "ition", "ing", "ion", "ed", "e", "y"];
    let ending = endings.into_iter().find(|ending| word.len() >= ending.len() + 3 && word.ends_with(ending));
    ending.map_or_else(|| word.clone(), |ending| word[..word.len() - ending.len()].to_owned())
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_as_whole_words_in_singular_or_plural() {
        let check = |text: &str, phrase: &str, expected: bool| assert_eq!(holds(text, phrase), expected, "{text}");
        check("Teach me Fractions, please!", "fraction", true);
        check("a common denominator", "common denominators", true);
        check("an infraction of rules", "fraction", false);
        check("I trust you", "rust", false);
        check("&str or String?", "string", true);
        check("common sense, denominator", "common denominator", false);
        check("anything", "&", false);
    }

    #[test]
    fn words_of_one_root_are_akin() {
        for (one, other) in [
            ("dividing", "division"),
            ("add", "adding"),
            ("addition", "adding"),
            ("multiply", "multiplication"),
            ("compare", "comparison"),
            ("subtract", "subtraction"),
            ("moves", "move"),
            ("borrowing", "borrow"),
        ] {
            assert!(akin(one, other), "{one} {other}");
        }
        for (one, other) in [("part", "particular"), ("number", "numerator"), ("life", "lifetime"), ("add", "all")] {
            assert!(!akin(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_list_reads_as_a_sentence() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }
}
