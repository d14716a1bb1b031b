//! Perf events: attaching a program to a tracepoint by its id, and what the doctor tries.
//!
//! aya attaches by name and finds tracefs itself, which must then be mounted for everybody; with the id in hand three
//! system calls do (perf_event_open(2)). The program stays attached as long as the returned descriptor is open.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

/// `struct perf_event_attr` in its second published size (PERF_ATTR_SIZE_VER1), which every kernel accepts.
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
    config2: u64,
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
    let event = open(&attributes, EVERY_PROCESS, 0)?;
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

const EVERY_PROCESS: libc::pid_t = -1;
const THIS_PROCESS: libc::pid_t = 0;
const EVERY_CPU: libc::c_int = -1;

fn open(
    attributes: &EventAttributes,
    process: libc::pid_t,
    cpu: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` outlives the call and says its own size.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            process,
            cpu,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = libc::c_int::try_from(event).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// A uprobe of this process at `offset` of `file`, which counts its hits.
pub(crate) fn open_uprobe(file: &Path, offset: u64) -> io::Result<OwnedFd> {
    const KIND: &str = "/sys/bus/event_source/devices/uprobe/type";
    let kind = std::fs::read_to_string(KIND)?;
    let kind = kind
        .trim()
        .parse()
        .map_err(|_| io::Error::other(format!("{KIND} holds no number")))?;
    let path = CString::new(file.as_os_str().as_bytes())?;
    let attributes = EventAttributes {
        kind,
        size: size_of::<EventAttributes>() as u32,
        config1: path.as_ptr() as u64,
        config2: offset,
        ..EventAttributes::default()
    };
    open(&attributes, THIS_PROCESS, EVERY_CPU)
}

/// A task clock of this process.
pub(crate) fn open_task_clock() -> io::Result<OwnedFd> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
    /// `exclude_kernel` and `exclude_hv`: what perf_event_paranoid 2 still allows.
    const USER_ONLY: u64 = 1 << 5 | 1 << 6;
    let attributes = EventAttributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<EventAttributes>() as u32,
        config: PERF_COUNT_SW_TASK_CLOCK,
        flags: USER_ONLY,
        ..EventAttributes::default()
    };
    open(&attributes, THIS_PROCESS, EVERY_CPU)
}
