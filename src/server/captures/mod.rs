//! Exchanges with model providers, kept as files for whoever looks into a fault: listed, shown, sent again with changes,
//! and exported without keys. The server writes them only when it is told to.

mod change;
mod command;
mod folder;
mod keeper;
mod replay;
mod show;

pub use change::Changes;
pub use command::{CaptureCommand, run};
pub use folder::Folder;
pub use keeper::Keeper;

/// What went wrong, in words for the one at the command line.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
