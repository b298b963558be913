//! The reactive state of a page.
