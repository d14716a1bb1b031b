//! The single steps of the source, for the doctor to try one by one.

use std::{io, os::fd::OwnedFd, path::Path};

use super::{btf::Btf, error::SourceError, perf};
pub(crate) use super::{perf::attach_tracepoint, tracefs::Tracefs};

/// Looks every kernel member up that the programs read.
pub(crate) fn kernel_types() -> Result<(), SourceError> {
    Btf::of_running_kernel()?.constants(0)?;
    Ok(())
}

/// A uprobe of this process at `offset` of `file`, as a counter.
pub(crate) fn open_uprobe(file: &Path, offset: u64) -> io::Result<OwnedFd> {
    perf::open_uprobe(file, offset)
}

/// A task clock of this process.
pub(crate) fn open_task_clock() -> io::Result<OwnedFd> {
    perf::open_task_clock()
}
