//! The one integration binary. A new test goes into the file of the story it tells; support code into `support`.
