//! Questions to the learner, their validation and their grading: one pure function for server and browser.

use serde_json::Value;

use super::input::Answer;
use super::json::Json;
use super::record::{record, words};

/// The name of the tool that asks a graded question.
pub const QUIZ: &str = "quiz";
/// The name of the tool that asks without grading.
pub const ASK: &str = "ask_user_question";

/// A posed question.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Quiz(Quiz),
    Ask(Ask),
}

record! {
    /// The arguments of a `quiz` call.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Quiz {
        pub question: String = text "question",
        pub kind: QuizKind = needed "kind",
        pub options: Vec<String> = some_texts "options",
        /// The right options' texts; for `short`, every accepted answer.
        pub correct: Vec<String> = texts "correct",
        pub concept: String = default "concept",
        pub explanation: Option<String> = optional "explanation",
        pub hint: Option<String> = optional "hint",
    }
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum QuizKind {
        Single = "single",
        Multi = "multi",
        Short = "short",
    }
}

record! {
    /// The arguments of an `ask_user_question` call.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Ask {
        pub question: String = text "question",
        pub options: Vec<String> = some_texts "options",
        pub multi_select: bool = default "multiSelect",
        pub allow_other: bool = yes "allowOther",
    }
}

record! {
    /// The outcome of an answer: what a result's `details` hold.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Graded {
        pub kind: GradedKind = needed "kind",
        pub verdict: Verdict = needed "verdict",
        pub answer: Answer = default "answer",
        /// The right answers, as far as the learner may see them now.
        pub correct: Vec<String> = optional "correct",
        /// Words beside the verdict, such as the explanation.
        pub note: Option<String> = optional "note",
    }
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GradedKind {
        Quiz = "quiz",
        Ask = "ask",
    }
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        Correct = "correct",
        Wrong = "wrong",
        /// A short answer that matched nothing; the teacher judges it.
        Open = "open",
        DontKnow = "dontKnow",
        Skipped = "skipped",
        /// An answer to a question that is not graded.
        Noted = "noted",
        /// Closed without an answer: the learner wrote instead, or stopped.
        NotAnswered = "notAnswered",
    }
}

impl Question {
    /// True when `tool` asks the learner something.
    #[must_use]
    pub fn is_question(tool: &str) -> bool {
        tool == QUIZ || tool == ASK
    }

    /// Reads and checks the arguments of a question call.
    ///
    /// # Errors
    /// Words that a model can act on.
    pub fn from_args(tool: &str, args: &Value) -> Result<Self, String> {
        let question = if tool == QUIZ {
            Self::Quiz(Json::read(args.clone().into()).map_err(|fault| fault.to_string())?)
        } else {
            Self::Ask(Json::read(args.clone().into()).map_err(|fault| fault.to_string())?)
        };
        question.check()?;
        Ok(question)
    }

    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Quiz(quiz) => &quiz.question,
            Self::Ask(ask) => &ask.question,
        }
    }

    #[must_use]
    pub fn options(&self) -> &[String] {
        match self {
            Self::Quiz(quiz) => &quiz.options,
            Self::Ask(ask) => &ask.options,
        }
    }

    /// True when several options may be chosen.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        match self {
            Self::Quiz(quiz) => quiz.kind == QuizKind::Multi,
            Self::Ask(ask) => ask.multi_select,
        }
    }

    /// True when own words may stand beside the options, or are all there is.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        match self {
            Self::Quiz(quiz) => quiz.kind == QuizKind::Short,
            Self::Ask(ask) => ask.allow_other || ask.options.is_empty(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.text().trim().is_empty() {
            return Err("The question is empty.".to_owned());
        }
        if self.text().trim().bytes().all(|sign| sign.is_ascii_digit()) {
            return Err("A number is no question; ask in words.".to_owned());
        }
        let options = self.options();
        for (index, option) in options.iter().enumerate() {
            if option.trim().is_empty() {
                return Err(format!("Option {} is empty.", index + 1));
            }
            if options[..index].iter().any(|earlier| earlier.trim() == option.trim()) {
                return Err(format!("The option {option:?} is there twice; options must be distinct."));
            }
        }
        match self {
            Self::Quiz(quiz) => quiz.check(),
            Self::Ask(ask) if ask.options.is_empty() && !ask.allow_other => {
                Err("A question without options must allow own words (allowOther: true).".to_owned())
            }
            Self::Ask(_) => Ok(()),
        }
    }
}

