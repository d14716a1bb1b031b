//! Starts of programs: every entry of libc that leads to an exec.
//!
//! The attempt is written before it is made, since nothing of us is left when it succeeds; a failure follows as a record
//! of its own. All of this may run in a vfork child, which shares its parent's memory: no heap, no lasting change.

use crate::arch::with_stack;
use crate::target::{self, Target};
use crate::text::{Short, c_bytes};
use crate::thread::{self, Quiet};
use crate::{dl, process, python, real, session};
use core::ffi::{c_char, c_int};
use core::ptr::null;
use jittrace_wire::record::{ExecAttempt, ExecFailed, MAX_RECORD, NotFollowed, Spawned, Writer};
use jittrace_wire::{OPTIONS_VARIABLE, SESSION_VARIABLE};

type Strings = *const *const c_char;

/// Where the file to start comes from.
#[derive(Clone, Copy)]
enum Source {
    /// This path.
    Path,
    /// The first match in PATH, when the name has no slash.
    Search,
    /// An open descriptor.
    Descriptor(c_int),
    /// A path that starts from a directory descriptor.
    Below(c_int),
    /// `/bin/sh -c`.
    Shell,
}

struct Attempt {
    call: &'static str,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    source: Source,
    caller: usize,
}

/// What is to be done with the environment of the child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    /// It leads to us already.
    Followed,
    /// It carries our session but not our entry in `LD_PRELOAD`: the entry is put back.
    Restored,
    /// Nothing of ours is left.
    Cleared,
    /// Our entry is taken out: it would break this target.
    Dropped,
}

impl Environment {
    const fn name(self) -> &'static str {
        match self {
            Environment::Followed => "followed",
            Environment::Restored => "restored",
            Environment::Cleared => "cleared",
            Environment::Dropped => "dropped",
        }
    }
}

const PRELOAD: &str = "LD_PRELOAD";

/// Whether a list of libraries, separated by colons or spaces, names the shim.
fn names_shim(list: &[u8], shim: &[u8]) -> bool {
    list.split(|byte| matches!(byte, b':' | b' '))
        .any(|entry| entry == shim)
}

unsafe fn judge(envp: Strings, target: Target, shim: &[u8]) -> Environment {
    // SAFETY: an environment.
    let (preload, session) = unsafe {
        (
            session::variable(envp, PRELOAD),
            session::variable(envp, SESSION_VARIABLE),
        )
    };
    let entry = preload.is_some_and(|list| names_shim(list, shim));
    if target.is_harmed() {
        return if entry {
            Environment::Dropped
        } else {
            Environment::Cleared
        };
    }
    match (entry, session.is_some_and(|path| path == session::path())) {
        (true, true) => Environment::Followed,
        (false, true) => Environment::Restored,
        _ if session::follows_clean_environments() => Environment::Restored,
        _ => Environment::Cleared,
    }
}

