//! What was seen, and what it means.
//!
//! Pure: nothing here needs a privilege, a terminal or another process, and all of it can be tested with a list of
//! events. Data flows one way: [`event`] → [`log`] → the fold → findings → reports.

pub mod elf;
pub mod event;
pub mod log;
pub mod report;

pub use event::{Body, Event, EventId};
