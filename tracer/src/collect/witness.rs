//! Two sources that tell the same fact: the second is written as an event that points to the first.
//!
//! Facts are matched by process, kind and what identifies them within a process; of several alike the oldest that has
//! no second witness yet. A process that becomes one program after the other (a shell that starts a shell) does the
//! same several times, and one source may tell all of it before the other tells the first: there the order of the two
//! witnesses decides, since a program is asked for before it is started and speaks after it is started. Neither source
//! is waited for: what only one of them saw stays a fact of its own.

use std::collections::{HashMap, VecDeque};

use jittrace_model::event::{Body, EventId, Frame, Source};

use super::draft::Draft;

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
    about: About,
}

/// What of a fact may be told differently by the two, and still tells it from others.
#[derive(Debug, Clone, Default)]
struct About {
    /// The file of a program that starts.
    exe: String,
    /// The arguments of a program.
    words: String,
}

impl About {
    /// The arguments of an exec are those that the program is started with.
    fn of(draft: &Draft) -> About {
        let (exe, words) = match &draft.body {
            Body::ProcessStart(start) => (start.exe.clone(), start.argv.join("\0")),
            Body::Exec(exec) if matches!(exec.call.as_str(), "system" | "popen") => {
                (String::new(), format!("sh\0-c\0{}", exec.path))
            }
            Body::Exec(exec) => (String::new(), exec.argv.join("\0")),
            _ => (String::new(), String::new()),
        };
        About { exe, words }
    }

    /// Either's words may have been cut, or not read at all.
    fn has_the_words_of(&self, other: &About) -> bool {
        self.words.starts_with(&other.words) || other.words.starts_with(&self.words)
    }

    fn is_the_program_of(&self, other: &About) -> bool {
        self.exe == other.exe || self.has_the_words_of(other)
    }
}

