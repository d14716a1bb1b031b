//! What a long trace may forget: of alike things the first few and the last are kept, the rest is counted.
//!
//! A server that works all day runs the same tools, opens the same files and asks the same questions again and again.
//! Whenever the fold has become long, and has doubled since the last time, two rules make it short again:
//!
//! - what a process did over and over, alike each time, is kept for its first and last times;
//! - of the children of one process that were alike in everything (what ran, with which arguments and environment, how
//!   it ended, what it did and said, and all that ran below it), the first and the last are kept with all they told.
//!
//! So what there is to say of a trace stays: the first and the last of everything, and everything that happened once.
//! A living process and one that has just ended are never forgotten, nor is anything of a trace of ordinary length.
//! What remains grows with what is *different* in a trace, not with how long it is.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    Model, Process, ProcessIndex, Seen,
    alike::{self, Alike, Likeness},
};
use crate::event::EventId;

/// Entries at which a fold is long; up to the first time nothing is forgotten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long {
    least: usize,
    next: usize,
}

impl Default for Long {
    fn default() -> Self {
        Long::of(100_000)
    }
}

impl Long {
    /// Never less than so many entries.
    pub(super) fn of(least: usize) -> Long {
        Long { least, next: least }
    }
}

/// How many of alike things are kept from the beginning, and how many from the end.
const FIRST: usize = 4;
const LAST: usize = 2;

/// How long ago a process must have ended, in nanoseconds: what the sources still tell of it may come later.
const SETTLED_NS: u64 = 10_000_000_000;

/// Different files that lay at one path, of which facts are kept.
const FILES_AT_A_PATH: usize = 8;

/// Notes on what is not kept any more; a report shows a hundred.
const NOTES_OF_NOBODY: usize = 1000;

/// What was forgotten: how much, not what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condensed {
    /// Process images by the name of their program.
    pub processes: IndexMap<String, u64>,
    /// All of it: process images, loads, calls, uses of files, messages.
    pub entries: u64,
}

impl Condensed {
    /// How many process images were forgotten.
    pub fn process_count(&self) -> u64 {
        self.processes.values().sum()
    }
}

impl Model {
    /// The same, but nothing is forgotten as long as there are fewer than so many entries (processes, loads, calls, uses
    /// of files …); `usize::MAX` keeps all that there ever is.
    #[must_use]
    pub fn keeping(mut self, entries: usize) -> Model {
        self.long = Long::of(entries);
        self
    }

    /// How many processes, loads, calls, uses of files and other things that come again and again are kept.
    pub fn entries(&self) -> usize {
        self.processes.len()
            + self.execs.len()
            + self.exec_failures.len()
            + self.requests.len()
            + self.libraries.len()
            + self.library_failures.len()
            + self.calls.len()
            + self.messages.len()
            + self.accesses.len()
            + self.tool_outputs.len()
            + self.lost.len()
            + self.notes.len()
    }

    /// Forgets what is alike, when that is worth it.
    pub(super) fn condense_when_long(&mut self) {
        let before = self.entries();
        if before < self.long.next {
            return;
        }
        self.condense();
        let after = self.entries();
        self.condensed.entries += before.saturating_sub(after) as u64;
        self.long.next = self.long.least.max(2 * after);
    }

    fn condense(&mut self) {
        let alike = Likenesses::of(self);
        let kept = self.kept_processes(&alike);
        for process in &self.processes {
            if !kept.get(process.index).copied().unwrap_or(true) {
                let name = process.name();
                match self.condensed.processes.get_mut(name) {
                    Some(count) => *count += 1,
                    None => {
                        self.condensed.processes.insert(name.to_owned(), 1);
                    }
                }
            }
        }
        let here = |process: Option<ProcessIndex>| {
            process.is_none_or(|index| kept.get(index).copied().unwrap_or(true))
        };
        thin(&mut self.exec_failures, &alike.exec_failures, here);
        thin(&mut self.libraries, &alike.libraries, here);
        thin(&mut self.library_failures, &alike.library_failures, here);
        thin(&mut self.calls, &alike.calls, here);
        thin(&mut self.messages, &alike.messages, here);
        thin(&mut self.accesses, &alike.accesses, here);
        self.retain_requests(&alike, here);
        let execs = self.retain_execs(&alike, &kept);
        self.renumber(&kept, &execs);
        self.forget_repeated_facts();
        self.equal_requests.forget_unshared();
        self.equal_libraries.forget_unshared();
        self.equal_calls.forget_unshared();
        self.equal_accesses.forget_unshared();
    }

