//! From the shim's records to events.
//!
//! Records refer to each other by process and sequence number; events refer to each other by id. What a record leaves
//! to be concluded (a request that nothing settled, a process that ended without a word) is concluded here, at the
//! latest when the trace ends.

use std::collections::{BTreeMap, HashMap};

use jittrace_model::event::{
    Body, Call, Caller, EventId, Exec, ExecFailed, FileAccess, FileOp, Frame, Image, LibraryFailed,
    LibraryLoaded, LibraryRequest, LibraryUnloaded, Lost, Message, Note, ProcessExit, ProcessStart,
    Rule, Source,
};
use jittrace_wire::{
    Record,
    record::{self, Header, List, Mark, Text},
};

use super::replay::Mapped;

/// A body together with where and when; the collector gives it its number.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What was seen.
    pub body: Body,
}

/// Gives a draft its number and writes it down.
pub(super) trait Sink {
    /// Takes a draft that the shim told; gives the event's number.
    fn put(&mut self, draft: Draft) -> EventId {
        self.put_from(draft, Source::Preload)
    }
    /// Takes a draft of any source; gives the event's number, 0 when it is not worth an event.
    fn put_from(&mut self, draft: Draft, source: Source) -> EventId;
    /// A process was forked.
    fn forked(&mut self, child: u32, parent: u32);
    /// Objects that were found mapped in a process.
    fn mapped(&mut self, pid: u32, objects: Vec<Mapped>);
}

/// Forks of one process whose child may still tell what it runs, which comes soon after.
const FORKS: usize = 4096;

/// What is remembered of a process until it ends.
#[derive(Debug, Default)]
struct Process {
    cwd: String,
    attempts: HashMap<u32, Exec>,
    /// Sequence of a fork → frames of who forked; the latest [`FORKS`].
    forks: BTreeMap<u32, Vec<Frame>>,
    requests: HashMap<u32, Request>,
    /// Thunk number → frames of the look-up that handed it out.
    lookups: HashMap<u64, Vec<Frame>>,
    /// Load address → path of what is mapped: an unload tells the address alone.
    bases: HashMap<u64, String>,
    /// It has begun and was not seen ending.
    alive: bool,
    /// Sequence of its last record. An exec begins again at 1.
    last: u32,
    /// Objects that announced themselves before the image's own start was told: initialisers run in that order.
    early: Vec<(At, Vec<LibraryLoaded>)>,
}

#[derive(Debug, Clone)]
struct Request {
    event: EventId,
    tid: u32,
    request: LibraryRequest,
    loaded: bool,
    /// Text of a failure that the program asked for.
    failed: bool,
}

/// Turns records into events.
#[derive(Debug, Default)]
pub(super) struct Translate {
    processes: HashMap<u32, Process>,
    /// Process whose end is told by its parent, jittrace itself.
    root: Option<u32>,
}

impl Translate {
    /// Translates for a launch of `root`, whose end the launcher reports itself.
    pub(super) fn new(root: Option<u32>) -> Translate {
        Translate {
            root,
            ..Translate::default()
        }
    }

    /// Processes that have begun and were not seen ending.
    pub(super) fn living(&self) -> impl Iterator<Item = u32> {
        self.processes
            .iter()
            .filter(|(_, p)| p.alive)
            .map(|(pid, _)| *pid)
    }

