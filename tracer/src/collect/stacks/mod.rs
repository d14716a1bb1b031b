//! Python frames of processes that no shim is in, read from outside by py-spy (the cargo feature `python-frames`).
//!
//! A reading is a moment later than the event that it explains, and the process is not stopped for it: frames are marked
//! with that delay, and as not exact. What may be concluded from them is decided where they are asked for: a thread that
//! still waits for the compiler it started, or is still inside the dlopen that was seen, has the frames it had then.

#[cfg(feature = "python-frames")]
#[path = "spy.rs"]
mod reader;
#[cfg(not(feature = "python-frames"))]
#[path = "without_spy.rs"]
mod reader;

use std::{
    collections::HashMap,
    fs, io,
    sync::{Arc, Mutex},
};

use jittrace_model::{
    event::{EventId, Frame, PythonStack},
    log::{SourceState, SourceStatus},
};

use super::procfs;
use crate::doctor::refusal::{Attempt, Refusal, Standing, explain, owner_of};
use reader::Reader;

/// Frames that are kept of a thread, from the innermost.
const DEPTH: usize = 96;

/// Readings of an interpreter that is not understood, before it is taken at its word: one that has just started is not
/// there yet.
const TRIES: u8 = 3;

/// What the trace's header calls this source.
const NAME: &str = "python-frames";

/// What a thread was doing when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The thread, as its own pid namespace numbers it; `None` before Python 3.11, which does not tell.
    pub(crate) tid: Option<u32>,
    /// Innermost first; who owns their files is not looked up yet.
    pub(crate) frames: Vec<Frame>,
    /// When, CLOCK_MONOTONIC ns.
    pub(crate) read_at: u64,
}

impl Stack {
    /// The frames as an event that explains `of`, which happened at `time`.
    pub(crate) fn explains(self, of: EventId, time: u64) -> PythonStack {
        PythonStack {
            of: Some(of),
            python: self.frames,
            delay_ns: Some(self.read_at.saturating_sub(time)),
            inexact: true,
        }
    }

    /// Whether the thread waits for a child: the innermost frames are those of `subprocess`.
    pub(crate) fn waits_for_child(&self) -> bool {
        self.frames
            .iter()
            .take(3)
            .any(|frame| frame.file.ends_with("/subprocess.py"))
    }
}

/// Why the frames of a Python process cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Its memory may not be read.
    #[cfg_attr(
        not(feature = "python-frames"),
        expect(dead_code, reason = "only py-spy tells")
    )]
    #[error("its memory may not be read: {0}")]
    Memory(#[source] io::Error),
    /// Its interpreter is not one that py-spy knows, or it is gone.
    #[cfg_attr(
        not(feature = "python-frames"),
        expect(dead_code, reason = "only py-spy tells")
    )]
    #[error("its interpreter was not understood ({0})")]
    Interpreter(String),
    /// This jittrace cannot read frames.
    #[cfg_attr(
        feature = "python-frames",
        expect(dead_code, reason = "only without py-spy")
    )]
    #[error("this jittrace was built without the feature python-frames")]
    NotBuilt,
}

impl Unreadable {
    /// The same with what would help.
    fn refusal(&self, pid: u32) -> Refusal {
        match self {
            Unreadable::Memory(error) => {
                let attempt = Attempt::Process {
                    owner: owner_of(pid),
                };
                let errno = error.raw_os_error().unwrap_or(libc::EPERM);
                explain(attempt, errno, &Standing::here())
            }
            Unreadable::Interpreter(_) => Refusal {
                reason: format!("process {pid} runs Python, but {self}"),
                remedy: "launch it under jittrace, where frames are told from inside".to_owned(),
            },
            Unreadable::NotBuilt => Refusal {
                reason: self.to_string(),
                remedy: "build it with `cargo build --release --features python-frames`".to_owned(),
            },
        }
    }
}

/// The Python processes that were looked at.
#[derive(Default)]
pub struct Stacks {
    readers: HashMap<u32, Known>,
}

/// What is known of a process.
enum Known {
    /// It runs no Python.
    Other,
    /// Its frames cannot be read; said once.
    Refused,
    /// Its interpreter was not understood in so many readings.
    NotYet(u8),
    Python(Box<Reader>),
}

/// One set of readers for those who take the snapshot and those who look at what happens.
pub type Shared = Arc<Mutex<Stacks>>;

impl Stacks {
    /// The threads of a process: none when it runs no Python, or when it was said before why they cannot be read.
    ///
    /// # Errors
    /// Why they cannot: once a process, or at each of a few readings while its interpreter may still be starting.
    pub(crate) fn threads(&mut self, pid: u32) -> Result<Vec<Stack>, Unreadable> {
        let known = self.readers.get(&pid);
        let tried = match known {
            Some(Known::NotYet(tried)) => *tried,
            Some(_) => 0,
            None if runs_python(pid) => 0,
            None => {
                self.readers.insert(pid, Known::Other);
                return Ok(Vec::new());
            }
        };
        if matches!(known, None | Some(Known::NotYet(_))) {
            let (now, refused) = match Reader::new(pid) {
                Ok(reader) => (Known::Python(Box::new(reader)), None),
                Err(why @ Unreadable::Interpreter(_)) if tried + 1 < TRIES => {
                    (Known::NotYet(tried + 1), Some(why))
                }
                Err(why) => (Known::Refused, Some(why)),
            };
            self.readers.insert(pid, now);
            if let Some(why) = refused {
                return Err(why);
            }
        }
        let Some(Known::Python(reader)) = self.readers.get_mut(&pid) else {
            return Ok(Vec::new());
        };
        let mut threads = reader.threads()?;
        for thread in &mut threads {
            thread.frames.truncate(DEPTH);
        }
        Ok(threads)
    }

