//! What the views draw: the report so far, and what else they need from the model, at one moment.
//!
//! Made by the [`worker`](crate::worker) a few times a second and never changed afterwards, so that drawing and
//! folding need no lock.

use std::{collections::HashMap, ops::Deref, sync::Arc};

use indexmap::IndexMap;
use jittrace_model::{
    EventId, Model,
    event::{Explanation, Frame, Rule},
    fold::{Begun, ProcessIndex},
    report::{Build, Exit, Report},
};

use crate::{
    summary,
    view::{builds, libraries, resolution},
};

/// The model at one moment, as the views need it.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The answer so far.
    pub report: Arc<Report>,
    /// Every process image, in order of start.
    pub processes: Vec<ProcessRow>,
    /// CUDA libraries, JIT artefacts and failed loads, in order of time.
    pub libraries: Vec<LibraryRow>,
    /// Notes on the trace itself.
    pub notes: Vec<(EventId, String)>,
    /// What all builds say together.
    pub builds: builds::Facts,
    /// How wide the columns of all libraries are.
    pub library_widths: libraries::Widths,
    /// What only all builds, caches and processes together tell of a component, by its name.
    pub beside: HashMap<String, resolution::Beside>,
    /// Seconds from the last change of each artefact to the start of the trace; negative when it came in this run.
    ages: HashMap<String, i64>,
    /// How many events were folded.
    pub events: u64,
    /// Nanoseconds from the start to the latest event.
    pub last_t: u64,
    /// Position in the report's toolkits → rank: 0 is the one that is used most.
    ranks: Vec<usize>,
    by_id: HashMap<String, usize>,
    /// The images of each process id, in order of start.
    by_pid: HashMap<u32, Vec<ProcessIndex>>,
    /// The image that an event began.
    by_start: HashMap<EventId, ProcessIndex>,
    /// The build that an event began.
    build_by_start: HashMap<EventId, usize>,
    /// The build of a number.
    build_by_number: HashMap<u32, usize>,
    by_root: Vec<(String, usize)>,
    by_file: HashMap<String, usize>,
}

/// A process image; what was told at its start is shared with the model.
#[derive(Debug, Clone, Default)]
pub struct ProcessRow {
    /// The image that started it.
    pub parent: Option<ProcessIndex>,
    /// Process id.
    pub pid: u32,
    /// The program as it was asked for.
    pub program: String,
    what: Arc<Begun>,
    /// Captured environment.
    pub env: Arc<IndexMap<String, String>>,
    /// Nanoseconds since the trace began.
    pub start: u64,
    /// The same, for its end.
    pub end: Option<u64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The image that took its place.
    pub replaced_by: Option<ProcessIndex>,
    /// The event of its start.
    pub event: EventId,
    /// The event of its end.
    pub exit_event: Option<EventId>,
    /// The exec attempt that led to it.
    pub exec_event: Option<EventId>,
    /// Who asked for it, in Python.
    pub python: Vec<Frame>,
}

impl Deref for ProcessRow {
    type Target = Begun;

    fn deref(&self) -> &Begun {
        &self.what
    }
}

/// A library that was loaded, or could not be.
#[derive(Debug, Clone, Default)]
pub struct LibraryRow {
    /// The event.
    pub event: EventId,
    /// Process.
    pub pid: u32,
    /// Path by which it was mapped; the name that was asked for, when it could not be loaded.
    pub path: String,
    /// The same without symbolic links.
    pub realpath: String,
    /// The part of a toolkit that it is.
    pub part: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The rule that chose it.
    pub rule: Rule,
    /// What decided.
    pub rule_detail: String,
    /// How the rule is known.
    pub explanation: Explanation,
    /// The name that was asked for.
    pub requested: Option<String>,
    /// The object that asked.
    pub requested_by: Option<String>,
    /// Python code that asked; the event has all of its frames, and the whole search.
    pub asker: String,
    /// Why it could not be loaded.
    pub error: Option<String>,
    /// Later requests of the same process that were answered by the file already mapped.
    pub again: Vec<EventId>,
}

impl Snapshot {
    /// The model as it is now.
    pub fn of(model: &Model) -> Snapshot {
        let report = Arc::new(model.report());
        let mut snapshot = Snapshot {
            processes: processes(model),
            libraries: libraries(model),
            notes: model
                .notes()
                .iter()
                .map(|note| (note.id, note.what.text.clone()))
                .collect(),
            ages: ages(model),
            events: model.event_count(),
            last_t: model.last_t(),
            report,
            ..Snapshot::default()
        };
        for (at, process) in snapshot.processes.iter().enumerate() {
            snapshot.by_pid.entry(process.pid).or_default().push(at);
            snapshot.by_start.insert(process.event, at);
        }
        for (at, build) in snapshot.report.builds.iter().enumerate() {
            snapshot.build_by_start.insert(builds::key(build), at);
            snapshot.build_by_number.insert(build.id, at);
        }
        snapshot.index_toolkits(model);
        snapshot.builds = builds::facts(&snapshot);
        snapshot.library_widths = libraries::Widths::of(&snapshot.libraries);
        snapshot.beside = resolution::beside(&snapshot);
        snapshot
    }

