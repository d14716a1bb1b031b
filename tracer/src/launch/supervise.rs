//! While the command runs: signals, job control, and its end.
//!
//! A signal from the terminal reaches the whole process group, the command included, so it is not passed on. One that
//! was sent to jittrace alone is. When the command stops, jittrace stops; when it is continued, so is the command. How
//! the kernel tells them apart: `si_code` is SI_KERNEL for the terminal's signals (facts: review-experiments.md 4).

use std::{
    io,
    time::{Duration, Instant},
};

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// What it means for jittrace that the command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stops {
    /// It stops too: the shell is to see a stopped job.
    Follow,
    /// Nothing: the command has a terminal of its own, which somebody has to go on reading.
    Leave,
}

/// Signals that are taken notice of.
const WATCHED: &[i32] = &[
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGALRM,
    libc::SIGWINCH,
];

/// The same signal again within this time is the same request (a `kill` of the group reaches jittrace and the command).
const REPEAT: Duration = Duration::from_millis(20);

/// Blocks the watched signals in this thread and all that it starts, so that [`supervise`] can take them one by one.
/// To be called before any other thread exists.
pub fn block_signals() {
    let set = watched_set();
    // SAFETY: the set is initialised; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // A SIGCHLD that is ignored by inheritance would take the command's status away.
    // SAFETY: sets a default disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

fn watched_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, made empty before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in WATCHED {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Waits for the command, passing on what is meant for it.
pub fn supervise(pid: i32, stops: Stops) -> io::Result<Ended> {
    let set = watched_set();
    let mut last: Option<(i32, Instant)> = None;
    loop {
        if let Some(ended) = reap(pid, stops)? {
            return Ok(ended);
        }
        // SAFETY: plain data, filled in by the call below.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let timeout = libc::timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        // SAFETY: all three are valid for the call.
        let signal =
            unsafe { libc::sigtimedwait(&raw const set, &raw mut info, &raw const timeout) };
        match signal {
            -1 | libc::SIGCHLD | libc::SIGWINCH => {}
            libc::SIGCONT => send(pid, libc::SIGCONT),
            _ => {
                let from_terminal = info.si_code == libc::SI_KERNEL;
                let repeated = last.is_some_and(|(s, at)| s == signal && at.elapsed() < REPEAT);
                if !from_terminal && !repeated {
                    send(pid, signal);
                }
                last = Some((signal, Instant::now()));
            }
        }
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: a signal to our own child, which has not been waited for yet.
    unsafe { libc::kill(pid, signal) };
}

/// Takes the command's state if it changed; stops with it, and gives its end.
fn reap(pid: i32, stops: Stops) -> io::Result<Option<Ended>> {
    loop {
        let mut status = 0;
        // SAFETY: waits for our own child and writes its status to a local.
        let got = unsafe {
            libc::waitpid(
                pid,
                &raw mut status,
                libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED,
            )
        };
        match got {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ if libc::WIFEXITED(status) => {
                return Ok(Some(Ended::Code(libc::WEXITSTATUS(status))));
            }
            _ if libc::WIFSIGNALED(status) => {
                return Ok(Some(Ended::Signal(libc::WTERMSIG(status))));
            }
            _ if libc::WIFSTOPPED(status) && stops == Stops::Follow => {
                // SAFETY: stops this process until someone continues it; then the command goes on, too.
                unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                send(pid, libc::SIGCONT);
            }
            _ => {}
        }
    }
}

/// Ends jittrace by the same signal, without a core of its own, so that whoever waits sees what they would have seen.
pub fn die_like(signal: i32) -> ! {
    // SAFETY: resets one disposition, unblocks one signal and raises it; nothing else runs in this thread after that.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    // The signal does not end processes by default: the shell's convention says the same in a status.
    std::process::exit(128 + signal)
}
