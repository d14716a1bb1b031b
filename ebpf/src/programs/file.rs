//! System calls on paths: open, rename, unlink, mkdir and their kin.
//!
//! One pair of programs serves all of them; which argument is what comes from a table of the tracer's, by system call
//! number. Paths are read when the call returns: by then the kernel itself has paged them in.

use aya_ebpf::{
    macros::{map, tracepoint},
    maps::{HashMap, LruHashMap},
    programs::TracePointContext,
};
use jittrace_ebpf::{ENDING, EXEC_CWD, FileRecord, FileShape, NO_ARGUMENT, flag, kind};

use crate::{
    call,
    directory::{Names, Walker, open_directory, working_directory},
    exec::AT_FDCWD,
    kernel::{user, user_text},
    ring::tell_file,
    task::{current, current_key, followed, head, now},
};

/// Offset of the system call number in the record of a system call tracepoint.
const NUMBER: usize = 8;
/// Offset of the arguments (sys_enter) and of the result (sys_exit).
const ARGUMENTS: usize = 16;

/// See [`jittrace_ebpf::BORING_MAP`].
#[map]
static BORING: HashMap<[u8; ENDING], u32> = HashMap::with_max_entries(64, 0);

#[map]
static SHAPES: HashMap<u32, FileShape> = HashMap::with_max_entries(64, 0);

/// A system call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pending {
    begin: u64,
    path: u64,
    path2: u64,
    flags: u64,
    number: u32,
    directory: i32,
    directory2: i32,
    reserved: u32,
}

#[map]
static PENDING: LruHashMap<u64, Pending> = LruHashMap::with_max_entries(8192, 0);

/// Forgets what a thread that ends was about to do.
#[inline(always)]
pub(crate) fn forget(key: u64) {
    let _ = PENDING.remove(key);
}

/// The system call's number.
///
/// Read by helper, not directly: a direct read beyond a call's own arguments would keep the program from being attached
/// to calls with fewer of them.
#[inline(always)]
pub(crate) fn syscall(ctx: &TracePointContext) -> u32 {
    // SAFETY: the helper checks the address.
    unsafe { ctx.read_at(NUMBER) }.unwrap_or(u32::MAX)
}

/// What the call returned (at its exit).
#[inline(always)]
pub(crate) fn result(ctx: &TracePointContext) -> i64 {
    // SAFETY: the helper checks the address.
    unsafe { ctx.read_at(ARGUMENTS) }.unwrap_or(0)
}

/// The tracer's description of system call `number`.
#[inline(always)]
pub(crate) fn shape(number: u32) -> Option<FileShape> {
    // SAFETY: written once before the programs are attached.
    unsafe { SHAPES.get(number) }.copied()
}

/// Argument `index` (at the entry), 0 for [`NO_ARGUMENT`].
#[inline(always)]
pub(crate) fn argument(ctx: &TracePointContext, index: u8) -> u64 {
    if index > 5 {
        return 0;
    }
    // SAFETY: the helper checks the address.
    unsafe { ctx.read_at(ARGUMENTS + 8 * index as usize) }.unwrap_or(0)
}

#[inline(always)]
fn directory(ctx: &TracePointContext, index: u8) -> i32 {
    if index == NO_ARGUMENT {
        AT_FDCWD
    } else {
        argument(ctx, index) as i32
    }
}

/// Entry of a system call on a path.
#[tracepoint]
pub(crate) fn file_enter(ctx: TracePointContext) -> u32 {
    if !followed() {
        return 0;
    }
    let number = syscall(&ctx);
    let Some(shape) = shape(number) else { return 0 };
    let mut flags = argument(&ctx, shape.flags);
    if shape.flags_behind != 0 {
        flags = user(flags).unwrap_or(0);
    }
    let pending = Pending {
        begin: now(),
        path: argument(&ctx, shape.path),
        path2: argument(&ctx, shape.path2),
        flags,
        number,
        directory: directory(&ctx, shape.directory),
        directory2: directory(&ctx, shape.directory2),
        reserved: 0,
    };
    let _ = PENDING.insert(current_key(), pending, 0);
    0
}