    /// What one thread is doing. `names`: the numbers that it may have, in whatever pid namespace.
    pub(crate) fn thread(&mut self, pid: u32, names: &[u32]) -> Option<Stack> {
        let mut threads = self.threads(pid).ok()?;
        let at = threads
            .iter()
            .position(|thread| thread.tid.is_some_and(|tid| names.contains(&tid)))
            // One thread needs no number.
            .or((threads.len() == 1 && threads.first()?.tid.is_none()).then_some(0))?;
        let stack = threads.swap_remove(at);
        (!stack.frames.is_empty()).then_some(stack)
    }

    /// A process runs another program now, or none any more.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.readers.remove(&pid);
    }

    /// What the header says of this source: the Python processes of a tree are tried until one can be read, or may not be.
    pub(crate) fn status(&mut self, root: u32) -> SourceStatus {
        let mut not_understood = None;
        for pid in procfs::descendants(root) {
            match self.threads(pid) {
                Ok(threads) if threads.is_empty() => {}
                Ok(_) => return status(SourceState::Active, None),
                // Perhaps it has only just started; another may tell more.
                Err(why @ Unreadable::Interpreter(_)) => {
                    not_understood.get_or_insert_with(|| why.refusal(pid));
                }
                Err(why @ Unreadable::Memory(_)) => {
                    return status(SourceState::Refused, Some(why.refusal(pid)));
                }
                Err(why @ Unreadable::NotBuilt) => {
                    return status(SourceState::Absent, Some(why.refusal(pid)));
                }
            }
        }
        match not_understood {
            Some(why) => status(SourceState::Refused, Some(why)),
            None => status(SourceState::Active, None),
        }
    }
}

fn status(state: SourceState, why: Option<Refusal>) -> SourceStatus {
    SourceStatus {
        name: NAME.to_owned(),
        state,
        reason: why.map(|Refusal { reason, remedy }| format!("{reason}; {remedy}")),
    }
}

/// Whether a process runs a Python interpreter: as its program, or inside of another.
fn runs_python(pid: u32) -> bool {
    let named = |path: &str, stem: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with(stem)
    };
    let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    named(&exe.to_string_lossy(), "python")
        || procfs::mapped(pid)
            .unwrap_or_default()
            .iter()
            .any(|object| named(&object.path, "libpython"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_has_no_frames() {
        // A tree of its own: this process has whatever children the other tests start.
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut stacks = Stacks::default();
        let threads = stacks.threads(child.id());
        let status = stacks.status(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(threads.unwrap(), []);
        assert_eq!(status.state, SourceState::Active);
    }

    /// Releases from 3.8 on, where pyenv has them, and the interpreter of the path.
    #[cfg(feature = "python-frames")]
    #[test]
    fn frames_of_every_interpreter_that_is_here_are_read() {
        use std::{
            io::Read,
            path::PathBuf,
            process::{Command, Stdio},
        };
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let versions = fs::read_dir(home.join(".pyenv/versions"));
        let versions = versions.into_iter().flatten().flatten();
        let interpreters = versions
            .filter(|version| {
                let name = version.file_name().to_string_lossy().into_owned();
                let minor = name.split('.').nth(1).and_then(|m| m.parse::<u32>().ok());
                name.starts_with("3.") && minor.is_some_and(|m| m >= 8)
            })
            .map(|version| version.path().join("bin/python3"))
            .chain([PathBuf::from("/usr/bin/python3")]);
        let script =
            "import sys\ndef inner():\n print('at', flush=True)\n sys.stdin.readline()\ninner()";
        let mut stacks = Stacks::default();
        for python in interpreters {
            let Ok(mut child) = Command::new(&python)
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
            else {
                continue;
            };
            let mut at = [0; 3];
            child.stdout.take().unwrap().read_exact(&mut at).unwrap();
            let pid = child.id();
            let threads = stacks.threads(pid);
            let one = stacks.thread(pid, &[pid]);
            drop(child.stdin.take());
            child.wait().unwrap();
            let [only] = &threads.unwrap()[..] else {
                panic!("{} has one thread", python.display())
            };
            let told: Vec<(&str, u32)> = only
                .frames
                .iter()
                .map(|frame| (frame.function.as_str(), frame.line))
                .collect();
            let expected = [("inner", 4), ("<module>", 5)];
            assert_eq!(told, expected, "{}", python.display());
            assert_eq!(one.unwrap().frames, only.frames, "{}", python.display());
        }
    }

    #[test]
    fn who_waits_for_a_child_is_told_by_the_innermost_frames() {
        let stack = |files: &[&str]| Stack {
            tid: None,
            frames: files
                .iter()
                .map(|file| Frame {
                    file: (*file).to_owned(),
                    ..Frame::default()
                })
                .collect(),
            read_at: 0,
        };
        let subprocess = "/usr/lib/python3.12/subprocess.py";
        let cases: [(&[&str], bool); 4] = [
            (&[subprocess, "/a.py"], true),
            (&["/usr/lib/python3.12/selectors.py", subprocess], true),
            (&["/a.py", "/b.py", "/c.py", subprocess], false),
            (&[], false),
        ];
        for (files, waits) in cases {
            assert_eq!(stack(files).waits_for_child(), waits, "{files:?}");
        }
    }
}
