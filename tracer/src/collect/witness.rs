//! Two sources that tell the same fact: the second is written as an event that points to the first.
//!
//! Facts are matched by process, kind and what identifies them within a process; of several alike the oldest that has
//! no second witness yet. Neither source is waited for: what only one of them saw stays a fact of its own.

use std::collections::{HashMap, VecDeque};

use jittrace_model::event::{Body, EventId, Source};

use super::translate::Draft;

/// How far apart the two may be, in ns: a process's start is told by the kernel at the exec and by the shim when the
/// loader is through.
const WINDOW: u64 = 10_000_000_000;

/// What identifies a fact within its process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum What {
    Start,
    Fork,
    Exit,
    /// Base name of the program.
    Exec(String),
    ExecFailed(String, i32),
    /// Thread and name.
    Request(u32, String),
    /// Device and inode.
    Loaded(u64, u64),
    /// The request that is answered.
    Outcome(EventId),
    Unloaded(String),
    /// Function, result, answer.
    Call(String, Option<i64>, Option<String>),
    File(jittrace_model::event::FileOp, String, i32),
}

/// A process and what identifies a fact in it.
pub(super) type Key = (u32, What);

#[derive(Debug, Clone)]
struct Told {
    event: EventId,
    time: u64,
    source: Source,
    /// Arguments of an exec.
    words: String,
}

/// Which of several facts under one key is meant.
#[derive(Clone, Copy)]
enum Which<'a> {
    Oldest,
    /// The latest image of a process is the one that now reports; what it tried before will not be met any more.
    Newest,
    /// A parent starts one child after the other: the oldest with these arguments.
    OldestWith(&'a str),
}

/// Facts that have one witness.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    alone: HashMap<Key, VecDeque<Told>>,
    /// In order of arrival, to be forgotten.
    ages: VecDeque<(u64, Key)>,
    /// Whose child a process is, for those that have been forked.
    parents: HashMap<u32, u32>,
}

impl Witnesses {
    /// A process was forked.
    pub(super) fn forked(&mut self, child: u32, parent: u32) {
        self.parents.insert(child, parent);
    }

    /// The event of the other source that tells this fact already.
    pub(super) fn first(&mut self, draft: &Draft, source: Source) -> Option<EventId> {
        if !is_witness(source) {
            return None;
        }
        let keys = self.keys(draft, source);
        let words = words(draft);
        let own = match draft.body {
            Body::ProcessStart(_) | Body::Exec(_) | Body::ProcessExit(_) => Which::Newest,
            _ => Which::Oldest,
        };
        keys.iter().find_map(|key| {
            let which = match key {
                (pid, What::Exec(_)) if *pid != draft.pid => Which::OldestWith(&words),
                _ => own,
            };
            self.take(key, draft.time, source, which)
        })
    }

    /// This source has told a fact.
    pub(super) fn told(&mut self, facts: Keys, event: EventId, time: u64, source: Source) {
        for key in facts.keys {
            self.alone.entry(key.clone()).or_default().push_back(Told {
                event,
                time,
                source,
                words: facts.words.clone(),
            });
            self.ages.push_back((time, key));
        }
        while let Some((age, _)) = self.ages.front()
            && age.saturating_add(WINDOW) < time
        {
            let Some((_, key)) = self.ages.pop_front() else {
                return;
            };
            if let Some(told) = self.alone.get_mut(&key) {
                while told
                    .front()
                    .is_some_and(|t| t.time.saturating_add(WINDOW) < time)
                {
                    told.pop_front();
                }
                if told.is_empty() {
                    self.alone.remove(&key);
                }
            }
        }
    }

    fn take(&mut self, key: &Key, time: u64, source: Source, which: Which<'_>) -> Option<EventId> {
        let told = self.alone.get_mut(key)?;
        let is_other = |t: &Told| t.source != source && t.time.abs_diff(time) <= WINDOW;
        let at = match which {
            Which::Newest => told.iter().rposition(is_other),
            Which::Oldest => told.iter().position(is_other),
            Which::OldestWith(words) => told
                .iter()
                .position(|t| is_other(t) && are_the_same(&t.words, words)),
        }?;
        let first = told.remove(at)?;
        if matches!(which, Which::Newest) {
            told.retain(|t| t.source == source || t.time > first.time);
        }
        if told.is_empty() {
            self.alone.remove(key);
        }
        Some(first.event)
    }

    /// Under which keys a fact may have been told by the other source, the likeliest first.
    fn keys(&self, draft: &Draft, source: Source) -> Vec<Key> {
        let mut keys = keys(draft);
        if matches!(&draft.body, Body::LibraryLoaded(loaded) if loaded.dev.is_some()) {
            // A request maps several objects; each is told for itself.
            keys.truncate(1);
        }
        let parent = self.parents.get(&draft.pid);
        match &draft.body {
            // posix_spawn is told by the parent.
            Body::Exec(exec) if source == Source::Ebpf => {
                if let Some(parent) = parent {
                    keys.push((*parent, What::Exec(base(&exec.path))));
                }
            }
            Body::ExecFailed(failed) if source == Source::Ebpf => {
                if let Some(parent) = parent {
                    keys.push((*parent, What::ExecFailed(failed.path.clone(), failed.errno)));
                }
            }
            _ => {}
        }
        keys
    }
}

