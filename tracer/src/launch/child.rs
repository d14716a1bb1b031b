//! The fork and exec of the traced command.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
};

use thiserror::Error;

use super::dispositions;

/// What to run, prepared so that the child has nothing left to do but exec.
#[derive(Debug)]
pub struct Command {
    argv: Vec<CString>,
    env: Vec<CString>,
    /// Places where the program may be, in order; one when it was named with a slash.
    places: Vec<CString>,
    user: Option<(u32, u32)>,
    groups: Vec<libc::gid_t>,
    terminal: Option<i32>,
}

/// Why the command did not start.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// An argument holds a NUL byte, or there is no command.
    #[error("cannot run this command line: {0}")]
    Arguments(String),
    /// The exec failed.
    #[error("cannot run {}: {}", .program.to_string_lossy(), explain(.error))]
    Exec {
        /// The program as it was named.
        program: OsString,
        /// Why.
        error: io::Error,
    },
    /// No process could be made.
    #[error("cannot make a process: {0}")]
    Fork(io::Error),
}

impl LaunchError {
    /// Exit status as `env` gives it: 127 not found, 126 found and not run, 125 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            LaunchError::Exec { error, .. } => match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => 127,
                _ => 126,
            },
            LaunchError::Arguments(_) | LaunchError::Fork(_) => 125,
        }
    }
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no such program; check its spelling and PATH".to_owned(),
        Some(libc::EACCES) => {
            "it may not be executed; check its mode (chmod +x) and that of its directories"
                .to_owned()
        }
        Some(libc::ENOEXEC) => "it is no program of this machine".to_owned(),
        _ => error.to_string(),
    }
}

/// A started command.
#[derive(Debug)]
pub struct Launched {
    /// Its process.
    pub pid: i32,
}

impl Command {
    /// Prepares a command line and its environment. A program without a slash is searched in the PATH of `env`.
    ///
    /// # Errors
    /// There is no command, or a word holds a NUL byte.
    pub fn new(
        argv: &[OsString],
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Command, LaunchError> {
        let c = |text: Vec<u8>| {
            CString::new(text)
                .map_err(|_| LaunchError::Arguments("a word of it holds a NUL byte".to_owned()))
        };
        let program = argv
            .first()
            .filter(|p| !p.is_empty())
            .ok_or_else(|| LaunchError::Arguments("the command is empty".to_owned()))?;
        let env: Vec<(OsString, OsString)> = env.into_iter().collect();
        let search = env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone());
        Ok(Command {
            argv: argv
                .iter()
                .map(|a| c(a.clone().into_vec()))
                .collect::<Result<_, _>>()?,
            places: places(program, search.as_deref())
                .into_iter()
                .map(|p| c(p.into_os_string().into_vec()))
                .collect::<Result<_, _>>()?,
            env: env
                .into_iter()
                .map(|(name, value)| {
                    let mut entry = name.into_vec();
                    entry.push(b'=');
                    entry.extend(value.into_vec());
                    c(entry)
                })
                .collect::<Result<_, _>>()?,
            user: None,
            groups: Vec::new(),
            terminal: None,
        })
    }

    /// Runs it as this user and group, with these supplementary groups.
    pub fn user(&mut self, uid: u32, gid: u32, groups: Vec<u32>) {
        self.user = Some((uid, gid));
        self.groups = groups;
    }

    /// Runs it as leader of a new session on this terminal, which becomes its standard streams.
    pub fn terminal(&mut self, descriptor: i32) {
        self.terminal = Some(descriptor);
    }

    /// Starts it, and waits until its exec has succeeded or failed.
    ///
    /// # Errors
    /// No process could be made, or none of the places can be executed.
    pub fn start(&self) -> Result<Launched, LaunchError> {
        self.start_after(|_| Ok(()))
    }

