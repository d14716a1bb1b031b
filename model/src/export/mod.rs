//! Traces for other programs: JSON Lines for jq and DuckDB, Perfetto for its timeline.

pub mod jsonl;
pub mod perfetto;