impl Quiz {
    fn check(&self) -> Result<(), String> {
        if self.correct.is_empty() {
            return Err("`correct` is empty; name the right answer.".to_owned());
        }
        if self.kind == QuizKind::Short {
            return if self.options.is_empty() {
                Ok(())
            } else {
                Err("A short question has no options; leave `options` out or choose kind single or multi.".to_owned())
            };
        }
        if !(2..=6).contains(&self.options.len()) {
            return Err(format!("A choice has 2 to 6 options; this one has {}.", self.options.len()));
        }
        if self.kind == QuizKind::Single && self.correct.len() != 1 {
            return Err("A single choice has exactly one correct option; choose kind multi for several.".to_owned());
        }
        match self.correct.iter().find(|right| !self.options.contains(right)) {
            Some(right) => Err(format!("The correct answer {right:?} is not among the options, letter for letter.")),
            None => Ok(()),
        }
    }
}

/// Checks that `answer` can be an answer to `question`.
///
/// # Errors
/// Words for the learner.
pub fn check_answer(question: &Question, answer: &Answer) -> Result<(), String> {
    if answer.dont_know {
        return Ok(());
    }
    if let Some(stray) = answer.values.iter().find(|value| !question.options().contains(value)) {
        return Err(format!("{stray:?} is not one of the options."));
    }
    let words = own_words(answer);
    if words.is_some() && !question.takes_text() {
        return Err("This question takes one of its options, not own words.".to_owned());
    }
    let chosen = answer.values.len() + usize::from(words.is_some());
    match chosen {
        0 => Err("The answer is empty.".to_owned()),
        1 => Ok(()),
        _ if question.takes_several() => Ok(()),
        _ => Err("This question takes one answer.".to_owned()),
    }
}

/// Grades an answer that [`check_answer`] let through.
#[must_use]
pub fn grade(question: &Question, answer: &Answer) -> Graded {
    match question {
        Question::Ask(_) => {
            let verdict = if answer.dont_know { Verdict::DontKnow } else { Verdict::Noted };
            Graded { kind: GradedKind::Ask, verdict, answer: answer.clone(), correct: Vec::new(), note: None }
        }
        Question::Quiz(quiz) => {
            let verdict = if answer.dont_know { Verdict::DontKnow } else { quiz.verdict(answer) };
            Graded {
                kind: GradedKind::Quiz,
                verdict,
                answer: answer.clone(),
                correct: quiz.correct.clone(),
                note: quiz.explanation.clone(),
            }
        }
    }
}

/// The outcome of a question that was closed without an answer.
#[must_use]
pub fn unanswered(question: &Question, verdict: Verdict) -> Graded {
    let kind = match question {
        Question::Quiz(_) => GradedKind::Quiz,
        Question::Ask(_) => GradedKind::Ask,
    };
    Graded { kind, verdict, answer: Answer::default(), correct: Vec::new(), note: None }
}

impl Quiz {
    fn verdict(&self, answer: &Answer) -> Verdict {
        if self.kind == QuizKind::Short {
            let given = own_words(answer).map(normalised).unwrap_or_default();
            return if self.correct.iter().any(|right| normalised(right) == given) {
                Verdict::Correct
            } else {
                Verdict::Open
            };
        }
        // As sets: an option named twice neither stands in for another one nor spoils the answer.
        let same = answer.values.iter().all(|value| self.correct.contains(value))
            && self.correct.iter().all(|right| answer.values.contains(right));
        if same { Verdict::Correct } else { Verdict::Wrong }
    }
}

impl Graded {
    /// What was right, for the learner; of the spellings of a short answer the first.
    #[must_use]
    pub fn right(&self, question: &Question) -> String {
        let shown = if question.options().is_empty() { self.correct.len().min(1) } else { self.correct.len() };
        self.correct[..shown].join(", ")
    }

    /// The text of the result, for models only.
    #[must_use]
    pub fn for_model(&self) -> String {
        let mut text = match self.verdict {
            Verdict::DontKnow => "The learner answered: I don't know.".to_owned(),
            Verdict::Skipped => "The learner skipped the question.".to_owned(),
            Verdict::NotAnswered => "Not answered.".to_owned(),
            Verdict::Noted => format!("The learner answered: {}", self.answer.shown()),
            Verdict::Correct => format!("The learner answered: {}\nThat is correct.", self.answer.shown()),
            Verdict::Wrong => {
                format!(
                    "The learner answered: {}\nThat is wrong; right is: {}",
                    self.answer.shown(),
                    self.correct.join(", ")
                )
            }
            Verdict::Open => format!(
                "The learner answered: {}\nThis matches no accepted answer ({}). Judge it.",
                self.answer.shown(),
                self.correct.join(", ")
            ),
        };
        if let Some(note) = &self.answer.note {
            text.push_str("\nThe learner's note: ");
            text.push_str(note);
        }
        text
    }
}

