//! Process images: one for each program that a process ran.

use std::sync::Arc;

use indexmap::IndexMap;

use super::Model;
use crate::{
    event::{EventId, Frame, ProcessExit, ProcessStart},
    report::Exit,
};

/// Position of a process image in [`Model::processes`].
pub type ProcessIndex = usize;

/// One program that ran in one process. A process that execs again gets a further image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    /// Position in the model's list.
    pub index: ProcessIndex,
    /// The event that told its start.
    pub id: EventId,
    /// Process id.
    pub pid: u32,
    /// The image that started it: its parent's, or its own previous one.
    pub parent: Option<ProcessIndex>,
    /// What was told at its start; the environment is in `env` ([`Process::started`] has both).
    pub what: Arc<Begun>,
    /// The captured environment; a child that inherits it shares it.
    pub env: Arc<IndexMap<String, String>>,
    /// The program as it was asked for: the path given to exec, a script rather than its interpreter.
    pub program: String,
    /// Position in [`Model::execs`] of the attempt that led here.
    pub exec: Option<usize>,
    /// Nanoseconds since the trace began.
    pub start: u64,
    /// The same, for its end.
    pub end: Option<u64>,
    /// How the process ended.
    pub exit: Option<Exit>,
    /// The event that told its end.
    pub exit_event: Option<EventId>,
    /// The image that took its place by a further exec.
    pub replaced_by: Option<ProcessIndex>,
    /// The frames of its parent's thread that waits for it, for a process that was found running.
    pub asked_by: Vec<Frame>,
    /// The frames of its own main thread when it was found running.
    pub doing: Vec<Frame>,
}

/// A [`ProcessStart`] without its environment, which is kept once for all processes that share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begun {
    /// Parent process.
    pub ppid: u32,
    /// Path of the executable.
    pub exe: String,
    /// Arguments, credentials masked.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// The captured environment is that of the parent, or of the image before the exec.
    pub env_inherited: bool,
    /// The user who runs it, as its own user namespace has it.
    pub uid: Option<u32>,
    /// Pid in the initial namespace, where it differs.
    pub host_pid: Option<u32>,
    /// Pid in the process's own namespace, where it differs.
    pub inner_pid: Option<u32>,
    /// The process was found running (attach), not seen starting.
    pub found: bool,
    /// It began by fork: the same program goes on in a new process.
    pub forked: bool,
    /// Why its inside cannot be seen; absent when it is followed.
    pub not_followed: Option<String>,
    /// Fields that could not be read, with the reason of each.
    pub unread: IndexMap<String, String>,
}

impl Begun {
    /// A start and the environment that it told.
    fn apart(start: ProcessStart) -> (Begun, IndexMap<String, String>) {
        let ProcessStart {
            ppid,
            exe,
            argv,
            cwd,
            env,
            env_inherited,
            uid,
            host_pid,
            inner_pid,
            found,
            forked,
            not_followed,
            unread,
        } = start;
        let begun = Begun {
            ppid,
            exe,
            argv,
            cwd,
            env_inherited,
            uid,
            host_pid,
            inner_pid,
            found,
            forked,
            not_followed,
            unread,
        };
        (begun, env)
    }

    /// The start as it is told, with an environment.
    fn with(&self, env: IndexMap<String, String>) -> ProcessStart {
        let begun = self.clone();
        ProcessStart {
            ppid: begun.ppid,
            exe: begun.exe,
            argv: begun.argv,
            cwd: begun.cwd,
            env,
            env_inherited: begun.env_inherited,
            uid: begun.uid,
            host_pid: begun.host_pid,
            inner_pid: begun.inner_pid,
            found: begun.found,
            forked: begun.forked,
            not_followed: begun.not_followed,
            unread: begun.unread,
        }
    }
}

impl Process {
    /// The last component of [`Process::program`].
    pub fn name(&self) -> &str {
        base(&self.program)
    }

    /// What was told at its start, with the environment.
    pub fn started(&self) -> ProcessStart {
        self.what.with(self.env.as_ref().clone())
    }

    /// A variable of the captured environment.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// Why its inside was not seen.
    pub fn not_followed(&self) -> Option<&str> {
        self.what.not_followed.as_deref()
    }

    /// The arguments of the program itself: without the interpreter and script name of a script.
    pub fn arguments(&self) -> &[String] {
        let argv = &self.what.argv;
        let skip = match argv
            .iter()
            .skip(1)
            .position(|a| *a == self.program || base(a) == self.name())
        {
            Some(at) if self.is_script() => at + 2,
            _ => 1,
        };
        argv.get(skip..).unwrap_or_default()
    }

    /// Whether the program is a script that an interpreter runs.
    pub fn is_script(&self) -> bool {
        is_interpreter(base(&self.what.exe))
            && base(&self.what.exe) != self.name()
            && !is_interpreter(self.name())
    }
}

/// The part of a path after its last slash.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a program of this name runs scripts.
pub(crate) fn is_interpreter(name: &str) -> bool {
    matches!(
        name,
        "sh" | "dash" | "bash" | "busybox" | "zsh" | "ash" | "env" | "perl"
    ) || name.starts_with("python")
}

