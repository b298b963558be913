//! What tests share: builders and fakes.

pub(crate) mod provider;
