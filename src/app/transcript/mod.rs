//! The pure view-model of a lesson.
