//! What the kernel programs and the tracer say to each other: the records in the ring buffer, the values of the maps
//! and the constants handed over at load time.
//!
//! Both sides compile this one file. Every type is `#[repr(C)]`, has no implicit padding and is valid for any bit
//! pattern, so a record is read by copying bytes. Ring memory is not zeroed (mechanisms 2): only the first `*_len`
//! bytes of a text field mean anything.
//!
//! Pids come in three views. *initial*: the kernel's own numbers. *own*: as the tracer's pid namespace numbers them,
//! 0 for a task it cannot see. *inner*: as the task numbers itself. Outside containers all three are equal.
#![no_std]

/// A task as one pid namespace numbers it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskId {
    /// Process (thread group).
    pub tgid: u32,
    /// Thread.
    pub tid: u32,
}

/// A task in the three views.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskViews {
    /// The initial pid namespace's numbers.
    pub initial: TaskId,
    /// The tracer's numbers; 0 where the tracer cannot see the task.
    pub own: TaskId,
    /// The task's own numbers.
    pub inner: TaskId,
}

/// How every record begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// One of [`kind`].
    pub kind: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// CLOCK_MONOTONIC, in ns (bpf_ktime_get_ns).
    pub time: u64,
    /// The task the record is about (for a fork: the parent).
    pub task: TaskViews,
}

/// Kinds of record.
pub mod kind {
    /// [`ForkRecord`](super::ForkRecord)
    pub const FORK: u32 = 1;
    /// [`ExecRecord`](super::ExecRecord)
    pub const EXEC: u32 = 2;
    /// [`ExecFailedRecord`](super::ExecFailedRecord)
    pub const EXEC_FAILED: u32 = 3;
    /// [`ExitRecord`](super::ExitRecord)
    pub const EXIT: u32 = 4;
    /// [`FileRecord`](super::FileRecord)
    pub const FILE: u32 = 5;
    /// [`CallRecord`](super::CallRecord) at the entry of a function
    pub const CALL_ENTRY: u32 = 6;
    /// [`CallRecord`](super::CallRecord) when a function returns
    pub const CALL_RETURN: u32 = 7;
    /// [`ExecTextRecord`](super::ExecTextRecord), directly before its EXEC
    pub const EXEC_TEXT: u32 = 8;
}

/// Bits of [`Head::flags`].
pub mod flag {
    /// A text was longer than its field.
    pub const TRUNCATED: u32 = 1;
    /// User memory could not be read (absent page): the text is missing.
    pub const FAULT: u32 = 1 << 1;
    /// The task is inside a call of the dynamic loader that is being watched.
    pub const LOADING: u32 = 1 << 2;
    /// The directory is deeper or longer than there is room for.
    pub const CUT_CWD: u32 = 1 << 3;
}

/// Counters of [`LOST_MAP`]: what could not be told, one index per reason.
pub mod lost {
    /// Fork records that found no room in the ring.
    pub const FORK: u32 = 0;
    /// Exec records that found no room in the ring.
    pub const EXEC: u32 = 1;
    /// Failed-exec records that found no room in the ring.
    pub const EXEC_FAILED: u32 = 2;
    /// Exit records that found no room in the ring.
    pub const EXIT: u32 = 3;
    /// File records that found no room in the ring.
    pub const FILE: u32 = 4;
    /// Call records that found no room in the ring.
    pub const CALL: u32 = 5;
    /// Children that could not be followed: the set of followed processes was full.
    pub const FOLLOW: u32 = 6;
    /// Returns without a remembered entry (the call began before the attach, or its entry was evicted).
    pub const UNPAIRED: u32 = 7;
    /// Number of counters.
    pub const COUNT: u32 = 8;
    /// What each counter counts, for people.
    pub const NAMES: [&str; COUNT as usize] = [
        "fork",
        "exec",
        "exec-failed",
        "exit",
        "file",
        "call",
        "follow",
        "unpaired-return",
    ];
}

/// Name of the ring buffer of everything but paths.
pub const RING_MAP: &str = "RING";
/// Name of the ring buffer of [`FileRecord`]s: however many paths a program tries, no process or call is lost for them.
pub const FILE_RING_MAP: &str = "FILE_RING";
/// Name of the set of file name endings, eight bytes each, of libraries whose absence says nothing (`ibc.so.6`). The
/// loader tries them in every directory of LD_LIBRARY_PATH at every program start.
pub const BORING_MAP: &str = "BORING";
/// Name of the per-CPU array of loss counters.
pub const LOST_MAP: &str = "LOST";
/// Name of the set of followed processes (own view of the tgid).
pub const FOLLOWED_MAP: &str = "FOLLOWED";
/// Name of the array of [`CallSpec`]s.
pub const SPECS_MAP: &str = "SPECS";
/// Name of the map from system call number to [`FileShape`].
pub const SHAPES_MAP: &str = "SHAPES";