/// Exit of a system call on a path.
#[tracepoint]
pub(crate) fn file_exit(ctx: TracePointContext) -> u32 {
    let key = current_key();
    // SAFETY: the entry belongs to this thread alone.
    let Some(&pending) = (unsafe { PENDING.get(key) }) else {
        return 0;
    };
    let _ = PENDING.remove(key);
    let result = result(&ctx);
    // Most paths are short and absolute; a longer one is read again into a larger record, a relative one gets room for
    // its directory.
    let relative = user::<u8>(pending.path).is_ok_and(|first| first != b'/');
    if pending.path2 == 0 && !relative {
        if !tell_call::<192, 192, 0>(&pending, result, None, false) {
            tell_call::<4096, 4096, 0>(&pending, result, None, true);
        }
        return 0;
    }
    let task = current();
    let path = if pending.directory == AT_FDCWD {
        working_directory(task)
    } else {
        open_directory(task, pending.directory as u32)
    };
    // Once for all sizes of records: the walk is what the verifier takes longest for.
    let Some(base) = Names::of(path, Walker::File) else {
        return 0;
    };
    if pending.path2 != 0 {
        if !tell_call::<{ 512 + EXEC_CWD }, 256, 256>(&pending, result, Some(&base), false) {
            tell_call::<{ 4096 + EXEC_CWD }, 2048, 2048>(&pending, result, Some(&base), true);
        }
    } else if !tell_call::<{ 192 + EXEC_CWD }, 192, 0>(&pending, result, Some(&base), false) {
        tell_call::<{ 4096 + EXEC_CWD }, 4096, 0>(&pending, result, Some(&base), true);
    }
    0
}

/// Whether the absence of this file says nothing.
#[inline(always)]
fn is_boring(text: *const u8, length: u32) -> bool {
    if (length as usize) < ENDING {
        return false;
    }
    // The mask shows the verifier the bound; every record has room for more than its 192 bytes.
    let at = (length as usize - ENDING) & 127;
    if at + ENDING != length as usize {
        return false;
    }
    // SAFETY: within the text, which is at least 192 bytes.
    let ending: [u8; ENDING] = unsafe { text.add(at).cast::<[u8; ENDING]>().read_unaligned() };
    BORING.get_ptr(ending).is_some()
}

/// Tells a call: the path in `FIRST` bytes, a second one in `SECOND` bytes behind it, and behind both the names of the
/// directory, if there is one. `false`: a path does not fit and `last` is not set (or the ring is full, which is counted; the second try then
/// finds it full as well).
#[inline(always)]
fn tell_call<const N: usize, const FIRST: usize, const SECOND: usize>(
    pending: &Pending,
    result: i64,
    base: Option<&Names>,
    last: bool,
) -> bool {
    let mut boring = false;
    let told = tell_file(|record: *mut FileRecord<N>| {
        let loading = call::loading(current_key());
        // SAFETY: reserved memory of this type, with room for the texts as laid out above.
        unsafe {
            let text: *mut u8 = (&raw mut (*record).text).cast();
            let first = user_text::<FIRST>(text, pending.path);
            let first_len = first.unwrap_or(0);
            if result == -ENOENT && loading == 0 && is_boring(text, first_len) {
                boring = true;
                return false;
            }
            let mut flags = if loading == 0 { 0 } else { flag::LOADING };
            let mut cut = first_len as usize >= FIRST - 1;
            let mut second_len = 0;
            let mut fault = first.is_err();
            if SECOND != 0 {
                let second = user_text::<SECOND>(text.add(FIRST), pending.path2);
                second_len = second.unwrap_or(0);
                cut |= second_len as usize >= SECOND - 1;
                fault |= second.is_err();
            }
            if cut {
                if !last {
                    return false;
                }
                flags |= flag::TRUNCATED;
            }
            if fault {
                flags |= flag::FAULT;
            }
            let mut base_len = 0;
            if let Some(base) = base {
                let (length, cut) = base.copy(text.add(FIRST + SECOND));
                base_len = length;
                flags |= cut;
            }
            (*record).head = head(kind::FILE, flags);
            (*record).begin = pending.begin;
            (*record).result = result;
            (*record).open_flags = pending.flags;
            (*record).loading = loading;
            (*record).number = pending.number;
            (*record).directory = pending.directory;
            (*record).directory2 = pending.directory2;
            (*record).path_len = first_len;
            (*record).path2_at = if SECOND == 0 { 0 } else { FIRST as u32 };
            (*record).path2_len = second_len;
            (*record).base_at = if base.is_some() {
                (FIRST + SECOND) as u32
            } else {
                0
            };
            (*record).base_len = base_len;
        }
        true
    });
    told || boring
}

/// No such file or directory.
const ENOENT: i64 = 2;
