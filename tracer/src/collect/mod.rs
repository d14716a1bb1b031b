//! The collector: takes what the sources say, orders it, looks up what the model needs to know of the host, masks
//! credentials, writes the trace and folds it.
//!
//! It runs in a thread of its own beside the launcher, and touches nothing of the traced program but files.

mod cache_facts;
mod facts;
mod host;
mod host_files;
mod loader_host;
mod probe;
mod procfs;
mod replay;
mod tail;
mod translate;
mod vicinity;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    path::PathBuf,
    rc::Rc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use indexmap::IndexMap;
use jittrace_model::{
    Model,
    event::{Body, Event, EventId, Fact, Lost, ProcessExit, ProcessStart, Source},
    log::{Header, Writer},
    redact::Redactor,
    resolve::tool,
};

use self::{
    cache_facts::CacheFacts,
    facts::Facts,
    replay::{Mapped, Replay},
    tail::Tail,
    translate::{Draft, Sink, Translate},
    watch::Watch,
};
use crate::launch::Ended;

pub use host::host;

/// How long the session file is left alone between two looks.
const POLL: Duration = Duration::from_millis(20);

/// How long `/proc` is left alone between two looks.
const POLL_PROC: Duration = Duration::from_millis(250);

/// How long the last records are waited for after the command has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// Nanoseconds on CLOCK_MONOTONIC, the clock of the shim's records and of BPF.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// What the launcher tells the collector.
#[derive(Debug)]
pub enum Word {
    /// The command ended.
    Ended(Ended),
    /// Stop now and write what there is.
    Stop,
}

/// What a collection is to do.
pub struct Plan {
    /// The trace's first line.
    pub header: Header,
    /// Where the trace goes.
    pub trace: Box<dyn Write + Send>,
    /// Masks credentials.
    pub redactor: Redactor,
    /// CLOCK_MONOTONIC of the trace's zero.
    pub began: u64,
    /// The command's process, or the one that was attached to.
    pub root: u32,
    /// What tells of the processes.
    pub inputs: Inputs,
    /// Who wants the events as they come.
    pub listener: Option<Sender<Vec<Event>>>,
}

/// What tells a collection of the processes.
pub enum Inputs {
    /// A launch: the shim's session file.
    Launch {
        /// The session file.
        session: std::fs::File,
        /// The command's place on disk, when it is one that the shim cannot reach, and why.
        unreached: Option<(PathBuf, String)>,
        /// Wait for every descendant.
        wait_all: bool,
    },
    /// An attach: `/proc`, polled.
    Attach,
}

/// What is left when a collection is over.
pub struct Collected {
    /// The fold of everything.
    pub model: Model,
    /// Why the trace could not be written to its end.
    pub trouble: Option<io::Error>,
    /// Descendants that were still running.
    pub still_running: Vec<u32>,
}

/// Collects until the command has ended and its last records are in, or until it is told to stop.
pub fn collect(plan: Plan, words: &Receiver<Word>) -> io::Result<Collected> {
    let writer = Writer::new(plan.trace, &plan.header)?;
    let mut desk = Desk {
        writer,
        trouble: None,
        model: Model::new(plan.header),
        redactor: plan.redactor,
        facts: Facts::default(),
        caches: CacheFacts::default(),
        vicinity: vicinity::Vicinity::default(),
        environments: HashMap::new(),
        replay: Replay::default(),
        tools: HashSet::new(),
        began: plan.began,
        next: 1,
        batch: Vec::new(),
        listening: plan.listener,
    };
    for fact in desk.facts.driver() {
        desk.fact(plan.began, fact);
    }
    match plan.inputs {
        Inputs::Launch {
            session,
            unreached,
            wait_all,
        } => {
            if let Some((exe, reason)) = unreached {
                desk.unreached(plan.began, plan.root, &exe.to_string_lossy(), reason);
            }
            Launch {
                tail: Tail::new(session),
                translate: Translate::new(Some(plan.root)),
                watch: Watch::default(),
                desk,
                root: plan.root,
            }
            .run(words, wait_all)
        }
        Inputs::Attach => attached(plan.root, desk, words),
    }
}

