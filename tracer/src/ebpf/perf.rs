//! Attaching a program to a tracepoint by its id.
//!
//! aya attaches by name and finds tracefs itself, which must then be mounted for everybody; with the id in hand three
//! system calls do (perf_event_open(2)). The program stays attached as long as the returned descriptor is open.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// `struct perf_event_attr` in its first published size, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 0)`
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;
/// `_IOW('$', 8, u32)`
const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// Attaches `program` to the tracepoint with this id, for every process on every CPU.
pub(crate) fn attach_tracepoint(program: BorrowedFd<'_>, id: u64) -> io::Result<OwnedFd> {
    let attributes = EventAttributes {
        kind: PERF_TYPE_TRACEPOINT,
        size: size_of::<EventAttributes>() as u32,
        config: id,
        sample_period: 1,
        wakeup_events: 1,
        ..EventAttributes::default()
    };
    // A tracepoint's programs hang on the tracepoint, not on the event's CPU: one event on CPU 0 serves all.
    // SAFETY: `attributes` outlives the call and says its own size.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            0,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = libc::c_int::try_from(event).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that nothing else owns.
    let event = unsafe { OwnedFd::from_raw_fd(event) };
    // SAFETY: both descriptors are open; the argument is a plain number.
    if unsafe {
        libc::ioctl(
            event.as_raw_fd(),
            PERF_EVENT_IOC_SET_BPF as _,
            program.as_raw_fd(),
        )
    } < 0
    {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    if unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_ENABLE as _, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(event)
}