    /// A process is gone.
    pub(super) fn gone(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Takes one record in.
    pub(super) fn record(&mut self, header: Header, record: &Record<'_>, sink: &mut impl Sink) {
        let at = At { header };
        let process = self.process(at);
        let fresh = header.sequence <= process.last || process.last == 0;
        process.last = header.sequence;
        if fresh {
            process.bases.clear();
        }
        if let Some(objects) = mapped_by(record) {
            let seen = objects.iter().filter(|o| !o.path.is_empty());
            process
                .bases
                .extend(seen.map(|o| (o.base, o.path.to_owned())));
        }
        if let Record::ObjectLoaded(loaded) = record
            && (fresh || !process.early.is_empty())
        {
            let early = objects(&loaded.objects, None, false);
            process.early.push((at, early.collect()));
            return;
        }
        match record {
            Record::Start(start) => self.start(at, start, sink),
            Record::Exit(exit) => self.exit(at, exit, sink),
            Record::Fork(fork) => {
                let frames = frames(&fork.python);
                let forks = &mut self.process(at).forks;
                forks.insert(header.sequence, frames);
                if forks.len() > FORKS {
                    forks.pop_first();
                }
            }
            Record::ExecAttempt(attempt) => self.exec_attempt(at, attempt, sink),
            Record::ExecFailed(failed) => self.exec_failed(at, failed, sink),
            Record::Spawned(spawned) => self.spawned(at, spawned, sink),
            Record::NotFollowed(not) => self.not_followed(at, not, sink),
            Record::DlRequest(request) => self.dl_request(at, request, sink),
            Record::DlSettled(settled) => self.dl_settled(at, settled, sink),
            Record::ObjectLoaded(loaded) => self.objects(at, loaded, sink),
            Record::DlUnloaded(unloaded) => {
                for object in unloaded.objects.iter() {
                    let known = self.process(at).bases.remove(&object.base);
                    let path = known.unwrap_or_else(|| object.path.to_owned());
                    if !path.is_empty() {
                        sink.put(at.draft(Body::LibraryUnloaded(LibraryUnloaded { path })));
                    }
                }
            }
            Record::DlError(error) => self.dl_error(at, error, sink),
            Record::DlClose(_) => {}
            Record::SymbolLookup(lookup) => self.lookup(at, lookup, sink),
            Record::Call(call) => self.call(at, call, sink),
            Record::Message(message) => {
                sink.put(at.draft(Body::Message(Box::new(Message {
                    stream: owned(message.stream),
                    text: owned(message.text),
                    pattern: owned(message.pattern),
                }))));
            }
            Record::File(file) => self.file(at, file, sink),
            // Look-ups of names that nobody watches are counted and nothing more is wanted of them.
            Record::Count(count) if count.what.value.starts_with("cuGetProcAddress") => {
                sink.put(at.draft(Body::Note(Note {
                    about: "counted".to_owned(),
                    text: format!(
                        "{} calls of {}, most of them for names that are not watched",
                        count.total, count.what.value
                    ),
                })));
            }
            Record::Count(count) if count.not_logged > 0 => {
                sink.put(at.draft(Body::Lost(Lost {
                    what: owned(count.what),
                    count: count.not_logged,
                    reason: "counted only, since there were too many of one kind".to_owned(),
                })));
            }
            Record::Note(note) => {
                sink.put(at.draft(Body::Note(Note {
                    about: "shim".to_owned(),
                    text: owned(note.text),
                })));
            }
            _ => {}
        }
    }

    /// Settles what is still open when the trace ends.
    pub(super) fn finish(&mut self, time: u64, sink: &mut impl Sink) {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            self.settle_all(pid, time, sink);
        }
    }

    fn process(&mut self, at: At) -> &mut Process {
        self.processes.entry(at.header.pid).or_default()
    }

