//! Where events get their number and everything else that they need: facts of the host, the replayed search, masks for
//! credentials. From here they go to the trace, to the fold and to whoever watches.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    rc::Rc,
};

use crossbeam_channel::Sender;
use indexmap::IndexMap;
use jittrace_model::{
    Model,
    commandline::{self, HANDED_OVER, REBUILT_SINCE, Tool, absolute, handed_over, made_of},
    event::{Body, Event, EventId, Fact, Note, ProcessExit, ProcessStart, PythonStack, Source},
    log::{Header, Writer},
    redact::Redactor,
    report::phrase,
    resolve::tool,
};

use super::{
    cache_facts::CacheFacts,
    facts::Facts,
    kernel::Unprobed,
    monotonic_ns, probe, procfs,
    replay::{self, Mapped, Replay},
    roots::{Roots, View},
    stillborn,
    translate::{Draft, Sink},
    vicinity,
    witness::{self, Witnesses},
};

/// Where events get their number and everything else that they need.
pub(super) struct Desk {
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
    roots: Roots,
    /// Processes whose files cannot be seen.
    hidden: HashSet<u32>,
    /// Where two sources tell the same facts.
    witnesses: Option<Witnesses>,
    /// What the second of them tells is written too.
    twice: bool,
    listening: Option<Sender<Vec<Event>>>,
}

impl Sink for Desk {
    fn put_from(&mut self, draft: Draft, source: Source) -> EventId {
        let known = self
            .witnesses
            .as_mut()
            .and_then(|witnesses| witnesses.first(&draft, source));
        if let Some(first) = known {
            self.second(draft, source, first);
            return first;
        }
        if let Some(later) = self.image_after(&draft) {
            return later;
        }
        let keys = match &self.witnesses {
            Some(_) => witness::Keys::of(&draft),
            None => witness::Keys::default(),
        };
        let pid = draft.pid;
        if matches!(draft.body, Body::ProcessStart(_)) {
            self.roots.begin(pid);
        }
        let ends = matches!(draft.body, Body::ProcessExit(_));
        let view = self.roots.enter(pid);
        let id = match view {
            View::Ours | View::Entered => self.tell(draft, source, keys),
            View::Hidden => self.tell_blindly(draft, source),
        };
        self.roots.leave(view);
        if ends {
            self.roots.end(pid);
        }
        id
    }

    fn forked(&mut self, child: u32, parent: u32) {
        if let Some(witnesses) = &mut self.witnesses {
            witnesses.forked(child, parent);
        }
    }

