//! From what the kernel saw to events.
//!
//! The kernel tells less of a library than the shim (no dlerror text, no announcement of objects) and more of a process
//! (every end, every failed exec). What a dlopen mapped is concluded from the files that the loader opened during it;
//! what came with the program is read from the process's memory map a moment after its start.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    os::unix::fs::MetadataExt,
    path::Path,
};

use indexmap::IndexMap;
use jittrace_ebpf::lost;
use jittrace_model::event::{
    Body, Call as CallEvent, Caller, EventId, Exec as ExecEvent, ExecFailed, FileAccess, FileOp,
    Image, LibraryFailed, LibraryLoaded, LibraryRequest, LibraryUnloaded, Lost, Note, ProcessExit,
    ProcessStart, Rule, Source,
};
use jittrace_wire::{
    functions::{Capture, family_of},
    paths::{self, Interest},
};

use super::{
    super::{
        monotonic_ns, procfs,
        replay::Mapped,
        stacks::Stack,
        translate::{Draft, Sink, absolute, answer, without_ours},
    },
    address::Place,
    sight::Sight,
};
use crate::ebpf::{
    Call, Captured, Exec, Exit, FileCall, FileOperation, Function, KernelEvent, Missing, TaskViews,
    WatchedObject,
};
use crate::launch::SHIM_NAME;

/// When a new program's memory map is looked at, in ns after its exec: when the loader is through in most programs, and
/// again for those that load slowly.
const LOOKS: [u64; 3] = [60_000_000, 600_000_000, 3_000_000_000];

/// How long after a dlclose the map is looked at for what is gone.
const AFTER_CLOSE: u64 = 20_000_000;

/// How long a failure waits for the loader's text, which the shim hears when the program asks for it.
const FOR_WORDS: u64 = 1_000_000_000;

/// How long a forked child may do nothing of its own before it is told; most run another program at once.
const QUIET_FORK: u64 = 400_000_000;

/// How long after a look at a memory map it is compared with what was told: by then everything that happened before the
/// look has been told.
const COMPARED_AFTER: u64 = 250_000_000;

/// How often the memory maps of all processes are looked at for what no probe told.
const SWEEP: u64 = 2_000_000_000;

/// Most processes that are looked at in a sweep.
const SWEPT: usize = 256;

/// What the loader needs at least, in ns, between opening a library at a program's start and the program's first call.
const AT_LEAST_LOADING: u64 = 200_000;

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

/// A dlopen that has not returned.
#[derive(Debug)]
struct Open {
    event: EventId,
    request: LibraryRequest,
    /// Files that the loader opened for it, in order.
    opened: Vec<String>,
    /// The Python code that its thread was found in, until it is known whether the thread was still inside then.
    python: Option<Stack>,
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
            KernelEvent::ExecFailed(failed) => {
                let fork = self.process(at.pid).fork.as_ref();
                let ppid = fork.map(|fork| fork.parent);
                let path = text(failed.filename.as_deref().unwrap_or(OsStr::new("")));
                sink.put_from(
                    at.draft(Body::ExecFailed(Box::new(ExecFailed {
                        path,
                        argv: failed.argv.iter().map(text).collect(),
                        errno: failed.errno,
                        call: "execve".to_owned(),
                        ppid,
                        ..ExecFailed::default()
                    }))),
                    Source::Ebpf,
                );
            }
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