    fn index_toolkits(&mut self, model: &Model) {
        let toolkits = &self.report.toolkits;
        let mut uses = vec![0_usize; toolkits.len()];
        self.by_id = toolkits
            .iter()
            .enumerate()
            .map(|(at, t)| (t.id.clone(), at))
            .collect();
        let resolved = self
            .report
            .components
            .iter()
            .flat_map(|c| c.resolved.iter())
            .flat_map(|(part, entries)| entries.iter().map(move |entry| (part.as_str(), entry)));
        for (part, entry) in resolved {
            if part == "host_compiler" || part == "headers" {
                continue;
            }
            let at = entry.toolkit.as_ref().and_then(|id| self.by_id.get(id));
            if let Some(uses) = at.and_then(|&at| uses.get_mut(at)) {
                *uses += 1;
            }
        }
        let mut order: Vec<usize> = (0..toolkits.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(uses.get(at).copied()), at));
        self.ranks = vec![0; toolkits.len()];
        order.sort_by_key(|&at| !self.is_cuda(at));
        for (rank, &at) in order.iter().enumerate() {
            if let Some(slot) = self.ranks.get_mut(at) {
                *slot = rank;
            }
        }
        for (at, toolkit) in toolkits.iter().enumerate() {
            // Everything lies below these: only files that are known one by one belong to such a toolkit.
            if !matches!(
                toolkit.root.as_str(),
                "" | "/" | "/usr" | "/usr/local" | "/opt"
            ) {
                self.by_root.push((toolkit.root.clone(), at));
            }
            for part in toolkit.parts.values() {
                self.by_file.insert(part.path.clone(), at);
            }
        }
        // The innermost root wins: a wheel inside an environment, a bundled tool inside a wheel.
        self.by_root
            .sort_by_key(|(root, _)| std::cmp::Reverse(root.len()));
        let by_root: HashMap<&str, usize> = toolkits
            .iter()
            .enumerate()
            .map(|(at, t)| (t.root.as_str(), at))
            .collect();
        for file in model.files() {
            if let Some(&at) = file
                .what
                .toolkit
                .as_deref()
                .and_then(|root| by_root.get(root))
            {
                self.by_file.insert(file.what.path.clone(), at);
            }
        }
    }

    /// Seconds that an artefact was old when the trace began; none where that is not known.
    pub fn age(&self, artifact: &str) -> Option<i64> {
        self.ages.get(artifact).copied()
    }

    /// Position of a toolkit in the report, by its id.
    pub fn toolkit(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Position of the toolkit that a file belongs to.
    pub fn toolkit_of_file(&self, path: &str) -> Option<usize> {
        let found = match self.by_file.get(path) {
            Some(&at) => Some(at),
            None => self
                .by_root
                .iter()
                .find(|(root, _)| {
                    path.strip_prefix(root.as_str())
                        .is_some_and(|rest| rest.starts_with('/'))
                })
                .map(|(_, at)| *at),
        };
        found.filter(|&at| self.is_cuda(at))
    }

    /// Whether a toolkit holds anything of CUDA; a host compiler or ninja alone makes none.
    pub fn is_cuda(&self, toolkit: usize) -> bool {
        const OTHERS: [&str; 6] = ["host_compiler", "ninja", "gcc", "ld", "python", "cmake"];
        self.report.toolkits.get(toolkit).is_some_and(|t| {
            t.version.is_some() || t.parts.keys().any(|part| !OTHERS.contains(&part.as_str()))
        })
    }

    /// The rank of a toolkit: 0 is used most, the others are strangers to it.
    pub fn rank(&self, toolkit: usize) -> usize {
        self.ranks.get(toolkit).copied().unwrap_or(toolkit)
    }

    /// The process image that a pid ran at a moment, unless it is one of those that a long trace only counts.
    pub fn process_at(&self, pid: u32, t: u64) -> Option<ProcessIndex> {
        let images = self.by_pid.get(&pid)?;
        let began = |at: &&ProcessIndex| self.processes.get(**at).is_some_and(|p| p.start <= t);
        let latest = images.iter().rev().find(began);
        let found = latest.or_else(|| images.first()).copied()?;
        // Pids come again: an image of another time is one that ran something else.
        let image = self.processes.get(found)?;
        let end = image.end.unwrap_or(u64::MAX);
        let apart = image.start.saturating_sub(t).max(t.saturating_sub(end));
        (self.report.condensed.is_none() || apart <= LATE_NS).then_some(found)
    }

    /// The process image that a pid ran last.
    pub fn last_of(&self, pid: u32) -> Option<ProcessIndex> {
        self.by_pid.get(&pid)?.last().copied()
    }

    /// The position of the process image that an event began.
    pub fn process_index(&self, start: EventId) -> Option<ProcessIndex> {
        self.by_start.get(&start).copied()
    }

    /// The process image that an event began.
    pub fn process(&self, start: EventId) -> Option<&ProcessRow> {
        self.processes.get(self.process_index(start)?)
    }

    /// The build that an event began.
    pub fn build(&self, start: EventId) -> Option<&Build> {
        self.report.builds.get(*self.build_by_start.get(&start)?)
    }

    /// The position of the build of a number.
    pub fn build_position(&self, number: u32) -> Option<usize> {
        self.build_by_number.get(&number).copied()
    }

    /// The build that ran another.
    pub fn build_above(&self, build: &Build) -> Option<&Build> {
        // One that runs others began before them, and has the smaller number; anything else is damage.
        let above = build.parent.filter(|number| *number < build.id)?;
        self.report.builds.get(self.build_position(above)?)
    }

    /// Process images that are counted and not listed, since they were like others beside them.
    pub fn condensed_processes(&self) -> u64 {
        let condensed = self.report.condensed.as_ref();
        condensed.map_or(0, |condensed| condensed.process_count())
    }

    /// A process and those that led to it, innermost first.
    pub fn ancestry(&self, process: ProcessIndex) -> Vec<ProcessIndex> {
        let mut chain = vec![process];
        let mut at = process;
        // A parent always began earlier in the list; anything else is damage and ends the walk.
        while let Some(parent) = self.processes.get(at).and_then(|p| p.parent)
            && parent < at
        {
            chain.push(parent);
            at = parent;
        }
        chain
    }

    /// Whether the traced command still runs, as far as the events tell.
    pub fn running(&self) -> bool {
        self.processes
            .iter()
            .any(|p| p.end.is_none() && p.replaced_by.is_none())
    }
}