    fn start(&mut self, at: At, start: &record::Start<'_>, sink: &mut impl Sink) {
        self.settle_all(at.header.pid, at.header.time, sink);
        let mut unread = indexmap::IndexMap::new();
        for (name, text) in [("exe", start.exe), ("cwd", start.cwd)] {
            if text.mark.has(Mark::UNREADABLE) {
                unread.insert(
                    name.to_owned(),
                    "it could not be read inside the process".to_owned(),
                );
            }
        }
        let early = std::mem::take(&mut self.process(at).early);
        let argv: Vec<String> = start.argv.iter().map(|a| a.value.to_owned()).collect();
        if (argv.len() as u64) < start.argc {
            unread.insert(
                "argv".to_owned(),
                format!("cut after {} of {} arguments", argv.len(), start.argc),
            );
        }
        let env = start
            .env
            .iter()
            .filter_map(|e| e.value.split_once('='))
            .filter_map(|(name, value)| without_ours(name, value, start.shim.value))
            .collect();
        let cwd = owned(start.cwd);
        let parents = (start.how.value == "fork")
            .then(|| self.processes.get(&(start.ppid as u32)))
            .flatten()
            .map(|parent| parent.bases.clone());
        let process = self.process(at);
        if let Some(parents) = parents {
            process.bases = parents;
        }
        process.cwd.clone_from(&cwd);
        process.alive = true;
        process.attempts.clear();
        process.requests.clear();
        process.lookups.clear();
        sink.put(at.draft(Body::ProcessStart(Box::new(ProcessStart {
            ppid: start.ppid as u32,
            exe: owned(start.exe),
            argv,
            cwd,
            env,
            forked: start.how.value == "fork",
            unread,
            ..ProcessStart::default()
        }))));
        let first = [(at, objects(&start.objects, None, true).collect())];
        for (at, objects) in early.into_iter().chain(first) {
            for object in objects {
                sink.put(at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    at_start: true,
                    ..object
                }))));
            }
        }
    }

    fn exit(&mut self, at: At, exit: &record::Exit<'_>, sink: &mut impl Sink) {
        self.settle_all(at.header.pid, at.header.time, sink);
        if self.root == Some(at.header.pid) {
            return;
        }
        // Without a code, the kernel may still tell it: the process stays on the list of the living.
        if let Some(code) = exit.code {
            self.process(at).alive = false;
            sink.put(at.draft(Body::ProcessExit(ProcessExit {
                code: Some((code & 0xff) as i32),
                ..ProcessExit::default()
            })));
        }
    }

    fn exec_attempt(&mut self, at: At, attempt: &record::ExecAttempt<'_>, sink: &mut impl Sink) {
        let mut python = frames(&attempt.python);
        if python.is_empty() && attempt.fork != 0 {
            let parent = self.processes.get(&(attempt.ppid as u32));
            python = parent
                .and_then(|p| p.forks.get(&(attempt.fork as u32)))
                .cloned()
                .unwrap_or_default();
        }
        let exec = Exec {
            call: owned(attempt.call),
            path: owned(attempt.path),
            argv: attempt.argv.iter().map(|a| a.value.to_owned()).collect(),
            python,
            caller: caller(attempt.caller, attempt.offset),
            ppid: (attempt.fork != 0 && attempt.ppid != 0).then_some(attempt.ppid as u32),
            child: None,
            not_followed: (attempt.environment.value == "cleared")
                .then(|| "the program cleared its child's environment".to_owned()),
        };
        sink.put(at.draft(Body::Exec(Box::new(exec.clone()))));
        self.process(at).attempts.insert(at.header.sequence, exec);
    }

    fn exec_failed(&mut self, at: At, failed: &record::ExecFailed<'_>, sink: &mut impl Sink) {
        let attempt = self.process(at).attempts.remove(&(failed.attempt as u32));
        let exec = attempt.unwrap_or_default();
        sink.put(at.draft(Body::ExecFailed(Box::new(ExecFailed {
            path: failed.path.get().map_or(exec.path, str::to_owned),
            argv: exec.argv,
            errno: failed.errno as i32,
            call: exec.call,
            python: exec.python,
            caller: exec.caller,
            ppid: exec.ppid,
            tried: Vec::new(),
        }))));
    }

    fn spawned(&mut self, at: At, spawned: &record::Spawned<'_>, sink: &mut impl Sink) {
        let Some(exec) = self.process(at).attempts.remove(&(spawned.attempt as u32)) else {
            return;
        };
        if spawned.child != 0 {
            // The attempt again, now with the child it made: the fold joins the two.
            sink.put(at.draft(Body::Exec(Box::new(Exec {
                child: Some(spawned.child as u32),
                ..exec
            }))));
        }
    }

    fn not_followed(&mut self, at: At, not: &record::NotFollowed<'_>, sink: &mut impl Sink) {
        let process = self.process(at);
        let attempt = process.attempts.get(&(not.attempt as u32)).cloned();
        let exec = attempt.unwrap_or_default();
        let reason = match not.reason.value {
            "cleared-environment" => "the program cleared its child's environment; --follow-clean-env follows it".to_owned(),
            "static" => "it is statically linked, so no library can be preloaded into it; as root, --source ebpf sees it".to_owned(),
            "setuid" => "it is setuid, and the loader ignores LD_PRELOAD there; as root, --source ebpf sees it".to_owned(),
            "musl" => "it is linked against musl, and the shim needs glibc; as root, --source ebpf sees it".to_owned(),
            "32-bit" => "it is a 32-bit program".to_owned(),
            other => other.to_owned(),
        };
        // The child says nothing itself: what its parent knows of it is its start.
        sink.put(
            at.draft(Body::ProcessStart(Box::new(ProcessStart {
                exe: not
                    .path
                    .get()
                    .map_or_else(|| exec.path.clone(), str::to_owned),
                argv: exec.argv,
                not_followed: Some(reason),
                ..ProcessStart::default()
            }))),
        );
    }

    fn dl_request(&mut self, at: At, request: &record::DlRequest<'_>, sink: &mut impl Sink) {
        self.settle_thread(at, sink);
        let request = LibraryRequest {
            name: owned(request.name),
            call: owned(request.call),
            flags: request.flags as i32,
            caller: caller(request.caller, request.offset),
            python: frames(&request.python),
        };
        let event = sink.put(at.draft(Body::LibraryRequest(Box::new(request.clone()))));
        self.process(at).requests.insert(
            at.header.sequence,
            Request {
                event,
                tid: at.header.tid,
                request,
                loaded: false,
                failed: false,
            },
        );
    }

    fn dl_settled(&mut self, at: At, settled: &record::DlSettled<'_>, sink: &mut impl Sink) {
        let requests = &mut self.process(at).requests;
        let sequence = settled.request as u32;
        let path = settled.path.get().unwrap_or_default();
        // Without a handle nothing is known yet but that the call has returned: dlerror may still say why it failed.
        let is_open = |r: &Request| !r.loaded && !r.failed;
        if path.is_empty() && requests.get(&sequence).is_some_and(is_open) {
            return;
        }
        let Some(request) = requests.remove(&sequence).filter(is_open) else {
            return;
        };
        sink.put(at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: path.to_owned(),
            requested: Some(request.request.name),
            requested_by: request.request.caller.map(|c| c.object),
            request: Some(request.event),
            rule: Rule::AlreadyLoaded,
            ..LibraryLoaded::default()
        }))));
    }

    fn objects(&mut self, at: At, loaded: &record::ObjectLoaded<'_>, sink: &mut impl Sink) {
        let process = self.process(at);
        let request = process
            .requests
            .get_mut(&(loaded.request as u32))
            .map(|request| {
                request.loaded = true;
                request.clone()
            });
        let at_start = loaded.how.value == "start";
        for object in objects(&loaded.objects, request.map(|r| r.event), at_start) {
            sink.put(at.draft(Body::LibraryLoaded(Box::new(object))));
        }
    }

    fn dl_error(&mut self, at: At, error: &record::DlError<'_>, sink: &mut impl Sink) {
        let requests = &mut self.process(at).requests;
        // An error of no open request is about the thread's last one that nothing has answered; but dlsym complains of
        // undefined symbols in the same words as dlopen.
        let is_of_a_look_up = owned(error.text).contains("undefined symbol");
        let last = requests
            .iter()
            .filter(|(_, r)| r.tid == at.header.tid && !r.loaded && !r.failed)
            .max_by_key(|(_, r)| r.event)
            .map(|(sequence, _)| *sequence);
        let sequence = Some(error.request as u32)
            .filter(|s| *s != 0)
            .or(last.filter(|_| !is_of_a_look_up));
        let Some(request) = sequence.and_then(|s| requests.get_mut(&s)) else {
            return;
        };
        request.failed = true;
        let request = request.clone();
        sink.put(at.draft(Body::LibraryFailed(Box::new(LibraryFailed {
            requested: request.request.name,
            requested_by: request.request.caller.map(|c| c.object),
            request: Some(request.event),
            error: owned(error.text),
            python: request.request.python,
            ..LibraryFailed::default()
        }))));
    }

    /// A thread that asks again has seen the outcome of its last request.
    fn settle_thread(&mut self, at: At, sink: &mut impl Sink) {
        let process = self.process(at);
        let open: Vec<u32> = process
            .requests
            .iter()
            .filter(|(_, r)| r.tid == at.header.tid)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in open {
            if let Some(request) = self.process(at).requests.remove(&sequence) {
                unsettled(at.draft(Body::Note(Note::default())), request, sink);
            }
        }
    }

    fn settle_all(&mut self, pid: u32, time: u64, sink: &mut impl Sink) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let mut open: Vec<Request> = process.requests.drain().map(|(_, r)| r).collect();
        open.sort_by_key(|r| r.event);
        for request in open {
            let tid = request.tid;
            unsettled(
                Draft {
                    time,
                    pid,
                    tid,
                    body: Body::Note(Note::default()),
                },
                request,
                sink,
            );
        }
    }

    fn lookup(&mut self, at: At, lookup: &record::SymbolLookup<'_>, sink: &mut impl Sink) {
        let python = frames(&lookup.python);
        if lookup.thunk != 0 {
            self.process(at)
                .lookups
                .insert(lookup.thunk, python.clone());
        }
        let found = lookup.object.get().is_some();
        if found && lookup.result.unwrap_or(0) == 0 {
            return;
        }
        // A look-up that failed is a fact of its own; one that worked shows in its calls.
        sink.put(at.draft(Body::Call(Box::new(Call {
            function: owned(lookup.call),
            result: lookup.result.or(Some(-1)),
            args: vec![owned(lookup.name)],
            caller: caller(lookup.caller, lookup.offset),
            python,
            count: 1,
            ..Call::default()
        }))));
    }

    fn call(&mut self, at: At, call: &record::Call<'_>, sink: &mut impl Sink) {
        let mut python = frames(&call.python);
        let at_lookup = python.is_empty() && call.thunk != 0;
        if at_lookup {
            python = self
                .processes
                .get(&at.header.pid)
                .and_then(|p| p.lookups.get(&call.thunk))
                .cloned()
                .unwrap_or_default();
        }
        let function = owned(call.function);
        let detail = call.detail.get().filter(|d| !d.is_empty());
        let result = call.result;
        let is_log =
            function.starts_with("nvrtcCompile") || function.starts_with("__nvJitLinkComplete");
        let (args, log) = match detail {
            Some(text) if is_log && text.contains("\n") => {
                let (options, log) = text.split_once("\n").unwrap_or((text, ""));
                (
                    words(options),
                    Some(log.to_owned()).filter(|l| !l.is_empty()),
                )
            }
            Some(text) => (words(text), None),
            None => (Vec::new(), None),
        };
        let by_file = matches!(function.as_str(), "cuModuleLoad" | "cuLibraryLoadFromFile")
            .then(|| args.first().cloned())
            .flatten();
        sink.put(at.draft(Body::Call(Box::new(Call {
            value: call.value.map(|value| answer(&function, value)),
            image: image(call.image.get(), by_file),
            function,
            object: call.object.get().map(str::to_owned),
            result,
            caller: caller(call.caller, call.offset),
            duration_ns: Some(call.duration),
            python_at_lookup: at_lookup && !python.is_empty(),
            python,
            args,
            log,
            count: 1,
        }))));
    }

    fn file(&mut self, at: At, file: &record::File<'_>, sink: &mut impl Sink) {
        let base = [file.directory, file.cwd]
            .iter()
            .find_map(|t| t.get().filter(|d| d.starts_with('/')))
            .map(str::to_owned)
            .unwrap_or_else(|| self.process(at).cwd.clone());
        let op = match file.op.value {
            "open" => FileOp::Open,
            "create" => FileOp::Create,
            "stat" | "access" | "readlink" => FileOp::Stat,
            "rename" | "link" | "symlink" => FileOp::Rename,
            "unlink" | "rmdir" => FileOp::Unlink,
            "mkdir" => FileOp::Mkdir,
            "opendir" => FileOp::List,
            "lock-wait" => FileOp::LockWait,
            "lock" => FileOp::Locked,
            "unlock" => FileOp::Unlock,
            _ => FileOp::Other,
        };
        sink.put(
            at.draft(Body::File(Box::new(FileAccess {
                op,
                path: absolute(&base, file.path.value),
                errno: file.errno as i32,
                to: file
                    .second
                    .get()
                    .filter(|s| !s.is_empty())
                    .map(|s| absolute(&base, s)),
                old_text: file.old_text.get().map(str::to_owned),
                wait_ns: Some(file.wait).filter(|w| *w != 0),
                python: frames(&file.python),
            }))),
        );
    }
}

