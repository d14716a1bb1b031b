//! The fold: a list of events becomes the state of what was traced.
//!
//! [`Model::apply`] is the only way in, for a live trace, a replayed file, a joined pair and a test alike. It keeps
//! what was seen, indexed by process, and draws no conclusions; those are made from it by [`crate::resolve`] and
//! [`crate::findings`].

mod alike;
mod condense;
mod pool;
mod process;

use std::{collections::HashMap, ops::Deref, sync::Arc};

pub use condense::Condensed;
use condense::Long;
use pool::Pool;
pub use process::{Begun, Process, ProcessIndex};

use crate::{
    event::{
        Body, CacheFact, Call, DirectoryFact, DistributionFact, DriverFact, Event, EventId, Exec,
        ExecFailed, Fact, FileAccess, FileFact, Frame, GpuFact, LibraryFailed, LibraryLoaded,
        LibraryRequest, Lost, Message, Note, Source, ToolOutputFact, ToolkitFact,
    },
    log::Header,
};

/// A part of the state together with the event that told it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen<T> {
    /// The event.
    pub id: EventId,
    /// Nanoseconds since the trace began.
    pub t: u64,
    /// Process id.
    pub pid: u32,
    /// The process image it happened in, when its start is known.
    pub process: Option<ProcessIndex>,
    /// Who saw it.
    pub source: Source,
    /// What was seen.
    pub what: T,
}

/// A library that was mapped. Ten processes that map the same one by the same rule share what was told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The request that led here; that of the shared part is absent.
    pub request: Option<EventId>,
    what: Arc<LibraryLoaded>,
}

impl Deref for Loaded {
    type Target = LibraryLoaded;

    fn deref(&self) -> &LibraryLoaded {
        &self.what
    }
}

/// The state of what was traced.
#[derive(Debug, Clone, Default)]
pub struct Model {
    header: Header,
    processes: Vec<Process>,
    current: HashMap<u32, ProcessIndex>,
    execs: Vec<Seen<Exec>>,
    /// Children that were forked to exec something and have no start of their own yet: pid to the image that forked.
    forked: HashMap<u32, ProcessIndex>,
    /// The exec attempt of a pid that no process start has claimed yet.
    pending_execs: HashMap<u32, usize>,
    exec_failures: Vec<Seen<ExecFailed>>,
    requests: Vec<Seen<Arc<LibraryRequest>>>,
    equal_requests: Pool<LibraryRequest>,
    request_at: HashMap<EventId, usize>,
    libraries: Vec<Seen<Loaded>>,
    equal_libraries: Pool<LibraryLoaded>,
    library_failures: Vec<Seen<LibraryFailed>>,
    calls: Vec<Seen<Arc<Call>>>,
    equal_calls: Pool<Call>,
    messages: Vec<Seen<Message>>,
    accesses: Vec<Seen<Arc<FileAccess>>>,
    equal_accesses: Pool<FileAccess>,
    /// What lies at each path: several files where it is another one in another mount namespace, or was replaced.
    files: HashMap<String, Vec<Seen<FileFact>>>,
    /// Real paths of libraries that were mapped by a relative path.
    relative: HashMap<String, String>,
    distributions: Vec<Seen<DistributionFact>>,
    toolkits: Vec<Seen<ToolkitFact>>,
    gpus: Vec<Seen<GpuFact>>,
    drivers: Vec<Seen<DriverFact>>,
    tool_outputs: Vec<Seen<ToolOutputFact>>,
    directories: HashMap<String, Seen<DirectoryFact>>,
    cache_facts: HashMap<String, Seen<CacheFact>>,
    /// Directories of the JIT caches, each with the component that owns it.
    cache_owners: HashMap<String, String>,
    lost: Vec<Seen<Lost>>,
    notes: Vec<Seen<Note>>,
    long: Long,
    condensed: Condensed,
    events: u64,
    last_id: EventId,
    last_t: u64,
}

