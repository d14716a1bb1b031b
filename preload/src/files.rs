//! Files: calls on paths in JIT caches and toolkits, found by [pattern](jittrace_wire::paths), and locks.
//!
//! A path is looked at only after the real call, when the kernel has read it too: a wrong address stays `EFAULT`. The
//! one exception is a build description about to be overwritten, whose old text names the toolkit it was written for.

use crate::arch::system_call;
use crate::dl;
use crate::real::{Real, read_memory};
use crate::text::{Short, c_bytes};
use crate::thread::{self, Quiet};
use crate::{calls, process, python, session};
use core::ffi::{c_char, c_int};
use jittrace_wire::paths::{self, Interest};
use jittrace_wire::record::{File, MAX_RECORD, Writer};

type Registers = [usize; 6];
type SixArguments = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// What a call does to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Open,
    Create,
    OpenStream,
    OpenDirectory,
    Stat,
    Access,
    ReadLink,
    Rename,
    Unlink,
    MakeDirectory,
    RemoveDirectory,
}

/// Where a call has its arguments. Without pointers, which the loader would have to fill in.
struct Shape {
    op: Op,
    /// Directory descriptor.
    directory: Option<u8>,
    path: u8,
    /// Second path, with its directory descriptor just before it when the call has them.
    second: Option<u8>,
    /// Open flags.
    flags: Option<u8>,
}

impl Shape {
    /// Whether the call gives a pointer, null on failure, and not -1.
    const fn gives_pointer(&self) -> bool {
        matches!(self.op, Op::OpenStream | Op::OpenDirectory)
    }
}

const fn at(position: u8) -> Option<u8> {
    Some(position)
}

/// A hooked function: its name, and the one behind ours.
#[derive(Clone, Copy)]
struct Hooked {
    name: &'static str,
    real: &'static Real,
}

macro_rules! file_hooks {
    ($($body:ident: $name:ident $op:ident, $directory:expr, $path:expr, $second:expr, $flags:expr;)*) => { $(
        pub(crate) unsafe extern "C" fn $body(registers: &Registers, stack: *const usize) -> usize {
            static REAL: Real = Real::new();
            const SHAPE: Shape = Shape {
                op: Op::$op, directory: $directory, path: $path, second: $second, flags: $flags,
            };
            let hooked = Hooked { name: stringify!($name), real: &REAL };
            // SAFETY: the arguments of the call.
            unsafe { file_call(&SHAPE, hooked, registers, stack) }
        }
    )* };
}

#[rustfmt::skip]
file_hooks! {
    on_open: open Open, None, 0, None, at(1);
    on_open64: open64 Open, None, 0, None, at(1);
    on_open_2: __open_2 Open, None, 0, None, at(1);
    on_open64_2: __open64_2 Open, None, 0, None, at(1);
    on_openat: openat Open, at(0), 1, None, at(2);
    on_openat64: openat64 Open, at(0), 1, None, at(2);
    on_openat_2: __openat_2 Open, at(0), 1, None, at(2);
    on_openat64_2: __openat64_2 Open, at(0), 1, None, at(2);
    on_creat: creat Create, None, 0, None, None;
    on_creat64: creat64 Create, None, 0, None, None;
    on_fopen: fopen OpenStream, None, 0, None, None;
    on_fopen64: fopen64 OpenStream, None, 0, None, None;
    on_freopen: freopen OpenStream, None, 0, None, None;
    on_freopen64: freopen64 OpenStream, None, 0, None, None;
    on_opendir: opendir OpenDirectory, None, 0, None, None;
    on_stat: stat Stat, None, 0, None, None;
    on_stat64: stat64 Stat, None, 0, None, None;
    on_lstat: lstat Stat, None, 0, None, None;
    on_lstat64: lstat64 Stat, None, 0, None, None;
    on_fstatat: fstatat Stat, at(0), 1, None, None;
    on_fstatat64: fstatat64 Stat, at(0), 1, None, None;
    on_statx: statx Stat, at(0), 1, None, None;
    on_xstat: __xstat Stat, None, 1, None, None;
    on_xstat64: __xstat64 Stat, None, 1, None, None;
    on_lxstat: __lxstat Stat, None, 1, None, None;
    on_lxstat64: __lxstat64 Stat, None, 1, None, None;
    on_fxstatat: __fxstatat Stat, at(1), 2, None, None;
    on_fxstatat64: __fxstatat64 Stat, at(1), 2, None, None;
    on_access: access Access, None, 0, None, None;
    on_faccessat: faccessat Access, at(0), 1, None, None;
    on_eaccess: eaccess Access, None, 0, None, None;
    on_euidaccess: euidaccess Access, None, 0, None, None;
    on_readlink: readlink ReadLink, None, 0, None, None;
    on_readlinkat: readlinkat ReadLink, at(0), 1, None, None;
    on_rename: rename Rename, None, 0, at(1), None;
    on_renameat: renameat Rename, at(0), 1, at(3), None;
    on_renameat2: renameat2 Rename, at(0), 1, at(3), None;
    on_link: link Rename, None, 0, at(1), None;
    on_unlink: unlink Unlink, None, 0, None, None;
    on_unlinkat: unlinkat Unlink, at(0), 1, None, None;
    on_remove: remove Unlink, None, 0, None, None;
    on_mkdir: mkdir MakeDirectory, None, 0, None, None;
    on_mkdirat: mkdirat MakeDirectory, at(0), 1, None, None;
    on_rmdir: rmdir RemoveDirectory, None, 0, None, None;
}

