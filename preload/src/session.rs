//! The session: found in the environment, written to with one `write(2)` per record.

use crate::arch::system_call;
use crate::elf;
use crate::text::{Short, value_in};
use crate::thread;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::sync::atomic::{
    AtomicI32, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use jittrace_wire::record::{Header, Writer};
use jittrace_wire::{OPTIONS_VARIABLE, SESSION_VARIABLE};

unsafe extern "C" {
    static environ: *const *const c_char;
}

const UNKNOWN: u32 = 0;
const OFF: u32 = 1;
const BEGINNING: u32 = 2;
const ON: u32 = 3;

/// What is kept of the session.
///
/// One object, in the section of initialised data although all but one of its values begin as zero: the loader has
/// written to that page, where a page of `.bss` would be a fault more in every program, or two, as it is read first.
#[unsafe(link_section = ".data")]
static SESSION: Session = Session {
    state: AtomicU32::new(UNKNOWN),
    follow_clean: AtomicU32::new(0),
    descriptor: AtomicI32::new(-1),
    same_mount: AtomicU32::new(0),
    device: AtomicU64::new(0),
    inode: AtomicU64::new(0),
    owner: AtomicU32::new(0),
    sequence: AtomicU32::new(0),
    borrowed_sequence: AtomicU32::new(0),
    clock_readings: AtomicU32::new(0),
    path: UnsafeCell::new(Short::new()),
};

struct Session {
    state: AtomicU32,
    follow_clean: AtomicU32,
    descriptor: AtomicI32,
    /// Whether the session file lies on the mount on which the launcher made it.
    same_mount: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
    /// The process that this copy of the memory belongs to. Another one is a vfork child (or came from a raw clone).
    owner: AtomicU32,
    sequence: AtomicU32,
    borrowed_sequence: AtomicU32,
    /// How often the kernel was asked for the time.
    clock_readings: AtomicU32,
    path: UnsafeCell<Short<PATH>>,
}

// SAFETY: `path` is written once, while the state is BEGINNING, and only read when it is ON.
unsafe impl Sync for Session {}

/// Sequences from here on were written by a process that shares its memory with its parent; they count apart.
pub(crate) const BORROWED: u32 = 1 << 31;

/// Longest session path.
const PATH: usize = 512;

/// Whether there is a session. Looks into the environment the first time, which may be before our constructor ran.
#[inline]
pub(crate) fn is_on() -> bool {
    match SESSION.state.load(Acquire) {
        ON => true,
        UNKNOWN => begin(),
        _ => false,
    }
}

/// Whether children whose environment was cleared are to be followed.
pub(crate) fn follows_clean_environments() -> bool {
    SESSION.follow_clean.load(Relaxed) != 0
}

/// The session file's path.
pub(crate) fn path() -> &'static [u8] {
    // SAFETY: not written any more once the session is on.
    unsafe { (*SESSION.path.get()).as_bytes() }
}

#[cold]
fn begin() -> bool {
    // SAFETY: libc's variable; null until libc itself is set up.
    let variables = unsafe { environ };
    if variables.is_null() {
        return false;
    }
    if SESSION
        .state
        .compare_exchange(UNKNOWN, BEGINNING, Relaxed, Relaxed)
        .is_err()
    {
        return SESSION.state.load(Acquire) == ON;
    }
    // SAFETY: libc's environment.
    let session = unsafe { variable(variables, SESSION_VARIABLE) };
    let on = match session {
        Some(session) if session.first() == Some(&b'/') && session.len() < PATH => {
            // SAFETY: the state is BEGINNING, nobody else looks at it.
            unsafe { (*SESSION.path.get()).push(session) };
            let pid = process_id();
            SESSION.owner.store(pid, Relaxed);
            // SAFETY: libc's environment.
            let options = unsafe { variable(variables, OPTIONS_VARIABLE) }.unwrap_or_default();
            SESSION
                .follow_clean
                .store(u32::from(asks_for(options, b"follow-clean-env")), Relaxed);
            keep_open()
        }
        _ => false,
    };
    SESSION.state.store(if on { ON } else { OFF }, Release);
    on
}

/// Whether an option is in the list.
fn asks_for(options: &[u8], option: &[u8]) -> bool {
    options
        .split(|byte| *byte == b',')
        .any(|asked| asked == option)
}

