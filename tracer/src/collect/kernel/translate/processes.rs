//! Processes: forks, programs that start, ends.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::MetadataExt,
    path::Path,
};

use indexmap::IndexMap;
use jittrace_model::event::{
    Body, Exec as ExecEvent, ExecFailed as ExecFailedEvent, Lost, ProcessExit, ProcessStart, Source,
};

use super::{At, CALLS, Fork, LOOKS, Process, Translate, absolute_of, explain, number, text};
use crate::{
    collect::draft::{Draft, Sink, without_ours},
    collect::kernel::sight::Sight,
    doctor::refusal::owner_of,
    ebpf::{Exec, ExecFailed, Exit, Missing, TaskViews},
    launch::SHIM_NAME,
};

impl Translate {
    pub(super) fn fork(&mut self, at: At, child: TaskViews, sink: &mut impl Sink) {
        let pid = number(child);
        sink.forked(pid, at.pid);
        let parent = self.process(at.pid);
        let (cwd, mapped, program) = (parent.cwd.clone(), parent.mapped.clone(), parent.program);
        let draft = Draft {
            pid,
            tid: pid,
            ..at.draft(Body::ProcessStart(Box::new(ProcessStart {
                ppid: at.pid,
                forked: true,
                host_pid: host_pid(child),
                inner_pid: inner_pid(child),
                ..ProcessStart::default()
            })))
        };
        self.processes.insert(
            pid,
            Process {
                fork: Some(Fork {
                    time: at.time,
                    parent: at.pid,
                    draft,
                }),
                cwd,
                mapped,
                program,
                ..Process::default()
            },
        );
    }

    /// Tells the fork of a process that does something of its own.
    pub(super) fn tell_fork(&mut self, pid: u32, sink: &mut impl Sink) {
        if let Some(fork) = self.process(pid).fork.take() {
            sink.put_from(fork.draft, Source::Ebpf);
        }
    }

    pub(super) fn exec(
        &mut self,
        at: At,
        task: TaskViews,
        exec: &Exec,
        sight: &Sight,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        let mut unread = IndexMap::new();
        let mut missing = |name: &str, why: &Missing| {
            unread.insert(name.to_owned(), why.to_string());
        };
        let cwd = match &exec.cwd {
            Ok(cwd) => text(cwd),
            Err(why) => {
                missing("cwd", why);
                String::new()
            }
        };
        let argv: Vec<String> = match &exec.argv {
            Ok(argv) => argv.iter().map(text).collect(),
            Err(why) => {
                missing("argv", why);
                Vec::new()
            }
        };
        let env = match &exec.env {
            Ok(env) => captured(env),
            Err(why) => {
                missing("env", why);
                IndexMap::new()
            }
        };
        let filename = absolute_of(&cwd, &text(&exec.filename));
        let exe = match &sight.exe {
            Some(exe) => text(exe).trim_end_matches(" (deleted)").to_owned(),
            None => program_of(&filename, file_of(exec)),
        };
        let ppid = number(exec.parent);
        self.compare_all(at.pid, covered, sink);
        let before = self.processes.remove(&at.pid).unwrap_or_default();
        for (_, failed) in before.failed {
            sink.put_from(failed, Source::Ebpf);
        }
        let forked = before.fork.is_some();
        let process = self.processes.entry(at.pid).or_default();
        *process = Process {
            seen_starting: true,
            began: at.time,
            program: Some(file_of(exec)),
            cwd: cwd.clone(),
            looks: LOOKS.iter().map(|after| at.time + after).collect(),
            ..Process::default()
        };
        let asked = sink.put_from(
            at.draft(Body::Exec(Box::new(ExecEvent {
                call: "execve".to_owned(),
                path: filename,
                argv: argv.clone(),
                ppid: forked.then_some(ppid),
                ..ExecEvent::default()
            }))),
            Source::Ebpf,
        );
        if let Some(stack) = sight.python.clone() {
            let from = At {
                pid: ppid,
                tid: stack.tid.unwrap_or(ppid),
                ..at
            };
            explain(from, asked, stack, sink);
        }
        sink.put_from(
            at.draft(Body::ProcessStart(Box::new(ProcessStart {
                ppid,
                exe,
                argv,
                cwd,
                env,
                uid: owner_of(at.pid),
                host_pid: host_pid(task),
                inner_pid: inner_pid(task),
                unread,
                ..ProcessStart::default()
            }))),
            Source::Ebpf,
        );
    }

