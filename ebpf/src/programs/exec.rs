//! Exec: attempts that failed, and what a process became.
//!
//! At the entry of execve user memory may not be paged in (mechanisms 2), so nothing is read there but the registers.
//! After a successful exec the kernel has just written argv and environment to the new stack, and one copy takes both.

use aya_ebpf::{
    helpers::{bpf_get_current_uid_gid, generated::bpf_probe_read_user},
    macros::{map, raw_tracepoint, tracepoint},
    maps::LruHashMap,
    programs::{RawTracePointContext, TracePointContext},
};
use jittrace_ebpf::{
    EXEC_FILENAME, ExecFailedRecord, ExecRecord, ExecTextRecord, FAILED_ARGC, FAILED_ARGS,
    NO_ARGUMENT, flag, kind, lost,
};

use crate::{
    directory::{Names, Walker, working_directory},
    file::{argument, shape, syscall},
    kernel::{constant, kernel, kernel_text, user, user_text},
    ring::tell,
    task::{current_key, followed, head, now, views},
};

/// An execve that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attempt {
    begin: u64,
    filename: u64,
    argv: u64,
    directory: i64,
}

#[map]
static ATTEMPTS: LruHashMap<u64, Attempt> = LruHashMap::with_max_entries(4096, 0);

/// Forgets what a thread that ends was about to run.
#[inline(always)]
pub(crate) fn forget(key: u64) {
    let _ = ATTEMPTS.remove(key);
}

/// Entry of execve and execveat (system call tracepoints).
#[tracepoint]
pub(crate) fn exec_enter(ctx: TracePointContext) -> u32 {
    if !followed() {
        return 0;
    }
    let Some(shape) = shape(syscall(&ctx)) else {
        return 0;
    };
    let attempt = Attempt {
        begin: now(),
        filename: argument(&ctx, shape.path),
        // argv follows the file name in both calls.
        argv: argument(&ctx, shape.path.wrapping_add(1)),
        directory: if shape.directory == NO_ARGUMENT {
            i64::from(AT_FDCWD)
        } else {
            argument(&ctx, shape.directory) as i64
        },
    };
    let _ = ATTEMPTS.insert(current_key(), attempt, 0);
    0
}

/// Directory descriptor that stands for the working directory.
pub(crate) const AT_FDCWD: i32 = -100;

/// Exit of execve and execveat: told only when it failed, `process_exec` tells the others.
#[tracepoint]
pub(crate) fn exec_exit(ctx: TracePointContext) -> u32 {
    let key = current_key();
    // SAFETY: the entry belongs to this thread alone.
    let Some(&attempt) = (unsafe { ATTEMPTS.get(key) }) else {
        return 0;
    };
    let _ = ATTEMPTS.remove(key);
    let result = crate::file::result(&ctx);
    if result >= 0 {
        return 0;
    }
    let head = head(kind::EXEC_FAILED, 0);
    tell(lost::EXEC_FAILED, |record: *mut ExecFailedRecord| {
        // SAFETY: reserved memory of this type; the fields are written one by one, texts up to their length.
        unsafe {
            (*record).head = head;
            (*record).result = result;
            (*record).directory = attempt.directory as i32;
            (*record).reserved = 0;
            let filename =
                user_text::<EXEC_FILENAME>((&raw mut (*record).filename).cast(), attempt.filename);
            (*record).filename_len = filename.unwrap_or(0);
            let mut flags = if filename.is_err() { flag::FAULT } else { 0 };
            let args: *mut u8 = (&raw mut (*record).args).cast();
            let mut at: usize = 0;
            let mut complete = false;
            for i in 0..FAILED_ARGC {
                let Ok(pointer) = user::<u64>(attempt.argv.wrapping_add(8 * i as u64)) else {
                    flags |= flag::FAULT;
                    complete = true;
                    break;
                };
                if pointer == 0 {
                    complete = true;
                    break;
                }
                if at > FAILED_ARGS - ONE_ARGUMENT {
                    break;
                }
                match user_text::<ONE_ARGUMENT>(args.add(at), pointer) {
                    Ok(length) => at += length as usize + 1,
                    Err(_) => {
                        flags |= flag::FAULT;
                        complete = true;
                        break;
                    }
                }
            }
            if !complete {
                flags |= flag::TRUNCATED;
            }
            (*record).args_len = at as u32;
            (*record).head.flags = flags;
        }
        true
    });
    0
}

