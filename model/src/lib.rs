//! What was seen, and what it means.

pub mod elf;