/// Value of a variable in an environment.
pub(crate) unsafe fn variable<'a>(variables: *const *const c_char, name: &str) -> Option<&'a [u8]> {
    let mut entry = variables;
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            if let Some(value) = value_in(*entry, name.as_bytes()) {
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

/// Whether this process is certainly in the mount namespace of the launcher.
pub(crate) fn is_in_launchers_mount_namespace() -> bool {
    SESSION.same_mount.load(Relaxed) != 0
}

/// Whether this process has the memory to itself: false in a vfork child.
pub(crate) fn owns_memory() -> bool {
    SESSION.owner.load(Relaxed) == process_id()
}

/// The process that this copy of the memory belongs to.
pub(crate) fn owner() -> u32 {
    SESSION.owner.load(Relaxed)
}

/// Whether the environment has been looked into already.
pub(crate) fn has_begun() -> bool {
    SESSION.state.load(Acquire) != UNKNOWN
}

/// In the constructor, which only the process itself runs: when a hook came before it, that may have been in a vfork
/// child, which took the memory for its own.
pub(crate) fn settle_owner() {
    SESSION.owner.store(process_id(), Relaxed);
}

/// In a fork child: the memory is a copy now and records are counted anew. Gives the process that forked, which
/// `getppid` may not name any more.
pub(crate) fn forked() -> u32 {
    SESSION.sequence.store(0, Relaxed);
    SESSION.owner.swap(process_id(), Relaxed)
}

pub(crate) fn process_id() -> u32 {
    system_call(libc::SYS_getpid, [0; 6]) as u32
}

/// The thread's id, asked once in each thread of a process that has its memory to itself.
fn thread_id(pid: u32, owner: bool) -> u32 {
    let thread = thread::this();
    if thread.id_in != pid {
        let id = system_call(libc::SYS_gettid, [0; 6]) as u32;
        if !owner {
            return id; // a vfork child has its parent's thread-local storage
        }
        thread.id = id;
        thread.id_in = pid;
    }
    thread.id
}

/// `CLOCK_MONOTONIC` in nanoseconds, not through libc's function, which programs interpose.
///
/// From the kernel the first times and from the vDSO when it turns out to pay: to find it there and to touch its pages
/// takes as long as fifteen system calls do.
pub(crate) fn now() -> u64 {
    type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
    const FROM_THE_KERNEL: u32 = 16;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let in_vdso = if SESSION.clock_readings.load(Relaxed) < FROM_THE_KERNEL {
        SESSION.clock_readings.fetch_add(1, Relaxed);
        0
    } else {
        elf::clock_gettime()
    };
    match in_vdso {
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
    let path = unsafe { (*SESSION.path.get()).as_bytes().as_ptr() };
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
    const HIGHEST: usize = 1023;
    let Some(low) = open() else { return false };
    let duplicate = |from: usize| {
        let command = libc::F_DUPFD_CLOEXEC as usize;
        system_call(libc::SYS_fcntl, [low as usize, command, from, 0, 0, 0])
    };
    let mut high = duplicate(HIGHEST);
    if high == -(libc::EINVAL as isize) {
        let limit = limit(libc::RLIMIT_NOFILE as usize).clamp(1, HIGHEST as u64 + 1);
        high = duplicate(limit as usize - 1);
    }
    close(low);
    if high >= 0
        && let Some(file) = identity_of(high as c_int)
    {
        SESSION.device.store(file.device, Relaxed);
        SESSION.inode.store(file.inode, Relaxed);
        let mount = jittrace_wire::launcher_mount(path());
        SESSION
            .same_mount
            .store(u32::from(mount.is_some() && mount == file.mount), Relaxed);
        SESSION.descriptor.store(high as c_int, Relaxed);
    }
    true
}

/// What tells a file from all others.
struct Identity {
    device: u64,
    inode: u64,
    /// The mount through which it was opened; `None` where the kernel does not tell (before 5.8).
    mount: Option<u64>,
}

fn identity_of(descriptor: c_int) -> Option<Identity> {
    let mut extended = core::mem::MaybeUninit::<libc::statx>::zeroed();
    let wanted = libc::STATX_INO | libc::STATX_MNT_ID;
    let asked = system_call(
        libc::SYS_statx,
        [
            descriptor as usize,
            c"".as_ptr() as usize,
            libc::AT_EMPTY_PATH as usize,
            wanted as usize,
            extended.as_mut_ptr() as usize,
            0,
        ],
    );
    if asked == 0 {
        // SAFETY: all zero is a valid value, which the kernel has filled in.
        let extended = unsafe { extended.assume_init() };
        return Some(Identity {
            device: libc::makedev(extended.stx_dev_major, extended.stx_dev_minor),
            inode: extended.stx_ino,
            mount: (extended.stx_mask & libc::STATX_MNT_ID != 0).then_some(extended.stx_mnt_id),
        });
    }
    // A kernel before 4.11, or a filter that does not know the call.
    status_of(descriptor).map(|status| Identity {
        device: status.st_dev,
        inode: status.st_ino,
        mount: None,
    })
}

/// The kept descriptor and the file's size, when it still is the session file: programs close what they do not know.
fn kept() -> Option<(c_int, i64)> {
    let descriptor = SESSION.descriptor.load(Relaxed);
    if descriptor < 0 {
        return None;
    }
    let status = status_of(descriptor)?;
    (status.st_dev == SESSION.device.load(Relaxed) && status.st_ino == SESSION.inode.load(Relaxed))
        .then_some((descriptor, status.st_size))
}

/// Completes the record and appends it; gives its sequence, by which later records may refer to it.
pub(crate) fn append(writer: Writer<'_>) -> u32 {
    let pid = process_id();
    let owner = SESSION.owner.load(Relaxed) == pid;
    let sequence = if owner {
        SESSION.sequence.fetch_add(1, Relaxed).wrapping_add(1)
    } else {
        BORROWED
            | SESSION
                .borrowed_sequence
                .fetch_add(1, Relaxed)
                .wrapping_add(1)
    };
    let header = Header {
        time: now(),
        pid,
        tid: thread_id(pid, owner),
        sequence,
        flags: 0,
    };
    let record = writer.finish(header);
    let (descriptor, size, kept) = match kept() {
        Some((descriptor, size)) => (descriptor, size, true),
        None => {
            // A vfork child has descriptors of its own but its parent's memory: what it opens it must not remember.
            if owner && SESSION.descriptor.load(Relaxed) >= 0 {
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