/// Room for one argument of a failed exec.
const ONE_ARGUMENT: usize = 256;

/// `sched_process_exec(task, old_pid, bprm)`: the new image is in place and has not run yet.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub(crate) fn process_exec(ctx: RawTracePointContext) -> i32 {
    if !followed() {
        return 0;
    }
    let task: u64 = ctx.arg(0);
    let caller: u32 = ctx.arg(1);
    let bprm: u64 = ctx.arg(2);
    let key = (current_key() & !0xffff_ffff) | u64::from(caller);
    crate::call::forget(key);
    forget(key);
    let mm: u64 = kernel(task, constant!(task_mm));
    let start: u64 = kernel(mm, constant!(mm_arg_start));
    let args_end: u64 = kernel(mm, constant!(mm_arg_end));
    let end: u64 = kernel(mm, constant!(mm_env_end));
    let area = Area {
        start,
        args_len: args_end.wrapping_sub(start) as u32,
        whole_len: end.wrapping_sub(start) as u32,
    };
    // A reservation must have a constant size: the smallest class that holds both areas. The text goes first, so that
    // the exec is complete when its record is read.
    if area.whole_len < 2048 {
        tell_text::<2048>(&area);
    } else if area.whole_len < 8192 {
        tell_text::<8192>(&area);
    } else if area.whole_len < 16_384 {
        tell_text::<16_384>(&area);
    } else {
        tell_text::<65_536>(&area);
    }
    tell_exec(task, bprm, caller);
    0
}

/// Where argv and environment are.
struct Area {
    start: u64,
    args_len: u32,
    whole_len: u32,
}

/// Tells argv and environment. `N` is a power of two; one byte of it stays unused.
#[inline(always)]
fn tell_text<const N: usize>(area: &Area) {
    let head = head(kind::EXEC_TEXT, 0);
    tell(lost::EXEC, |record: *mut ExecTextRecord<N>| {
        // SAFETY: reserved memory of this type; the fields are written one by one, texts up to their length.
        unsafe {
            (*record).head = head;
            (*record).args_len = area.args_len;
            (*record).area_len = area.whole_len;
            (*record).reserved = 0;
            let wanted = if (area.whole_len as usize) < N {
                area.whole_len
            } else {
                N as u32 - 1
            };
            // Read as volatile, the length has no range that the compiler knows, so it keeps the mask that shows the
            // verifier the bound.
            let length = core::ptr::read_volatile(&raw const wanted) & (N as u32 - 1);
            let read = bpf_probe_read_user(
                (&raw mut (*record).text).cast(),
                length,
                area.start as *const _,
            );
            (*record).text_len = if read == 0 { length } else { 0 };
            if read != 0 {
                (*record).head.flags = flag::FAULT;
            }
        }
        true
    });
}

#[inline(always)]
fn tell_exec(task: u64, bprm: u64, caller: u32) {
    let parent: u64 = kernel(task, constant!(task_real_parent));
    let head = head(kind::EXEC, 0);
    let parent = views(parent);
    let Some(directory) = Names::of(working_directory(task), Walker::Exec) else {
        return;
    };
    tell(lost::EXEC, |record: *mut ExecRecord| {
        // SAFETY: reserved memory of this type; the fields are written one by one, texts up to their length.
        unsafe {
            (*record).head = head;
            (*record).parent = parent;
            let file: u64 = kernel(bprm, constant!(bprm_file));
            let inode: u64 = kernel(file, constant!(file_inode));
            let super_block: u64 = kernel(inode, constant!(inode_sb));
            (*record).exe_inode = kernel(inode, constant!(inode_ino));
            (*record).exe_device = kernel(super_block, constant!(super_block_dev));
            (*record).uid = bpf_get_current_uid_gid() as u32;
            (*record).caller = caller;
            (*record).reserved = 0;
            let filename: u64 = kernel(bprm, constant!(bprm_filename));
            (*record).filename_len =
                kernel_text::<EXEC_FILENAME>((&raw mut (*record).filename).cast(), filename)
                    .unwrap_or(0);
            let (cwd_len, cut) = directory.copy((&raw mut (*record).cwd).cast());
            (*record).cwd_len = cwd_len;
            (*record).head.flags = cut;
        }
        true
    });
}