    /// Which process images stay: a tree is kept or forgotten whole.
    fn kept_processes(&self, alike: &Likenesses) -> Vec<bool> {
        let trees = self.tree_likenesses(alike);
        let key = |process: &Process| (process.parent, trees.get(process.index).copied());
        let mut times: HashMap<_, (usize, usize)> = HashMap::new();
        for process in &self.processes {
            times.entry(key(process)).or_default().1 += 1;
        }
        let mut kept = vec![true; self.processes.len()];
        for process in &self.processes {
            let above = process.parent.and_then(|parent| {
                let replaces = self
                    .processes
                    .get(parent)
                    .is_some_and(|p| p.replaced_by == Some(process.index));
                Some((kept.get(parent).copied()?, replaces))
            });
            let time = times.entry(key(process)).or_default();
            time.0 += 1;
            let stays = match above {
                Some((false, _)) => false,
                // The images of one process stay together.
                Some((true, true)) => true,
                _ => time.0 <= FIRST || time.0 + LAST > time.1,
            };
            if let Some(kept) = kept.get_mut(process.index) {
                *kept = stays;
            }
        }
        kept
    }

    /// The likeness of each process image with all that it did and all that ran below it.
    fn tree_likenesses(&self, alike: &Likenesses) -> Vec<Likeness> {
        let mut told = alike.told_by_processes(self);
        told.sort_unstable();
        told.dedup();
        let mut own: Vec<Likeness> = self.processes.iter().map(alike::of).collect();
        for (process, what) in told {
            if let Some(own) = own.get_mut(process) {
                *own = own.wrapping_add(alike::fed(|into| {
                    what.hash(into);
                }));
            }
        }
        // Children come after their parents, so each tree is complete when its root's turn comes.
        let mut below: HashSet<(ProcessIndex, Likeness)> = HashSet::new();
        for process in self.processes.iter().rev() {
            let is_settled = process
                .end
                .is_some_and(|end| end.saturating_add(SETTLED_NS) < self.last_t);
            let Some(tree) = own.get_mut(process.index) else {
                continue;
            };
            if !is_settled {
                // Like no other.
                *tree = alike::fed(|into| {
                    ("lives", process.index).hash(into);
                });
            }
            let tree = *tree;
            if let Some(parent) = process.parent
                && parent < process.index
                && below.insert((parent, tree))
                && let Some(above) = own.get_mut(parent)
            {
                *above = above.wrapping_add(alike::fed(|into| {
                    ("child", tree).hash(into);
                }));
            }
        }
        own
    }

    /// Requests that a load answers stay with it.
    fn retain_requests(
        &mut self,
        alike: &Likenesses,
        here: impl Fn(Option<ProcessIndex>) -> bool + Copy,
    ) {
        let answered: HashSet<EventId> = self
            .libraries
            .iter()
            .filter_map(|l| l.what.request)
            .chain(self.library_failures.iter().filter_map(|f| f.what.request))
            .collect();
        let mut stays = once_or_ends(&self.requests, &alike.requests, here);
        for (stays, request) in stays.iter_mut().zip(&self.requests) {
            *stays |= answered.contains(&request.id);
        }
        retain(&mut self.requests, &stays);
        self.request_at = self
            .requests
            .iter()
            .enumerate()
            .map(|(at, request)| (request.id, at))
            .collect();
    }

    /// Attempts that led to a process stay or go with it; those that led nowhere are kept as all else is. Returns where
    /// each went.
    fn retain_execs(&mut self, alike: &Likenesses, kept: &[bool]) -> Vec<Option<usize>> {
        let stays_process = |index: ProcessIndex| kept.get(index).copied().unwrap_or(true);
        let mut led: HashMap<usize, bool> = HashMap::new();
        for process in &self.processes {
            if let Some(exec) = process.exec {
                *led.entry(exec).or_default() |= stays_process(process.index);
            }
        }
        let went_with_child = |exec: &Seen<crate::event::Exec>| {
            exec.what
                .child
                .and_then(|child| self.current.get(&child))
                .is_some_and(|&child| !stays_process(child))
        };
        let settled = self.last_t.saturating_sub(SETTLED_NS);
        let alone = once_or_ends(&self.execs, &alike.execs, |process| {
            process.is_none_or(stays_process)
        });
        let stays: Vec<bool> = self
            .execs
            .iter()
            .enumerate()
            .zip(alone)
            .map(|((at, exec), alone)| match led.get(&at) {
                Some(led) => *led,
                None => alone && !went_with_child(exec) || exec.t >= settled,
            })
            .collect();
        let moved = places(&stays);
        retain(&mut self.execs, &stays);
        moved
    }

