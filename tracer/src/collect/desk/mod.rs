//! Where events get their number and everything else that they need: facts of the host, the replayed search, masks for
//! credentials. From here they go to the trace, to the fold and to whoever watches.

mod ended_by_loader;
mod look_up;
mod notes;

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    rc::Rc,
};

use crossbeam_channel::Sender;
use indexmap::IndexMap;
use jittrace_model::{
    Model,
    event::{Body, Event, EventId, Fact, LibraryLoaded, Note, Outcome, PythonStack, Source},
    log::{Header, Writer},
    redact::Redactor,
};

use super::{
    cache_facts::CacheFacts,
    draft::{Draft, Sink},
    facts::Facts,
    monotonic_ns, probe,
    replay::{self, Mapped, Replay},
    roots::{Roots, View},
    vicinity,
    witness::{self, Witnesses},
};

/// Where events get their number and everything else that they need.
pub(in crate::collect) struct Desk {
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
                // What the kernel sees is the loader opening a file: one for another machine it closes again.
                if source == Source::Ebpf && was_passed_over(loaded) {
                    self.replay.unloaded(pid, &loaded.path);
                    return 0;
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
    pub(in crate::collect) fn open(
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
    pub(in crate::collect) fn close(mut self) -> (Model, Option<io::Error>) {
        self.flush();
        (self.model, self.trouble)
    }

    /// Asks the tools that ran and whose files do not tell their release. The traced program has ended: nothing is
    /// disturbed.
    pub(in crate::collect) fn ask_tools(&mut self, time: u64) {
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

    /// The program that a process was told to be meanwhile. On a busy machine one source may be so late that the other has
    /// told the exec before it tells the fork, or that a snapshot has found the program already. Told then, the earlier
    /// start would begin the process anew.
    fn image_after(&self, draft: &Draft) -> Option<EventId> {
        let Body::ProcessStart(start) = &draft.body else {
            return None;
        };
        let known = self.model.process(self.model.current_process(draft.pid)?)?;
        let time = draft.time.saturating_sub(self.began);
        let later = known.start > time && known.what.ppid == start.ppid;
        let forked = start.forked && !known.what.forked;
        let found = known.what.found && known.what.exe == start.exe;
        (later && (forked || found)).then_some(known.id)
    }

    pub(in crate::collect) fn fact(&mut self, time: u64, fact: Fact) -> EventId {
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

    /// From here on two sources tell the same facts. `twice`: the second is written too, as an event of its own that
    /// points to the first.
    pub(in crate::collect) fn expect_two_witnesses(&mut self, twice: bool) {
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

    pub(in crate::collect) fn flush(&mut self) {
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

/// Whether a file was opened by a search that went on after it.
fn was_passed_over(loaded: &LibraryLoaded) -> bool {
    loaded.candidates.iter().any(|c| {
        c.path == loaded.path && matches!(c.outcome, Outcome::WrongClass | Outcome::NotElf)
    })
}

#[cfg(test)]
mod tests {
    use jittrace_model::{
        event::{ProcessExit, ProcessStart},
        redact::Options,
    };

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