/// Writes the attempt down; gives its sequence and what to do with the environment.
unsafe fn record(attempt: &Attempt) -> Option<(u32, Environment)> {
    let _quiet = Quiet::begin()?;
    let shim = process::own_path();
    let mut examined = Short::<{ target::PATH }>::new();
    // SAFETY: arguments of an exec call.
    unsafe {
        let path = c_bytes(attempt.path);
        let search = search_path(attempt);
        let target = match attempt.source {
            Source::Path => target::examine(libc::AT_FDCWD, path, &mut examined),
            Source::Below(directory) => target::examine(directory, path, &mut examined),
            Source::Descriptor(descriptor) => {
                let mut link = Short::<64>::new();
                link.push(b"/proc/self/fd/")
                    .push_number(descriptor.max(0) as u64);
                target::examine(libc::AT_FDCWD, link.as_bytes(), &mut examined)
            }
            Source::Search => match search {
                None => target::examine(libc::AT_FDCWD, path, &mut examined),
                Some(list) => examine_along(list, path, &mut examined),
            },
            Source::Shell => target::examine(libc::AT_FDCWD, b"/bin/sh", &mut examined),
        };
        let environment = judge(attempt.envp, target, shim);
        let mut buffer = [0; MAX_RECORD];
        let mut writer = Writer::new(&mut buffer, ExecAttempt::KIND);
        writer.text(ExecAttempt::call, attempt.call.as_bytes());
        let thread = thread::this();
        let owner = session::owns_memory();
        let fork = if thread.fork != 0 && thread.fork_pid != session::process_id() {
            thread.fork
        } else {
            0
        };
        writer
            .number(ExecAttempt::argc, count(attempt.argv))
            .number(ExecAttempt::fork, fork.into());
        // The one that forked: by now `getppid` may name another.
        let parent = match fork {
            0 => crate::arch::system_call(libc::SYS_getppid, [0; 6]) as u64,
            _ => thread.fork_pid.into(),
        };
        writer.number(ExecAttempt::ppid, parent);
        writer.text(ExecAttempt::environment, environment.name().as_bytes());
        if let Source::Descriptor(descriptor) | Source::Below(descriptor) = attempt.source {
            writer.number(ExecAttempt::descriptor, i64::from(descriptor) as u64);
        }
        write_path(&mut writer, attempt.source, path);
        dl::write_caller(
            &mut writer,
            (ExecAttempt::caller, ExecAttempt::offset),
            attempt.caller,
        );
        if let Some(list) = search {
            writer.text(ExecAttempt::search, list);
        }
        if owner && fork == 0 {
            python::write_frames(&mut writer, ExecAttempt::python);
        }
        let former = writer.reserve(writer.free() / 4);
        process::write_arguments(&mut writer, ExecAttempt::argv, attempt.argv);
        writer.release(former);
        let own = session::environment();
        if !core::ptr::eq(attempt.envp, own) {
            process::write_environment(&mut writer, ExecAttempt::env, attempt.envp, |entry| {
                !has_entry(own, entry)
            });
        }
        let sequence = session::append(writer);
        let reason = match (target.reason(), environment) {
            (Some(reason), _) => Some(reason),
            (None, Environment::Cleared) if target != Target::Missing => {
                Some("cleared-environment")
            }
            _ => None,
        };
        if let Some(reason) = reason {
            let mut buffer = [0; 1536];
            let mut writer = Writer::new(&mut buffer, NotFollowed::KIND);
            writer
                .number(NotFollowed::attempt, sequence.into())
                .text(NotFollowed::reason, reason.as_bytes());
            writer.text(NotFollowed::path, examined.as_bytes());
            session::append(writer);
        }
        Some((sequence, environment))
    }
}

/// A command line is masked like arguments are.
fn write_path(writer: &mut Writer<'_>, source: Source, path: &[u8]) {
    if !matches!(source, Source::Shell) {
        writer.text(ExecAttempt::path, path);
        return;
    }
    let mut command = Short::<2048>::new();
    command.push(path);
    let _ = jittrace_wire::secrets::mask(command.bytes_mut());
    writer.text(ExecAttempt::path, command.as_bytes());
}

unsafe fn count(strings: Strings) -> u64 {
    let mut count = 0;
    // SAFETY: an array that ends with a null pointer.
    unsafe {
        while !strings.is_null() && !(*strings.add(count)).is_null() {
            count += 1;
        }
    }
    count as u64
}

unsafe fn has_entry(variables: Strings, entry: &[u8]) -> bool {
    let mut at = variables;
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if c_bytes(*at) == entry {
                return true;
            }
            at = at.add(1);
        }
    }
    false
}

/// The list of directories that the call searches: PATH of the *calling* process; glibc's default without it.
unsafe fn search_path(attempt: &Attempt) -> Option<&'static [u8]> {
    // SAFETY: the process's own environment.
    unsafe {
        let searched =
            matches!(attempt.source, Source::Search) && !c_bytes(attempt.path).contains(&b'/');
        searched
            .then(|| session::variable(session::environment(), "PATH").unwrap_or(b"/bin:/usr/bin"))
    }
}

fn examine_along(list: &[u8], name: &[u8], examined: &mut Short<{ target::PATH }>) -> Target {
    for directory in list.split(|byte| *byte == b':') {
        let mut path = Short::<{ target::PATH }>::new();
        if !directory.is_empty() {
            path.push(directory).push(b"/");
        }
        path.push(name);
        *examined = Short::new();
        match target::examine(libc::AT_FDCWD, path.as_bytes(), examined) {
            Target::Missing => {}
            found => return found,
        }
    }
    Target::Missing
}