fn own_words(answer: &Answer) -> Option<&str> {
    let words = answer.text.as_deref().or(answer.other.as_deref())?;
    (!words.trim().is_empty()).then_some(words)
}

/// For comparing short answers: case, space and a closing full stop do not count.
fn normalised(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|character| !character.is_whitespace())
        .collect::<String>()
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiz(kind: QuizKind, options: &[&str], correct: &[&str]) -> Question {
        let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Question::Quiz(Quiz {
            question: "Which?".to_owned(),
            kind,
            options: own(options),
            correct: own(correct),
            concept: String::new(),
            explanation: None,
            hint: None,
        })
    }

    fn chosen(values: &[&str]) -> Answer {
        Answer { values: values.iter().map(|&value| value.to_owned()).collect(), ..Answer::default() }
    }

    fn written(text: &str) -> Answer {
        Answer { text: Some(text.to_owned()), ..Answer::default() }
    }

    #[test]
    fn a_choice_is_right_only_with_exactly_the_right_options() {
        let check = |kind, correct: &[&str], values: &[&str], verdict| {
            assert_eq!(grade(&quiz(kind, &["a", "b", "c"], correct), &chosen(values)).verdict, verdict, "{values:?}");
        };
        check(QuizKind::Single, &["a"], &["a"], Verdict::Correct);
        check(QuizKind::Single, &["a"], &["b"], Verdict::Wrong);
        check(QuizKind::Multi, &["a", "b"], &["b", "a"], Verdict::Correct);
        check(QuizKind::Multi, &["a", "b"], &["a"], Verdict::Wrong);
        check(QuizKind::Multi, &["a", "b"], &["a", "b", "c"], Verdict::Wrong);
        check(QuizKind::Multi, &["a", "b"], &["a", "a"], Verdict::Wrong);
    }

    #[test]
    fn a_short_answer_is_matched_without_case_and_space_and_is_else_open() {
        let question = quiz(QuizKind::Short, &[], &["3/4", "three quarters"]);
        for right in ["3/4", " 3 / 4 ", "Three  quarters."] {
            assert_eq!(grade(&question, &written(right)).verdict, Verdict::Correct, "{right}");
        }
        assert_eq!(grade(&question, &written("0.75")).verdict, Verdict::Open);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_words() {
        let single = quiz(QuizKind::Single, &["a", "b"], &["a"]);
        let check = |question: &Question, answer: &Answer, words: &str| {
            assert_eq!(check_answer(question, answer).unwrap_err(), words);
        };
        check(&single, &chosen(&["z"]), "\"z\" is not one of the options.");
        check(&single, &chosen(&[]), "The answer is empty.");
        check(&single, &chosen(&["a", "b"]), "This question takes one answer.");
        check(&single, &written("a"), "This question takes one of its options, not own words.");
        assert_eq!(check_answer(&single, &Answer { dont_know: true, ..Answer::default() }), Ok(()));
    }

    #[test]
    fn numbers_among_the_options_are_read_as_texts() {
        let args =
            serde_json::json!({"question": "2 + 2?", "kind": "single", "options": [3, 4.0, true], "correct": [4]});
        let question = Question::from_args(QUIZ, &args).unwrap();
        assert_eq!(question.options(), ["3", "4", "true"]);
    }

    #[test]
    fn a_malformed_question_comes_back_with_words_for_the_model() {
        let check = |args: serde_json::Value, words: &str| {
            let error = Question::from_args(QUIZ, &args).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        let args = |options: &[&str], correct: &[&str]| serde_json::json!({"question": "Which?", "kind": "single", "options": options, "correct": correct, "concept": "x"});
        check(args(&["a"], &["a"]), "2 to 6 options");
        check(args(&["a", "a"], &["a"]), "distinct");
        check(args(&["a", "b"], &["c"]), "not among the options");
        check(args(&["a", "b"], &["a", "b"]), "exactly one");
        check(args(&["a", "b"], &[]), "`correct` is empty");
        check(serde_json::json!({"question": 7, "kind": "short", "correct": ["x"]}), "ask in words");
        check(serde_json::json!({"kind": "single"}), "question");
    }
}
