//! Taking the programs out of the kernel without anybody waiting for it.
//!
//! Closing a tracepoint's perf event waits until no processor can be inside of its programs (an RCU grace period), one
//! tracepoint after the other: about two seconds in all. What a descriptor holds is closed with the last descriptor, so a
//! child takes them over, lets go of everything else, and ends: its end is what takes the time.

use std::{
    fs,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr, thread,
    time::{Duration, Instant},
};

/// How a descriptor that keeps something of ours in the kernel reads in `/proc/self/fd`.
const OURS: [&str; 2] = ["anon_inode:[perf_event]", "anon_inode:bpf"];

/// How often is looked whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// Programs that are being detached and unloaded: they go by themselves, also when this process ends first.
#[derive(Debug)]
pub struct Detaching {
    /// The child that holds the last descriptors.
    heir: Option<libc::pid_t>,
}

/// That child, while it waits.
struct Heir {
    pid: libc::pid_t,
    /// Closed, it tells the child to end.
    word: OwnedFd,
}

impl Detaching {
    /// Takes out what `probes` holds. Without a child it is waited for here.
    pub(super) fn of<T>(probes: T) -> Detaching {
        let heir = Heir::new();
        drop(probes);
        let heir = heir.map(|Heir { pid, word }| {
            drop(word);
            pid
        });
        Detaching { heir }
    }

    /// Waits until nothing is left in the kernel.
    pub fn wait(self) {
        while !self.is_done() {
            thread::sleep(LOOK);
        }
    }

    /// Waits as long as this; whether nothing is left in the kernel.
    #[must_use]
    pub fn wait_at_most(self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.is_done() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK);
        }
    }

    fn is_done(&self) -> bool {
        let Some(heir) = self.heir else { return true };
        // SAFETY: our own child, whose status nobody wants. One that was waited for before is an error: done as well.
        unsafe { libc::waitpid(heir, ptr::null_mut(), libc::WNOHANG) != 0 }
    }
}

impl Heir {
    /// A child with the descriptors that keep something in the kernel, and no others; `None` where there can be none.
    fn new() -> Option<Heir> {
        let mut ends: [RawFd; 2] = [-1; 2];
        // SAFETY: writes two descriptors to a local.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
            return None;
        }
        // SAFETY: two new descriptors that nothing else owns.
        let [heard, word] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        let mut kept = descriptors_of_ours()?;
        kept.push(heard.as_raw_fd());
        kept.sort_unstable();
        // SAFETY: the child makes system calls alone, on memory that was laid out before.
        match unsafe { libc::fork() } {
            -1 => None,
            // SAFETY: this is the child; `kept` is sorted and holds `heard`.
            0 => unsafe { inherit(&kept, heard.as_raw_fd()) },
            pid => Some(Heir { pid, word }),
        }
    }
}

/// The descriptors of programs, maps and perf events.
fn descriptors_of_ours() -> Option<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd").ok()?.flatten();
    let ours = entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let target = target.to_str()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        OURS.iter()
            .any(|start| target.starts_with(start))
            .then_some(number)
    });
    Some(ours.collect())
}

/// What the child does: closes all but `kept`, waits for the word, and ends.
///
/// # Safety
///
/// To be called in a new child alone; it does not return. `kept` is sorted.
unsafe fn inherit(kept: &[RawFd], heard: RawFd) -> ! {
    // SAFETY: system calls on plain numbers and locals; nothing of the parent's memory is changed.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"jittrace-detach".as_ptr(), 0, 0, 0);
        let mut from: libc::c_uint = 0;
        for &descriptor in kept {
            let descriptor = descriptor as libc::c_uint;
            if descriptor > from {
                libc::syscall(libc::SYS_close_range, from, descriptor - 1, 0);
            }
            from = descriptor + 1;
        }
        libc::syscall(libc::SYS_close_range, from, libc::c_uint::MAX, 0);
        let mut byte = 0u8;
        while libc::read(heard, (&raw mut byte).cast(), 1) < 0
            && *libc::__errno_location() == libc::EINTR
        {}
        libc::_exit(0)
    }
}