/// Records the attempt, makes it with the environment that it is to have, and records a failure.
///
/// `make(envp)` makes the call; it comes back only when it failed, or for calls that stay.
unsafe fn attempt(
    attempt: &Attempt,
    make: &mut dyn FnMut(Strings) -> isize,
) -> (Option<u32>, isize) {
    // A wrong address is for the kernel to refuse.
    let pointers = [
        attempt.path as usize,
        attempt.argv as usize,
        attempt.envp as usize,
    ];
    if !session::is_on() || !real::may_be_readable(pointers) {
        return (None, make(attempt.envp));
    }
    // SAFETY: arguments of an exec call.
    let Some((sequence, environment)) = (unsafe { record(attempt) }) else {
        return (None, make(attempt.envp));
    };
    let result = match environment {
        Environment::Followed | Environment::Cleared => make(attempt.envp),
        // SAFETY: as above.
        Environment::Restored | Environment::Dropped => unsafe {
            with_changed_environment(attempt.envp, environment, make)
        },
    };
    (Some(sequence), result)
}

struct Change<'m> {
    envp: Strings,
    entries: usize,
    environment: Environment,
    shim: &'static [u8],
    make: &'m mut dyn FnMut(Strings) -> isize,
}

/// Makes the call with a copy of the environment in which only `LD_PRELOAD` (and, when it is to be followed although it
/// was cleared, our own variables) differs. The copy lies on the stack.
unsafe fn with_changed_environment(
    envp: Strings,
    environment: Environment,
    make: &mut dyn FnMut(Strings) -> isize,
) -> isize {
    // SAFETY: an environment.
    let (entries, preload) = unsafe {
        (
            count(envp) as usize,
            session::variable(envp, PRELOAD).map_or(0, <[u8]>::len),
        )
    };
    let shim = process::own_path();
    let texts = PRELOAD.len()
        + shim.len()
        + preload
        + 3
        + SESSION_VARIABLE.len()
        + session::path().len()
        + 2
        + OPTIONS_VARIABLE.len()
        + 32;
    let mut change = Change {
        envp,
        entries,
        environment,
        shim,
        make,
    };
    let bytes = (entries + 4) * size_of::<*const c_char>() + texts;
    // SAFETY: the body writes no more than it was given.
    unsafe { with_stack(bytes, change_and_make, (&raw mut change).cast()) }
}

unsafe extern "C" fn change_and_make(memory: *mut u8, change: *mut u8) -> isize {
    // SAFETY: as laid out by the caller: pointers first, texts after them.
    unsafe {
        let change = &mut *change.cast::<Change<'_>>();
        let array = memory.cast::<*const c_char>();
        let mut texts = memory.add((change.entries + 4) * size_of::<*const c_char>());
        let mut place = 0;
        let mut put = |entry: *const c_char| {
            *array.add(place) = entry;
            place += 1;
        };
        let mut write = |parts: &[&[u8]]| {
            let begin = texts;
            for part in parts {
                core::ptr::copy_nonoverlapping(part.as_ptr(), texts, part.len());
                texts = texts.add(part.len());
            }
            *texts = 0;
            texts = texts.add(1);
            begin.cast_const().cast::<c_char>()
        };
        let mut preload = None;
        for at in 0..change.entries {
            let entry = *change.envp.add(at);
            let value = c_bytes(entry)
                .strip_prefix(PRELOAD.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            match value {
                Some(value) if preload.is_none() => preload = Some(value),
                Some(_) => {}
                None => put(entry),
            }
        }
        let others = preload.unwrap_or_default();
        if change.environment == Environment::Dropped {
            // What is left of the list, if anything.
            let begin = write(&[b"LD_PRELOAD="]);
            let mut end = begin.cast_mut().cast::<u8>().add(PRELOAD.len() + 1);
            let mut any = false;
            for entry in others
                .split(|byte| matches!(byte, b':' | b' '))
                .filter(|entry| !entry.is_empty() && *entry != change.shim)
            {
                if any {
                    *end = b':';
                    end = end.add(1);
                }
                core::ptr::copy_nonoverlapping(entry.as_ptr(), end, entry.len());
                end = end.add(entry.len());
                any = true;
            }
            *end = 0;
            if any {
                put(begin);
            }
        } else {
            let separator: &[u8] = if others.is_empty() { b"" } else { b":" };
            // The address sanitizer's runtime ends the program unless it comes first.
            let sanitized = others.windows(4).any(|four| four == b"asan");
            let (first, second) = if sanitized {
                (others, change.shim)
            } else {
                (change.shim, others)
            };
            put(write(&[b"LD_PRELOAD=", first, separator, second]));
            if session::variable(change.envp, SESSION_VARIABLE).is_none() {
                put(write(&[SESSION_VARIABLE.as_bytes(), b"=", session::path()]));
                put(write(&[OPTIONS_VARIABLE.as_bytes(), b"=follow-clean-env"]));
            }
        }
        put(null());
        (change.make)(array.cast_const())
    }
}

fn report_failure(sequence: u32, errno: c_int, path: *const c_char) {
    let Some(_quiet) = Quiet::begin() else { return };
    let mut buffer = [0; 4352];
    let mut writer = Writer::new(&mut buffer, ExecFailed::KIND);
    writer
        .number(ExecFailed::attempt, sequence.into())
        .number(ExecFailed::errno, errno as u64);
    // SAFETY: the program's string.
    writer.text(ExecFailed::path, unsafe { c_bytes(path) });
    session::append(writer);
}

fn report_spawned(sequence: u32, child: c_int, result: i64) {
    let Some(_quiet) = Quiet::begin() else { return };
    let mut buffer = [0; 128];
    let mut writer = Writer::new(&mut buffer, Spawned::KIND);
    writer
        .number(Spawned::attempt, sequence.into())
        .number(Spawned::child, child.max(0) as u64);
    writer.number(Spawned::result, result as u64);
    session::append(writer);
}

type Registers = [usize; 6];
type SixArguments = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_int;

/// Where the file to start comes from, when the call's arguments have yet to say which it is.
#[derive(Clone, Copy)]
enum From {
    Path,
    Search,
    Descriptor,
    Below,
}

/// Whose environment the call hands to the program that it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handed {
    /// The one among its arguments.
    Given,
    /// The caller's own, which the function behind it is given as an argument.
    Own,
}