/// The objects that a record tells to be mapped.
fn mapped_by<'a>(record: &Record<'a>) -> Option<List<'a, record::Object<'a>>> {
    match record {
        Record::Start(start) => Some(start.objects),
        Record::ObjectLoaded(loaded) => Some(loaded.objects),
        _ => None,
    }
}

/// The objects of a record, without their searches.
fn objects<'a>(
    list: &List<'a, record::Object<'a>>,
    request: Option<EventId>,
    at_start: bool,
) -> impl Iterator<Item = LibraryLoaded> + 'a {
    list.iter()
        .filter(|object| !object.path.is_empty())
        .map(move |object| LibraryLoaded {
            path: object.path.to_owned(),
            request,
            dev: Some(object.device).filter(|d| *d != 0),
            ino: Some(object.inode).filter(|i| *i != 0),
            at_start,
            ..LibraryLoaded::default()
        })
}

/// A variable as the user set it: without the shim in LD_PRELOAD and without the session's own variables.
pub(super) fn without_ours(name: &str, value: &str, shim: &str) -> Option<(String, String)> {
    if name.starts_with("JITTRACE_") {
        return None;
    }
    if name != "LD_PRELOAD" || shim.is_empty() {
        return Some((name.to_owned(), value.to_owned()));
    }
    let others: Vec<&str> = value
        .split([':', ' '])
        .filter(|e| !e.is_empty() && *e != shim)
        .collect();
    (!others.is_empty()).then(|| (name.to_owned(), others.join(":")))
}

