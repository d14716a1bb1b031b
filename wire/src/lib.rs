//! The words that jittrace's sources speak.
//!
//! The shim inside the traced program, the kernel programs and the collector share nothing but this crate: how a
//! [`record`] is laid out, which [`functions`] are watched, which [`environment`] variables, [`paths`] and
//! [`messages`] are of interest and what must be [`secrets::mask`]ed before it leaves the program. Nothing here
//! allocates, blocks or calls the operating system, so it may run in a vfork child or under the loader's lock.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod environment;
pub mod functions;
pub mod messages;
pub mod paths;
pub mod record;
pub mod secrets;

pub use record::{DecodeError, Record, decode};

/// Environment variable that names the session file. Without it the shim does nothing at all.
pub const SESSION_VARIABLE: &str = "JITTRACE_SESSION";

/// Environment variable with options for the shim, separated by commas: `follow-clean-env`.
pub const OPTIONS_VARIABLE: &str = "JITTRACE_OPTIONS";