impl Model {
    /// The state before the first event.
    pub fn new(header: Header) -> Self {
        Model {
            header,
            ..Model::default()
        }
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: Event) {
        self.events += 1;
        self.last_id = self.last_id.max(event.id);
        self.last_t = self.last_t.max(event.t);
        if event.same_as.is_some() {
            // The fact itself is told by the first witness's event, whichever of the two arrives first.
            return;
        }
        let (id, t, pid, source) = (event.id, event.t, event.pid, event.source);
        let forker = match &event.body {
            Body::Exec(exec) => exec.ppid,
            Body::ExecFailed(failed) => failed.ppid,
            _ => None,
        };
        if let Some(forker) = forker.and_then(|ppid| self.current.get(&ppid).copied())
            && self.current.get(&pid).is_none_or(|&i| self.has_ended(i))
        {
            self.forked.insert(pid, forker);
        }
        let process = self
            .forked
            .get(&pid)
            .or_else(|| self.current.get(&pid))
            .copied();
        macro_rules! seen {
            ($what:expr) => {
                Seen {
                    id,
                    t,
                    pid,
                    process,
                    source,
                    what: $what,
                }
            };
        }
        match event.body {
            Body::ProcessStart(start) => self.start_process(id, t, pid, *start),
            Body::ProcessExit(exit) => self.end_process(id, t, pid, &exit),
            Body::Exec(exec) => self.note_exec(seen!(*exec)),
            Body::ExecFailed(failed) => {
                self.pending_execs.remove(&pid);
                self.exec_failures.push(seen!(*failed));
            }
            Body::LibraryRequest(request) => {
                self.request_at.insert(id, self.requests.len());
                let request = self.equal_requests.share(*request);
                self.requests.push(seen!(request));
            }
            Body::LibraryLoaded(mut loaded) => {
                if !loaded.path.starts_with('/') && !loaded.realpath.is_empty() {
                    self.relative
                        .insert(loaded.path.clone(), loaded.realpath.clone());
                }
                let request = loaded.request.take();
                let what = self.equal_libraries.share(*loaded);
                self.libraries.push(seen!(Loaded { request, what }));
            }
            Body::LibraryFailed(failed) => self.library_failures.push(seen!(*failed)),
            // What was mapped and unmapped again was mapped all the same.
            Body::LibraryUnloaded(_) => {}
            Body::Call(mut call) => {
                call.duration_ns = None;
                let call = self.equal_calls.share(*call);
                self.calls.push(seen!(call));
            }
            Body::Message(message) => self.messages.push(seen!(*message)),
            Body::File(access) => {
                let access = self.equal_accesses.share(*access);
                self.accesses.push(seen!(access));
            }
            Body::PythonStack(stack) => self.attach_stack(pid, stack.of, stack.python),
            Body::Fact(fact) => match *fact {
                Fact::File(fact) => {
                    let there = self.files.entry(fact.path.clone()).or_default();
                    there.retain(|f| (f.what.dev, f.what.ino) != (fact.dev, fact.ino));
                    there.push(seen!(*fact));
                }
                Fact::Distribution(fact) => self.distributions.push(seen!(fact)),
                Fact::Toolkit(fact) => self.toolkits.push(seen!(fact)),
                Fact::Gpu(fact) => self.gpus.push(seen!(fact)),
                Fact::Driver(fact) => self.drivers.push(seen!(fact)),
                Fact::ToolOutput(fact) => self.tool_outputs.push(seen!(fact)),
                Fact::Directory(fact) => {
                    self.directories.insert(fact.path.clone(), seen!(fact));
                }
                Fact::Cache(fact) => {
                    if !fact.directory.is_empty()
                        && !self.cache_owners.contains_key(&fact.directory)
                    {
                        self.cache_owners
                            .insert(fact.directory.clone(), fact.owner.clone());
                    }
                    self.cache_facts.insert(fact.path.clone(), seen!(*fact));
                }
                Fact::Other => {}
            },
            Body::Lost(lost) => self.lost.push(seen!(lost)),
            Body::Note(note) => self.notes.push(seen!(note)),
            Body::Other(_) => {}
        }
        self.condense_when_long();
    }

    fn has_ended(&self, process: ProcessIndex) -> bool {
        self.processes.get(process).is_some_and(|p| p.end.is_some())
    }

