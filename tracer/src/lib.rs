//! The command `jittrace`, as a library so that its parts can be tested one by one.
//!
//! - [`cli`]: what can be asked
//! - [`run`]: `jittrace -- COMMAND`: [`launch`], [`collect`], report
//! - [`attach`]: `jittrace attach PID`
//! - [`ebpf`]: what the kernel sees, for root
//! - [`conclude`]: the end of a trace; [`masking`]: what must not be in it
//! - [`doctor`]: what works here, and why the rest does not
//! - [`demo`]: the founding story on stand-ins
//! - [`which`]: what would be resolved, predicted; [`packages`]: Python packages on this machine
//! - [`sources`]: who watches
//! - [`output`]: where a trace is written
//! - [`input`]: where traces are read; [`deliver`]: where what is made of them goes
//! - [`view`]: a trace in the terminal view; [`keeper`]: a command below it
//! - [`report_command`], [`diff_command`], [`export_command`], [`bundle_command`]: what is made of them

pub mod attach;
pub mod bundle_command;
pub mod cli;
pub mod collect;
pub mod conclude;
pub mod deliver;
pub mod demo;
pub mod diff_command;
pub mod doctor;
pub mod ebpf;
pub mod export_command;
pub mod input;
pub mod keeper;
pub mod launch;
pub mod masking;
pub mod output;
pub mod packages;
pub mod report_command;
pub mod run;
pub mod sources;
pub mod view;
pub mod which;
