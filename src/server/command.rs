//! Commands: what the program does instead of serving, when its first argument names one.

use super::models;

/// One command: what is typed, what may follow it, what it does.
const COMMANDS: &[(&str, &str, &str)] =
    &[("models", "[--local]", "list the models that are known, or those of the servers on this machine")];

/// Runs the command `name`.
///
/// # Errors
/// In words for the person who typed it.
pub async fn run(name: &str, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    match name {
        "models" => models::list(arguments).await,
        "help" | "--help" | "-h" => {
            println!("{}", usage());
            Ok(())
        }
        _ => Err(format!("{name:?} is not a command\n{}", usage()).into()),
    }
}

fn usage() -> String {
    let mut usage = "learnharness                      serve".to_owned();
    for (name, arguments, about) in COMMANDS {
        let typed = format!("{name} {arguments}");
        usage.push_str(&format!("\nlearnharness {typed:<20} {about}"));
    }
    usage
}
