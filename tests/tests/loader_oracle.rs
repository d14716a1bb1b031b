//! The replayed search against the loader's own account of it (`LD_DEBUG=libs,files`), for every search of real programs.
//!
//! Compared per (name, requester), as a multiset: the files tried, in order and each with its rule, and which of them
//! was mapped. What that account leaves out, requests answered by a loaded object and by path, is compared with what
//! the programs of `programs.rs` were told by `dlopen` and `dlerror`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "loader_oracle/host.rs"]
mod host;
#[path = "loader_oracle/log.rs"]
mod log;
#[path = "loader_oracle/programs.rs"]
mod programs;
#[path = "loader_oracle/replay.rs"]
mod replay;
#[path = "loader_oracle/stack.rs"]
mod stack;
