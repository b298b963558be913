//! The one integration binary. A new test goes into the file of the story it tells; support code into `support`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the whole binary is tests")]

mod openai;
mod support;
