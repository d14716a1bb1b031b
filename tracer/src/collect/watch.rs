//! How processes end that say nothing at their end: killed ones, and those that left by a raw system call.
//!
//! Each process is held by a pidfd. It becomes readable when the process has ended, and newer kernels (6.15) tell the
//! exit status of a process that is no child of ours (facts: mechanisms.md 6).

use std::{
    collections::HashMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use jittrace_model::event::ProcessExit;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

/// The processes that are watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    living: HashMap<u32, OwnedFd>,
}

impl Watch {
    /// A process has begun; the same pid again is an exec.
    pub(super) fn begin(&mut self, pid: u32) {
        if self.living.contains_key(&pid) {
            return;
        }
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        // A process that is gone already has said its end itself, or nobody can tell it.
        if let Ok(descriptor) = pidfd_open(raw, PidfdFlags::empty()) {
            self.living.insert(pid, descriptor);
        }
    }

    /// How many are alive.
    pub(super) fn living(&self) -> usize {
        self.living.len()
    }

    /// Whether a process is among them.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.living.contains_key(&pid)
    }

    /// Their pids.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.living.keys().copied()
    }

    /// Those that have ended since the last call, and how.
    pub(super) fn ended(&mut self) -> Vec<(u32, ProcessExit)> {
        let pids: Vec<u32> = self.living.keys().copied().collect();
        let mut ended = Vec::new();
        // Some kernels limit a poll to the number of open files; a few hundred at a time is always allowed.
        for pids in pids.chunks(256) {
            let mut polled: Vec<PollFd<'_>> = pids
                .iter()
                .filter_map(|pid| self.living.get(pid))
                .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
                .collect();
            let none = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            if poll(&mut polled, Some(&none)).unwrap_or(0) == 0 {
                continue;
            }
            let over: Vec<u32> = pids
                .iter()
                .zip(&polled)
                .filter(|(_, fd)| !fd.revents().is_empty())
                .map(|(pid, _)| *pid)
                .collect();
            ended.extend(over);
        }
        ended
            .into_iter()
            .filter_map(|pid| {
                let descriptor = self.living.remove(&pid)?;
                Some((pid, status(&descriptor)))
            })
            .collect()
    }
}

/// `struct pidfd_info` of linux/pidfd.h, as far as it is needed.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
    coredump: [u32; 2],
}

/// `PIDFD_INFO_EXIT`: the exit code is wanted.
const INFO_EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)` with the size of the structure above.
const GET_INFO: libc::c_ulong =
    (3 << 30) | ((std::mem::size_of::<PidfdInfo>() as libc::c_ulong) << 16) | (0xff << 8) | 11;

fn status(descriptor: &OwnedFd) -> ProcessExit {
    // The status is there once the parent has taken it; most parents do so at once.
    for _ in 0..3 {
        let mut info = PidfdInfo {
            mask: INFO_EXIT,
            ..PidfdInfo::default()
        };
        // SAFETY: the structure is as large as the request says, and lives through the call.
        let answered = unsafe { libc::ioctl(descriptor.as_raw_fd(), GET_INFO, &raw mut info) };
        if answered == 0 && info.mask & INFO_EXIT != 0 {
            let status = info.exit_code;
            return if libc::WIFSIGNALED(status) {
                ProcessExit {
                    signal: Some(libc::WTERMSIG(status)),
                    ..ProcessExit::default()
                }
            } else {
                ProcessExit {
                    code: Some(libc::WEXITSTATUS(status)),
                    ..ProcessExit::default()
                }
            };
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    ProcessExit {
        unread: Some(
            "it ended without a word, and this kernel tells the status to its parent alone"
                .to_owned(),
        ),
        ..ProcessExit::default()
    }
}
