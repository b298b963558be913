//! What the tools are called on the page.

/// The name of a tool for people; an unknown tool's own name in words.
#[must_use]
pub fn label(tool: &str) -> String {
    let known = match tool {
        "quiz" => "Quiz",
        "ask_user_question" => "Question",
        "read" => "Read a file",
        "ls" => "List a folder",
        "find" => "Find files",
        "grep" => "Search in files",
        "research" => "Research",
        "pdf" => "Read a PDF",
        "demo" => "Build a demo",
        "visual" => "Draw a picture",
        "list_sessions" => "Look up past lessons",
        "list_propositions" => "Look up what you know",
        "probe_done" => "Finish the probe",
        "plan_init" => "Propose a plan",
        "plan_progress" => "Mark progress",
        "judge" => "Judge an answer",
        _ => return in_words(tool),
    };
    known.to_owned()
}

fn in_words(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_tool_keeps_its_name_in_words() {
        assert_eq!(label("read"), "Read a file");
        assert_eq!(label("web_search"), "Web search");
        assert_eq!(label(""), "");
    }
}