/// As much of an old build description as is kept; its variables come first.
const OLD_TEXT: usize = 3072;

struct OldText {
    bytes: [u8; OLD_TEXT],
    length: usize,
}

fn argument(registers: &Registers, position: u8) -> usize {
    registers.get(usize::from(position)).copied().unwrap_or(0)
}

/// Makes the call and records it when its path is of interest.
///
/// Everything with large buffers is in functions of its own that are not inlined: most calls are of no interest, and a
/// signal handler on a small stack may make them.
unsafe fn file_call(
    shape: &Shape,
    hooked: Hooked,
    registers: &Registers,
    stack: *const usize,
) -> usize {
    let [a, b, c, d, e, f] = *registers;
    let Some(function) = hooked.real.function::<SixArguments>(hooked.name) else {
        thread::set_errno(libc::ENOSYS);
        return if shape.gives_pointer() {
            0
        } else {
            -1_isize as usize
        };
    };
    // SAFETY: the function reads as many arguments as it has.
    let call = || unsafe { function(a, b, c, d, e, f) };
    if !session::is_on() {
        return call();
    }
    if overwrites(shape, registers) {
        // SAFETY: the arguments of the call.
        return unsafe { overwriting_call(shape, hooked.name, &call, registers, stack) };
    }
    let result = call();
    // SAFETY: the arguments of the call.
    unsafe { record(shape, hooked.name, registers, stack, result, &[]) };
    result
}

#[inline(never)]
unsafe fn overwriting_call(
    shape: &Shape,
    name: &'static str,
    call: &dyn Fn() -> usize,
    registers: &Registers,
    stack: *const usize,
) -> usize {
    let mut old = OldText {
        bytes: [0; OLD_TEXT],
        length: 0,
    };
    read_old_text(shape, registers, &mut old);
    let result = call();
    // SAFETY: the arguments of the call.
    unsafe {
        record(
            shape,
            name,
            registers,
            stack,
            result,
            old.bytes.get(..old.length).unwrap_or_default(),
        )
    };
    result
}

/// Whether the call is about to replace a file's text.
fn overwrites(shape: &Shape, registers: &Registers) -> bool {
    match shape.op {
        Op::Open => shape
            .flags
            .is_some_and(|flags| argument(registers, flags) as c_int & libc::O_TRUNC != 0),
        Op::Create | Op::Rename => true,
        Op::OpenStream => {
            let mut mode = [0; 1];
            read_memory(argument(registers, 1), &mut mode) == 1 && mode == *b"w"
        }
        _ => false,
    }
}

