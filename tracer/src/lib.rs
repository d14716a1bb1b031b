//! The command `jittrace`, as a library so that its parts can be tested one by one.
//!
//! - [`cli`]: what can be asked
//! - [`run`]: `jittrace -- COMMAND`: [`launch`], [`collect`], report
//! - [`output`]: where a trace is written

pub mod cli;
pub mod collect;
pub mod launch;
pub mod output;
pub mod run;