/// How a call says what came of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It comes back only to say -1 and `errno`.
    Exec,
    /// By its result: 0, with the child's id behind its first argument unless that is null, or an error.
    Spawn,
}

/// Where a call, and the function that it is made through, have their arguments.
struct Shape {
    from: From,
    path: Option<usize>,
    argv: usize,
    envp: usize,
    handed: Handed,
    answer: Answer,
}

macro_rules! start_hooks {
    ($($body:ident: $call:ident => $real:ident, $from:ident, $path:expr, $argv:expr, $envp:expr, $handed:ident, $answer:ident;)*) => { $(
        pub(crate) unsafe extern "C" fn $body(registers: &Registers, stack: *const usize) -> usize {
            const SHAPE: Shape = Shape {
                from: From::$from, path: $path, argv: $argv, envp: $envp, handed: Handed::$handed, answer: Answer::$answer,
            };
            let real = real!($real: SixArguments);
            // SAFETY: the arguments of the call and the return address.
            unsafe { start(stringify!($call), real, &SHAPE, registers, *stack) }
        }
    )* };
}

#[rustfmt::skip]
start_hooks! {
    on_execve: execve => execve, Path, Some(0), 1, 2, Given, Exec;
    on_execv: execv => execve, Path, Some(0), 1, 2, Own, Exec;
    on_execl: execl => execve, Path, Some(0), 1, 2, Own, Exec;
    on_execle: execle => execve, Path, Some(0), 1, 2, Given, Exec;
    on_execvpe: execvpe => execvpe, Search, Some(0), 1, 2, Given, Exec;
    on_execvp: execvp => execvpe, Search, Some(0), 1, 2, Own, Exec;
    on_execlp: execlp => execvpe, Search, Some(0), 1, 2, Own, Exec;
    on_fexecve: fexecve => fexecve, Descriptor, None, 1, 2, Given, Exec;
    on_execveat: execveat => execveat, Below, Some(1), 2, 3, Given, Exec;
    on_posix_spawn: posix_spawn => posix_spawn, Path, Some(1), 4, 5, Given, Spawn;
    on_posix_spawnp: posix_spawnp => posix_spawnp, Search, Some(1), 4, 5, Given, Spawn;
}