    fn fork(&mut self, at: At, child: TaskViews, sink: &mut impl Sink) {
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
    fn tell_fork(&mut self, pid: u32, sink: &mut impl Sink) {
        if let Some(fork) = self.process(pid).fork.take() {
            sink.put_from(fork.draft, Source::Ebpf);
        }
    }

    fn exec(
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
                host_pid: host_pid(task),
                inner_pid: inner_pid(task),
                unread,
                ..ProcessStart::default()
            }))),
            Source::Ebpf,
        );
    }

    fn exit(&mut self, at: At, exit: Exit, covered: bool, sink: &mut impl Sink) {
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

    fn file(&mut self, at: At, file: &FileCall, covered: bool, sink: &mut impl Sink) {
        let Ok(path) = &file.path else { return };
        let process = self.process(at.pid);
        let path = absolute_of(&process.cwd, &text(path));
        if let Some(begin) = file.loading {
            // A place that the loader tries. Those it opens are what it maps, if the request succeeds.
            if let Some(open) = process.open.get_mut(&(at.tid, begin))
                && file.outcome.is_ok()
                && is_object(&path)
                && !open.opened.contains(&path)
            {
                open.opened.push(path);
            }
            return;
        }
        let to = match &file.to {
            Some(Ok(to)) => Some(absolute_of(&process.cwd, &text(to))),
            _ => None,
        };
        let (op, interest) = match file.operation {
            FileOperation::Open { flags } => {
                let interest = paths::interest(path.as_bytes());
                let reads_only = flags & (libc::O_ACCMODE | libc::O_CREAT) as u64 == 0;
                if interest == Some(Interest::Library) && reads_only {
                    // The loader at a program's start, or somebody who reads the file: its load tells more.
                    if is_watched(&path)
                        && let Some(file) = identity(at.pid, &path)
                    {
                        self.process(at.pid).opened.insert(file, at.time);
                    }
                    return;
                }
                if reads_only && file.outcome.is_err() && is_place_of_the_loader(&path) {
                    return;
                }
                if covered && reads_only && interest == Some(Interest::Tool) {
                    // The shim looks at what is about to be executed; of what the program reads it tells itself.
                    return;
                }
                let op = if flags & libc::O_CREAT as u64 != 0 {
                    FileOp::Create
                } else {
                    FileOp::Open
                };
                (op, interest)
            }
            FileOperation::Rename => (
                FileOp::Rename,
                paths::interest(path.as_bytes())
                    .or_else(|| paths::interest(to.as_deref()?.as_bytes())),
            ),
            FileOperation::Unlink => (FileOp::Unlink, paths::interest(path.as_bytes())),
            FileOperation::Mkdir => (FileOp::Mkdir, paths::directory_interest(path.as_bytes())),
        };
        if interest.is_none() {
            return;
        }
        self.tell_fork(at.pid, sink);
        sink.put_from(
            at.draft(Body::File(Box::new(FileAccess {
                op,
                path,
                errno: file.outcome.err().unwrap_or(0),
                to,
                ..FileAccess::default()
            }))),
            Source::Ebpf,
        );
    }

    fn entered(&mut self, at: At, call: &Call, sight: &Sight, sink: &mut impl Sink) {
        match call.function {
            Function::Dlopen | Function::Dlmopen => {
                self.request(at, call, sight, sink);
            }
            Function::Dlclose => {
                let look = at.time + AFTER_CLOSE;
                self.process(at.pid).looks.push(look);
            }
            // Its return is told, or cannot be seen: then the entry is all there is.
            Function::Cuda(_) => {}
        }
    }

    fn request(&mut self, at: At, call: &Call, sight: &Sight, sink: &mut impl Sink) -> EventId {
        self.tell_fork(at.pid, sink);
        let [first, second, third, ..] = call.args;
        let (name, flags) = match call.function {
            Function::Dlmopen => (second, third),
            _ => (first, second),
        };
        let request = LibraryRequest {
            // A null name asks for the program itself.
            name: match name {
                0 => String::new(),
                _ => call.texts().next().map(text).unwrap_or_default(),
            },
            call: call.function.name().to_owned(),
            flags: flags as i32,
            caller: caller(sight.caller.as_ref()),
            python: Vec::new(),
        };
        let event = sink.put_from(
            at.draft(Body::LibraryRequest(Box::new(request.clone()))),
            Source::Ebpf,
        );
        self.process(at.pid).open.insert(
            (at.tid, call.begin_ns),
            Open {
                event,
                request,
                opened: Vec::new(),
                python: sight.python.clone(),
            },
        );
        event
    }

    fn returned(
        &mut self,
        at: At,
        call: &Call,
        sight: &Sight,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        let Function::Cuda(watched) = call.function else {
            self.answered(at, call, sight, covered, sink);
            return;
        };
        let result = call.status();
        let asks_for_address = watched.capture == Capture::ProcAddress;
        // As the shim has it: what worked shows in the calls of what was found.
        if asks_for_address && result == Some(0) {
            return;
        }
        self.tell_fork(at.pid, sink);
        let function = watched.name.trim_end_matches(['*', '_']);
        let count = self.process(at.pid).calls.entry(function).or_default();
        *count += 1;
        if *count > CALLS {
            return;
        }
        let value = call
            .number()
            .filter(|_| result == Some(0))
            .map(|value| answer(function, value));
        let args = arguments(call, watched.capture);
        let image = match watched.capture {
            Capture::Image(_) | Capture::LinkInput => sight.image.clone(),
            Capture::FileName(_) => args.first().map(|file| Image {
                kind: "unknown".to_owned(),
                file: Some(file.clone()),
                ..Image::default()
            }),
            _ => None,
        };
        let object = call
            .object
            .as_ref()
            .map(|object| text(&object.path))
            .or_else(|| sight.object.as_ref().map(|place| place.object.clone()));
        sink.put_from(
            at.draft(Body::Call(Box::new(CallEvent {
                function: function.to_owned(),
                object,
                result: result.map(i64::from),
                value,
                caller: caller(sight.caller.as_ref()),
                duration_ns: Some(at.time.saturating_sub(call.begin_ns)),
                args,
                image,
                count: 1,
                ..CallEvent::default()
            }))),
            Source::Ebpf,
        );
    }

    /// A dlopen has returned.
    fn answered(
        &mut self,
        at: At,
        call: &Call,
        sight: &Sight,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        let key = (at.tid, call.begin_ns);
        if !self.process(at.pid).open.contains_key(&key) {
            // The entry was lost, or was before the probes.
            self.request(at, call, sight, sink);
        }
        let Some(open) = self.process(at.pid).open.remove(&key) else {
            return;
        };
        match open.python {
            Some(stack) if stack.read_at <= at.time => explain(at, open.event, stack, sink),
            Some(_) => self.read_late += 1,
            None => {}
        }
        let requested_by = open.request.caller.as_ref().map(|c| c.object.clone());
        if call.result == Some(0) {
            if open.request.flags & libc::RTLD_NOLOAD == 0 {
                let failed = at.draft(Body::LibraryFailed(Box::new(LibraryFailed {
                    requested: open.request.name,
                    requested_by,
                    request: Some(open.event),
                    error: "dlopen returned no handle".to_owned(),
                    ..LibraryFailed::default()
                })));
                if covered {
                    let until = at.time + FOR_WORDS;
                    self.process(at.pid).failed.push((until, failed));
                } else {
                    sink.put_from(failed, Source::Ebpf);
                }
            }
            return;
        }
        let mut fresh = 0;
        for path in open.opened {
            let file = identity(at.pid, &path);
            if let Some(file) = file {
                let process = self.process(at.pid);
                process.told.insert(file, at.time);
                if process.mapped.insert(file, path.clone()).is_some() {
                    continue;
                }
            }
            fresh += 1;
            sink.put_from(
                at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    path,
                    request: Some(open.event),
                    dev: file.map(|f| f.0),
                    ino: file.map(|f| f.1),
                    ..LibraryLoaded::default()
                }))),
                Source::Ebpf,
            );
        }
        // The second text is what the loader calls the object.
        let named = call.texts().nth(1).map(text).unwrap_or_default();
        if fresh == 0 && !named.is_empty() {
            sink.put_from(
                at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    path: named,
                    requested: Some(open.request.name),
                    requested_by,
                    request: Some(open.event),
                    rule: Rule::AlreadyLoaded,
                    ..LibraryLoaded::default()
                }))),
                Source::Ebpf,
            );
        }
    }

    fn watching(
        &mut self,
        time: u64,
        object: &WatchedObject,
        in_shim: impl Fn(u32) -> bool,
        sink: &mut impl Sink,
    ) {
        self.probed(object, in_shim, sink);
        let mut texts: Vec<String> = object
            .refused
            .iter()
            .map(|why| format!("{}: {why}", object.path.display()))
            .collect();
        for function in &object.functions {
            if let crate::ebpf::ReturnProbes::Partial { why, .. } = &function.returns {
                texts.push(format!(
                    "{}: not every return of {} is seen: {why}",
                    object.path.display(),
                    function.name
                ));
            }
        }
        for text in texts {
            if !self.told_partial.insert(text.clone()) {
                continue;
            }
            note(time, 0, "probe", text, sink);
        }
    }

    fn compare_all(&mut self, pid: u32, covered: bool, sink: &mut impl Sink) {
        let looked = match self.processes.get_mut(&pid) {
            Some(process) => std::mem::take(&mut process.looked),
            None => return,
        };
        self.compare(pid, looked, covered, sink);
    }

    /// Probes were placed in an object that a process has opened already: what it called before was not seen.
    fn probed(
        &mut self,
        object: &WatchedObject,
        in_shim: impl Fn(u32) -> bool,
        sink: &mut impl Sink,
    ) {
        let path = text(&object.path);
        let id = (
            libc::makedev(object.id.major, object.id.minor),
            object.id.inode,
        );
        for (pid, process) in self.processes.iter().filter(|(pid, _)| !in_shim(**pid)) {
            let (from, what) = match (process.told.get(&id), process.opened.get(&id)) {
                (Some(loaded), _) => (*loaded, "loaded"),
                // The loader has to be through with all objects before the program itself calls.
                (None, Some(opened)) => (opened.saturating_add(AT_LEAST_LOADING), "opened"),
                (None, None) => continue,
            };
            if from < object.since_ns && !object.functions.is_empty() {
                let text = format!(
                    "calls in {path} during the first {:.1} ms after it was {what} were not seen",
                    (object.since_ns - from) as f64 / 1e6
                );
                note(object.since_ns, *pid, "probed-late", text, sink);
            }
        }
    }

    /// Compares looks at a process's memory map with what was told of it. Where the shim tells, it is only remembered what
    /// is there.
    fn compare(
        &mut self,
        pid: u32,
        looks: Vec<(u64, Vec<Mapped>)>,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        for (time, mapped) in looks {
            let Some(process) = self.processes.get_mut(&pid) else {
                return;
            };
            let program = process.program;
            let at = At {
                time,
                pid,
                tid: pid,
            };
            let opening: HashSet<(u64, u64)> = process
                .open
                .values()
                .flat_map(|open| &open.opened)
                .filter_map(|path| identity(pid, path))
                .collect();
            process.mapped.retain(|file, path| {
                let stays = mapped.iter().any(|m| (m.dev, m.ino) == *file);
                // What was told after the look may not be in it yet.
                let told_since = process.told.get(file).is_some_and(|told| *told >= time);
                if !stays && !told_since && !covered {
                    sink.put_from(
                        at.draft(Body::LibraryUnloaded(LibraryUnloaded {
                            path: path.clone(),
                        })),
                        Source::Procfs,
                    );
                }
                stays || told_since
            });
            let at_start = process.seen_starting
                && time <= process.began + LOOKS.iter().max().copied().unwrap_or(0) + SWEEP;
            let mut late = Vec::new();
            for object in mapped {
                let file = (object.dev, object.ino);
                if Some(file) == program
                    || process.mapped.contains_key(&file)
                    || opening.contains(&file)
                    || is_loader(&object.path)
                {
                    continue;
                }
                process.mapped.insert(file, object.path.clone());
                if covered {
                    continue;
                }
                if at_start {
                    sink.put_from(
                        at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                            path: object.path,
                            dev: Some(object.dev),
                            ino: Some(object.ino),
                            at_start: true,
                            ..LibraryLoaded::default()
                        }))),
                        Source::Ebpf,
                    );
                } else {
                    late.push(object);
                }
            }
            if !late.is_empty() {
                sink.mapped(pid, late);
            }
        }
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

