//! Trying what the kernel allows: BPF, probes, other processes' memory. Each try undoes itself.

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

use crate::ebpf::trial::{self, Tracefs};

use super::{
    refusal::{Attempt, Standing, explain},
    report::{Check, Outcome},
};

/// bpf(2) commands and types of linux/bpf.h.
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_RINGBUF: u32 = 27;
const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_PROG_TYPE_TRACEPOINT: u32 = 5;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;

/// The first members of `union bpf_attr` for the three commands.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ProgramAttributes {
    kind: u32,
    count: u32,
    instructions: *const u64,
    license: *const libc::c_char,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawTracepointAttributes {
    name: *const libc::c_char,
    program: u32,
    reserved: u32,
}

fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` is what this command takes, of this size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = libc::c_int::try_from(result).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn map(kind: u32, key_size: u32, value_size: u32, max_entries: u32) -> io::Result<OwnedFd> {
    bpf(
        BPF_MAP_CREATE,
        &MapAttributes {
            kind,
            key_size,
            value_size,
            max_entries,
            ..MapAttributes::default()
        },
    )
}

/// A program that does nothing: `r0 = 0; exit`.
fn program(kind: u32) -> io::Result<OwnedFd> {
    const DO_NOTHING: [u64; 2] = [0xb7, 0x95];
    bpf(
        BPF_PROG_LOAD,
        &ProgramAttributes {
            kind,
            count: 2,
            instructions: DO_NOTHING.as_ptr(),
            license: c"Dual MIT/GPL".as_ptr(),
            log_level: 0,
            log_size: 0,
            log: 0,
        },
    )
}

/// Turns a try into a check.
struct Patient<'a> {
    standing: &'a Standing,
}

impl Patient<'_> {
    fn check(
        &self,
        id: &'static str,
        title: &'static str,
        attempt: Attempt,
        tried: io::Result<String>,
    ) -> Check {
        let outcome = match tried {
            Ok(detail) => Outcome::Yes { detail },
            Err(error) => match error.raw_os_error() {
                Some(errno) => Outcome::No(explain(attempt, errno, self.standing)),
                None => Outcome::NotTried {
                    detail: error.to_string(),
                },
            },
        };
        Check { id, title, outcome }
    }
}

/// Tries everything.
pub(super) fn checks(standing: &Standing) -> Vec<Check> {
    let patient = Patient { standing };
    let done = |detail: &str| detail.to_owned();
    vec![
        patient.check(
            "bpf-map",
            "BPF map",
            Attempt::Bpf,
            map(BPF_MAP_TYPE_ARRAY, 4, 8, 1).map(|_| done("created")),
        ),
        patient.check(
            "bpf-ring-buffer",
            "BPF ring buffer",
            Attempt::Bpf,
            map(BPF_MAP_TYPE_RINGBUF, 0, 0, 65_536).map(|_| done("created")),
        ),
        patient.check(
            "bpf-program",
            "BPF program",
            Attempt::Bpf,
            program(BPF_PROG_TYPE_KPROBE).map(|_| done("loaded")),
        ),
        patient.check("btf", "kernel types (BTF)", Attempt::Btf, kernel_types()),
        patient.check("tracefs", "tracefs", Attempt::Tracefs, tracefs()),
        patient.check("tracepoint", "tracepoint", Attempt::PerfEvent, tracepoint()),
        patient.check(
            "raw-tracepoint",
            "raw tracepoint",
            Attempt::Bpf,
            raw_tracepoint(),
        ),
        patient.check("uprobe", "uprobe", Attempt::PerfEvent, uprobe()),
        patient.check(
            "perf-event",
            "perf event of an own process",
            Attempt::PerfEvent,
            task_clock(),
        ),
        patient.check(
            "process-memory",
            "memory of other processes",
            Attempt::Process {
                owner: Some(standing.uid),
            },
            memory_of_no_descendant(),
        ),
        patient.check(
            "map-files",
            "mapped files by their inode",
            Attempt::MapFiles,
            map_files(),
        ),
    ]
}

fn kernel_types() -> io::Result<String> {
    match trial::kernel_types() {
        Ok(()) => Ok("every member that the programs read was found".to_owned()),
        Err(error) => match error.errno() {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other(error.to_string())),
        },
    }
}

fn tracefs() -> io::Result<String> {
    let tracefs = Tracefs::open()?;
    tracefs.id("syscalls", "sys_enter_execve")?;
    Ok(if tracefs.private {
        "not mounted; read through a private mount"
    } else {
        "mounted"
    }
    .to_owned())
}

fn tracepoint() -> io::Result<String> {
    let id = Tracefs::open()?.id("syscalls", "sys_enter_execve")?;
    let program = program(BPF_PROG_TYPE_TRACEPOINT)?;
    trial::attach_tracepoint(program.as_fd(), id)?;
    Ok("attached to syscalls:sys_enter_execve and detached".to_owned())
}

fn raw_tracepoint() -> io::Result<String> {
    let program = program(BPF_PROG_TYPE_RAW_TRACEPOINT)?;
    let number = u32::try_from(program.as_raw_fd()).map_err(io::Error::other)?;
    let attributes = RawTracepointAttributes {
        name: c"sched_process_exec".as_ptr(),
        program: number,
        reserved: 0,
    };
    bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes)?;
    Ok("attached to sched_process_exec and detached".to_owned())
}

/// The function that the uprobe is put on.
#[inline(never)]
extern "C" fn probed(value: u32) -> u32 {
    std::hint::black_box(value).wrapping_add(1)
}

/// Puts a counting uprobe on [`probed`], calls it, and looks whether it was counted.
fn uprobe() -> io::Result<String> {
    let address = probed as *const () as u64;
    let own = crate::ebpf::mapped_files(std::process::id())?
        .into_iter()
        .find(|mapped| (mapped.range.0..mapped.range.1).contains(&address))
        .ok_or_else(|| io::Error::other("the own code is not among the mapped files"))?;
    let offset = address - own.range.0 + own.offset;
    let event = trial::open_uprobe("/proc/self/exe".as_ref(), offset)?;
    for i in 0..3 {
        std::hint::black_box(probed(i));
    }
    let mut count = [0; 8];
    fs::File::from(event).read_exact(&mut count)?;
    match u64::from_ne_bytes(count) {
        3 => Ok("3 of 3 calls counted".to_owned()),
        count => Err(io::Error::other(format!("{count} of 3 calls counted"))),
    }
}

fn task_clock() -> io::Result<String> {
    trial::open_task_clock()?;
    Ok("task clock of this process".to_owned())
}

/// Has a child read the memory of this process: the same user, but no descendant, which is what Yama asks about.
fn memory_of_no_descendant() -> io::Result<String> {
    const MARK: u64 = 0x6a69_7474_7261_6365;
    let mark = std::hint::black_box(MARK);
    let mut copy = 0_u64;
    let local = libc::iovec {
        iov_base: (&raw mut copy).cast(),
        iov_len: size_of::<u64>(),
    };
    let remote = libc::iovec {
        iov_base: (&raw const mark).cast_mut().cast(),
        iov_len: size_of::<u64>(),
    };
    // SAFETY: the child makes system calls only, and ends by one.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        // SAFETY: `local` is a variable of the child; the remote side is checked by the kernel.
        unsafe {
            let read = libc::process_vm_readv(
                libc::getppid(),
                &raw const local,
                1,
                &raw const remote,
                1,
                0,
            );
            libc::_exit(match read {
                8 if copy == MARK => 0,
                -1 => *libc::__errno_location(),
                _ => libc::EIO,
            });
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    if unsafe { libc::waitpid(child, &raw mut status, 0) } != child {
        return Err(io::Error::last_os_error());
    }
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok("memory of a process of this user read".to_owned()),
        0 => Err(io::Error::other("the reading process died")),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn map_files() -> io::Result<String> {
    let own = crate::ebpf::mapped_files(std::process::id())?;
    let first = own
        .first()
        .ok_or_else(|| io::Error::other("this process has no mapped file"))?;
    let (from, to) = first.range;
    fs::File::open(format!("/proc/self/map_files/{from:x}-{to:x}"))?;
    Ok("deleted and replaced libraries can be read".to_owned())
}
