//! From what the kernel saw to events.
//!
//! The kernel tells less of a library than the shim (no dlerror text, no announcement of objects) and more of a process
//! (every end, every failed exec). What a dlopen mapped is concluded from the files that the loader opened during it;
//! what came with the program is read from the process's memory map a moment after its start.

mod calls;
mod files;
mod maps;
mod processes;
mod requests;
mod unseen;

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    os::unix::fs::MetadataExt,
    path::Path,
};

use jittrace_ebpf::lost;
use jittrace_model::event::{Body, Caller, EventId, Note, Source};

use self::{requests::Open, unseen::loss};
use super::{
    super::{
        draft::{Draft, Sink, absolute},
        monotonic_ns, procfs,
        replay::Mapped,
        stacks::Stack,
    },
    address::Place,
    sight::Sight,
};
use crate::ebpf::{KernelEvent, TaskViews};
use crate::launch::SHIM_NAME;

/// When a new program's memory map is looked at, in ns after its exec: when the loader is through in most programs, and
/// again for those that load slowly.
const LOOKS: [u64; 3] = [60_000_000, 600_000_000, 3_000_000_000];

/// How long a forked child may do nothing of its own before it is told; most run another program at once.
const QUIET_FORK: u64 = 400_000_000;

/// How long after a look at a memory map it is compared with what was told: by then everything that happened before the
/// look has been told.
const COMPARED_AFTER: u64 = 250_000_000;

/// How often the memory maps of all processes are looked at for what no probe told.
const SWEEP: u64 = 2_000_000_000;

/// Most processes that are looked at in a sweep.
const SWEPT: usize = 256;

/// Calls of one function in one process that are told one by one; the rest is counted.
const CALLS: u64 = 1000;

/// Turns sights into drafts.
#[derive(Debug, Default)]
pub(crate) struct Translate {
    processes: HashMap<u32, Process>,
    /// A launched command, until it has become the command: what jittrace's own child does is not told.
    launching: Option<u32>,
    /// Functions whose return is not seen, told once each.
    told_partial: HashSet<String>,
    /// When all memory maps are looked at next.
    sweep: u64,
    /// Requests that were answered before the Python code behind them could be read.
    read_late: u64,
}

/// What is remembered of a process until it ends.
#[derive(Debug, Default)]
struct Process {
    /// The fork that made it, while it is not told.
    fork: Option<Fork>,
    /// Its program was seen starting, so that what it has mapped early came with it.
    seen_starting: bool,
    cwd: String,
    /// Requests that have not returned, by thread and time of entry.
    open: HashMap<(u32, u64), Open>,
    /// Objects that were told, by device and inode.
    mapped: HashMap<(u64, u64), String>,
    /// When the kernel told of an object.
    told: HashMap<(u64, u64), u64>,
    /// When a watched library was opened that came with the program.
    opened: HashMap<(u64, u64), u64>,
    /// Times at which its memory map is to be looked at.
    looks: Vec<u64>,
    /// What a look found, and when it was.
    looked: Vec<(u64, Vec<Mapped>)>,
    /// When its program began.
    began: u64,
    /// Device and inode of the program itself.
    program: Option<(u64, u64)>,
    /// Failures that wait for the shim's words, and until when.
    failed: Vec<(u64, Draft)>,
    /// How often each function was called.
    calls: HashMap<&'static str, u64>,
}

#[derive(Debug)]
struct Fork {
    time: u64,
    parent: u32,
    draft: Draft,
}

impl Translate {
    /// Translates for a launch of `launching`, or for an attach.
    pub(crate) fn new(launching: Option<u32>) -> Translate {
        Translate {
            launching,
            ..Translate::default()
        }
    }

    /// A process that was found running, with what it has mapped.
    pub(crate) fn found(&mut self, pid: u32, mapped: Vec<Mapped>) {
        let known = mapped.into_iter().map(|m| ((m.dev, m.ino), m.path));
        let process = self.process(pid);
        process.mapped.extend(known);
        process.program = std::fs::metadata(format!("/proc/{pid}/exe"))
            .ok()
            .map(|m| (m.dev(), m.ino()));
    }

    /// Takes one sight in. `in_shim`: whether the shim is in a process too and tells of its objects and calls itself.
    pub(crate) fn sight(
        &mut self,
        sight: &Sight,
        in_shim: impl Fn(u32) -> bool,
        sink: &mut impl Sink,
    ) {
        let observation = &sight.observation;
        let at = At {
            time: observation.time_ns,
            pid: number(observation.task),
            tid: match observation.task.own.tid {
                0 => observation.task.initial.tid,
                tid => tid,
            },
        };
        let covered = in_shim(at.pid);
        if self.launching == Some(at.pid) {
            match &observation.event {
                KernelEvent::Exec(_) | KernelEvent::Exit(_) => self.launching = None,
                _ => return,
            }
        }
        if let Some(mapped) = &sight.mapped {
            self.process(at.pid).looked.push((at.time, mapped.clone()));
        }
        match &observation.event {
            KernelEvent::Fork { child } => self.fork(at, *child, sink),
            KernelEvent::Exec(exec) => self.exec(at, observation.task, exec, sight, covered, sink),
            KernelEvent::ExecFailed(failed) => self.exec_failed(at, failed, sink),
            KernelEvent::Exit(exit) => self.exit(at, *exit, covered, sink),
            KernelEvent::File(file) => self.file(at, file, covered, sink),
            KernelEvent::Entered(call) => self.entered(at, call, sight, sink),
            KernelEvent::Returned(call) => self.returned(at, call, sight, covered, sink),
            KernelEvent::Watching(object) => self.watching(at.time, object, in_shim, sink),
            KernelEvent::Lost { reason, count } => {
                let is_told = *reason == lost::NAMES[lost::UNPAIRED as usize]
                    && self.processes.keys().all(|pid| in_shim(*pid));
                if !is_told {
                    let lost = loss(reason, *count);
                    sink.put_from(at.draft(Body::Lost(lost)), Source::Ebpf);
                }
            }
        }
    }