/// The variadic calls, whose arguments the assembly has gathered.
macro_rules! gathered_hooks {
    ($($body:ident: $gathered:ident;)*) => { $(
        pub(crate) unsafe extern "C" fn $body(path: usize, argv: usize, envp: usize, stack: *const usize) -> usize {
            // SAFETY: as gathered.
            unsafe { $gathered(&[path, argv, envp, 0, 0, 0], stack) }
        }
    )* };
}

gathered_hooks! {
    execl_gathered: on_execl;
    execle_gathered: on_execle;
    execlp_gathered: on_execlp;
}

/// Records a start, makes it through `real`, and records what came of it.
unsafe fn start(
    call: &'static str,
    real: Option<SixArguments>,
    shape: &Shape,
    registers: &Registers,
    caller: usize,
) -> usize {
    let Some(real) = real else {
        return match shape.answer {
            Answer::Exec => no_such_function(),
            Answer::Spawn => libc::ENOSYS as usize,
        };
    };
    let mut registers = *registers;
    if let (Handed::Own, Some(envp)) = (shape.handed, registers.get_mut(shape.envp)) {
        *envp = session::environment() as usize;
    }
    let mut unasked: c_int = 0;
    if let (Answer::Spawn, [child @ 0, ..]) = (shape.answer, &mut registers) {
        *child = &raw mut unasked as usize;
    }
    let argument = |at: usize| registers.get(at).copied().unwrap_or(0);
    let path = shape
        .path
        .map_or(null(), |at| argument(at) as *const c_char);
    let [first, ..] = registers;
    // SAFETY: the arguments of the call.
    unsafe {
        let source = match shape.from {
            From::Path => Source::Path,
            From::Search => Source::Search,
            From::Below if !c_bytes(path).is_empty() => Source::Below(first as c_int),
            From::Below | From::Descriptor => Source::Descriptor(first as c_int),
        };
        let wanted = Attempt {
            call,
            path,
            argv: argument(shape.argv) as Strings,
            envp: argument(shape.envp) as Strings,
            source,
            caller,
        };
        let (sequence, result) = attempt(&wanted, &mut |envp| {
            let mut registers = registers;
            if let Some(place) = registers.get_mut(shape.envp) {
                *place = envp as usize;
            }
            let [a, b, c, d, e, f] = registers;
            real(a, b, c, d, e, f) as isize
        });
        if let Some(sequence) = sequence {
            match (shape.answer, result) {
                (Answer::Exec, _) => report_failure(sequence, thread::errno(), path),
                (Answer::Spawn, 0) => report_spawned(sequence, *(first as *const c_int), 0),
                (Answer::Spawn, error) => report_failure(sequence, error as c_int, path),
            }
        }
        result as usize
    }
}

fn no_such_function() -> usize {
    thread::set_errno(libc::ENOSYS);
    -1_isize as usize
}

/// Records a command line for the shell. The inner exec is libc's own, so its environment cannot be changed.
unsafe fn record_shell(call: &'static str, command: usize, caller: usize) -> Option<u32> {
    let (path, envp) = (command as *const c_char, session::environment());
    // SAFETY: the program's string and environment.
    unsafe {
        record(&Attempt {
            call,
            path,
            argv: null(),
            envp,
            source: Source::Shell,
            caller,
        })
    }
    .map(|(sequence, _)| sequence)
}

pub(crate) unsafe extern "C" fn on_system(
    &[command, ..]: &Registers,
    stack: *const usize,
) -> usize {
    let Some(real) = real!(system: unsafe extern "C" fn(usize) -> c_int) else {
        return no_such_function();
    };
    // SAFETY: system's argument and the return address.
    unsafe {
        let sequence = if command == 0 {
            None
        } else {
            record_shell("system", command, *stack)
        };
        let result = real(command);
        if let Some(sequence) = sequence {
            report_spawned(sequence, 0, result.into());
        }
        result as usize
    }
}

pub(crate) unsafe extern "C" fn on_popen(
    &[command, mode, ..]: &Registers,
    stack: *const usize,
) -> usize {
    let Some(real) = real!(popen: unsafe extern "C" fn(usize, usize) -> usize) else {
        return 0;
    };
    // SAFETY: popen's arguments and the return address.
    unsafe {
        let sequence = record_shell("popen", command, *stack);
        let result = real(command, mode);
        if let (Some(sequence), 0) = (sequence, result) {
            report_failure(sequence, thread::errno(), command as *const c_char);
        }
        result
    }
}
