//! The browser side: the hydrate entry, and every call of a browser API.
