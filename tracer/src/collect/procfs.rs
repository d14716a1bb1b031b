//! What `/proc` tells of a live process: what it runs, since when, with which libraries.
//!
//! Used for the snapshot of an attach, and, where no kernel source may run, polled for what is new. A poll sees what
//! stayed, not what came and went; its events are marked as reconstructed.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use indexmap::IndexMap;
use jittrace_model::{
    event::{
        Body, EventId, FileAccess, FileOp, Note, ProcessExit, ProcessStart, PythonStack, Source,
    },
    resolve::tool,
};
use jittrace_wire::environment;

use crate::doctor::refusal::owner_of;

use super::{
    cache_facts,
    draft::{Draft, Sink},
    monotonic_ns,
    replay::Mapped,
    stacks::{Shared, Stack},
};

/// What is there of one process.
#[derive(Debug, Default)]
struct Known {
    /// Start time in clock ticks, which tells a reused pid from the same process.
    began: u64,
    exe: String,
    mapped: HashSet<(u64, u64)>,
}

/// The processes that are looked at: one and its descendants.
pub(super) struct Tree {
    root: u32,
    known: HashMap<u32, Known>,
    /// What could not be read, told once a process and reason.
    complained: HashSet<(u32, &'static str)>,
    stacks: Shared,
    /// What begins from here on is told by the kernel, which knows when: in clock ticks, as a process's start.
    until: Option<u64>,
}

impl Tree {
    /// The tree of a process.
    pub(super) fn new(root: u32, stacks: Shared) -> Tree {
        Tree {
            root,
            known: HashMap::new(),
            complained: HashSet::new(),
            stacks,
            until: None,
        }
    }

    /// The same as it was before `since`, on CLOCK_MONOTONIC: who began later is left to the kernel source.
    pub(super) fn until(since: u64, root: u32, stacks: Shared) -> Tree {
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot = (boot.tv_sec as u64) * 1_000_000_000 + boot.tv_nsec as u64;
        // The kernel counts starts from boot and with the time that the machine slept.
        let since = since.saturating_add(boot.saturating_sub(monotonic_ns()));
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Tree {
            // Starts are cut to whole ticks: who began in the tick of `since` may have begun before it.
            until: Some(since / (1_000_000_000 / ticks) + 1),
            ..Tree::new(root, stacks)
        }
    }

    /// Whether the root is alive.
    pub(super) fn root_lives(&self) -> bool {
        let stat = stat(self.root);
        match (stat, self.known.get(&self.root)) {
            (Some(stat), Some(known)) => {
                stat.began == known.began && !matches!(stat.state, 'Z' | 'X')
            }
            (Some(stat), None) => !matches!(stat.state, 'Z' | 'X'),
            (None, _) => false,
        }
    }

    /// Pids that are known to be alive.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.known.keys().copied()
    }

    /// Looks at every process of the tree and tells what is new since the last look. `processes`: tell starts and ends
    /// too, which a kernel source tells better.
    pub(super) fn look(&mut self, sink: &mut impl Sink, first: bool, processes: bool) {
        let all = descendants(self.root);
        if processes || first {
            let gone: Vec<u32> = self
                .known
                .keys()
                .filter(|pid| !all.contains(pid))
                .copied()
                .collect();
            for pid in gone {
                self.forget_frames(pid);
                self.known.remove(&pid);
                tell(sink, pid, Body::ProcessExit(ProcessExit {
                    unread: Some("it was gone at the next look; only its parent and the kernel source know how it ended".to_owned()),
                    ..ProcessExit::default()
                }));
            }
        }
        for pid in all {
            self.look_at(pid, sink, first, processes);
        }
    }

    fn look_at(&mut self, pid: u32, sink: &mut impl Sink, first: bool, processes: bool) {
        let Some(stat) = stat(pid) else { return };
        if self.until.is_some_and(|until| stat.began >= until) {
            return;
        }
        let exe = read_link(pid, "exe").unwrap_or_default();
        let is_new = self
            .known
            .get(&pid)
            .is_none_or(|k| k.began != stat.began || k.exe != exe);
        if is_new {
            if processes || first {
                let id = tell(
                    sink,
                    pid,
                    Body::ProcessStart(Box::new(start(pid, &stat, first))),
                );
                self.forget_frames(pid);
                if first {
                    self.frames_of(pid, id, sink);
                }
                if is_tool(&exe) {
                    self.frames_of_starter(id, &stat, sink);
                }
            }
            self.known.insert(
                pid,
                Known {
                    began: stat.began,
                    exe,
                    mapped: HashSet::new(),
                },
            );
        }
        let Some(known) = self.known.get_mut(&pid) else {
            return;
        };
        match mapped(pid) {
            Ok(mapped) => {
                let fresh: Vec<Mapped> = mapped
                    .into_iter()
                    .filter(|m| known.mapped.insert((m.dev, m.ino)))
                    .collect();
                if !fresh.is_empty() {
                    sink.mapped(pid, fresh);
                }
            }
            Err(error) if self.complained.insert((pid, "maps")) => {
                tell(sink, pid, refused(pid, "its mapped files", &error));
            }
            Err(_) => {}
        }
        if is_new && first {
            for path in open_cache_files(pid) {
                tell(
                    sink,
                    pid,
                    Body::File(Box::new(FileAccess {
                        op: FileOp::Open,
                        path,
                        ..FileAccess::default()
                    })),
                );
            }
        }
    }
}