/// Nanoseconds by which what is told of a process may come before its start or after its end.
const LATE_NS: u64 = 10_000_000_000;

fn ages(model: &Model) -> HashMap<String, i64> {
    let began = i64::try_from(model.header().started_unix_ns / 1_000_000_000).unwrap_or(0);
    model
        .cache_facts()
        .filter(|fact| fact.what.mtime > 0 && began > 0)
        .map(|fact| (fact.what.path.clone(), began - fact.what.mtime))
        .collect()
}

fn processes(model: &Model) -> Vec<ProcessRow> {
    let row = |process: &jittrace_model::fold::Process| {
        let exec = model.exec_of(process);
        ProcessRow {
            parent: process.parent,
            pid: process.pid,
            program: process.program.clone(),
            what: Arc::clone(&process.what),
            env: Arc::clone(&process.env),
            start: process.start,
            end: process.end,
            exit: process.exit,
            replaced_by: process.replaced_by,
            event: process.id,
            exit_event: process.exit_event,
            exec_event: exec.map(|e| e.id),
            python: exec.map(|e| e.what.python.clone()).unwrap_or_default(),
        }
    };
    model.processes().iter().map(row).collect()
}

fn libraries(model: &Model) -> Vec<LibraryRow> {
    let mut rows: Vec<LibraryRow> = Vec::new();
    let mut mapped: HashMap<(u32, &str), usize> = HashMap::new();
    for seen in model.libraries() {
        let loaded = &seen.what;
        let fact = model
            .file(&loaded.path)
            .or_else(|| model.file(&loaded.realpath));
        let part = fact.and_then(|f| f.what.part.clone());
        let artefact = model.cache_fact(&loaded.path).is_some();
        let differs = loaded.explanation == Explanation::Differs;
        if part.is_none() && !artefact && !differs {
            continue;
        }
        let file = match loaded.realpath.as_str() {
            "" => loaded.path.as_str(),
            realpath => realpath,
        };
        if loaded.rule == Rule::AlreadyLoaded
            && let Some(first) = mapped
                .get(&(seen.pid, file))
                .and_then(|&at| rows.get_mut(at))
        {
            first.again.push(seen.id);
            continue;
        }
        mapped.insert((seen.pid, file), rows.len());
        rows.push(LibraryRow {
            event: seen.id,
            pid: seen.pid,
            path: loaded.path.clone(),
            realpath: loaded.realpath.clone(),
            part: part.or_else(|| artefact.then(|| "jit".to_owned())),
            version: fact.and_then(|f| f.what.version.clone()),
            rule: loaded.rule,
            rule_detail: loaded.rule_detail.clone(),
            explanation: loaded.explanation,
            requested: loaded.requested.clone(),
            requested_by: loaded.requested_by.clone(),
            asker: summary::asker(model.python_of(&loaded.python, loaded.request)),
            error: None,
            again: Vec::new(),
        });
    }
    for seen in model.library_failures() {
        let failed = &seen.what;
        rows.push(LibraryRow {
            event: seen.id,
            pid: seen.pid,
            path: failed.requested.clone(),
            requested: Some(failed.requested.clone()),
            requested_by: failed.requested_by.clone(),
            asker: summary::asker(model.python_of(&failed.python, failed.request)),
            error: Some(failed.error.clone()),
            ..LibraryRow::default()
        });
    }
    rows.sort_by_key(|row| row.event);
    rows
}