fn host_pid(task: TaskViews) -> Option<u32> {
    Some(task.initial.tgid).filter(|pid| *pid != 0 && *pid != number(task))
}

fn inner_pid(task: TaskViews) -> Option<u32> {
    Some(task.inner.tgid).filter(|pid| *pid != 0 && *pid != number(task))
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

/// Whether a file that the loader opened is an object: not its cache.
fn is_object(path: &str) -> bool {
    !path.ends_with("/ld.so.cache") && !path.starts_with("/proc/") && !path.starts_with("/sys/")
}

/// What the kernel source could not tell, in words. `reason` is one of [`lost::NAMES`] or of the reader's own.
fn loss(reason: &str, count: u64) -> Lost {
    let (what, reason) = match reason {
        "unpaired-return" => (
            "calls",
            "they were under way when their probe was placed, or too many were under way"
                .to_owned(),
        ),
        "follow" => ("processes", "too many were followed at one time".to_owned()),
        "object-not-probed" => (
            "objects",
            "too many appeared at one time to place probes in each".to_owned(),
        ),
        "undecodable-record" => (
            "records",
            "the kernel programs wrote what is not known here".to_owned(),
        ),
        kind => (
            "records",
            format!("of kind {kind}: the kernel's buffer was full"),
        ),
    };
    Lost {
        what: what.to_owned(),
        count,
        reason,
    }
}

/// Whether only the loader opens such a file without asking before whether it is there. It does so below every directory
/// of LD_LIBRARY_PATH; nvcc's ends in an empty one, the current directory, which is often that of a JIT cache.
fn is_place_of_the_loader(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.contains(".so.") || (name.starts_with("lib") && name.ends_with(".so"))
}

/// Whether a library has functions that are watched.
fn is_watched(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    family_of(name.as_bytes()).is_some()
}

fn is_loader(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("ld-linux") || name.starts_with("ld-2.")
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

/// Arguments worth keeping, as the shim words them.
fn arguments(call: &Call, capture: Capture) -> Vec<String> {
    match capture {
        Capture::CapabilityAttribute => {
            let [_, _, device, ..] = call.args;
            let part = match call.capability_part() {
                Some(true) => "major",
                _ => "minor",
            };
            vec![format!("compute-capability-{part} device={device}")]
        }
        Capture::FileName(_) | Capture::LinkFile | Capture::Text(_) | Capture::ProcAddress => {
            call.texts().map(text).collect()
        }
        Capture::NvrtcCompile | Capture::Options => {
            let texts: Vec<String> = call.texts().map(text).collect();
            let cut = call
                .captured
                .iter()
                .any(|c| matches!(c, Captured::Text { cut: true, .. }));
            let joined = texts.join(" ");
            if joined.is_empty() {
                Vec::new()
            } else if cut {
                vec![joined + " …"]
            } else {
                vec![joined]
            }
        }
        _ => Vec::new(),
    }
}
