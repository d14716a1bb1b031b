//! `duplicate-jit-builds` and `cache-contended`: several processes compiled the same thing, and got into each other's way
//! in the cache.
//!
//! Proof of the first: runs of a compiler by several processes, at the same time, whose outputs are of one key. Every
//! rank of a cold start may do so, which costs time and is a note; it is a warning when the cache is on a file system
//! between hosts, and an error when a process then failed to open, move or remove what another had just published.
//! Proof of the second: that failure, or a long wait for a lock.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    Draft, View,
    view::Tool,
    words::{count, directory, duration, errno_words, name},
};
use crate::{
    event::{FileAccess, FileOp},
    fold::Seen,
    report::Severity,
    resolve::{absolute, tool::Kind},
};

/// One use of a file.
type Use = Seen<Arc<FileAccess>>;

/// A wait for a lock that is worth a word, in nanoseconds.
const LONG_WAIT_NS: u64 = 30_000_000_000;

/// Runs of a compiler for one key.
#[derive(Default)]
struct Key<'v, 'a> {
    /// Directory and file name without what is particular to a process.
    path: String,
    runs: Vec<&'v Tool<'a>>,
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let mut told: HashSet<u64> = HashSet::new();
    let failures = failed_reads(view);
    for key in keys(view) {
        let origins: HashSet<u32> = key
            .runs
            .iter()
            .map(|t| view.origin(t.process).pid)
            .collect();
        if origins.len() < 2 {
            continue;
        }
        let own: Vec<&(&Use, &Use)> = failures
            .iter()
            .filter(|(_, published)| {
                key_of(published.what.to.as_deref().unwrap_or(&published.what.path)) == key.path
            })
            .collect();
        told.extend(own.iter().map(|(f, _)| f.id));
        drafts.push(duplicate(view, &key, origins.len(), &own));
        if let Some((failed, published)) = own.first() {
            drafts.push(contended(view, failed, published, own.len()));
        }
    }
    for (failed, published) in failures
        .iter()
        .filter(|(f, _)| !told.contains(&f.id))
        .take(1)
    {
        drafts.push(contended(view, failed, published, 1));
    }
    drafts.extend(waits(view));
    drafts
}

/// Compiler runs grouped by what they make. A ptxas below an nvcc is part of that nvcc's run.
fn keys<'v, 'a>(view: &'v View<'a>) -> Vec<Key<'v, 'a>> {
    let mut at: HashMap<(String, &str), usize> = HashMap::new();
    let mut keys: Vec<Key<'v, 'a>> = Vec::new();
    for build in &view.report.builds {
        if !matches!(build.tool.as_str(), "nvcc" | "ptxas" | "ptxas-blackwell") {
            continue;
        }
        let inner = build.parent.is_some_and(|p| {
            view.report
                .builds
                .get((p as usize).saturating_sub(1))
                .is_some_and(|b| b.tool == "nvcc")
        });
        let (Some(output), false) = (&build.output, inner) else {
            continue;
        };
        let Some(tool) = view.tool_of_build(build) else {
            continue;
        };
        let path = key_of(&published_as(view, &absolute(&build.cwd, output)));
        let index = *at
            .entry((path.clone(), tool.process.name()))
            .or_insert_with(|| {
                keys.push(Key {
                    path,
                    runs: Vec::new(),
                });
                keys.len() - 1
            });
        if let Some(key) = keys.get_mut(index) {
            key.runs.push(tool);
        }
    }
    keys
}

/// Where an output was moved to, when it was.
fn published_as(view: &View<'_>, output: &str) -> String {
    view.uses_of(output)
        .find(|a| a.what.op == FileOp::Rename && a.what.errno == 0)
        .and_then(|a| a.what.to.clone())
        .unwrap_or_else(|| output.to_owned())
}

/// A path without the parts that name a process: `…/tmp.3/k.cubin` and `…/tmp.pid_17_ab/k.cubin` become `…/k.cubin`.
fn key_of(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        let temporary =
            part.starts_with("tmp.") || part.starts_with(".tmp") || part.starts_with("tmp_");
        if !temporary {
            kept.push(part);
        }
    }
    kept.join("/")
}

