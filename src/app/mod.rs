//! What compiles for the server and for the browser.

pub mod native;
pub mod transcript;