/// Largest number of followed processes alive at one time.
pub const MAX_FOLLOWED: u32 = 16_384;
/// Largest number of watched functions.
pub const MAX_SPECS: u32 = 256;
/// Watched functions for which a kernel without attach cookies (before 5.15) has programs of their own.
pub const SLOTS: u32 = 48;
/// Bytes of an ending in [`BORING_MAP`].
pub const ENDING: usize = 8;
/// Size of either ring asked for first, in bytes; the loader halves it where memory may not be locked.
pub const RING_BYTES: u32 = 8 << 20;
/// Values captured by one call record.
pub const CAPTURES: usize = 4;
/// Bytes of text that one capture may take; an image capture takes all of the text field.
pub const CAPTURE_TEXT: usize = 256;

/// A followed process started another.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ForkRecord {
    /// The parent.
    pub head: Head,
    /// The child.
    pub child: TaskViews,
}

/// A followed process ended (its last thread did).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExitRecord {
    /// The process.
    pub head: Head,
    /// As waitpid(2) reports it: exit code in bits 8–15, signal in bits 0–6, core flag in bit 7.
    pub status: u32,
    /// Zero.
    pub reserved: u32,
}

/// Room for the file name of an exec.
pub const EXEC_FILENAME: usize = 512;
/// Room for a working directory: components innermost first, each ended by NUL.
pub const EXEC_CWD: usize = 1024;

/// A followed process became another program. An [`ExecTextRecord`] of the same thread came before.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExecRecord {
    /// The process. `task` has the tid after the exec, which is the tgid.
    pub head: Head,
    /// The parent process.
    pub parent: TaskViews,
    /// Inode of the program (of the script, where it is one, the interpreter's).
    pub exe_inode: u64,
    /// Device of the program's file as the kernel encodes it: major << 20 | minor.
    pub exe_device: u32,
    /// User that runs it (initial user namespace).
    pub uid: u32,
    /// The thread that called exec, initial view (another than the leader may).
    pub caller: u32,
    /// Bytes of `filename`.
    pub filename_len: u32,
    /// Bytes of `cwd`.
    pub cwd_len: u32,
    /// Zero.
    pub reserved: u32,
    /// As given to execve.
    pub filename: [u8; EXEC_FILENAME],
    /// See [`EXEC_CWD`].
    pub cwd: [u8; EXEC_CWD],
}

/// Arguments and environment of the exec that is told next for this thread. `N` bytes of text follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExecTextRecord<const N: usize> {
    /// The process.
    pub head: Head,
    /// Bytes of the whole argument area; argv may be cut in `text`.
    pub args_len: u32,
    /// Bytes of the argument and environment areas together.
    pub area_len: u32,
    /// Bytes of `text`: argv, each ended by NUL, and directly behind it the environment.
    pub text_len: u32,
    /// Zero.
    pub reserved: u32,
    /// See `text_len`.
    pub text: [u8; N],
}

/// Room for the arguments of an exec that failed.
pub const FAILED_ARGS: usize = 1024;
/// Arguments of an exec that failed which are read.
pub const FAILED_ARGC: usize = 16;

/// An execve or execveat that failed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExecFailedRecord {
    /// The caller.
    pub head: Head,
    /// Negative errno.
    pub result: i64,
    /// Directory descriptor of execveat, AT_FDCWD for execve.
    pub directory: i32,
    /// Bytes of `filename`.
    pub filename_len: u32,
    /// Bytes of `args`.
    pub args_len: u32,
    /// Zero.
    pub reserved: u32,
    /// As given.
    pub filename: [u8; EXEC_FILENAME],
    /// Arguments, each ended by NUL.
    pub args: [u8; FAILED_ARGS],
}