    fn note_exec(&mut self, exec: Seen<Exec>) {
        let index = self.execs.len();
        match exec.what.child {
            // A call that made its child itself (posix_spawn) reports after the child has begun, or before it is seen.
            Some(child) => match self.current.get(&child).copied() {
                Some(process) if self.started_after(process, exec.t) => {
                    if let Some(process) = self.processes.get_mut(process) {
                        process.exec.get_or_insert(index);
                    }
                    self.execs.push(exec);
                    if let Some(process) = self.current.get(&child).copied() {
                        self.name_program(process);
                    }
                    return;
                }
                _ => {
                    self.pending_execs.insert(child, index);
                }
            },
            None => {
                self.pending_execs.insert(exec.pid, index);
            }
        }
        self.execs.push(exec);
    }

    /// Whether a process began at or shortly before `t`, so that a spawn reported at `t` is the one that made it.
    fn started_after(&self, process: ProcessIndex, t: u64) -> bool {
        const SPAWN_NS: u64 = 5_000_000_000;
        self.processes
            .get(process)
            .is_some_and(|p| p.start + SPAWN_NS >= t && p.exec.is_none())
    }

    /// Frames that were told later than what they belong to. `pid`: whose they are.
    fn attach_stack(&mut self, pid: u32, of: Option<EventId>, python: Vec<Frame>) {
        /// Numbers rise in the order of arrival, so only what came since is looked at.
        fn late<T>(list: &mut [Seen<T>], of: EventId) -> Option<&mut Seen<T>> {
            list.iter_mut()
                .rev()
                .take_while(|seen| seen.id >= of)
                .find(|seen| seen.id == of)
        }
        let Some(of) = of else { return };
        if let Some(exec) = late(&mut self.execs, of) {
            exec.what.python = python;
        } else if let Some(request) = late(&mut self.requests, of) {
            Arc::make_mut(&mut request.what).python = python;
        } else if let Some(call) = late(&mut self.calls, of) {
            Arc::make_mut(&mut call.what).python = python;
        } else if let Some(loaded) = late(&mut self.libraries, of) {
            Arc::make_mut(&mut loaded.what.what).python = python;
        } else if let Some(process) = self
            .processes
            .iter_mut()
            .rev()
            .take_while(|process| process.id >= of)
            .find(|process| process.id == of)
        {
            if process.pid == pid {
                process.doing = python;
            } else {
                process.asked_by = python;
            }
        }
    }

    /// The trace's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Every process image, in order of start.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// One process image.
    pub fn process(&self, index: ProcessIndex) -> Option<&Process> {
        self.processes.get(index)
    }

    /// The image that a pid runs now, or ran last.
    pub fn current_process(&self, pid: u32) -> Option<ProcessIndex> {
        self.current.get(&pid).copied()
    }

    /// Exec attempts.
    pub fn execs(&self) -> &[Seen<Exec>] {
        &self.execs
    }

    /// The exec attempt that led to a process image.
    pub fn exec_of(&self, process: &Process) -> Option<&Seen<Exec>> {
        process.exec.and_then(|index| self.execs.get(index))
    }

    /// Exec attempts, and the pids that made them or were made by them, that no process start has followed: the child is
    /// not watched, or it ended in the loader before its first instruction.
    pub fn execs_without_start(&self) -> impl Iterator<Item = (u32, &Seen<Exec>)> {
        self.pending_execs
            .iter()
            .filter_map(|(pid, index)| Some((*pid, self.execs.get(*index)?)))
    }

    /// Execs that failed.
    pub fn exec_failures(&self) -> &[Seen<ExecFailed>] {
        &self.exec_failures
    }

    /// Requests for libraries. Equal ones share what they say.
    pub fn requests(&self) -> &[Seen<Arc<LibraryRequest>>] {
        &self.requests
    }

    /// A request by its event.
    pub fn request(&self, id: EventId) -> Option<&Seen<Arc<LibraryRequest>>> {
        self.request_at
            .get(&id)
            .and_then(|&at| self.requests.get(at))
    }

    /// The Python code that asked for a library: its own frames, else those of the request that it answers.
    pub fn python_of<'a>(&'a self, python: &'a [Frame], request: Option<EventId>) -> &'a [Frame] {
        if !python.is_empty() {
            return python;
        }
        request
            .and_then(|id| self.request(id))
            .map_or(&[], |request| &request.what.python)
    }

    /// Libraries that were mapped.
    pub fn libraries(&self) -> &[Seen<Loaded>] {
        &self.libraries
    }