    pub(super) fn exec_failed(&mut self, at: At, failed: &ExecFailed, sink: &mut impl Sink) {
        let fork = self.process(at.pid).fork.as_ref();
        let ppid = fork.map(|fork| fork.parent);
        let path = text(failed.filename.as_deref().unwrap_or(OsStr::new("")));
        sink.put_from(
            at.draft(Body::ExecFailed(Box::new(ExecFailedEvent {
                path,
                argv: failed.argv.iter().map(text).collect(),
                errno: failed.errno,
                call: "execve".to_owned(),
                ppid,
                ..ExecFailedEvent::default()
            }))),
            Source::Ebpf,
        );
    }

    pub(super) fn exit(&mut self, at: At, exit: Exit, covered: bool, sink: &mut impl Sink) {
        self.tell_fork(at.pid, sink);
        self.compare_all(at.pid, covered, sink);
        if let Some(process) = self.processes.remove(&at.pid) {
            for (_, failed) in process.failed {
                sink.put_from(failed, Source::Ebpf);
            }
            for (function, count) in process.calls {
                if let Some(count) = count.checked_sub(CALLS).filter(|c| *c > 0) {
                    sink.put_from(
                        at.draft(Body::Lost(Lost {
                            what: function.to_owned(),
                            count,
                            reason: "counted only, since there were too many of one kind"
                                .to_owned(),
                        })),
                        Source::Ebpf,
                    );
                }
            }
        }
        let exit = match exit {
            Exit::Code(code) => ProcessExit {
                code: Some(code),
                ..ProcessExit::default()
            },
            Exit::Signal { signal, .. } => ProcessExit {
                signal: Some(signal),
                ..ProcessExit::default()
            },
        };
        sink.put_from(at.draft(Body::ProcessExit(exit)), Source::Ebpf);
    }
}

fn host_pid(task: TaskViews) -> Option<u32> {
    Some(task.initial.tgid).filter(|pid| *pid != 0 && *pid != number(task))
}

fn inner_pid(task: TaskViews) -> Option<u32> {
    Some(task.inner.tgid).filter(|pid| *pid != 0 && *pid != number(task))
}

/// The environment as the user set it.
fn captured(env: &[(OsString, OsString)]) -> IndexMap<String, String> {
    env.iter()
        .filter_map(|(name, value)| {
            let (name, value) = (text(name), text(value));
            let shim = value
                .split([':', ' '])
                .find(|entry| entry.ends_with(SHIM_NAME))
                .unwrap_or_default()
                .to_owned();
            without_ours(&name, &value, &shim)
        })
        .collect()
}

/// Device and inode of the program that an exec started.
fn file_of(exec: &Exec) -> (u64, u64) {
    let device = libc::makedev(exec.exe.major, exec.exe.minor);
    (device, exec.exe.inode)
}

/// The program that an exec of this file runs: the file, or the interpreter that its first line names. Without links, as
/// a process names its own program, where what the links lead to is the `file` that was started.
fn program_of(filename: &str, file: (u64, u64)) -> String {
    use std::io::Read;
    let mut head = [0_u8; 256];
    let read = std::fs::File::open(filename)
        .and_then(|mut file| file.read(&mut head))
        .unwrap_or(0);
    let interpreter = head
        .get(..read)
        .and_then(|head| head.strip_prefix(b"#!"))
        .and_then(|line| line.split(|b| *b == b'\n').next())
        .and_then(|line| {
            line.split(|b| b.is_ascii_whitespace())
                .find(|w| !w.is_empty())
        });
    let program = match interpreter {
        Some(interpreter) => String::from_utf8_lossy(interpreter).into_owned(),
        None => filename.to_owned(),
    };
    let is_the_file = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|m| (m.dev(), m.ino()) == file)
    };
    match std::fs::canonicalize(&program) {
        Ok(real) if is_the_file(&real) => real.to_string_lossy().into_owned(),
        _ => program,
    }
}
