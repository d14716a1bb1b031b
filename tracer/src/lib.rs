//! The command `jittrace`, as a library so that its parts can be tested one by one.
//!
//! - [`cli`]: what can be asked
//! - [`run`]: `jittrace -- COMMAND`: [`launch`], [`collect`], report
//! - [`attach`]: `jittrace attach PID`
//! - [`ebpf`]: what the kernel sees, for root
//! - [`conclude`]: the end of a trace; [`masking`]: what must not be in it
//! - [`doctor`]: what works here, and why the rest does not
//! - [`demo`]: the founding story on stand-ins
//! - [`output`]: where a trace is written

pub mod attach;
pub mod cli;
pub mod collect;
pub mod conclude;
pub mod demo;
pub mod doctor;
pub mod ebpf;
pub mod launch;
pub mod masking;
pub mod output;
pub mod run;
