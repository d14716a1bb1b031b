//! Start, fork and end of the process.

use crate::arch::{Next, system_call};
use crate::elf;
use crate::session;
use crate::text::{Short, c_bytes, name_in};
use crate::thread::{self, Quiet};
use crate::{calls, objects, program, python};
use core::ffi::{c_char, c_int, c_void};
use jittrace_wire::record::{Exit, Fork, MAX_RECORD, Start, Writer};
use jittrace_wire::{environment, secrets};

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        object: *const c_void,
    ) -> c_int;
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = began;

/// glibc hands `main`'s arguments to every constructor.
unsafe extern "C" fn began(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) {
    crate::real::expect_forks();
    let early = session::has_begun();
    let Some(_quiet) = Quiet::begin() else { return };
    if early {
        session::settle_owner();
    }
    // SAFETY: handlers that live as long as the shim, which is never unloaded.
    unsafe {
        __register_atfork(None, None, Some(in_fork_child), core::ptr::null());
        on_exit(exits, core::ptr::null_mut());
    }
    let (mut buffer, mut path) = ([0; program::PATH], Short::new());
    let directory = current_directory(&mut buffer);
    // SAFETY: main's arguments.
    let exe = unsafe { program::path(argv, directory, &mut path) };
    // SAFETY: main's arguments and environment.
    unsafe { report_start(argc, argv, envp, exe, directory) };
}

/// Not inlined: its buffer is to lie where the stack has been written to already.
#[inline(never)]
unsafe fn report_start(
    argc: c_int,
    argv: *const *const c_char,
    envp: *const *const c_char,
    exe: Option<&[u8]>,
    directory: Option<&[u8]>,
) {
    let mut buffer = [0; MAX_RECORD];
    let mut writer = Writer::new(&mut buffer, Start::KIND);
    writer
        .text(Start::how, b"exec")
        .number(Start::argc, argc.max(0) as u64);
    who(&mut writer);
    for (tag, path) in [(Start::exe, exe), (Start::cwd, directory)] {
        match path {
            Some(path) => writer.text(tag, path),
            None => writer.unreadable(tag),
        };
    }
    writer.text(Start::shim, own_path());
    // The environment explains more than the thousandth argument does: it gets half of the room, and what is left over.
    let former = writer.reserve(writer.free() / 2);
    // SAFETY: main's arguments.
    unsafe { write_arguments(&mut writer, Start::argv, argv) };
    writer.release(former);
    // SAFETY: main's environment.
    unsafe { write_environment(&mut writer, Start::env, envp, |_| true) };
    let all = objects::write_start(&mut writer, exe);
    session::append(writer);
    if !all {
        objects::report_rest_of_start();
    }
}

/// Path of the shim as the loader was given it.
pub(crate) fn own_path() -> &'static [u8] {
    let address = own_path as fn() -> &'static [u8] as usize;
    match elf::object_at(address) {
        // SAFETY: the shim is never unloaded, so its name stays.
        Some(object) => unsafe { core::mem::transmute::<&[u8], &'static [u8]>(object.path()) },
        None => &[],
    }
}

fn who(writer: &mut Writer<'_>) {
    let parent = system_call(libc::SYS_getppid, [0; 6]) as u64;
    // SAFETY: getauxval has no preconditions. The real user id as the kernel gave it to this program.
    let user = unsafe { libc::getauxval(libc::AT_UID) };
    writer.number(Start::ppid, parent).number(Start::uid, user);
    // A pid namespace is entered by a child, whose parent has no number in it, and its first process is 1.
    let may_be_elsewhere = parent <= 1 || session::owner() == 1;
    if may_be_elsewhere || !session::is_in_launchers_mount_namespace() {
        let (pid, mount) = (c"/proc/self/ns/pid", c"/proc/self/ns/mnt");
        writer
            .number(Start::pid_namespace, namespace(pid.as_ptr()))
            .number(Start::mount_namespace, namespace(mount.as_ptr()));
    }
}

/// The number in `pid:[4026531836]`.
fn namespace(path: *const c_char) -> u64 {
    let mut link = [0; 64];
    let digits = read_link(path, &mut link)
        .unwrap_or_default()
        .iter()
        .filter(|byte| byte.is_ascii_digit());
    digits.fold(0_u64, |number, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'))
    })
}

/// Target of a symbolic link.
pub(crate) fn read_link(path: *const c_char, buffer: &mut [u8]) -> Option<&[u8]> {
    let at = libc::AT_FDCWD as usize;
    let length = system_call(
        libc::SYS_readlinkat,
        [
            at,
            path as usize,
            buffer.as_mut_ptr() as usize,
            buffer.len(),
            0,
            0,
        ],
    );
    buffer.get(..usize::try_from(length).ok()?)
}

/// The current directory.
pub(crate) fn current_directory(buffer: &mut [u8]) -> Option<&[u8]> {
    // The kernel counts the zero byte at the end.
    let length = system_call(
        libc::SYS_getcwd,
        [buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0],
    );
    buffer.get(..usize::try_from(length - 1).ok()?)
}

/// Appends arguments, each masked where it looks like a credential, until the record is full.
pub(crate) unsafe fn write_arguments(
    writer: &mut Writer<'_>,
    tag: u8,
    argv: *const *const c_char,
) -> u64 {
    let mut count = 0;
    let mut secret = false;
    if argv.is_null() {
        return 0;
    }
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        while !(*argv.add(count)).is_null() {
            if writer.free() > 24 {
                let argument = c_bytes(*argv.add(count));
                secret = write_argument(writer, tag, argument, secret);
            } else {
                writer.cut();
            }
            count += 1;
        }
    }
    count as u64
}