    fn mapped(&mut self, pid: u32, objects: Vec<Mapped>) {
        let view = self.roots.enter(pid);
        let loads = match view {
            View::Ours | View::Entered => self.replay.found(pid, &objects),
            View::Hidden => Vec::new(),
        };
        self.roots.leave(view);
        for loaded in loads {
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
    /// Tells a fact, with what can be looked up about it.
    fn tell(&mut self, mut draft: Draft, source: Source, keys: witness::Keys) -> EventId {
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
                if matches!(source, Source::Preload | Source::Ebpf) {
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
        let begun = match &draft.body {
            Body::ProcessStart(start) => !start.forked,
            _ => false,
        };
        let time = draft.time;
        let id = self.write(draft, source);
        let notes = match begun {
            true => [self.handed_over(pid), self.rebuilt_since(pid)],
            false => [None, None],
        };
        for note in notes.into_iter().flatten() {
            self.write(
                Draft {
                    time,
                    pid,
                    tid: pid,
                    body: Body::Note(note),
                },
                Source::Collector,
            );
        }
        if let Some(witnesses) = &mut self.witnesses {
            witnesses.told(keys, id, time, source);
        }
        if let Some(request) = asked {
            self.replay.request(pid, id, &request);
        }
        id
    }

    /// Tells a fact of a process whose files cannot be seen from here: nothing is looked up, since files of the same
    /// names would be others.
    fn tell_blindly(&mut self, draft: Draft, source: Source) -> EventId {
        if self.hidden.insert(draft.pid) {
            self.write(
                Draft {
                    time: draft.time,
                    pid: draft.pid,
                    tid: draft.tid,
                    body: Body::Note(Note {
                        about: "hidden-files".to_owned(),
                        text: format!(
                            "process {} has another root directory, which may not be entered: its files are not \
                             identified; run jittrace as root, or beside it in its container",
                            draft.pid
                        ),
                    }),
                },
                Source::Collector,
            );
        }
        self.write(draft, source)
    }
}

impl Desk {
    /// Begins a trace: its first line, and what the host tells before anything happens.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(super) fn open(
        header: Header,
        trace: Box<dyn Write + Send>,
        redactor: Redactor,
        began: u64,
        listening: Option<Sender<Vec<Event>>>,
    ) -> io::Result<Desk> {
        let mut desk = Desk {
            writer: Writer::new(trace, &header)?,
            trouble: None,
            model: Model::new(header),
            redactor,
            facts: Facts::default(),
            caches: CacheFacts::default(),
            vicinity: vicinity::Vicinity::default(),
            environments: HashMap::new(),
            replay: Replay::default(),
            tools: HashSet::new(),
            began,
            next: 1,
            batch: Vec::new(),
            roots: Roots::default(),
            hidden: HashSet::new(),
            witnesses: None,
            twice: false,
            listening,
        };
        for fact in desk.facts.driver() {
            desk.fact(began, fact);
        }
        Ok(desk)
    }

    /// Ends the trace: the fold, and why it could not be written to its end.
    pub(super) fn close(mut self) -> (Model, Option<io::Error>) {
        self.flush();
        (self.model, self.trouble)
    }

    /// Asks the tools that ran and whose files do not tell their release. The traced program has ended: nothing is
    /// disturbed.
    pub(super) fn ask_tools(&mut self, time: u64) {
        for path in self.facts.unversioned().to_vec() {
            let heard = self
                .model
                .messages()
                .iter()
                .any(|m| m.what.pattern == "toolkit-release" && m.what.text.contains(&path));
            if heard {
                continue;
            }
            if let Some(fact) = probe::version_of(&path) {
                self.fact(time, fact);
            }
        }
    }

    /// Files without probes: what is called in them is not seen.
    pub(super) fn unprobed(&mut self, time: u64, files: &[Unprobed]) {
        for file in files {
            self.write(
                Draft {
                    time,
                    pid: file.pid,
                    tid: file.pid,
                    body: Body::Note(Note {
                        about: "unprobed".to_owned(),
                        text: format!(
                            "calls in {} are not seen: {}",
                            file.path.display(),
                            file.reason
                        ),
                    }),
                },
                Source::Collector,
            );
        }
    }

    /// A command that the shim cannot reach says nothing itself.
    pub(super) fn unreached(&mut self, time: u64, pid: u32, exe: &str, reason: String) {
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

    /// The program that a forked process was told to be meanwhile: on a busy machine one source may be so late that the
    /// other has told the exec before it tells the fork. Told then, the fork would begin the process anew.
    fn image_after(&self, draft: &Draft) -> Option<EventId> {
        let Body::ProcessStart(start) = &draft.body else {
            return None;
        };
        let known = self.model.process(self.model.current_process(draft.pid)?)?;
        let time = draft.time.saturating_sub(self.began);
        let later = start.forked && !known.what.forked && known.start > time;
        (later && known.what.ppid == start.ppid).then_some(known.id)
    }

    /// The process to which a client hands its work: the oldest that has the server's name and was there before it.
    fn handed_over(&self, pid: u32) -> Option<Note> {
        let process = self.model.process(self.model.current_process(pid)?)?;
        let handed = handed_over(process.name(), process.arguments())?;
        let server = procfs::oldest_named(handed.servers, pid)?;
        Some(Note {
            about: HANDED_OVER.to_owned(),
            text: format!(
                "{} runs as process {server}, which this trace does not follow",
                handed.servers.first().copied().unwrap_or("its server")
            ),
        })
    }

    /// Why a compile runs again: a source that is newer than what was made of it the last time, by ninja's rule. Asked
    /// when the compiler has just begun; if it was faster than this look, its output is newer and nothing is said.
    fn rebuilt_since(&self, pid: u32) -> Option<Note> {
        let process = self.model.process(self.model.current_process(pid)?)?;
        let mut command = vec![process.program.as_str()];
        command.extend(process.arguments().iter().map(String::as_str));
        let (output, sources) = made_of(&commandline::parse(&command), &process.what.cwd)?;
        // What nvcc hands to the host compiler is made in this run.
        let above = std::iter::successors(process.parent, |p| self.model.process(*p)?.parent);
        let is_inner = above
            .filter_map(|p| self.model.process(p))
            .any(|p| commandline::tool_of(p.name()) == Tool::Nvcc);
        if is_inner {
            return None;
        }
        let modified = |path: &str| std::fs::metadata(path).ok()?.modified().ok();
        let made = modified(&output)?;
        let (source, newer) = sources.into_iter().find_map(|source| {
            let newer = modified(&source)?.duration_since(made).ok()?;
            (!newer.is_zero()).then_some((source, newer))
        })?;
        let by = phrase::duration(u64::try_from(newer.as_nanos()).unwrap_or(u64::MAX));
        Some(Note {
            about: REBUILT_SINCE.to_owned(),
            text: format!("rebuilt since {source} is newer than {output}, by {by}"),
        })
    }

    /// A process ended with the loader's status and without a word: what of CUDA the loader missed. `start` is how it
    /// began, for one that did not live to say so.
    pub(super) fn ended_by_loader(
        &mut self,
        start: Option<Box<ProcessStart>>,
        pid: u32,
        time: u64,
    ) {
        let begun = self
            .model
            .current_process(pid)
            .and_then(|index| self.model.process(index));
        let known = match (begun, start) {
            (Some(process), _) => {
                let mut start = process.started();
                if let Some(environment) = self.environments.get(&pid) {
                    start.env = environment.as_ref().clone();
                }
                start
            }
            (None, Some(start)) => {
                self.put_from(
                    Draft {
                        time: self.began,
                        pid,
                        tid: pid,
                        body: Body::ProcessStart(start.clone()),
                    },
                    Source::Collector,
                );
                *start
            }
            (None, None) => return,
        };
        self.missed(&known, pid, time);
    }

    /// Children that were to run a program and never said that they began: those that the loader ended.
    pub(super) fn children_ended_by_loader(&mut self, time: u64) {
        let attempts: Vec<(u32, u32, String, Vec<String>)> = self
            .model
            .execs_without_start()
            .filter(|(_, exec)| exec.what.not_followed.is_none())
            .map(|(child, exec)| {
                let parent = exec.what.ppid.unwrap_or(exec.pid);
                let what = &exec.what;
                (child, parent, what.path.clone(), what.argv.clone())
            })
            .collect();
        for (child, parent, path, argv) in attempts {
            let Some(process) = self
                .model
                .current_process(parent)
                .and_then(|index| self.model.process(index))
            else {
                continue;
            };
            let start = ProcessStart {
                ppid: parent,
                exe: absolute(&process.what.cwd, &path),
                argv,
                cwd: process.what.cwd.clone(),
                env: process.env.as_ref().clone(),
                ..ProcessStart::default()
            };
            if self.replay.missed(&start).is_none() {
                continue;
            }
            self.put_from(
                Draft {
                    time,
                    pid: child,
                    tid: child,
                    body: Body::ProcessStart(Box::new(start.clone())),
                },
                Source::Collector,
            );
            self.missed(&start, child, time);
            self.put_from(
                Draft {
                    time,
                    pid: child,
                    tid: child,
                    body: Body::ProcessExit(ProcessExit {
                        code: Some(stillborn::LOADER_STATUS),
                        ..ProcessExit::default()
                    }),
                },
                Source::Collector,
            );
        }
    }

    fn missed(&mut self, start: &ProcessStart, pid: u32, time: u64) {
        if let Some(failed) = self.replay.missed(start) {
            self.put_from(
                Draft {
                    time,
                    pid,
                    tid: pid,
                    body: Body::LibraryFailed(Box::new(failed)),
                },
                Source::Collector,
            );
        }
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

    pub(super) fn fact(&mut self, time: u64, fact: Fact) -> EventId {
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
                    .map(|a| absolute(&start.cwd, a));
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
                    facts.file(&absolute(cwd, &exec.path), told);
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
                // The object that could not be completed: what it needs, and whether it lies in a cache.
                let incomplete = failed.missing_for.as_ref().unwrap_or(&failed.requested);
                if incomplete.contains('/') {
                    let incomplete = absolute(&cwd, incomplete);
                    facts.file(&incomplete, told);
                    told.extend(self.caches.look(&incomplete, &variable));
                }
            }
            Body::Call(call) => {
                facts.frames(&mut call.python, told);
                if let Some(caller) = &mut call.caller {
                    caller.distribution = facts.owner(&caller.object, told);
                }
            }
            Body::PythonStack(stack) => facts.frames(&mut stack.python, told),
            Body::File(access) => {
                facts.access(access, told);
                for path in self.vicinity.of_missing_header(access, &cwd, facts.sites()) {
                    facts.file(&path, told);
                }
                told.extend(self.caches.look(&access.path, &variable));
                if let Some(to) = &access.to {
                    told.extend(self.caches.look(to, &variable));
                }
            }
            _ => {}
        }
    }

    /// From here on two sources tell the same facts. `twice`: the second is written too, as an event of its own that
    /// points to the first.
    pub(super) fn expect_two_witnesses(&mut self, twice: bool) {
        self.witnesses = Some(Witnesses::default());
        self.twice = twice;
    }

    /// The second source tells a fact. What it knows more is kept: the Python code that asked.
    fn second(&mut self, mut draft: Draft, source: Source, first: EventId) {
        let python = witness::only_what_tells_it_apart(&mut draft.body);
        let (time, pid, tid) = (draft.time, draft.pid, draft.tid);
        if self.twice {
            self.event(draft, source, Some(first));
        }
        if source == Source::Preload && !python.is_empty() {
            let mut stack = PythonStack {
                of: Some(first),
                python,
                ..PythonStack::default()
            };
            let mut told = Vec::new();
            self.facts.frames(&mut stack.python, &mut told);
            for fact in told {
                self.fact(time, fact);
            }
            self.write(
                Draft {
                    time,
                    pid,
                    tid,
                    body: Body::PythonStack(Box::new(stack)),
                },
                source,
            );
        }
    }

    /// Numbers a fact, masks it, writes it down and folds it.
    fn write(&mut self, draft: Draft, source: Source) -> EventId {
        self.event(draft, source, None)
    }

    fn event(&mut self, draft: Draft, source: Source, same_as: Option<EventId>) -> EventId {
        let id = self.next;
        self.next += 1;
        let mut event = Event {
            id,
            t: draft.time.saturating_sub(self.began),
            pid: draft.pid,
            tid: draft.tid,
            source,
            same_as,
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

    pub(super) fn flush(&mut self) {
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

#[cfg(test)]
mod tests {
    use jittrace_model::redact::Options;

    use super::*;

    #[test]
    fn a_fork_that_is_told_after_the_exec_does_not_begin_the_process_anew() {
        let began = 1_000;
        let redactor = Redactor::new(Options::default());
        let sink = Box::new(std::io::sink());
        let mut desk = Desk::open(Header::default(), sink, redactor, began, None).unwrap();
        desk.expect_two_witnesses(true);
        let at = |time, body| Draft {
            time,
            pid: 7,
            tid: 7,
            body,
        };
        let start = |forked| {
            Body::ProcessStart(Box::new(ProcessStart {
                ppid: 1,
                exe: if forked { "" } else { "/usr/bin/nvcc" }.to_owned(),
                forked,
                ..ProcessStart::default()
            }))
        };
        let told = desk.put_from(at(1_300, start(false)), Source::Preload);
        assert_eq!(
            desk.put_from(at(1_100, start(true)), Source::Ebpf),
            told,
            "the earlier fork is of the same process"
        );
        let end = Body::ProcessExit(ProcessExit {
            code: Some(0),
            ..ProcessExit::default()
        });
        desk.put_from(at(1_900, end), Source::Ebpf);
        // A later one is another process with that number.
        desk.put_from(at(2_000, start(true)), Source::Ebpf);
        let (model, trouble) = desk.close();
        assert!(trouble.is_none());
        let ended: Vec<bool> = model.processes().iter().map(|p| p.end.is_some()).collect();
        assert_eq!(ended, [true, false]);
    }
}