/// Reads what a build description says before it is overwritten. The path is read with care: it may be wrong.
fn read_old_text(shape: &Shape, registers: &Registers, old: &mut OldText) {
    let Some(_quiet) = Quiet::begin() else { return };
    let place = shape.second.unwrap_or(shape.path);
    let directory = match (shape.second, shape.directory) {
        (Some(second), Some(_)) => argument(registers, second - 1) as c_int,
        (None, Some(directory)) => argument(registers, directory) as c_int,
        (_, None) => libc::AT_FDCWD,
    };
    let mut path = [0; 1024];
    let length = read_string(argument(registers, place), &mut path);
    let Some(name) = path.get(..length) else {
        return;
    };
    if !paths::is_build_description(name) {
        return;
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    let arguments = [
        directory as usize,
        path.as_ptr() as usize,
        flags as usize,
        0,
        0,
        0,
    ];
    let descriptor = system_call(libc::SYS_openat, arguments);
    if descriptor < 0 {
        return;
    }
    let text = [
        descriptor as usize,
        old.bytes.as_mut_ptr() as usize,
        OLD_TEXT,
        0,
        0,
        0,
    ];
    old.length = system_call(libc::SYS_pread64, text).max(0) as usize;
    system_call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0]);
}

/// Copies a C string whose address may be wrong, page by page; gives its length, 0 when it does not fit.
fn read_string(address: usize, target: &mut [u8]) -> usize {
    const PAGE: usize = 4096;
    let mut length = 0;
    while length < target.len() {
        let step = (PAGE - (address + length) % PAGE).min(target.len() - length);
        let Some(piece) = target.get_mut(length..length + step) else {
            return 0;
        };
        let read = read_memory(address + length, piece);
        if let Some(end) = piece.iter().take(read).position(|byte| *byte == 0) {
            return length + end;
        }
        if read < step {
            return 0;
        }
        length += step;
    }
    0
}

/// Whether the kernel read the path before it gave this error.
fn path_was_read(errno: c_int) -> bool {
    matches!(
        errno,
        libc::ENOENT
            | libc::EACCES
            | libc::EPERM
            | libc::ENXIO
            | libc::ENODEV
            | libc::EEXIST
            | libc::ENOTDIR
            | libc::ELOOP
            | libc::EISDIR
            | libc::ENOTEMPTY
            | libc::EROFS
            | libc::EXDEV
            | libc::ENOSPC
            | libc::EDQUOT
            | libc::EBUSY
            | libc::ETXTBSY
    )
}

unsafe fn record(
    shape: &Shape,
    name: &'static str,
    registers: &Registers,
    stack: *const usize,
    result: usize,
    old_text: &[u8],
) {
    let failed = if shape.gives_pointer() {
        result == 0
    } else {
        result as c_int == -1
    };
    let errno = if failed { thread::errno() } else { 0 };
    if failed && !path_was_read(errno) {
        return;
    }
    // SAFETY: the kernel has read these strings.
    unsafe {
        let path = c_bytes(argument(registers, shape.path) as *const c_char);
        let second = shape
            .second
            .map(|second| c_bytes(argument(registers, second) as *const c_char));
        if let Some(interest) = interest(shape.op, path).or_else(|| interest(shape.op, second?)) {
            let seen = Seen {
                shape,
                name,
                registers,
                stack,
                result,
                errno,
                path,
                second,
                interest,
                old_text,
            };
            write_record(&seen);
        }
    }
}

/// A call on a path of interest that has come back.
struct Seen<'a> {
    shape: &'a Shape,
    name: &'static str,
    registers: &'a Registers,
    stack: *const usize,
    result: usize,
    errno: c_int,
    path: &'a [u8],
    second: Option<&'a [u8]>,
    interest: Interest,
    old_text: &'a [u8],
}

