//! The signal dispositions and mask that jittrace was started with.
//!
//! Rust's runtime ignores SIGPIPE before `main`, and an ignored signal stays ignored over exec. So what was inherited
//! is noted by a constructor, which runs before the runtime does, and given back to the command.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bit `n - 1` is set when signal `n` was ignored at the start.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Highest signal that is looked at; the C library keeps 32 and 33 for itself.
const HIGHEST: i32 = 64;

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let mut ignored = 0_u64;
    for signal in 1..=HIGHEST {
        let mut action: libc::sigaction = unsafe_zeroed();
        // SAFETY: a query with a null new action only writes to `action`.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        if asked == 0 && action.sa_sigaction == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
}

fn unsafe_zeroed() -> libc::sigaction {
    // SAFETY: sigaction is plain data; all zero is the default action with an empty mask.
    unsafe { std::mem::zeroed() }
}

/// Gives every signal the disposition that jittrace was started with. Only async-signal-safe calls: for the child.
pub(super) fn restore() {
    let ignored = IGNORED.load(Ordering::Relaxed);
    for signal in 1..=HIGHEST {
        if matches!(signal, libc::SIGKILL | libc::SIGSTOP | 32 | 33) {
            continue;
        }
        let mut action = unsafe_zeroed();
        action.sa_sigaction = if ignored & (1 << (signal - 1)) != 0 {
            libc::SIG_IGN
        } else {
            libc::SIG_DFL
        };
        // SAFETY: `action` is a valid action; the old one is not asked for.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}
