//! From the shim's records to events.
//!
//! Records refer to each other by process and sequence number; events refer to each other by id. What a record leaves
//! to be concluded (a request that nothing settled, a process that ended without a word) is concluded here, at the
//! latest when the trace ends.

mod calls;
mod processes;
mod requests;

use std::collections::{BTreeMap, HashMap};

use jittrace_model::event::{
    Body, Caller, EventId, Exec, FileAccess, FileOp, Frame, LibraryLoaded, LibraryUnloaded, Lost,
    Message, Note,
};
use jittrace_wire::{
    Record,
    record::{self, Header, List, Text},
};

use self::requests::Request;
use super::draft::{Draft, Sink, absolute};

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
