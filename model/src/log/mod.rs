//! The trace file: JSON Lines, a header first, then one event a line in order of arrival.
//!
//! A trace may still be growing, may have been cut anywhere, may have been written by a newer jittrace. Reading never
//! fails for such reasons: what does not read is skipped, counted and reported ([`Skipped`]).

mod header;
mod reader;
mod writer;

pub use header::{Header, Host, SourceState, SourceStatus};
pub use reader::{Lines, LogError, Reader, Skipped, Skips};
pub use writer::Writer;

/// Version of the trace format that this crate writes and reads.
pub const FORMAT: u32 = 1;