/// Follows a live process by looking at `/proc`, until it ends or the word comes.
fn attached(root: u32, mut desk: Desk, words: &Receiver<Word>) -> io::Result<Collected> {
    let mut tree = procfs::Tree::new(root);
    let mut first = true;
    while tree.root_lives() {
        tree.look(&mut desk, first, true);
        desk.flush();
        first = false;
        match words.recv_timeout(POLL_PROC) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let lives = tree.root_lives();
    if !lives {
        // One more look tells who is gone.
        tree.look(&mut desk, first, true);
    }
    desk.flush();
    Ok(Collected {
        still_running: if lives {
            tree.pids().collect()
        } else {
            Vec::new()
        },
        model: desk.model,
        trouble: desk.trouble,
    })
}

/// The collection of a launch.
struct Launch {
    tail: Tail,
    translate: Translate,
    watch: Watch,
    desk: Desk,
    root: u32,
}

impl Launch {
    fn run(mut self, words: &Receiver<Word>, wait_all: bool) -> io::Result<Collected> {
        let ended = loop {
            self.look()?;
            match words.recv_timeout(POLL) {
                Ok(Word::Ended(ended)) => break Some(ended),
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let end_time = monotonic_ns();
        let deadline = Instant::now() + DRAIN;
        loop {
            self.look()?;
            let others = self.watch.living() > usize::from(self.watch.knows(self.root));
            if !others || !wait_all && Instant::now() >= deadline {
                break;
            }
            match words.recv_timeout(POLL) {
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) if wait_all => break,
                _ => {}
            }
        }
        self.translate.finish(end_time, &mut self.desk);
        if let Some(ended) = ended {
            self.desk.put(Draft {
                time: end_time,
                pid: self.root,
                tid: self.root,
                body: Body::ProcessExit(exit_of(ended)),
            });
        }
        self.account_for_losses(end_time);
        self.ask_tools(end_time);
        self.desk.flush();
        let root = self.root;
        let mut still_running: Vec<u32> = self.watch.pids().filter(|pid| *pid != root).collect();
        still_running.sort_unstable();
        Ok(Collected {
            model: self.desk.model,
            trouble: self.desk.trouble,
            still_running,
        })
    }

    /// Takes in what has come since the last look.
    fn look(&mut self) -> io::Result<()> {
        let (translate, desk, watch) = (&mut self.translate, &mut self.desk, &mut self.watch);
        self.tail.read(|header, record| {
            if matches!(record, jittrace_wire::Record::Start(_)) {
                watch.begin(header.pid);
            }
            translate.record(header, record, desk);
        })?;
        for (pid, exit) in watch.ended() {
            let said = !translate.living().any(|p| p == pid);
            translate.gone(pid);
            if said || pid == self.root {
                continue;
            }
            desk.put(Draft {
                time: monotonic_ns(),
                pid,
                tid: pid,
                body: Body::ProcessExit(exit),
            });
        }
        desk.flush();
        Ok(())
    }

    fn account_for_losses(&mut self, time: u64) {
        for (what, count, reason) in [
            (
                "bytes",
                self.tail.damaged(),
                "part of the session file was damaged or cut off, as by a full disk",
            ),
            ("records", self.tail.unknown(), "records of a newer shim"),
        ] {
            if count > 0 {
                self.desk.put(Draft {
                    time,
                    pid: 0,
                    tid: 0,
                    body: Body::Lost(Lost {
                        what: what.to_owned(),
                        count,
                        reason: reason.to_owned(),
                    }),
                });
            }
        }
    }

    /// Asks the tools that ran and whose files do not tell their release. The command has ended: nothing is disturbed.
    fn ask_tools(&mut self, time: u64) {
        for path in self.desk.facts.unversioned().to_vec() {
            let heard = self
                .desk
                .model
                .messages()
                .iter()
                .any(|m| m.what.pattern == "toolkit-release" && m.what.text.contains(&path));
            if heard {
                continue;
            }
            if let Some(fact) = probe::version_of(&path) {
                self.desk.fact(time, fact);
            }
        }
    }
}

fn exit_of(ended: Ended) -> ProcessExit {
    match ended {
        Ended::Code(code) => ProcessExit {
            code: Some(code),
            ..ProcessExit::default()
        },
        Ended::Signal(signal) => ProcessExit {
            signal: Some(signal),
            ..ProcessExit::default()
        },
    }
}

/// Where events get their number and everything else that they need.
struct Desk {
    writer: Writer<Box<dyn Write + Send>>,
    trouble: Option<io::Error>,
    model: Model,
    redactor: Redactor,
    facts: Facts,
    caches: CacheFacts,
    vicinity: vicinity::Vicinity,
    /// Environments of the living processes.
    environments: HashMap<u32, Rc<IndexMap<String, String>>>,
    replay: Replay,
    /// Processes that run a build tool or a shell.
    tools: HashSet<u32>,
    began: u64,
    next: EventId,
    batch: Vec<Event>,
    listening: Option<Sender<Vec<Event>>>,
}

impl Sink for Desk {
    fn put_from(&mut self, mut draft: Draft, source: Source) -> EventId {
        let pid = draft.pid;
        let mut told = Vec::new();
        match &mut draft.body {
            Body::ProcessStart(start) => told = self.begin(pid, start),
            Body::ProcessExit(_) => {
                self.replay.end(pid);
                self.tools.remove(&pid);
                self.environments.remove(&pid);
            }
            Body::LibraryLoaded(loaded) => {
                if loaded.at_start && self.tools.contains(&pid) && !replay::is_of_cuda(&loaded.path)
                {
                    return 0;
                }
                if source == Source::Preload {
                    self.replay.loaded(pid, loaded);
                }
            }
            Body::LibraryFailed(failed) => {
                let failed = std::mem::take(failed.as_mut());
                if let Some(request) = failed.request {
                    self.searches_of_failed(draft.time, pid, draft.tid, request);
                }
                draft.body = self.replay.failed(pid, failed);
            }
            Body::LibraryUnloaded(unloaded) => self.replay.unloaded(pid, &unloaded.path),
            _ => {}
        }
        self.look_up(&mut draft, &mut told);
        for fact in told {
            self.fact(draft.time, fact);
        }
        let asked = match &draft.body {
            Body::LibraryRequest(request) => Some(request.clone()),
            _ => None,
        };
        let id = self.write(draft, source);
        if let Some(request) = asked {
            self.replay.request(pid, id, &request);
        }
        id
    }

    fn mapped(&mut self, pid: u32, objects: Vec<Mapped>) {
        for loaded in self.replay.found(pid, &objects) {
            self.put_from(
                Draft {
                    time: monotonic_ns(),
                    pid,
                    tid: pid,
                    body: Body::LibraryLoaded(Box::new(loaded)),
                },
                Source::Procfs,
            );
        }
    }
}

impl Desk {
    /// A command that the shim cannot reach says nothing itself.
    fn unreached(&mut self, time: u64, pid: u32, exe: &str, reason: String) {
        let argv = self.model.header().command.clone();
        self.put_from(
            Draft {
                time,
                pid,
                tid: pid,
                body: Body::ProcessStart(Box::new(ProcessStart {
                    exe: exe.to_owned(),
                    argv,
                    not_followed: Some(reason),
                    ..ProcessStart::default()
                })),
            },
            Source::Collector,
        );
    }

    /// A process began: its link map, its environment, whether it only builds. Gives what its start brings to light.
    fn begin(&mut self, pid: u32, start: &mut ProcessStart) -> Vec<Fact> {
        self.replay.start(pid, start);
        let facts = self.facts.process(start);
        let before = self
            .environments
            .get(&pid)
            .or_else(|| self.environments.get(&start.ppid))
            .cloned();
        let environment = match before {
            Some(before) if start.forked || *before == start.env => {
                start.env_inherited = true;
                start.env.clear();
                before
            }
            _ => Rc::new(start.env.clone()),
        };
        self.environments.insert(pid, environment);
        let is_tool =
            |path: &str| tool::Kind::of(path.rsplit('/').next().unwrap_or_default()).is_some();
        let script = start
            .argv
            .get(1)
            .is_some_and(|a| a.contains('/') && is_tool(a));
        if is_tool(&start.exe) || script {
            self.tools.insert(pid);
        } else {
            self.tools.remove(&pid);
        }
        facts
    }

    /// A load that failed for its symbols has still chosen files, and which ones is what a verdict needs.
    fn searches_of_failed(&mut self, time: u64, pid: u32, tid: u32, request: EventId) {
        for loaded in self.replay.searches_of(pid, request) {
            let mut draft = Draft {
                time,
                pid,
                tid,
                body: Body::LibraryLoaded(Box::new(loaded)),
            };
            let mut facts = Vec::new();
            self.look_up(&mut draft, &mut facts);
            for fact in facts {
                self.fact(time, fact);
            }
            self.write(draft, Source::Collector);
        }
    }

    fn fact(&mut self, time: u64, fact: Fact) -> EventId {
        self.write(
            Draft {
                time,
                pid: 0,
                tid: 0,
                body: Body::Fact(Box::new(fact)),
            },
            Source::Collector,
        )
    }

    /// Looks up what the model needs to understand an event.
    fn look_up(&mut self, draft: &mut Draft, told: &mut Vec<Fact>) {
        let facts = &mut self.facts;
        let environment = self.environments.get(&draft.pid).cloned();
        let variable = |name: &str| environment.as_ref()?.get(name).cloned();
        let process = self.model.current_process(draft.pid);
        let cwd = process
            .and_then(|i| self.model.process(i))
            .map_or_else(|| "/".to_owned(), |p| p.what.cwd.clone());
        match &mut draft.body {
            Body::ProcessStart(start) => {
                let script = start
                    .argv
                    .get(1)
                    .filter(|a| a.contains('/') && !a.starts_with('-'))
                    .map(|a| below(&start.cwd, a));
                for path in [Some(start.exe.clone()), script].into_iter().flatten() {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    if tool::Kind::of(name)
                        .is_some_and(|k| k != tool::Kind::Shell && k != tool::Kind::HostTool)
                    {
                        facts.file(&path, told);
                    }
                }
            }
            Body::Exec(exec) => {
                facts.frames(&mut exec.python, told);
                let name = exec.path.rsplit('/').next().unwrap_or_default();
                if tool::Kind::of(name).and_then(tool::Kind::part).is_some()
                    && exec.path.contains('/')
                {
                    let forker = exec.ppid.and_then(|ppid| self.model.current_process(ppid));
                    let cwd = process
                        .or(forker)
                        .and_then(|i| self.model.process(i))
                        .map_or("/", |p| p.what.cwd.as_str());
                    facts.file(&below(cwd, &exec.path), told);
                }
            }
            Body::ExecFailed(failed) => {
                facts.frames(&mut failed.python, told);
                let process = self
                    .model
                    .current_process(draft.pid)
                    .or_else(|| self.model.current_process(failed.ppid?));
                for path in self.vicinity.of_failed_tool(failed, process, &self.model) {
                    facts.file(&path, told);
                }
            }
            Body::LibraryRequest(request) => facts.frames(&mut request.python, told),
            Body::LibraryLoaded(loaded) => {
                facts.frames(&mut loaded.python, told);
                facts.file(&loaded.path, told);
                for path in self.vicinity.of_loaded(loaded, &cwd) {
                    facts.file(&path, told);
                }
                if !loaded.at_start {
                    told.extend(self.caches.look(&loaded.path, &variable));
                }
            }
            Body::LibraryFailed(failed) => {
                facts.frames(&mut failed.python, told);
                for path in self.vicinity.of_failed(failed, &cwd) {
                    facts.file(&path, told);
                }
            }
            Body::Call(call) => {
                facts.frames(&mut call.python, told);
                if let Some(caller) = &mut call.caller {
                    caller.distribution = facts.owner(&caller.object, told);
                }
            }
            Body::File(access) => {
                facts.access(access, told);
                told.extend(self.caches.look(&access.path, &variable));
                if let Some(to) = &access.to {
                    told.extend(self.caches.look(to, &variable));
                }
            }
            _ => {}
        }
    }

    /// Numbers an event, masks it, writes it down and folds it.
    fn write(&mut self, draft: Draft, source: Source) -> EventId {
        let id = self.next;
        self.next += 1;
        let mut event = Event {
            id,
            t: draft.time.saturating_sub(self.began),
            pid: draft.pid,
            tid: draft.tid,
            source,
            same_as: None,
            body: draft.body,
        };
        self.redactor.event(&mut event);
        if self.trouble.is_none()
            && let Err(error) = self.writer.write(&event)
        {
            self.trouble = Some(error);
        }
        if self.listening.is_some() {
            self.batch.push(event.clone());
        }
        self.model.apply(event);
        id
    }

    fn flush(&mut self) {
        if self.trouble.is_none()
            && let Err(error) = self.writer.flush()
        {
            self.trouble = Some(error);
        }
        if let Some(listener) = &self.listening
            && !self.batch.is_empty()
            && listener.send(std::mem::take(&mut self.batch)).is_err()
        {
            self.listening = None;
        }
    }
}

/// A path made absolute against a working directory.
fn below(cwd: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!(
            "{}/{}",
            cwd.trim_end_matches('/'),
            path.trim_start_matches("./")
        )
    }
}