impl Tree {
    /// What the Python threads of a process that was found running are doing.
    fn frames_of(&mut self, pid: u32, id: EventId, sink: &mut impl Sink) {
        let asked = monotonic_ns();
        let threads = match self.stacks.lock() {
            Ok(mut stacks) => stacks.threads(pid),
            Err(_) => return,
        };
        let threads = match threads {
            Ok(threads) => threads,
            Err(why) => {
                if self.complained.insert((pid, "frames")) {
                    let text =
                        format!("the Python frames of process {pid} could not be read: {why}");
                    tell(sink, pid, unread(text));
                }
                return;
            }
        };
        // Python links its threads from the newest to the main one.
        let main = threads.len().saturating_sub(1);
        for (nth, stack) in threads.into_iter().enumerate() {
            if stack.frames.is_empty() {
                continue;
            }
            let is_main = match stack.tid {
                Some(tid) => tid == inner_pid(pid).unwrap_or(pid),
                None => nth == main,
            };
            let tid = match stack.tid {
                _ if is_main => pid,
                Some(tid) => outer_tid(pid, tid),
                None => pid,
            };
            let told = stack.explains(id, asked);
            let draft = Draft {
                time: asked,
                pid,
                tid,
                body: Body::PythonStack(Box::new(PythonStack {
                    of: told.of.filter(|_| is_main),
                    ..told
                })),
            };
            sink.put_from(draft, Source::Procfs);
        }
    }

    /// The Python code that waits for a tool that was found running, where one thread of its parent does.
    fn frames_of_starter(&mut self, id: EventId, tool: &Stat, sink: &mut impl Sink) {
        let threads = match self.stacks.lock() {
            Ok(mut stacks) => stacks.threads(tool.ppid).unwrap_or_default(),
            Err(_) => return,
        };
        let mut waiting = threads.into_iter().filter(Stack::waits_for_child);
        let (Some(stack), None) = (waiting.next(), waiting.next()) else {
            return;
        };
        let draft = Draft {
            time: monotonic_ns(),
            pid: tool.ppid,
            tid: stack.tid.map_or(tool.ppid, |tid| outer_tid(tool.ppid, tid)),
            body: Body::PythonStack(Box::new(stack.explains(id, began_at(tool)))),
        };
        sink.put_from(draft, Source::Procfs);
    }

    fn forget_frames(&self, pid: u32) {
        // A pid that is used again has another interpreter; at the first look nothing is known of any.
        if self.known.contains_key(&pid)
            && let Ok(mut stacks) = self.stacks.lock()
        {
            stacks.forget(pid);
        }
    }
}

/// When a process began, CLOCK_MONOTONIC ns: the kernel tells it in ticks of CLOCK_BOOTTIME.
fn began_at(stat: &Stat) -> u64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let began = stat.began.saturating_mul(1_000_000_000 / per_second);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64;
    monotonic_ns().saturating_sub(now.saturating_sub(began))
}

/// Whether a program compiles or builds.
fn is_tool(exe: &str) -> bool {
    let name = exe.rsplit('/').next().unwrap_or_default();
    tool::Kind::of(name.trim_end_matches(" (deleted)")).is_some()
}