/// Which of several facts under one key is meant.
#[derive(Clone, Copy)]
enum Which {
    Oldest,
    /// A process ends once; what an earlier one of its number did will not be met any more.
    Newest,
    /// A parent starts one child after the other: the oldest with these arguments.
    OldestWithTheWords,
    /// A program that starts speaks after the kernel has started it: the nearest of that program on the right side.
    Started,
    /// An exec is asked for before the kernel does it: the nearest on the right side, since what was tried before it
    /// failed.
    Asked,
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
        let about = About::of(draft);
        keys.iter().find_map(|key| {
            let which = match key {
                (_, What::Start) => Which::Started,
                (pid, What::Exec(_)) if *pid == draft.pid => Which::Asked,
                (_, What::Exec(_)) => Which::OldestWithTheWords,
                (_, What::Exit | What::Fork) => Which::Newest,
                _ => Which::Oldest,
            };
            self.take(key, draft.time, source, &about, which)
        })
    }

    /// This source has told a fact.
    pub(super) fn told(&mut self, facts: Keys, event: EventId, time: u64, source: Source) {
        for key in facts.keys {
            self.alone.entry(key.clone()).or_default().push_back(Told {
                event,
                time,
                source,
                about: facts.about.clone(),
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

    fn take(
        &mut self,
        key: &Key,
        time: u64,
        source: Source,
        about: &About,
        which: Which,
    ) -> Option<EventId> {
        let told = self.alone.get_mut(key)?;
        let others = || {
            let other =
                |(_, t): &(usize, &Told)| t.source != source && t.time.abs_diff(time) <= WINDOW;
            told.iter().enumerate().filter(other)
        };
        let by_the_shim = source == Source::Preload;
        let at = match which {
            Which::Newest => others().next_back(),
            Which::Oldest => others().next(),
            Which::OldestWithTheWords => others().find(|(_, t)| t.about.has_the_words_of(about)),
            Which::Started => others()
                .filter(|(_, t)| (t.time <= time) == by_the_shim || t.time == time)
                .filter(|(_, t)| t.about.is_the_program_of(about))
                .min_by_key(|(_, t)| t.time.abs_diff(time)),
            Which::Asked => others()
                .filter(|(_, t)| (t.time >= time) == by_the_shim || t.time == time)
                .min_by_key(|(_, t)| t.time.abs_diff(time)),
        }
        .map(|(at, _)| at)?;
        let first = told.remove(at)?;
        if !matches!(which, Which::Oldest | Which::OldestWithTheWords) {
            // What came before it in this process will not be met any more.
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

/// Of what the second witness tells, keeps what tells the fact from others and what only the kernel knows (the pids of
/// other namespaces); the rest is in the first. Gives the Python code that asked, which only the shim knows.
pub(super) fn only_what_tells_it_apart(body: &mut Body) -> Vec<Frame> {
    match body {
        Body::ProcessStart(start) => {
            start.env_inherited = true;
            start.env.clear();
            start.argv.clear();
            start.cwd.clear();
        }
        Body::Exec(exec) => {
            exec.argv.clear();
            exec.caller = None;
            return std::mem::take(&mut exec.python);
        }
        Body::ExecFailed(failed) => failed.argv.clear(),
        Body::LibraryRequest(request) => {
            request.caller = None;
            return std::mem::take(&mut request.python);
        }
        Body::LibraryLoaded(loaded) => {
            loaded.candidates.clear();
            return std::mem::take(&mut loaded.python);
        }
        Body::Call(call) => {
            call.caller = None;
            return std::mem::take(&mut call.python);
        }
        _ => {}
    }
    Vec::new()
}

fn is_witness(source: Source) -> bool {
    matches!(source, Source::Preload | Source::Ebpf)
}

/// How a fact is remembered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: Vec<Key>,
    about: About,
}

impl Keys {
    /// Of this draft.
    pub(super) fn of(draft: &Draft) -> Keys {
        Keys {
            keys: keys(draft),
            about: About::of(draft),
        }
    }
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
    use jittrace_model::event::{Exec, ProcessStart};

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

    /// What one source tells of a chain of programs in one process: `env`, a wrapper script, the wrapper's own shell
    /// again, a static program that has no shim, and the interpreter at its end.
    fn chain(source: Source) -> Vec<Draft> {
        let start = |time, exe: &str, argv: &[&str]| Draft {
            time,
            pid: 9,
            tid: 9,
            body: Body::ProcessStart(Box::new(ProcessStart {
                exe: exe.to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                ..ProcessStart::default()
            })),
        };
        let asked = |time, path, argv: &[&str]| exec(9, time, "execve", path, argv);
        let late = if source == Source::Preload { 3 } else { 0 };
        let mut told = vec![
            start(10 + late, "/usr/bin/env", &["env", "bash", "shim"]),
            asked(20 - late, "/usr/bin/bash", &["bash", "shim"]),
            start(20 + late, "/usr/bin/bash", &["bash", "shim"]),
            asked(30 - late, "/usr/bin/bash", &["bash", "shim"]),
            start(30 + late, "/usr/bin/bash", &["bash", "shim"]),
            asked(40 - late, "/opt/static", &["static"]),
            start(40, "/opt/static", &["static"]),
            asked(50, "/usr/bin/python3", &["python3", "app.py"]),
            // The kernel could not read the arguments.
            start(
                50 + late,
                "/usr/bin/python3.12",
                match source {
                    Source::Preload => &["python3", "app.py"],
                    _ => &[],
                },
            ),
        ];
        if source == Source::Preload {
            told.retain(|d| !matches!(d.time, 40 | 50));
        }
        told
    }

    /// Two sources that tell a chain, one of them late by so many facts: who is whose second witness, by times.
    fn pairs(first: Source, ahead: usize) -> Vec<(u64, u64)> {
        let second = match first {
            Source::Preload => Source::Ebpf,
            _ => Source::Preload,
        };
        let mut witnesses = Witnesses::default();
        let mut pairs = Vec::new();
        let mut tell = |draft: &Draft, source| match witnesses.first(draft, source) {
            Some(other) => pairs.push((other.min(draft.time), other.max(draft.time))),
            None => witnesses.told(Keys::of(draft), draft.time, draft.time, source),
        };
        let mut late = chain(second).into_iter();
        for (nth, draft) in chain(first).iter().enumerate() {
            tell(draft, first);
            if nth >= ahead
                && let Some(draft) = late.next()
            {
                tell(&draft, second);
            }
        }
        late.for_each(|draft| tell(&draft, second));
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn in_a_chain_of_programs_each_is_met_by_itself_however_late_the_other_is() {
        let expected = [
            (10, 13),
            (17, 20),
            (20, 23),
            (27, 30),
            (30, 33),
            (37, 40),
            (50, 53),
        ];
        for first in [Source::Preload, Source::Ebpf] {
            for ahead in 0..10 {
                assert_eq!(pairs(first, ahead), expected, "{first:?} {ahead} ahead");
            }
        }
    }
}
