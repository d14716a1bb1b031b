//! What was seen, and what it means.
//!
//! Pure: nothing here needs a privilege, a terminal or another process, and all of it can be tested with a list of
//! events. Data flows one way: [`event`] → [`log`] → [`fold`] → [`resolve`] → [`findings`] → [`report`].

pub mod cache;
pub mod commandline;
pub mod component;
pub mod diff;
pub mod distribution;
pub mod elf;
pub mod event;
pub mod export;
pub mod findings;
pub mod fold;
pub mod image;
pub mod join;
mod lasting;
pub mod loader;
pub mod log;
pub mod redact;
pub mod report;
pub mod resolve;
pub mod toolkit;

pub use event::{Body, Event, EventId};
pub use fold::Model;
