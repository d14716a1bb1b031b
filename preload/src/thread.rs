//! What is kept for each thread.

use crate::arch::{THREAD_BLOCK, thread_block};

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

/// Keeps `errno` as it was and marks the thread as busy, until dropped.
pub(crate) struct Quiet {
    errno: i32,
}

impl Quiet {
    /// `None` when the shim is already at work in this thread, or when there is no session.
    pub(crate) fn begin() -> Option<Quiet> {
        if !crate::session::is_on() {
            return None;
        }
        let thread = this();
        if thread.busy != 0 {
            return None;
        }
        thread.busy = 1;
        Some(Quiet { errno: errno() })
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