impl Model {
    pub(super) fn start_process(&mut self, id: EventId, t: u64, pid: u32, start: ProcessStart) {
        let (mut start, told) = Begun::apart(start);
        let index = self.processes.len();
        let before = self
            .current
            .get(&pid)
            .copied()
            .filter(|&i| self.processes.get(i).is_some_and(|p| p.end.is_none()));
        let parent = before
            .or_else(|| self.current.get(&start.ppid).copied())
            .or_else(|| self.forked.get(&pid).copied());
        if let Some(before) = before.and_then(|i| self.processes.get_mut(i)) {
            before.end = Some(t);
            before.replaced_by = Some(index);
        }
        let from = parent.and_then(|i| self.processes.get(i));
        let mut env = match from {
            Some(from) if *from.env == told => Arc::clone(&from.env),
            _ => Arc::new(told),
        };
        let mut program = None;
        let mut inherited_exec = None;
        if let Some(from) = from {
            if start.env_inherited {
                env = Arc::clone(&from.env);
            }
            if start.forked {
                // A fork says only that it happened; what runs is what ran.
                program = Some(from.program.clone());
                inherited_exec = from.exec;
                if start.exe.is_empty() {
                    start.exe.clone_from(&from.what.exe);
                    start.argv.clone_from(&from.what.argv);
                    start.cwd.clone_from(&from.what.cwd);
                    env = Arc::clone(&from.env);
                }
            }
        }
        self.forked.remove(&pid);
        let exec = self
            .pending_execs
            .remove(&pid)
            .or_else(|| self.shell_exec(&start))
            .or(inherited_exec);
        self.processes.push(Process {
            index,
            id,
            pid,
            parent,
            what: Arc::new(start),
            env,
            exec,
            start: t,
            ..Process::default()
        });
        self.current.insert(pid, index);
        match program {
            Some(program) => {
                if let Some(process) = self.processes.get_mut(index) {
                    process.program = program;
                }
            }
            None => self.name_program(index),
        }
    }

    /// The `system` or `popen` of the parent that made this shell: neither tells the child's pid.
    fn shell_exec(&mut self, start: &Begun) -> Option<usize> {
        let pending = *self.pending_execs.get(&start.ppid)?;
        let exec = self.execs.get(pending)?;
        let command = start.argv.get(2)?;
        let is_it = matches!(exec.what.call.as_str(), "system" | "popen")
            && start.argv.get(1).is_some_and(|a| a == "-c")
            && exec.what.argv.last().is_some_and(|asked| asked == command);
        is_it.then(|| {
            self.pending_execs.remove(&start.ppid);
            pending
        })
    }

    /// Decides what a process image is called, from the exec attempt and from what the kernel made of it.
    pub(super) fn name_program(&mut self, index: ProcessIndex) {
        let Some(process) = self.processes.get(index) else {
            return;
        };
        let asked = self.exec_of(process).map(|exec| exec.what.path.as_str());
        let exe = process.what.exe.as_str();
        let script = || {
            // Without a word from the parent: an interpreter's first argument that is a path is the script.
            let first = process.what.argv.get(1)?;
            (is_interpreter(base(exe))
                && !base(exe).starts_with("python")
                && first.contains('/')
                && !first.starts_with('-'))
            .then_some(first.as_str())
        };
        let program = match asked {
            Some(path) if path.starts_with('/') => path.to_owned(),
            Some(path) if path.contains('/') => {
                // A process that was not seen from inside did not tell its directory; it began in its parent's.
                let parent = process.parent.and_then(|i| self.processes.get(i));
                let cwd = match (process.what.cwd.as_str(), parent) {
                    ("", Some(parent)) => parent.what.cwd.as_str(),
                    (cwd, _) => cwd,
                };
                format!("{}/{path}", cwd.trim_end_matches('/'))
            }
            // A bare name went through PATH: a script shows as the interpreter's argument, a program as itself.
            Some(name) => process
                .what
                .argv
                .iter()
                .skip(1)
                .take(3)
                .find(|a| a.contains('/') && base(a) == base(name) && is_interpreter(base(exe)))
                .cloned()
                .unwrap_or_else(|| exe.to_owned()),
            None => script().unwrap_or(exe).to_owned(),
        };
        let program = clean(&program);
        if let Some(process) = self.processes.get_mut(index) {
            process.program = program;
        }
    }

    pub(super) fn end_process(&mut self, id: EventId, t: u64, pid: u32, exit: &ProcessExit) {
        let Some(process) = self
            .current
            .get(&pid)
            .and_then(|&i| self.processes.get_mut(i))
        else {
            return;
        };
        let known = exit.code.is_some() || exit.signal.is_some();
        if process.exit.is_some() && !known {
            return;
        }
        process.end = Some(process.end.unwrap_or(t).min(t));
        process.exit_event = Some(id);
        if known {
            process.exit = Some(Exit {
                code: exit.code,
                signal: exit.signal,
            });
        }
    }
}

/// A path without empty and `.` components; `..` stays, since it may cross a symbolic link.
fn clean(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let mut out = String::with_capacity(path.len());
    for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() { "/".to_owned() } else { out }
}