/// A system call on a path. `N` bytes of paths follow: the path, the second path, and the names of the directory that a
/// relative path is relative to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FileRecord<const N: usize> {
    /// The caller.
    pub head: Head,
    /// When the call began, CLOCK_MONOTONIC ns.
    pub begin: u64,
    /// What the system call returned: a descriptor, 0, or a negative errno.
    pub result: i64,
    /// Flags of an open, as given.
    pub open_flags: u64,
    /// When the watched dlopen that this thread is inside of began; 0 outside.
    pub loading: u64,
    /// System call number.
    pub number: u32,
    /// Directory descriptor of the path.
    pub directory: i32,
    /// Directory descriptor of the second path.
    pub directory2: i32,
    /// Bytes of the first path.
    pub path_len: u32,
    /// Where the second path begins; 0 where there is none.
    pub path2_at: u32,
    /// Bytes of the second path.
    pub path2_len: u32,
    /// Where the names of the directory begin, as in [`EXEC_CWD`]; 0 where the path is absolute.
    pub base_at: u32,
    /// Bytes of these names.
    pub base_len: u32,
    /// The paths, without NUL.
    pub text: [u8; N],
}

/// A watched function was entered, or returned. `N` bytes of captured text follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CallRecord<const N: usize> {
    /// The caller.
    pub head: Head,
    /// When the call began, CLOCK_MONOTONIC ns.
    pub begin: u64,
    /// What the probe was attached with: [`Cookie`].
    pub cookie: u64,
    /// Where the call returns to: the instruction behind the caller's.
    pub return_address: u64,
    /// Where the probe is: the function's start, or its `ret`.
    pub instruction: u64,
    /// The returned value; nothing at an entry.
    pub result: u64,
    /// The arguments that came in registers.
    pub args: [u64; 6],
    /// The captured values, in the order of [`CallSpec::captures`]. For a text: its address.
    pub values: [u64; CAPTURES],
    /// 0, or the negative errno of reading the capture.
    pub status: [i32; CAPTURES],
    /// Bytes of text of each capture; capture `i` begins at `i * CAPTURE_TEXT`.
    pub text_len: [u32; CAPTURES],
    /// Texts.
    pub text: [u8; N],
}

// The reader takes the fixed part of a record as a type without text: it must end where the text begins.
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(ExecTextRecord<0>, text) == size_of::<ExecTextRecord<0>>());
    assert!(offset_of!(FileRecord<0>, text) == size_of::<FileRecord<0>>());
    assert!(offset_of!(CallRecord<0>, text) == size_of::<CallRecord<0>>());
};

/// What a probe knows about itself: the attach cookie, taken apart.
///
/// Bits 0–11: index into the specs. Bit 12: tell the entry as well, not every way out of the function is probed.
/// Bits 16–63: number of the attached object, which only the tracer reads (0 where the kernel has no attach cookies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

impl Cookie {
    const TELL_ENTRY: u64 = 1 << 12;

    /// The cookie of function `spec` in object `object`.
    #[must_use]
    pub const fn new(object: u32, spec: u16, tell_entry: bool) -> Self {
        let entry = if tell_entry { Self::TELL_ENTRY } else { 0 };
        Self(((object as u64) << 16) | entry | (spec as u64 & 0xfff))
    }

    /// Index into [`SPECS_MAP`].
    #[must_use]
    pub const fn spec(self) -> u16 {
        self.0 as u16 & 0xfff
    }

    /// Whether the entry is told although the spec does not ask for it.
    #[must_use]
    pub const fn tells_entry(self) -> bool {
        self.0 & Self::TELL_ENTRY != 0
    }

    /// The tracer's number of the object.
    #[must_use]
    pub const fn object(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// What to capture of one watched function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// Bits of [`report`].
    pub report: u32,
    /// Text bytes of its records: 0, [`TEXT_SMALL`] or [`TEXT_IMAGE`].
    pub text: u32,
    /// Argument whose value decides whether the call is told; 255: every call is.
    pub filter_argument: u32,
    /// Lowest value of that argument.
    pub filter_from: u32,
    /// Highest value of that argument.
    pub filter_to: u32,
    /// Zero.
    pub reserved: u32,
    /// What is read.
    pub captures: [Capture; CAPTURES],
}

impl CallSpec {
    /// Nothing watched.
    pub const NONE: Self = Self {
        report: 0,
        text: 0,
        filter_argument: NO_FILTER,
        filter_from: 0,
        filter_to: 0,
        reserved: 0,
        captures: [Capture::NONE; CAPTURES],
    };
}

/// [`CallSpec::filter_argument`] of a function of which every call is told.
pub const NO_FILTER: u32 = 255;
/// Text bytes of a function with short texts: one [`CAPTURE_TEXT`] per capture.
pub const TEXT_SMALL: u32 = (CAPTURES * CAPTURE_TEXT) as u32;
/// Text bytes of a function that takes a module image.
pub const TEXT_IMAGE: u32 = 4096;

/// Bits of [`CallSpec::report`].
pub mod report {
    /// A record at the entry.
    pub const ENTRY: u32 = 1;
    /// A record at the return.
    pub const RETURN: u32 = 2;
    /// This is an entry of the dynamic loader: opens of the thread belong to it until it returns.
    pub const LOADER: u32 = 4;
}

/// One value to read.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// One of [`read`].
    pub read: u8,
    /// Argument 0–5, or [`RESULT`].
    pub from: u8,
    /// One of [`at`].
    pub at: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes behind the pointer.
    pub offset: u32,
}