    /// Starts it when `prepare` has been called with the process that will become the command.
    ///
    /// # Errors
    /// As [`Command::start`]; or what `prepare` says, and then the command has not run.
    pub fn start_after(
        &self,
        prepare: impl FnOnce(u32) -> io::Result<()>,
    ) -> Result<Launched, LaunchError> {
        let (gate, opener) = pipe().map_err(LaunchError::Fork)?;
        let (report, child_report) = pipe().map_err(LaunchError::Fork)?;
        let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
            list.iter()
                .map(|c| c.as_ptr())
                .chain([std::ptr::null()])
                .collect()
        };
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        // The place of the script is filled in by the child.
        let mut as_script = pointers(&self.argv);
        as_script.splice(..1, [SHELL.as_ptr(), std::ptr::null()]);
        // SAFETY: the child only makes async-signal-safe calls on memory prepared above, then execs or exits.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(LaunchError::Fork(io::Error::last_os_error()));
        }
        if pid == 0 {
            // Without its own end of the gate the child sees jittrace end, and ends too.
            // SAFETY: closes one descriptor of this process, which is not used again.
            unsafe { libc::close(opener.as_raw_fd()) };
            if !passes(&gate) {
                // SAFETY: ends this child at once.
                unsafe { libc::_exit(127) };
            }
            let errno = self.become_command(&argv, &env, &mut as_script);
            let bytes = errno.to_ne_bytes();
            // SAFETY: writes four bytes of a local array to an open descriptor, then ends this child.
            unsafe {
                libc::write(child_report.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
                libc::_exit(127);
            }
        }
        drop(child_report);
        drop(gate);
        let prepared = prepare(pid as u32).and_then(|()| open_gate(&opener));
        drop(opener);
        if let Err(error) = prepared {
            // SAFETY: waits for the child made above, which ends at a gate that stays shut.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return Err(LaunchError::Fork(error));
        }
        match read_errno(&report) {
            None => Ok(Launched { pid }),
            Some(errno) => {
                // SAFETY: waits for the child made above, which has ended itself.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                Err(LaunchError::Exec {
                    program: OsString::from_vec(
                        self.argv
                            .first()
                            .map(|a| a.as_bytes().to_vec())
                            .unwrap_or_default(),
                    ),
                    error: io::Error::from_raw_os_error(errno),
                })
            }
        }
    }

    /// In the child: takes the user's identity and what was inherited of signals, then execs. Returns the error number.
    fn become_command(
        &self,
        argv: &[*const libc::c_char],
        env: &[*const libc::c_char],
        as_script: &mut [*const libc::c_char],
    ) -> i32 {
        if let Some(terminal) = self.terminal {
            // SAFETY: plain system calls on an open terminal; async-signal-safe.
            unsafe {
                libc::setsid();
                libc::ioctl(terminal, libc::TIOCSCTTY, 0);
                for stream in 0..3 {
                    libc::dup2(terminal, stream);
                }
                if terminal > 2 {
                    libc::close(terminal);
                }
            }
        }
        if let Some((uid, gid)) = self.user {
            // SAFETY: plain system calls; a failure ends the attempt, so that nothing runs with more rights than asked.
            let changed = unsafe {
                libc::setgroups(self.groups.len(), self.groups.as_ptr()) == 0
                    && libc::setgid(gid) == 0
                    && libc::setuid(uid) == 0
            };
            if !changed {
                return errno();
            }
        }
        dispositions::restore();
        // As execvp: go on after "not there", remember "may not".
        let mut refused = None;
        let mut last = libc::ENOENT;
        for place in &self.places {
            // SAFETY: all three are NUL-terminated and live; returns only on failure.
            unsafe { libc::execve(place.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            last = errno();
            match last {
                libc::EACCES => refused = Some(last),
                libc::ENOENT | libc::ENOTDIR => {}
                libc::ENOEXEC if !is_elf(place) => {
                    if let Some(script) = as_script.get_mut(1) {
                        *script = place.as_ptr();
                    }
                    // SAFETY: as above.
                    unsafe { libc::execve(SHELL.as_ptr(), as_script.as_ptr(), env.as_ptr()) };
                    return last;
                }
                _ => return last,
            }
        }
        refused.unwrap_or(last)
    }
}

/// Runs what is executable and has no `#!` line, as execvp has it.
const SHELL: &CStr = c"/bin/sh";

/// Whether a file is an ELF object: of another machine, it is no script. Async-signal-safe.
fn is_elf(path: &CStr) -> bool {
    let mut magic = [0_u8; 4];
    // SAFETY: the path is NUL-terminated, the array has room for what is read, and the descriptor is closed again.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let read = libc::read(file, magic.as_mut_ptr().cast(), magic.len());
        libc::close(file);
        read == 4 && magic == *b"\x7fELF"
    }
}

/// Where a program may be: itself when it has a slash, else each directory of PATH.
pub(super) fn places(program: &OsStr, search: Option<&OsStr>) -> Vec<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let default = OsStr::new("/bin:/usr/bin");
    std::env::split_paths(search.unwrap_or(default))
        .map(|directory| {
            if directory.as_os_str().is_empty() {
                PathBuf::from(".").join(program)
            } else {
                directory.join(program)
            }
        })
        .collect()
}

fn errno() -> i32 {
    // SAFETY: errno's address is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Lets the child at the gate go on.
fn open_gate(opener: &OwnedFd) -> io::Result<()> {
    // SAFETY: writes one byte of a constant to an open descriptor.
    match unsafe { libc::write(opener.as_raw_fd(), b"g".as_ptr().cast(), 1) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// In the child: waits at the gate; `false` when jittrace is gone.
fn passes(gate: &OwnedFd) -> bool {
    let mut byte = 0_u8;
    loop {
        // SAFETY: reads one byte into a local; async-signal-safe.
        let read = unsafe { libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) };
        if read >= 0 || errno() != libc::EINTR {
            return read == 1;
        }
    }
}

/// The error number that the child reported; `None` when its exec closed the pipe.
fn read_errno(report: &OwnedFd) -> Option<i32> {
    let mut bytes = [0_u8; 4];
    loop {
        // SAFETY: reads into a local array of that size.
        let read =
            unsafe { libc::read(report.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        if read < 0 && errno() == libc::EINTR {
            continue;
        }
        return (read == 4).then(|| i32::from_ne_bytes(bytes));
    }
}