    /// Moves every mention of a process image or exec attempt to its new place.
    fn renumber(&mut self, kept: &[bool], execs: &[Option<usize>]) {
        let moved = places(kept);
        let to = |index: ProcessIndex| moved.get(index).copied().flatten();
        let exec_to = |index: usize| execs.get(index).copied().flatten();
        let mut processes = std::mem::take(&mut self.processes);
        processes.retain(|process| to(process.index).is_some());
        processes.shrink_to_fit();
        for process in &mut processes {
            process.index = to(process.index).unwrap_or(process.index);
            process.parent = process.parent.and_then(to);
            process.replaced_by = process.replaced_by.and_then(to);
            process.exec = process.exec.and_then(exec_to);
        }
        self.processes = processes;
        for places in [&mut self.current, &mut self.forked] {
            places.retain(|_, index| {
                let new = to(*index);
                *index = new.unwrap_or(*index);
                new.is_some()
            });
            places.shrink_to_fit();
        }
        self.pending_execs.retain(|_, index| {
            let new = exec_to(*index);
            *index = new.unwrap_or(*index);
            new.is_some()
        });
        follow(&mut self.execs, to);
        follow(&mut self.exec_failures, to);
        follow(&mut self.requests, to);
        follow(&mut self.libraries, to);
        follow(&mut self.library_failures, to);
        follow(&mut self.calls, to);
        follow(&mut self.messages, to);
        follow(&mut self.accesses, to);
        follow(&mut self.distributions, to);
        follow(&mut self.toolkits, to);
        follow(&mut self.gpus, to);
        follow(&mut self.drivers, to);
        follow(&mut self.tool_outputs, to);
        follow(&mut self.lost, to);
        follow(&mut self.notes, to);
        self.files.values_mut().for_each(|files| follow(files, to));
        for seen in self.directories.values_mut() {
            seen.process = seen.process.and_then(to);
        }
        for seen in self.cache_facts.values_mut() {
            seen.process = seen.process.and_then(to);
        }
    }

    /// What is told again without being new: losses add up, a note and a tool's answer count once.
    fn forget_repeated_facts(&mut self) {
        let mut losses: IndexMap<(String, String), Seen<crate::event::Lost>> = IndexMap::new();
        for lost in self.lost.drain(..) {
            match losses.entry((lost.what.what.clone(), lost.what.reason.clone())) {
                indexmap::map::Entry::Occupied(mut known) => {
                    let count = &mut known.get_mut().what.count;
                    *count = count.saturating_add(lost.what.count);
                }
                indexmap::map::Entry::Vacant(new) => {
                    new.insert(lost);
                }
            }
        }
        self.lost.extend(losses.into_values());
        let mut noted: HashSet<(Option<ProcessIndex>, String)> = HashSet::new();
        let mut of_nobody = 0;
        self.notes.retain(|note| {
            of_nobody += usize::from(note.process.is_none());
            (note.process.is_some() || of_nobody <= NOTES_OF_NOBODY)
                && noted.insert((note.process, note.what.text.clone()))
        });
        // What a tool said last is what it is.
        let mut answered: HashSet<(String, String)> = HashSet::new();
        self.tool_outputs.reverse();
        self.tool_outputs
            .retain(|output| answered.insert((output.what.path.clone(), output.what.text.clone())));
        self.tool_outputs.reverse();
        for files in self.files.values_mut() {
            files.drain(..files.len().saturating_sub(FILES_AT_A_PATH));
        }
    }
}

/// The likeness of every entry, list by list.
struct Likenesses {
    execs: Vec<Likeness>,
    exec_failures: Vec<Likeness>,
    requests: Vec<Likeness>,
    libraries: Vec<Likeness>,
    library_failures: Vec<Likeness>,
    calls: Vec<Likeness>,
    messages: Vec<Likeness>,
    accesses: Vec<Likeness>,
}

