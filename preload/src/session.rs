//! The session: found in the environment, written to with one `write(2)` per record.

use crate::arch::system_call;
use crate::elf;
use crate::text::{Short, c_bytes};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use jittrace_wire::record::{Header, Writer};
use jittrace_wire::{OPTIONS_VARIABLE, SESSION_VARIABLE};

unsafe extern "C" {
    static environ: *const *const c_char;
}

const UNKNOWN: u32 = 0;
const OFF: u32 = 1;
const BEGINNING: u32 = 2;
const ON: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static FOLLOW_CLEAN: AtomicU32 = AtomicU32::new(0);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
/// The process that this copy of the memory belongs to. Another one is a vfork child (or came from a raw clone).
static OWNER: AtomicU32 = AtomicU32::new(0);
static SEQUENCE: AtomicU32 = AtomicU32::new(0);
static BORROWED_SEQUENCE: AtomicU32 = AtomicU32::new(0);

/// Sequences from here on were written by a process that shares its memory with its parent; they count apart.
pub(crate) const BORROWED: u32 = 1 << 31;

/// Longest session path.
const PATH: usize = 512;

struct Path(UnsafeCell<Short<PATH>>);
// SAFETY: written once, while STATE is BEGINNING, and only read when it is ON.
unsafe impl Sync for Path {}
static SESSION_PATH: Path = Path(UnsafeCell::new(Short::new()));

/// Whether there is a session. Looks into the environment the first time, which may be before our constructor ran.
#[inline]
pub(crate) fn is_on() -> bool {
    match STATE.load(Relaxed) {
        ON => true,
        UNKNOWN => begin(),
        _ => false,
    }
}

/// Whether children whose environment was cleared are to be followed.
pub(crate) fn follows_clean_environments() -> bool {
    FOLLOW_CLEAN.load(Relaxed) != 0
}

/// The session file's path.
pub(crate) fn path() -> &'static [u8] {
    // SAFETY: not written any more once the session is on.
    unsafe { (*SESSION_PATH.0.get()).as_bytes() }
}

#[cold]
fn begin() -> bool {
    // SAFETY: libc's variable; null until libc itself is set up.
    let variables = unsafe { environ };
    if variables.is_null() {
        return false;
    }
    if STATE
        .compare_exchange(UNKNOWN, BEGINNING, Relaxed, Relaxed)
        .is_err()
    {
        return STATE.load(Relaxed) == ON;
    }
    // SAFETY: libc's environment.
    let session = unsafe { variable(variables, SESSION_VARIABLE) };
    let on = match session {
        Some(session) if session.first() == Some(&b'/') && session.len() < PATH => {
            // SAFETY: STATE is BEGINNING, nobody else looks at it.
            unsafe { (*SESSION_PATH.0.get()).push(session) };
            OWNER.store(process_id(), Relaxed);
            // SAFETY: libc's environment.
            let options = unsafe { variable(variables, OPTIONS_VARIABLE) }.unwrap_or_default();
            FOLLOW_CLEAN.store(u32::from(options == b"follow-clean-env"), Relaxed);
            keep_open()
        }
        _ => false,
    };
    STATE.store(if on { ON } else { OFF }, Relaxed);
    on
}