#[inline(never)]
unsafe fn write_record(seen: &Seen<'_>) {
    let &Seen {
        shape,
        name,
        registers,
        stack,
        result,
        errno,
        path,
        second,
        interest,
        old_text,
    } = seen;
    let Some(_quiet) = Quiet::begin() else { return };
    if thread::this().open != 0 {
        dl::settle(stack as usize, None);
    }
    if !calls::within_rate(&calls::FILES) {
        return;
    }
    let flags = shape
        .flags
        .map_or(0, |flags| argument(registers, flags) as c_int);
    let mut buffer = [0; MAX_RECORD];
    let mut writer = Writer::new(&mut buffer, File::KIND);
    writer
        .text(File::call, name.as_bytes())
        .text(File::op, op_name(shape, name, flags, registers));
    writer
        .text(File::interest, interest.name().as_bytes())
        .text(File::path, path);
    if let Some(second) = second {
        writer.text(File::second, second);
    } else if let (Op::ReadLink, Ok(length @ 1..)) = (shape.op, usize::try_from(result as isize)) {
        let target = argument(registers, shape.path + 1) as *const u8;
        // SAFETY: the kernel wrote that many bytes.
        writer.text(File::second, unsafe {
            core::slice::from_raw_parts(target, length)
        });
    }
    writer
        .number(File::errno, errno as u64)
        .number(File::flags, flags as u64);
    let directory = shape
        .directory
        .map_or(libc::AT_FDCWD, |place| argument(registers, place) as c_int);
    write_origin(&mut writer, path, directory);
    // SAFETY: the return address.
    dl::write_caller(&mut writer, (File::caller, File::offset), unsafe { *stack });
    if !old_text.is_empty() {
        writer.text(File::old_text, old_text);
    }
    python::write_frames(&mut writer, File::python);
    session::append(writer);
}

fn interest(op: Op, path: &[u8]) -> Option<Interest> {
    match op {
        Op::MakeDirectory | Op::RemoveDirectory | Op::OpenDirectory => {
            paths::directory_interest(path)
        }
        _ => paths::interest(path),
    }
}

fn op_name(shape: &Shape, name: &str, flags: c_int, registers: &Registers) -> &'static [u8] {
    match shape.op {
        Op::Open if flags & libc::O_CREAT != 0 => b"create",
        Op::Open => b"open",
        Op::Create => b"create",
        Op::OpenStream => {
            let mut mode = [0; 1];
            let writes = read_memory(argument(registers, 1), &mut mode) == 1
                && matches!(mode, [b'w' | b'a']);
            if writes { b"create" } else { b"open" }
        }
        Op::OpenDirectory => b"opendir",
        Op::Stat => b"stat",
        Op::Access => b"access",
        Op::ReadLink => b"readlink",
        Op::Rename if name == "link" => b"link",
        Op::Rename => b"rename",
        Op::Unlink => b"unlink",
        Op::MakeDirectory => b"mkdir",
        Op::RemoveDirectory => b"rmdir",
    }
}

/// Where a relative path starts from.
fn write_origin(writer: &mut Writer<'_>, path: &[u8], directory: c_int) {
    if path.first() == Some(&b'/') {
        return;
    }
    let mut buffer = [0; 1024];
    if directory == libc::AT_FDCWD {
        if let Some(current) = process::current_directory(&mut buffer) {
            writer.text(File::cwd, current);
        }
    } else if let Some(directory) = path_of(directory, &mut buffer) {
        writer.text(File::directory, directory);
    }
}

/// The path behind a descriptor.
fn path_of(descriptor: c_int, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut link = Short::<40>::new();
    link.push(b"/proc/self/fd/")
        .push_number(u64::try_from(descriptor).ok()?);
    process::read_link(link.as_c()?, buffer)
}

/// What a lock call does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Wait,
    Attempt,
    Release,
}

/// Makes a lock call and records its begin (when it may wait) and its end.
#[inline(never)]
unsafe fn lock_call(
    name: &'static str,
    kind: Lock,
    descriptor: usize,
    operation: usize,
    stack: *const usize,
    call: impl FnOnce() -> usize,
) -> usize {
    let mut buffer = [0; 512];
    let file = match Quiet::begin() {
        Some(_quiet) => {
            path_of(descriptor as c_int, &mut buffer).filter(|path| paths::interest(path).is_some())
        }
        None => None,
    };
    let Some(path) = file else { return call() };
    // SAFETY: the return address.
    let caller = unsafe { *stack };
    if kind == Lock::Wait {
        record_lock(name, b"lock-wait", path, operation, 0, 0, caller);
    }
    let begun = session::now();
    let result = call();
    let errno = if result as c_int == -1 {
        thread::errno()
    } else {
        0
    };
    let op: &[u8] = if kind == Lock::Release {
        b"unlock"
    } else {
        b"lock"
    };
    record_lock(
        name,
        op,
        path,
        operation,
        errno,
        session::now().saturating_sub(begun),
        caller,
    );
    result
}

