//! The signal dispositions and mask that jittrace was started with.
//!
//! Rust's runtime ignores SIGPIPE before `main`, and an ignored signal stays ignored over exec. So what was inherited
//! is noted by a constructor, which runs before the runtime does, and given back to the command.
//!
//! The kernel is asked itself: the C library hides signals 32 and 33, which it takes for its own with the first thread.
//! A signal that it handles is at its default after an exec, also where it was ignored before.

use std::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// Bit `n - 1` is set when signal `n` was ignored at the start.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Bit `n - 1` is set when signal `n` was blocked at the start.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

const HIGHEST: libc::c_int = 64;

/// Bytes of a signal set, as the kernel has it.
const SET_BYTES: usize = size_of::<u64>();

/// `struct sigaction` of the kernel: the handler comes first everywhere, and the rest is zero for a default one.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let mut ignored = 0_u64;
    for signal in 1..=HIGHEST {
        let mut action = Action::default();
        let none: *const Action = ptr::null();
        // SAFETY: a query with a null new action only writes to `action`.
        let asked = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                none,
                &raw mut action,
                SET_BYTES,
            )
        };
        if asked == 0 && action.handler == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    let mut blocked = 0_u64;
    let none: *const u64 = ptr::null();
    // SAFETY: a query with a null new set only writes to `blocked`.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            none,
            &raw mut blocked,
            SET_BYTES,
        )
    };
    BLOCKED.store(blocked, Ordering::Relaxed);
}

/// Gives every signal the disposition that jittrace was started with, and the mask. Only system calls: for the child.
pub(super) fn restore() {
    let ignored = IGNORED.load(Ordering::Relaxed);
    for signal in 1..=HIGHEST {
        let action = Action {
            handler: if ignored & (1 << (signal - 1)) != 0 {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            },
            ..Action::default()
        };
        let none: *mut Action = ptr::null_mut();
        // SAFETY: `action` is a valid action; the old one is not asked for. SIGKILL and SIGSTOP are refused.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const action,
                none,
                SET_BYTES,
            )
        };
    }
    let blocked = BLOCKED.load(Ordering::Relaxed);
    let none: *mut u64 = ptr::null_mut();
    // SAFETY: reads one set of this size.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const blocked,
            none,
            SET_BYTES,
        )
    };
}