/// [`Capture::from`]: the returned value.
pub const RESULT: u8 = 6;

impl Capture {
    /// No capture.
    pub const NONE: Self = Self {
        read: read::NOTHING,
        from: 0,
        at: at::RETURN,
        reserved: 0,
        offset: 0,
    };
}

/// When a capture is read.
pub mod at {
    /// In whichever record is told: what the caller passes in.
    pub const EITHER: u8 = 0;
    /// After the function ran: what it passes out.
    pub const RETURN: u8 = 1;
}

/// What a capture reads.
pub mod read {
    /// Nothing.
    pub const NOTHING: u8 = 0;
    /// A 32-bit integer behind the pointer.
    pub const INT32: u8 = 1;
    /// A 64-bit integer or a pointer behind the pointer.
    pub const INT64: u8 = 2;
    /// A C string at the pointer.
    pub const TEXT: u8 = 3;
    /// A C string whose address is behind the pointer (`link_map::l_name` of a handle).
    pub const TEXT_BEHIND: u8 = 4;
    /// [`CAPTURE_TEXT`](super::CAPTURE_TEXT) bytes at the pointer.
    pub const BYTES: u8 = 6;
    /// [`TEXT_IMAGE`](super::TEXT_IMAGE) bytes at the pointer, fewer where the mapping ends. Alone in its record.
    pub const IMAGE: u8 = 5;
}

/// Where a file system call has its paths. Argument numbers are 0–5, [`NO_ARGUMENT`] for none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShape {
    /// The path.
    pub path: u8,
    /// The directory descriptor that the path is relative to.
    pub directory: u8,
    /// The second path.
    pub path2: u8,
    /// The second path's directory descriptor.
    pub directory2: u8,
    /// The flags of an open.
    pub flags: u8,
    /// 1: the flags are the first word of `struct open_how` behind the argument.
    pub flags_behind: u8,
    /// Zero.
    pub reserved: [u8; 2],
}

/// [`FileShape`]: the call has no such argument.
pub const NO_ARGUMENT: u8 = 255;

/// Facts handed over at load time, as constants that the verifier knows.
///
/// Offsets are bytes from the start of the kernel type, read from the running kernel's BTF: these programs need no
/// relocation by the loader, which aya-ebpf does not offer (mechanisms 1).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named `type_member` after the kernel's types")]
pub struct Constants {
    /// Inode of the tracer's pid namespace, or 0 when it is the initial one.
    pub own_pid_namespace: u32,
    pub task_pid: u32,
    pub task_tgid: u32,
    pub task_thread_pid: u32,
    pub task_group_leader: u32,
    pub task_real_parent: u32,
    pub task_signal: u32,
    pub task_mm: u32,
    pub task_fs: u32,
    pub task_files: u32,
    pub files_fdt: u32,
    pub fdtable_fd: u32,
    pub fdtable_max: u32,
    pub file_path: u32,
    pub task_exit_code: u32,
    pub pid_level: u32,
    pub pid_numbers: u32,
    pub upid_size: u32,
    pub upid_nr: u32,
    pub upid_ns: u32,
    pub pid_namespace_inum: u32,
    pub signal_live: u32,
    pub signal_flags: u32,
    pub signal_group_exit_code: u32,
    pub mm_arg_start: u32,
    pub mm_arg_end: u32,
    pub mm_env_end: u32,
    pub fs_pwd: u32,
    pub path_mnt: u32,
    pub path_dentry: u32,
    pub dentry_parent: u32,
    pub dentry_name: u32,
    pub vfsmount_root: u32,
    pub mount_mnt: u32,
    pub mount_parent: u32,
    pub mount_mountpoint: u32,
    pub bprm_filename: u32,
    pub bprm_file: u32,
    pub file_inode: u32,
    pub inode_ino: u32,
    pub inode_sb: u32,
    pub super_block_dev: u32,
}

/// Name of the constants in the object.
pub const CONSTANTS: &str = "CONSTANTS";