/// A request whose outcome nobody told: what the replay and the link map say is added by the collector.
fn unsettled(mut draft: Draft, request: Request, sink: &mut impl Sink) {
    if request.loaded || request.failed || request.request.name.is_empty() {
        return;
    }
    draft.body = Body::LibraryFailed(Box::new(LibraryFailed {
        requested: request.request.name,
        requested_by: request.request.caller.map(|c| c.object),
        request: Some(request.event),
        python: request.request.python,
        ..LibraryFailed::default()
    }));
    sink.put(draft);
}

/// Where and when a record was written.
#[derive(Debug, Clone, Copy)]
struct At {
    header: Header,
}

impl At {
    fn draft(self, body: Body) -> Draft {
        Draft {
            time: self.header.time,
            pid: self.header.pid,
            tid: self.header.tid,
            body,
        }
    }
}

fn owned(text: Text<'_>) -> String {
    text.get().unwrap_or_default().to_owned()
}

fn frames(list: &List<'_, record::Frame<'_>>) -> Vec<Frame> {
    list.iter()
        .map(|f| Frame {
            file: f.file.to_owned(),
            line: f.line,
            function: f.function.to_owned(),
            distribution: None,
        })
        .collect()
}

fn caller(object: Text<'_>, offset: u64) -> Option<Caller> {
    let object = object.get().filter(|o| !o.is_empty())?;
    Some(Caller {
        object: object.to_owned(),
        offset,
        distribution: None,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split(['\u{1f}', '\n'])
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A number in the words of its function: releases as `12.9`, capabilities as `9.0`, versions as they came.
pub(super) fn answer(function: &str, value: i64) -> String {
    match function {
        "nvrtcVersion" | "nvJitLinkVersion" => format!("{}.{}", value / 1000, value % 1000 / 10),
        f if f.starts_with("cudaGetDeviceProperties") => format!("{}.{}", value / 10, value % 10),
        _ => value.to_string(),
    }
}

/// `ptx version=8.7 target=sm_120a`, `cubin sm_90`, `fatbin sm_90 sm_120 ptx:sm_120` as the shim words it.
fn image(text: Option<&str>, file: Option<String>) -> Option<Image> {
    let mut words = text.unwrap_or_default().split_ascii_whitespace();
    let kind = words.next().unwrap_or_default();
    if kind.is_empty() && file.is_none() {
        return None;
    }
    let mut image = Image {
        kind: if kind.is_empty() {
            "unknown".to_owned()
        } else {
            kind.to_owned()
        },
        file,
        ..Image::default()
    };
    for word in words {
        if let Some(version) = word.strip_prefix("version=") {
            image.ptx_version = Some(version.to_owned());
        } else if let Some(target) = word.strip_prefix("target=") {
            image.target = Some(target.to_owned());
        } else if let Some(arch) = word.strip_prefix("ptx:") {
            image.archs.push(arch.replacen("sm_", "compute_", 1));
        } else {
            image.archs.push(word.to_owned());
        }
    }
    Some(image)
}

/// A path made absolute against a directory, without `.` components.
pub(super) fn absolute(base: &str, path: &str) -> String {
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let mut out = String::with_capacity(joined.len());
    for part in joined.split('/').filter(|p| !p.is_empty() && *p != ".") {
        out.push('/');
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_read_as_the_shim_words_them() {
        let ptx = image(Some("ptx version=8.7 target=sm_120a"), None).unwrap();
        assert_eq!(
            (
                ptx.kind.as_str(),
                ptx.ptx_version.as_deref(),
                ptx.target.as_deref()
            ),
            ("ptx", Some("8.7"), Some("sm_120a"))
        );
        let fatbin = image(Some("fatbin sm_90 sm_120 ptx:sm_120"), None).unwrap();
        assert_eq!(fatbin.archs, ["sm_90", "sm_120", "compute_120"]);
        assert_eq!(image(None, None), None);
    }

    #[test]
    fn numbers_are_worded_by_their_function() {
        assert_eq!(answer("cudaRuntimeGetVersion", 13000), "13000");
        assert_eq!(answer("nvrtcVersion", 12090), "12.9");
        assert_eq!(answer("cudaGetDeviceProperties_v2", 120), "12.0");
    }
}