fn is_witness(source: Source) -> bool {
    matches!(source, Source::Preload | Source::Ebpf)
}

/// How a fact is remembered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: Vec<Key>,
    words: String,
}

impl Keys {
    /// Of this draft.
    pub(super) fn of(draft: &Draft) -> Keys {
        Keys {
            keys: keys(draft),
            words: words(draft),
        }
    }
}

/// The arguments of an exec, as the program that is started gets them.
fn words(draft: &Draft) -> String {
    match &draft.body {
        Body::Exec(exec) if matches!(exec.call.as_str(), "system" | "popen") => {
            format!("sh\0-c\0{}", exec.path)
        }
        Body::Exec(exec) => exec.argv.join("\0"),
        _ => String::new(),
    }
}

/// Either may have been cut.
fn are_the_same(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Under which keys a fact is remembered.
fn keys(draft: &Draft) -> Vec<Key> {
    let what = match &draft.body {
        Body::ProcessStart(start) if start.forked => vec![What::Fork],
        Body::ProcessStart(_) => vec![What::Start],
        Body::ProcessExit(_) => vec![What::Exit],
        // The attempt again, with its child: the first time counts.
        Body::Exec(exec) if exec.child.is_none() => {
            vec![What::Exec(base(match exec.call.as_str() {
                "system" | "popen" => "sh",
                _ => &exec.path,
            }))]
        }
        Body::ExecFailed(failed) => {
            vec![What::ExecFailed(failed.path.clone(), failed.errno)]
        }
        Body::LibraryRequest(request) => vec![What::Request(draft.tid, request.name.clone())],
        Body::LibraryLoaded(loaded) => {
            let file = loaded
                .dev
                .zip(loaded.ino)
                .map(|(dev, ino)| What::Loaded(dev, ino));
            let outcome = loaded.request.map(What::Outcome);
            match file {
                Some(file) => std::iter::once(file).chain(outcome).collect(),
                None => outcome.into_iter().collect(),
            }
        }
        Body::LibraryFailed(failed) => failed.request.map(What::Outcome).into_iter().collect(),
        Body::LibraryUnloaded(unloaded) => vec![What::Unloaded(base(&unloaded.path))],
        Body::Call(call) => vec![What::Call(
            call.function.clone(),
            call.result,
            call.value.clone(),
        )],
        Body::File(access) => {
            vec![What::File(access.op, access.path.clone(), access.errno)]
        }
        _ => Vec::new(),
    };
    what.into_iter().map(|what| (draft.pid, what)).collect()
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use jittrace_model::event::Exec;

    use super::*;

    fn exec(pid: u32, time: u64, call: &str, path: &str, argv: &[&str]) -> Draft {
        Draft {
            time,
            pid,
            tid: pid,
            body: Body::Exec(Box::new(Exec {
                call: call.to_owned(),
                path: path.to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                ..Exec::default()
            })),
        }
    }

    /// ninja starts its compilers by posix_spawn, nvcc its tools by system: the shim tells all of them in the parent,
    /// before the kernel's word of the first is heard.
    #[test]
    fn children_that_one_parent_starts_are_told_apart() {
        let mut witnesses = Witnesses::default();
        let shim = [
            (
                1,
                exec(
                    7,
                    10,
                    "posix_spawn",
                    "/bin/sh",
                    &["/bin/sh", "-c", "nvcc one and mo"],
                ),
            ),
            (
                2,
                exec(
                    7,
                    20,
                    "posix_spawn",
                    "/bin/sh",
                    &["/bin/sh", "-c", "nvcc two"],
                ),
            ),
            (3, exec(7, 30, "system", "fatbinary", &[])),
            (4, exec(7, 40, "system", "gcc", &[])),
        ];
        for (id, draft) in &shim {
            witnesses.told(Keys::of(draft), *id, draft.time, Source::Preload);
        }
        let kernel = [
            (4, exec(24, 45, "execve", "/bin/sh", &["sh", "-c", "gcc"])),
            (
                1,
                exec(
                    21,
                    15,
                    "execve",
                    "/bin/sh",
                    &["/bin/sh", "-c", "nvcc one and more"],
                ),
            ),
            (
                2,
                exec(22, 25, "execve", "/bin/sh", &["/bin/sh", "-c", "nvcc two"]),
            ),
            (
                3,
                exec(23, 35, "execve", "/bin/sh", &["sh", "-c", "fatbinary"]),
            ),
        ];
        for (first, draft) in &kernel {
            witnesses.forked(draft.pid, 7);
            assert_eq!(witnesses.first(draft, Source::Ebpf), Some(*first));
        }
    }

    /// Python tries the directories of PATH one by one in the child itself: the last attempt is the one that worked.
    #[test]
    fn the_last_of_several_attempts_is_the_one_that_worked() {
        let mut witnesses = Witnesses::default();
        for (id, path) in [(1, "/a/nvcc"), (2, "/b/nvcc")] {
            let draft = exec(9, id, "execv", path, &["nvcc"]);
            witnesses.told(Keys::of(&draft), id, id, Source::Preload);
        }
        let kernel = exec(9, 3, "execve", "/b/nvcc", &["nvcc"]);
        assert_eq!(witnesses.first(&kernel, Source::Ebpf), Some(2));
        assert_eq!(witnesses.first(&kernel, Source::Ebpf), None);
    }
}