    /// Does what is due: forks that stay the same program, memory maps that are to be looked at. `covered`: whether the
    /// shim is in a process.
    pub(crate) fn due(&mut self, now: u64, covered: impl Fn(u32) -> bool, sink: &mut impl Sink) {
        let quiet: Vec<u32> = self
            .processes
            .iter()
            .filter(|(_, p)| p.fork.as_ref().is_some_and(|f| f.time + QUIET_FORK <= now))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in quiet {
            self.tell_fork(pid, sink);
        }
        for process in self.processes.values_mut() {
            if process.failed.iter().any(|(until, _)| *until <= now) {
                for (_, failed) in process.failed.extract_if(.., |(until, _)| *until <= now) {
                    sink.put_from(failed, Source::Ebpf);
                }
            }
        }
        let sweep = self.sweep <= now;
        if sweep {
            self.sweep = now + SWEEP;
        }
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for (nth, pid) in pids.into_iter().enumerate() {
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            let due = process.looks.iter().any(|at| *at <= now);
            process.looks.retain(|at| *at > now);
            let swept = sweep && nth < SWEPT && process.fork.is_none();
            if (due || swept)
                && let Ok(mapped) = procfs::mapped(pid)
            {
                // Since the word was given to look, things may have happened that are in this map.
                process.looked.push((monotonic_ns(), mapped));
            }
            let ready = |at: u64| at.saturating_add(COMPARED_AFTER) <= now;
            if process.looked.first().is_some_and(|(at, _)| ready(*at)) {
                let looked = std::mem::take(&mut process.looked);
                let (ready, rest) = looked.into_iter().partition(|(at, _)| ready(*at));
                process.looked = rest;
                self.compare(pid, ready, covered(pid), sink);
            }
        }
    }

    /// Tells what is still kept when the trace ends.
    pub(crate) fn finish(&mut self, covered: impl Fn(u32) -> bool, sink: &mut impl Sink) {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            self.tell_fork(pid, sink);
            self.compare_all(pid, covered(pid), sink);
            let failed = std::mem::take(&mut self.process(pid).failed);
            for (_, failed) in failed {
                sink.put_from(failed, Source::Ebpf);
            }
            let open: Vec<_> = self.process(pid).open.drain().collect();
            for ((tid, time), open) in open {
                // It has not returned: the thread is inside of it to this moment.
                if let Some(stack) = open.python {
                    explain(At { time, pid, tid }, open.event, stack, sink);
                }
            }
        }
        if self.read_late > 0 {
            let text = format!(
                "the Python code behind {} requests for CUDA libraries is not known: they were answered before it could \
                 be read",
                self.read_late
            );
            note(monotonic_ns(), 0, "python-late", text, sink);
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        self.processes.entry(pid).or_default()
    }
}

/// Tells the Python code behind an event of this time.
fn explain(at: At, of: EventId, stack: Stack, sink: &mut impl Sink) {
    let body = Body::PythonStack(Box::new(stack.explains(of, at.time)));
    sink.put_from(at.draft(body), Source::Procfs);
}

fn note(time: u64, pid: u32, about: &str, text: String, sink: &mut impl Sink) {
    sink.put_from(
        Draft {
            time,
            pid,
            tid: pid,
            body: Body::Note(Note {
                about: about.to_owned(),
                text,
            }),
        },
        Source::Ebpf,
    );
}

/// Where and when.
#[derive(Debug, Clone, Copy)]
struct At {
    time: u64,
    pid: u32,
    tid: u32,
}

impl At {
    fn draft(self, body: Body) -> Draft {
        Draft {
            time: self.time,
            pid: self.pid,
            tid: self.tid,
            body,
        }
    }
}

/// The number of a process in a trace: as jittrace's own namespace has it, the kernel's where that has none.
fn number(task: TaskViews) -> u32 {
    match task.own.tgid {
        0 => task.initial.tgid,
        own => own,
    }
}

fn text(text: impl AsRef<OsStr>) -> String {
    text.as_ref().to_string_lossy().into_owned()
}

/// A path as it was given, made absolute where it names a place below the working directory.
fn absolute_of(cwd: &str, path: &str) -> String {
    if path.starts_with('/') || path.is_empty() {
        path.replace("/./", "/")
    } else {
        absolute(cwd, path)
    }
}

/// Device and inode of a file as a process sees it.
fn identity(pid: u32, path: &str) -> Option<(u64, u64)> {
    let inside = Path::new("/proc")
        .join(pid.to_string())
        .join("root")
        .join(path.trim_start_matches('/'));
    let metadata = std::fs::metadata(inside)
        .or_else(|_| std::fs::metadata(path))
        .ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn caller(place: Option<&Place>) -> Option<Caller> {
    let place = place.filter(|p| !p.object.ends_with(SHIM_NAME))?;
    Some(Caller {
        object: place.object.clone(),
        offset: place.offset,
        distribution: None,
    })
}