/// Appends one argument; gives whether the next one is a credential.
fn write_argument(writer: &mut Writer<'_>, tag: u8, argument: &[u8], secret: bool) -> bool {
    use jittrace_wire::record::Mark;
    const LONGEST: usize = 1024;
    let mut text = Short::<LONGEST>::new();
    text.push(argument);
    let mut mark = if argument.len() > LONGEST {
        Mark::TRUNCATED
    } else {
        Mark::WHOLE
    };
    if secret {
        text.bytes_mut().fill(b'*');
        mark = mark.with(Mark::MASKED);
    } else if secrets::mask(text.bytes_mut()) {
        mark = mark.with(Mark::MASKED);
    }
    writer.marked(tag, text.as_bytes(), mark);
    secrets::announces_secret(argument)
}

/// Appends the variables that may be captured and that `wanted` accepts.
pub(crate) unsafe fn write_environment(
    writer: &mut Writer<'_>,
    tag: u8,
    variables: *const *const c_char,
    wanted: impl Fn(&[u8]) -> bool,
) {
    let mut entry = variables;
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            if environment::is_captured(name_in(*entry)) {
                let variable = c_bytes(*entry);
                if wanted(variable) {
                    writer.text(tag, variable);
                }
            }
            entry = entry.add(1);
        }
    }
}

extern "C" fn exits(code: c_int, _: *mut c_void) {
    if let Some(_quiet) = Quiet::begin() {
        report_exit(code, b"exit");
    }
}

fn report_exit(code: c_int, how: &[u8]) {
    if session::owns_memory() {
        // Requests that nothing followed any more.
        crate::dl::settle(usize::MAX, None);
        calls::report_counts();
    }
    let mut buffer = [0; 128];
    let mut writer = Writer::new(&mut buffer, Exit::KIND);
    writer
        .number(Exit::code, i64::from(code) as u64)
        .text(Exit::how, how);
    session::append(writer);
}

/// Interposed `_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(code: c_int) -> ! {
    end(code)
}

/// Interposed `_Exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(code: c_int) -> ! {
    end(code)
}

fn end(code: c_int) -> ! {
    if let Some(_quiet) = Quiet::begin() {
        report_exit(code, b"_exit");
    }
    if let Some(real) = real!(_exit: unsafe extern "C" fn(c_int) -> !) {
        // SAFETY: the function it is.
        unsafe { real(code) }
    }
    loop {
        system_call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]);
    }
}

/// Writes down who is about to fork: a child cannot take the Python stack itself.
fn report_fork(call: &str, caller: usize) {
    let Some(_quiet) = Quiet::begin() else { return };
    let thread = thread::this();
    if core::mem::take(&mut thread.fork_is_ahead) == 0 || call != "vfork" {
        write_fork(call, caller);
    }
}

fn write_fork(call: &str, caller: usize) {
    if !session::owns_memory() || !calls::within_rate(&calls::FORKS) {
        return;
    }
    let mut buffer = [0; 4096];
    let mut writer = Writer::new(&mut buffer, Fork::KIND);
    writer.text(Fork::call, call.as_bytes());
    crate::dl::write_caller(&mut writer, (Fork::caller, Fork::offset), caller);
    python::write_frames(&mut writer, Fork::python);
    let sequence = session::append(writer);
    let thread = thread::this();
    thread.fork = sequence;
    thread.fork_pid = session::process_id();
}

/// CPython blocks all signals while it still holds the GIL, then gives the GIL up and calls `vfork`
/// (`_posixsubprocess`, 3.10 and later): this is the last moment for the Python stack.
pub(crate) unsafe extern "C" fn on_pthread_sigmask(
    &[how, set, old, ..]: &[usize; 6],
    stack: *const usize,
) -> usize {
    let Some(real) = real!(pthread_sigmask: unsafe extern "C" fn(usize, usize, usize) -> c_int)
    else {
        return libc::ENOSYS as usize;
    };
    let mut signals = [0; 8];
    const NEARLY_ALL: u32 = 60;
    if how as c_int == libc::SIG_BLOCK
        && session::is_on()
        && crate::real::read_memory(set, &mut signals) == signals.len()
        && u64::from_ne_bytes(signals).count_ones() >= NEARLY_ALL
        && let Some(_quiet) = Quiet::begin()
        && python::holds_gil()
    {
        // SAFETY: the return address.
        write_fork("vfork", unsafe { *stack });
        thread::this().fork_is_ahead = 1;
    }
    // SAFETY: pthread_sigmask's arguments.
    unsafe { real(how, set, old) as usize }
}

pub(crate) unsafe extern "C" fn before_fork(
    _: usize,
    _: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    // SAFETY: the return address.
    report_fork("fork", unsafe { *stack });
    Next {
        target: real_address!(fork),
        value: 0,
    }
}

pub(crate) unsafe extern "C" fn before_vfork(
    _: usize,
    _: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    // SAFETY: the return address.
    report_fork("vfork", unsafe { *stack });
    Next {
        target: real_address!(vfork),
        value: 0,
    }
}

/// Runs in the child of `fork`, before it goes on.
extern "C" fn in_fork_child() {
    let parent = session::forked();
    objects::forked();
    let thread = thread::this();
    thread.busy = 0;
    thread.open = 0; // requests that the parent has made, with numbers that count its records
    let fork = thread.fork;
    let Some(_quiet) = Quiet::begin() else { return };
    if !calls::within_rate(&calls::FORKS) {
        return;
    }
    let mut buffer = [0; 256];
    let mut writer = Writer::new(&mut buffer, Start::KIND);
    writer
        .text(Start::how, b"fork")
        .number(Start::fork, fork.into());
    writer.number(Start::ppid, parent.into());
    session::append(writer);
}