    /// Libraries that could not be loaded.
    pub fn library_failures(&self) -> &[Seen<LibraryFailed>] {
        &self.library_failures
    }

    /// Calls of watched functions. Equal ones share what they say; how long each took is in its event alone.
    pub fn calls(&self) -> &[Seen<Arc<Call>>] {
        &self.calls
    }

    /// What programs said about toolkits.
    pub fn messages(&self) -> &[Seen<Message>] {
        &self.messages
    }

    /// Uses of toolkit and cache files. Equal ones share what they say.
    pub fn accesses(&self) -> &[Seen<Arc<FileAccess>>] {
        &self.accesses
    }

    /// What a file is: the latest one, if there were several of that name. A library that was mapped by a relative path
    /// is known by its real one too.
    pub fn file(&self, path: &str) -> Option<&Seen<FileFact>> {
        self.files_at(path)?.last()
    }

    /// What a mapped library is: the file of its device and inode among those of its path.
    pub fn file_of(&self, loaded: &LibraryLoaded) -> Option<&Seen<FileFact>> {
        let there = self.files_at(&loaded.path)?;
        let id = loaded.dev.zip(loaded.ino);
        there
            .iter()
            .rev()
            .find(|f| id == Some((f.what.dev, f.what.ino)))
            .or_else(|| there.last())
    }

    fn files_at(&self, path: &str) -> Option<&[Seen<FileFact>]> {
        self.files
            .get(path)
            .or_else(|| self.files.get(self.relative.get(path)?))
            .map(Vec::as_slice)
    }

    /// What every file is, in no order.
    pub fn files(&self) -> impl Iterator<Item = &Seen<FileFact>> {
        self.files.values().flatten()
    }

    /// Distributions.
    pub fn distributions(&self) -> &[Seen<DistributionFact>] {
        &self.distributions
    }

    /// A distribution by name; names compare as PyPI compares them.
    pub fn distribution(&self, name: &str) -> Option<&Seen<DistributionFact>> {
        let wanted = normalized(name);
        self.distributions
            .iter()
            .find(|d| normalized(&d.what.name) == wanted)
    }

    /// Toolkits that are present, used or not.
    pub fn toolkits(&self) -> &[Seen<ToolkitFact>] {
        &self.toolkits
    }

    /// GPUs.
    pub fn gpus(&self) -> &[Seen<GpuFact>] {
        &self.gpus
    }

    /// What is known of the driver.
    pub fn drivers(&self) -> &[Seen<DriverFact>] {
        &self.drivers
    }

    /// What tools printed of themselves.
    pub fn tool_outputs(&self) -> &[Seen<ToolOutputFact>] {
        &self.tool_outputs
    }

    /// A directory's file system.
    pub fn directory(&self, path: &str) -> Option<&Seen<DirectoryFact>> {
        self.directories.get(path)
    }

    /// What cache artefacts were built with, in no order.
    pub fn cache_facts(&self) -> impl Iterator<Item = &Seen<CacheFact>> {
        self.cache_facts.values()
    }

    /// What a cache artefact was built with.
    pub fn cache_fact(&self, path: &str) -> Option<&Seen<CacheFact>> {
        self.cache_facts.get(path)
    }

    /// The owner of the JIT cache that `path` lies in; of the innermost one.
    pub fn cache_owner(&self, path: &str) -> Option<&str> {
        let mut end = path.len();
        loop {
            let directory = path.get(..end)?;
            if let Some(owner) = self.cache_owners.get(directory) {
                return Some(owner);
            }
            end = directory.rfind('/')?;
        }
    }

    /// What could not be captured.
    pub fn lost(&self) -> &[Seen<Lost>] {
        &self.lost
    }

    /// Notes on the trace itself.
    pub fn notes(&self) -> &[Seen<Note>] {
        &self.notes
    }

    /// What of a long trace is no longer kept.
    pub fn condensed(&self) -> &Condensed {
        &self.condensed
    }

    /// How many events were taken in.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// The highest event number.
    pub fn last_id(&self) -> EventId {
        self.last_id
    }

    /// Nanoseconds from the start of the trace to its latest event.
    pub fn last_t(&self) -> u64 {
        self.last_t
    }
}

/// A distribution's name as PyPI compares it: lower case, runs of `-`, `_`, `.` are one `-`.
pub fn normalized(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}