/// The number of a thread here, which numbers itself `tid` in its own pid namespace.
fn outer_tid(pid: u32, tid: u32) -> u32 {
    if inner_pid(pid).is_none_or(|inner| inner == pid) {
        return tid;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .find(|outer| inner_of(&format!("/proc/{pid}/task/{outer}/status")) == Some(tid))
        .unwrap_or(pid)
}

fn tell(sink: &mut impl Sink, pid: u32, body: Body) -> EventId {
    sink.put_from(
        Draft {
            time: monotonic_ns(),
            pid,
            tid: pid,
            body,
        },
        Source::Procfs,
    )
}

fn refused(pid: u32, what: &str, error: &io::Error) -> Body {
    unread(format!(
        "{what} of process {pid} could not be read ({error}); run jittrace as its owner or as root"
    ))
}

fn unread(text: String) -> Body {
    Body::Note(Note {
        about: "unread".to_owned(),
        text,
    })
}

/// A process that is found running, or was found new by polling.
fn start(pid: u32, stat: &Stat, found: bool) -> ProcessStart {
    let mut unread = IndexMap::new();
    let mut note = |name: &str, error: io::Error| {
        unread.insert(name.to_owned(), error.to_string());
    };
    let exe = fs::read_link(format!("/proc/{pid}/exe"))
        .map(|p| p.to_string_lossy().into_owned())
        .map_err(|e| note("exe", e))
        .unwrap_or_default();
    let cwd = fs::read_link(format!("/proc/{pid}/cwd"))
        .map(|p| p.to_string_lossy().into_owned())
        .map_err(|e| note("cwd", e))
        .unwrap_or_default();
    let argv = fs::read(format!("/proc/{pid}/cmdline"))
        .map(|bytes| words(&bytes))
        .map_err(|e| note("argv", e))
        .unwrap_or_default();
    let env = environment(pid)
        .map_err(|e| note("env", e))
        .unwrap_or_default();
    ProcessStart {
        ppid: stat.ppid,
        exe: exe.trim_end_matches(" (deleted)").to_owned(),
        argv,
        cwd,
        env,
        uid: owner_of(pid),
        inner_pid: inner_pid(pid).filter(|inner| *inner != pid),
        found,
        unread,
        ..ProcessStart::default()
    }
}

/// The captured part of a process's initial environment.
pub(super) fn environment(pid: u32) -> io::Result<IndexMap<String, String>> {
    let bytes = fs::read(format!("/proc/{pid}/environ"))?;
    Ok(bytes
        .split(|b| *b == 0)
        .filter(|entry| environment::is_captured(environment::name_of(entry)))
        .filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

fn words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    bytes
        .split(|b| *b == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The pid that the process itself knows, where it lives in a pid namespace of its own.
fn inner_pid(pid: u32) -> Option<u32> {
    inner_of(&format!("/proc/{pid}/status"))
}

/// The innermost number in a status file.
fn inner_of(status: &str) -> Option<u32> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

fn read_link(pid: u32, name: &str) -> Option<String> {
    fs::read_link(format!("/proc/{pid}/{name}"))
        .ok()
        .map(|p| p.to_string_lossy().into_owned())
}

/// The fields of `/proc/PID/stat` that are needed.
struct Stat {
    ppid: u32,
    state: char,
    began: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields begin after the last one.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        ppid: fields.get(1)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

/// The process of one of these names that began first, other than `not`.
pub(super) fn oldest_named(names: &[&str], not: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != not)
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| names.contains(&name.trim_end()))
        })
        .filter_map(|pid| Some((stat(pid)?.began, pid)))
        .min()
        .map(|(_, pid)| pid)
}

/// A process and all that descend from it, parents first.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut alive = false;
    for pid in entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
    {
        if let Some(stat) = stat(pid).filter(|s| !matches!(s.state, 'Z' | 'X')) {
            alive |= pid == root;
            children.entry(stat.ppid).or_default().push(pid);
        }
    }
    if !alive {
        return Vec::new();
    }
    let mut all = vec![root];
    let mut at = 0;
    while let Some(pid) = all.get(at).copied() {
        at += 1;
        if let Some(mut more) = children.remove(&pid) {
            more.sort_unstable();
            all.extend(more);
        }
    }
    all
}

/// The files that a process has mapped, as objects: one for each file with an executable part, in order of address.
pub(super) fn mapped(pid: u32) -> io::Result<Vec<Mapped>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    let text = String::from_utf8_lossy(&text);
    let mut objects: IndexMap<(u64, u64), Mapped> = IndexMap::new();
    for line in text.lines() {
        // start-end perms offset major:minor inode   path
        let mut fields = line.splitn(6, ' ');
        let (Some(_), Some(permissions), _, Some(device), Some(inode), Some(path)) = (
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
        ) else {
            continue;
        };
        let path = path.trim_start();
        let Some(ino) = inode.parse::<u64>().ok().filter(|i| *i != 0) else {
            continue;
        };
        if !path.starts_with('/') {
            continue;
        }
        let deleted = path.ends_with(" (deleted)");
        let entry = objects
            .entry((device_number(device), ino))
            .or_insert_with(|| Mapped {
                path: path.trim_end_matches(" (deleted)").to_owned(),
                dev: device_number(device),
                ino,
                executable: false,
                deleted,
            });
        entry.executable |= permissions.contains('x');
    }
    Ok(objects.into_values().filter(|m| m.executable).collect())
}

/// `fd:01` as `stat` numbers it.
fn device_number(text: &str) -> u64 {
    let (major, minor) = text.split_once(':').unwrap_or(("0", "0"));
    let number = |t: &str| u32::from_str_radix(t, 16).unwrap_or(0);
    libc::makedev(number(major), number(minor))
}

/// Files of JIT caches that a process holds open.
fn open_cache_files(pid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| fs::read_link(e.path()).ok())
        .filter(|p: &PathBuf| {
            p.is_absolute() && jittrace_wire::paths::is_cache_directory(p.as_os_str().as_bytes())
        })
        .map(|p| p.to_string_lossy().into_owned())
        .filter(|p| cache_facts::is_artifact(p))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_libraries() {
        let me = std::process::id();
        assert!(descendants(me).contains(&me));
        let objects = mapped(me).unwrap();
        let libc = objects
            .iter()
            .find(|m| m.path.ends_with("libc.so.6"))
            .unwrap();
        let metadata = fs::metadata(&libc.path).unwrap();
        assert_eq!(
            (libc.dev, libc.ino),
            (
                std::os::unix::fs::MetadataExt::dev(&metadata),
                std::os::unix::fs::MetadataExt::ino(&metadata)
            )
        );
    }

    #[test]
    fn a_pid_that_is_gone_has_no_tree() {
        assert!(descendants(u32::MAX).is_empty());
    }
}