/// Value of a variable in an environment.
pub(crate) unsafe fn variable<'a>(variables: *const *const c_char, name: &str) -> Option<&'a [u8]> {
    let mut entry = variables;
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            if let Some(value) = c_bytes(*entry)
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
            {
                return Some(value);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// The environment of the process.
pub(crate) fn environment() -> *const *const c_char {
    // SAFETY: libc's variable.
    unsafe { environ }
}

/// Whether this process has the memory to itself: false in a vfork child.
pub(crate) fn owns_memory() -> bool {
    OWNER.load(Relaxed) == process_id()
}

/// In a fork child: the memory is a copy now and records are counted anew. Gives the process that forked, which
/// `getppid` may not name any more.
pub(crate) fn forked() -> u32 {
    SEQUENCE.store(0, Relaxed);
    OWNER.swap(process_id(), Relaxed)
}

pub(crate) fn process_id() -> u32 {
    system_call(libc::SYS_getpid, [0; 6]) as u32
}

pub(crate) fn thread_id() -> u32 {
    system_call(libc::SYS_gettid, [0; 6]) as u32
}

/// `CLOCK_MONOTONIC` in nanoseconds, from the vDSO and not through libc's function, which programs interpose.
pub(crate) fn now() -> u64 {
    type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    match elf::clock_gettime() {
        0 => {
            let place = &raw mut time as usize;
            system_call(
                libc::SYS_clock_gettime,
                [libc::CLOCK_MONOTONIC as usize, place, 0, 0, 0, 0],
            );
        }
        // SAFETY: the vDSO's function of that type, and a valid place for the result.
        address => unsafe {
            core::mem::transmute::<usize, ClockGettime>(address)(
                libc::CLOCK_MONOTONIC,
                &raw mut time,
            );
        },
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn status_of(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all zero is a valid value; the kernel fills it.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    (system_call(
        libc::SYS_fstat,
        [descriptor as usize, &raw mut status as usize, 0, 0, 0, 0],
    ) == 0)
        .then_some(status)
}

fn open() -> Option<c_int> {
    // SAFETY: a C string: the path is shorter than its zero-filled buffer.
    let path = unsafe { (*SESSION_PATH.0.get()).as_bytes().as_ptr() };
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOCTTY;
    let descriptor = system_call(
        libc::SYS_openat,
        [
            libc::AT_FDCWD as usize,
            path as usize,
            flags as usize,
            0,
            0,
            0,
        ],
    );
    (descriptor >= 0).then_some(descriptor as c_int)
}

fn close(descriptor: c_int) {
    system_call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0]);
}

fn limit(resource: usize) -> u64 {
    let mut limits = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    system_call(
        libc::SYS_prlimit64,
        [0, resource, 0, &raw mut limits as usize, 0, 0],
    );
    limits.rlim_cur
}

/// Opens the session file where no program looks for its own descriptors.
///
/// High, as programs and daemons count on low numbers; below 1024, as every fork copies the table of descriptors up to
/// the highest one. When there is no room, each record opens and closes the file.
fn keep_open() -> bool {
    let Some(low) = open() else { return false };
    let highest = limit(libc::RLIMIT_NOFILE as usize).clamp(1, 1024) - 1;
    let high = system_call(
        libc::SYS_fcntl,
        [
            low as usize,
            libc::F_DUPFD_CLOEXEC as usize,
            highest as usize,
            0,
            0,
            0,
        ],
    );
    close(low);
    if high >= 0
        && let Some(status) = status_of(high as c_int)
    {
        DEVICE.store(status.st_dev, Relaxed);
        INODE.store(status.st_ino, Relaxed);
        DESCRIPTOR.store(high as c_int, Relaxed);
    }
    true
}

/// The kept descriptor and the file's size, when it still is the session file: programs close what they do not know.
fn kept() -> Option<(c_int, i64)> {
    let descriptor = DESCRIPTOR.load(Relaxed);
    if descriptor < 0 {
        return None;
    }
    let status = status_of(descriptor)?;
    (status.st_dev == DEVICE.load(Relaxed) && status.st_ino == INODE.load(Relaxed))
        .then_some((descriptor, status.st_size))
}

/// Completes the record and appends it; gives its sequence, by which later records may refer to it.
pub(crate) fn append(writer: Writer<'_>) -> u32 {
    let pid = process_id();
    let owner = OWNER.load(Relaxed) == pid;
    let sequence = if owner {
        SEQUENCE.fetch_add(1, Relaxed).wrapping_add(1)
    } else {
        BORROWED | BORROWED_SEQUENCE.fetch_add(1, Relaxed).wrapping_add(1)
    };
    let header = Header {
        time: now(),
        pid,
        tid: thread_id(),
        sequence,
        flags: 0,
    };
    let record = writer.finish(header);
    let (descriptor, size, kept) = match kept() {
        Some((descriptor, size)) => (descriptor, size, true),
        None => {
            // A vfork child has descriptors of its own but its parent's memory: what it opens it must not remember.
            if owner && DESCRIPTOR.load(Relaxed) >= 0 {
                keep_open();
            }
            match self::kept().filter(|_| owner) {
                Some((descriptor, size)) => (descriptor, size, true),
                None => match open() {
                    Some(descriptor) => (
                        descriptor,
                        status_of(descriptor).map_or(0, |status| status.st_size),
                        false,
                    ),
                    None => return sequence,
                },
            }
        }
    };
    // Growing a file beyond RLIMIT_FSIZE sends SIGXFSZ: rather lose the record, which the gap in the sequences shows.
    const ROOM_FOR_OTHER_WRITERS: u64 = 64 * 1024;
    if size as u64 + record.len() as u64 + ROOM_FOR_OTHER_WRITERS
        < limit(libc::RLIMIT_FSIZE as usize)
    {
        system_call(
            libc::SYS_write,
            [
                descriptor as usize,
                record.as_ptr() as usize,
                record.len(),
                0,
                0,
                0,
            ],
        );
    }
    if !kept {
        close(descriptor);
    }
    sequence
}