/// Opens that found nothing, of files that another process had published under that key just before.
fn failed_reads<'a>(view: &View<'a>) -> Vec<(&'a Use, &'a Use)> {
    let published: Vec<&Use> = view
        .model
        .accesses()
        .iter()
        .filter(|a| a.what.op == FileOp::Rename && a.what.errno == 0 && a.what.to.is_some())
        .collect();
    if published.is_empty() {
        return Vec::new();
    }
    let mut by_tail: HashMap<String, Vec<&Use>> = HashMap::new();
    for access in published {
        if let Some(tail) = access.what.to.as_deref().and_then(tail) {
            by_tail.entry(tail).or_default().push(access);
        }
    }
    let mut found = Vec::new();
    for access in view.model.accesses() {
        let broken = matches!(access.what.errno, 2 | 16 | 39 | 116)
            && matches!(
                access.what.op,
                FileOp::Open | FileOp::Rename | FileOp::Unlink
            );
        let Some(tail) = tail(&access.what.path).filter(|_| broken) else {
            continue;
        };
        let before = by_tail
            .get(&tail)
            .and_then(|p| p.iter().find(|p| p.t <= access.t));
        if let Some(before) = before {
            found.push((access, *before));
        }
    }
    found
}

/// The key and the file: the last two parts of a path.
fn tail(path: &str) -> Option<String> {
    let mut parts = path.rsplit('/');
    let file = parts.next().filter(|f| !f.is_empty())?;
    let key = parts.next().filter(|k| !k.is_empty())?;
    Some(format!("{key}/{file}"))
}

fn duplicate(
    view: &View<'_>,
    key: &Key<'_, '_>,
    processes: usize,
    failures: &[&(&Use, &Use)],
) -> Draft {
    let runs = key.runs.len();
    let time: u64 = key
        .runs
        .iter()
        .skip(1)
        .filter_map(|t| t.process.end.map(|e| e.saturating_sub(t.process.start)))
        .sum();
    let network = network(view, &key.path);
    let severity = if !failures.is_empty() {
        Severity::Error
    } else if network.is_some() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let tool = key.runs.first();
    let component = tool.map(|t| view.asker(t).component).unwrap_or_default();
    let at_once = overlapping(&key.runs);
    let folder = directory(&key.path);
    let mut draft = Draft::of("duplicate-jit-builds", severity)
        .component(&component)
        .title(format!(
            "{} was compiled {} times by {}",
            name(folder),
            runs,
            count(processes, "process", "processes")
        ))
        .cause(format!(
            "The key {} ({}) was compiled {} times{} by {}: {} of them for nothing, {} in all.",
            name(folder),
            key.path,
            runs,
            if at_once { " at once" } else { "" },
            count(processes, "process", "processes"),
            runs.saturating_sub(1),
            duration(time)
        ));
    for run in key.runs.iter().take(8) {
        draft = draft
            .evidence(
                run.process.id,
                format!(
                    "{} ran for process {}",
                    run.path(),
                    view.origin(run.process).pid
                ),
            )
            .in_process(view.origin(run.process).pid);
    }
    if let Some((words, event)) = network {
        draft = draft
            .cause(format!("The cache is on {words}."))
            .evidence(event, format!("the cache is on {words}"));
    }
    if !failures.is_empty() {
        draft = draft.cause(format!(
            "{} then failed to open what another process had just published there.",
            count(failures.len(), "process", "processes")
        ));
        for (failed, _) in failures.iter().take(4) {
            draft = draft.evidence(
                failed.id,
                format!(
                    "process {}: {} gave {}",
                    failed.pid,
                    failed.what.path,
                    errno_words(failed.what.errno)
                ),
            );
        }
    }
    draft
        .remedy("Give each host (or job) a cache directory of its own on a local file system, or let one process fill the cache before the others start.")
        .proven()
}

