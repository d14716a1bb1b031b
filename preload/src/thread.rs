//! What is kept for each thread.

use crate::arch::{THREAD_BLOCK, system_call, thread_block};
use core::ffi::c_int;

/// A request for a library that this thread has made and whose outcome is not known yet.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Request {
    /// Sequence of its `DlRequest` record; 0 for none.
    pub(crate) sequence: u32,
    /// Flags it was made with.
    pub(crate) flags: u32,
    /// Where its return address lay on the stack.
    pub(crate) stack: usize,
    /// The return address.
    pub(crate) caller: usize,
}

/// Requests nest when the initialiser of a library asks for another one.
pub(crate) const NESTED: usize = 4;

/// The thread-local block. All zero is its initial state.
#[repr(C)]
pub(crate) struct Thread {
    /// Set while the shim itself is at work, so that what it calls is not recorded.
    pub(crate) busy: u32,
    /// Set while a [`Shield`] is up.
    shielded: u32,
    /// Sequence of the last `Fork` record of this thread.
    pub(crate) fork: u32,
    /// Process that wrote it.
    pub(crate) fork_pid: u32,
    /// Set when the `Fork` record of a vfork was already written.
    pub(crate) fork_is_ahead: u32,
    /// The thread's id, and the process in which it was asked for.
    pub(crate) id: u32,
    pub(crate) id_in: u32,
    /// How many of `requests` are open.
    pub(crate) open: u32,
    pub(crate) requests: [Request; NESTED],
}

const _: () = assert!(size_of::<Thread>() <= THREAD_BLOCK);

/// This thread's state.
pub(crate) fn this() -> &'static mut Thread {
    // SAFETY: the block is as long as the thread lives, zeroed, aligned, and used by this thread alone; the references
    // are never held across a call that could take another one.
    unsafe { &mut *thread_block().cast::<Thread>() }
}

/// Keeps the program's signal handlers away until dropped.
///
/// A handler may jump out of whatever it has interrupted (a shell's `read -t`, curl's time limit do), and the functions
/// that the shim stands in front of allow that. The shim's work would be left half done for ever: the loader's lock
/// taken, the thread marked as busy.
pub(crate) struct Shield {
    /// The thread's signal mask; `None` when another shield is up already.
    former: Option<u64>,
}

impl Shield {
    #[inline(never)]
    pub(crate) fn raise() -> Shield {
        if this().shielded != 0 {
            return Shield { former: None };
        }
        // What a fault raises is for the program's handler as ever: held back, it would end the program.
        const FAULTS: [c_int; 6] = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGSYS,
        ];
        let faults = FAULTS
            .iter()
            .fold(0_u64, |signals, signal| signals | 1 << (signal - 1));
        let former = exchange_mask(libc::SIG_BLOCK, !faults);
        this().shielded = 1;
        Shield {
            former: Some(former),
        }
    }
}

impl Drop for Shield {
    #[inline]
    fn drop(&mut self) {
        if let Some(former) = self.former {
            lower(former);
        }
    }
}

#[inline(never)]
fn lower(former: u64) {
    this().shielded = 0;
    exchange_mask(libc::SIG_SETMASK, former);
}

/// Changes the signal mask of the thread; gives the former one.
fn exchange_mask(how: c_int, mask: u64) -> u64 {
    let mut former = 0_u64;
    let places = (&raw const mask as usize, &raw mut former as usize);
    system_call(
        libc::SYS_rt_sigprocmask,
        [how as usize, places.0, places.1, size_of::<u64>(), 0, 0],
    );
    former
}

/// Keeps `errno` as it was, marks the thread as busy and keeps signal handlers away, until dropped.
pub(crate) struct Quiet {
    errno: i32,
    /// Dropped last: a handler that has waited finds everything as it was.
    _shield: Shield,
}

impl Quiet {
    /// `None` when the shim is already at work in this thread, or when there is no session.
    #[inline(never)]
    pub(crate) fn begin() -> Option<Quiet> {
        if !crate::session::is_on() {
            return None;
        }
        if this().busy != 0 {
            return None;
        }
        let shield = Shield::raise();
        this().busy = 1;
        Some(Quiet {
            errno: errno(),
            _shield: shield,
        })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        this().busy = 0;
        set_errno(self.errno);
    }
}

pub(crate) fn errno() -> i32 {
    // SAFETY: libc gives a valid address.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: i32) {
    // SAFETY: libc gives a valid address.
    unsafe { *libc::__errno_location() = value }
}
