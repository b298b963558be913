//! recovery.