/// Whether any two of the runs were under way at the same time.
fn overlapping(runs: &[&Tool<'_>]) -> bool {
    let mut spans: Vec<(u64, u64)> = runs
        .iter()
        .map(|t| (t.process.start, t.process.end.unwrap_or(u64::MAX)))
        .collect();
    spans.sort_unstable();
    spans
        .windows(2)
        .any(|pair| matches!(pair, [(_, end), (start, _)] if start < end))
}

fn contended(view: &View<'_>, failed: &Use, published: &Use, n: usize) -> Draft {
    let to = published.what.to.clone().unwrap_or_default();
    let asker =
        crate::resolve::asker::of_call(view.model, &failed.what.python, None, failed.process);
    let network = network(view, &to);
    let mut draft = Draft::of("cache-contended", Severity::Error)
        .component(&asker.component)
        .title(format!(
            "{} was published and could not be opened",
            name(directory(&to))
        ))
        .cause(format!(
            "Process {} moved a file to {to}; {} then got {} for {}.",
            published.pid,
            count(n, "other process", "other processes"),
            errno_words(failed.what.errno),
            failed.what.path
        ))
        .evidence(
            published.id,
            format!("process {} moved it to {to}", published.pid),
        )
        .evidence(
            failed.id,
            format!(
                "process {}: {} gave {}",
                failed.pid,
                failed.what.path,
                errno_words(failed.what.errno)
            ),
        )
        .in_process(failed.pid)
        .in_process(published.pid)
        .remedy("Give each host a cache directory of its own on a local file system.");
    draft = match network {
        Some((words, event)) => draft
            .cause(format!(
                "The cache is on {words}, where a new file is not seen by everybody at once."
            ))
            .evidence(event, format!("the cache is on {words}"))
            .proven(),
        None => draft.missing("the file system of the cache"),
    };
    draft
}

fn network(view: &View<'_>, path: &str) -> Option<(String, u64)> {
    let mut at = path;
    while let Some((parent, _)) = at.rsplit_once('/') {
        if let Some(fact) = view.model.directory(parent).filter(|d| d.what.network) {
            return Some((
                format!("a network file system ({})", fact.what.filesystem),
                fact.id,
            ));
        }
        at = parent;
    }
    None
}

/// Long waits for a lock that was got in the end.
fn waits(view: &View<'_>) -> Vec<Draft> {
    view.model
        .accesses()
        .iter()
        .filter(|a| {
            a.what.op == FileOp::Locked && a.what.wait_ns.is_some_and(|w| w >= LONG_WAIT_NS)
        })
        .map(|a| {
            let wait = duration(a.what.wait_ns.unwrap_or_default());
            let asker = crate::resolve::asker::of_call(view.model, &a.what.python, None, a.process);
            let builder = view
                .tools()
                .iter()
                .find(|t| {
                    matches!(t.kind, Kind::BuildSystem | Kind::Nvcc)
                        && t.process.start <= a.t
                        && t.process.end.is_some_and(|e| e <= a.t)
                        && view.origin(t.process).pid != a.pid
                })
                .map(|t| view.origin(t.process).pid);
            Draft::note("cache-contended")
                .component(&asker.component)
                .title(format!("{wait} of waiting for {}", a.what.path))
                .cause(format!(
                    "Process {} waited {wait} for the lock {}{}.",
                    a.pid,
                    a.what.path,
                    builder
                        .map(|b| format!(", while process {b} was building"))
                        .unwrap_or_default()
                ))
                .evidence(a.id, format!("the lock was got after {wait}"))
                .in_process(a.pid)
                .proven()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_process_is_no_part_of_a_key() {
        assert_eq!(key_of("/c/abc/tmp.3/k.cubin"), "/c/abc/k.cubin");
        assert_eq!(key_of("/c/abc/tmp.pid_17_x/k.ptx"), "/c/abc/k.ptx");
        assert_eq!(tail("/v/abc/k.cubin").as_deref(), Some("abc/k.cubin"));
        assert_eq!(tail("k.cubin"), None);
    }
}
