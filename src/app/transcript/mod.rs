//! The pure view-model of a lesson.

pub mod scan;

#[cfg(test)]
mod sample;
