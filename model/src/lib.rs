//! What was seen, and what it means.
