//! Pieces of pages that are used twice or more, or are a story of their own.