#[inline(never)]
fn record_lock(
    name: &str,
    op: &[u8],
    path: &[u8],
    operation: usize,
    errno: c_int,
    wait: u64,
    caller: usize,
) {
    let Some(_quiet) = Quiet::begin() else { return };
    if !calls::within_rate(&calls::LOCKS) {
        return;
    }
    let mut buffer = [0; 4096];
    let mut writer = Writer::new(&mut buffer, File::KIND);
    writer.text(File::call, name.as_bytes()).text(File::op, op);
    writer
        .text(File::interest, Interest::Lock.name().as_bytes())
        .text(File::path, path);
    writer
        .number(File::errno, errno as u64)
        .number(File::flags, operation as u64)
        .number(File::wait, wait);
    dl::write_caller(&mut writer, (File::caller, File::offset), caller);
    session::append(writer);
}

pub(crate) unsafe extern "C" fn on_flock(
    &[descriptor, operation, ..]: &Registers,
    stack: *const usize,
) -> usize {
    let Some(real) = real!(flock: unsafe extern "C" fn(usize, usize) -> c_int) else {
        return -1_isize as usize;
    };
    let kind = match operation as c_int {
        libc::LOCK_UN => Lock::Release,
        operation if operation & libc::LOCK_NB != 0 => Lock::Attempt,
        _ => Lock::Wait,
    };
    // SAFETY: flock's arguments.
    unsafe {
        lock_call("flock", kind, descriptor, operation, stack, || {
            real(descriptor, operation) as usize
        })
    }
}

macro_rules! lockf_hooks {
    ($($body:ident: $name:ident;)*) => { $(
        pub(crate) unsafe extern "C" fn $body(&[descriptor, command, length, ..]: &Registers, stack: *const usize) -> usize {
            let Some(real) = real!($name: unsafe extern "C" fn(usize, usize, usize) -> c_int) else { return -1_isize as usize };
            let kind = match command as c_int {
                libc::F_ULOCK => Lock::Release,
                libc::F_LOCK => Lock::Wait,
                _ => Lock::Attempt,
            };
            // SAFETY: lockf's arguments.
            unsafe { lock_call(stringify!($name), kind, descriptor, command, stack, || real(descriptor, command, length) as usize) }
        }
    )* };
}

lockf_hooks! {
    on_lockf: lockf;
    on_lockf64: lockf64;
}

macro_rules! fcntl_hooks {
    ($($body:ident: $name:ident;)*) => { $(
        pub(crate) unsafe extern "C" fn $body(&[descriptor, command, value, ..]: &Registers, stack: *const usize) -> usize {
            let Some(real) = real!($name: unsafe extern "C" fn(usize, usize, usize) -> c_int) else { return -1_isize as usize };
            // SAFETY: fcntl's arguments.
            let call = || unsafe { real(descriptor, command, value) } as usize;
            const WAIT: c_int = libc::F_OFD_SETLKW;
            let kind = match command as c_int {
                libc::F_SETLKW | WAIT => Lock::Wait,
                libc::F_SETLK | libc::F_OFD_SETLK => Lock::Attempt,
                _ => return call(),
            };
            let mut lock_type = [0; 2];
            let known = read_memory(value, &mut lock_type) == 2;
            let releases = known && i16::from_ne_bytes(lock_type) == libc::F_UNLCK as i16;
            // SAFETY: fcntl's arguments.
            unsafe { lock_call(stringify!($name), if releases { Lock::Release } else { kind }, descriptor, command, stack, call) }
        }
    )* };
}

fcntl_hooks! {
    on_fcntl: fcntl;
    on_fcntl64: fcntl64;
}