impl Likenesses {
    fn of(model: &Model) -> Likenesses {
        Likenesses {
            execs: each(&model.execs),
            exec_failures: each(&model.exec_failures),
            requests: each_shared(model.requests.iter().map(|r| &r.what)),
            libraries: each_shared(model.libraries.iter().map(|l| &l.what.what)),
            library_failures: each(&model.library_failures),
            calls: each_shared(model.calls.iter().map(|c| &c.what)),
            messages: each(&model.messages),
            accesses: each_shared(model.accesses.iter().map(|a| &a.what)),
        }
    }

    /// What each process did, as likenesses. An attempt to run something is told by what then ran.
    fn told_by_processes(&self, model: &Model) -> Vec<(ProcessIndex, Likeness)> {
        fn add<T>(
            told: &mut Vec<(ProcessIndex, Likeness)>,
            kind: u64,
            seen: &[Seen<T>],
            alike: &[Likeness],
        ) {
            for (seen, alike) in seen.iter().zip(alike) {
                told.extend(
                    seen.process
                        .map(|process| (process, alike.rotate_left(kind as u32))),
                );
            }
        }
        let mut told = Vec::new();
        add(&mut told, 1, &model.exec_failures, &self.exec_failures);
        add(&mut told, 2, &model.requests, &self.requests);
        add(&mut told, 3, &model.libraries, &self.libraries);
        add(
            &mut told,
            4,
            &model.library_failures,
            &self.library_failures,
        );
        add(&mut told, 5, &model.calls, &self.calls);
        add(&mut told, 6, &model.messages, &self.messages);
        add(&mut told, 7, &model.accesses, &self.accesses);
        for process in &model.processes {
            let asked = process.exec.and_then(|at| self.execs.get(at));
            told.extend(asked.map(|asked| (process.index, *asked)));
        }
        told
    }
}

fn each<T: Alike>(seen: &[Seen<T>]) -> Vec<Likeness> {
    seen.iter().map(|seen| alike::of(&seen.what)).collect()
}

/// Equal things are looked at once.
fn each_shared<'a, T: Alike + 'a>(shared: impl Iterator<Item = &'a Arc<T>>) -> Vec<Likeness> {
    let mut known: HashMap<*const T, Likeness> = HashMap::new();
    shared
        .map(|what| {
            *known
                .entry(Arc::as_ptr(what))
                .or_insert_with(|| alike::of(what.as_ref()))
        })
        .collect()
}

/// Which entries of processes that stay are kept: of those that are alike in a process, the first and the last.
fn once_or_ends<T>(
    seen: &[Seen<T>],
    alike: &[Likeness],
    here: impl Fn(Option<ProcessIndex>) -> bool,
) -> Vec<bool> {
    let key = |seen: &Seen<T>, alike: Likeness| (seen.process, seen.pid, alike);
    let mut times: HashMap<_, (usize, usize), foldhash::fast::RandomState> = HashMap::default();
    for (seen, alike) in seen.iter().zip(alike) {
        times.entry(key(seen, *alike)).or_default().1 += 1;
    }
    seen.iter()
        .zip(alike)
        .map(|(seen, alike)| {
            let time = times.entry(key(seen, *alike)).or_default();
            time.0 += 1;
            here(seen.process) && (time.0 <= FIRST || time.0 + LAST > time.1)
        })
        .collect()
}

fn thin<T>(
    list: &mut Vec<Seen<T>>,
    alike: &[Likeness],
    here: impl Fn(Option<ProcessIndex>) -> bool,
) {
    let stays = once_or_ends(list, alike, here);
    retain(list, &stays);
}

fn retain<T>(list: &mut Vec<Seen<T>>, stays: &[bool]) {
    let mut stays = stays.iter();
    list.retain(|_| stays.next().copied().unwrap_or(true));
    list.shrink_to_fit();
}

/// Where each kept place of a list has moved to.
fn places(stays: &[bool]) -> Vec<Option<usize>> {
    let mut next = 0;
    stays
        .iter()
        .map(|stays| {
            stays.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}

fn follow<T>(list: &mut [Seen<T>], to: impl Fn(ProcessIndex) -> Option<ProcessIndex>) {
    for seen in list {
        seen.process = seen.process.and_then(&to);
    }
}
