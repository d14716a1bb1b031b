//! `ranks-differ`: of several ranks of one job, or of several joined traces of one program, some resolved another toolkit
//! than their peers.
//!
//! Proof: the same program under several ranks (`RANK`, `LOCAL_RANK`, `OMPI_COMM_WORLD_RANK`, `SLURM_PROCID`) or in
//! several traces, and a part whose release is not the same in all. A note; a warning when only those failed that
//! differ from the majority. The cause of their failure is told by its own kind.

use std::collections::BTreeMap;

use super::{Draft, View, view::exit_words, words::few};
use crate::{
    event::EventId,
    fold::Process,
    report::{
        Severity,
        phrase::{self, trace_of},
    },
    resolve::tool::Kind,
};

/// Variables by which launchers number the ranks.
const RANKS: &[&str] = &["RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Libraries that all ranks should have in one release.
const LIBRARIES: &[&str] = &[
    "cudart",
    "libcuda",
    "nvrtc",
    "nvjitlink",
    "cudnn",
    "nccl",
    "cublas",
];

/// One of several that run the same program.
struct Peer<'a> {
    process: &'a Process,
    name: String,
    /// What it resolved: by part, the release (or the path where that is not known), the words for it, the event.
    resolved: BTreeMap<&'static str, (String, String, EventId)>,
    failed: bool,
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut groups: BTreeMap<String, Vec<&Process>> = BTreeMap::new();
    for process in view.model.processes() {
        if is_peer(view, process) {
            groups.entry(program(process)).or_default().push(process);
        }
    }
    groups
        .into_values()
        .filter(|peers| peers.len() > 1)
        .flat_map(|peers| compare(view, &peers))
        .collect()
}

/// Whether a process may be one of several: the first of its rank, or the first of a joined trace.
fn is_peer(view: &View<'_>, process: &Process) -> bool {
    let parent = process.parent.and_then(|p| view.model.process(p));
    match rank(process) {
        Some(rank) => parent.is_none_or(|p| self::rank(p) != Some(rank)),
        None => view.is_joined() && parent.is_none(),
    }
}

fn rank(process: &Process) -> Option<&str> {
    RANKS.iter().find_map(|name| process.env(name))
}

/// What a process runs: the program, and its script.
fn program(process: &Process) -> String {
    let script = process
        .arguments()
        .iter()
        .find(|a| !a.starts_with('-'))
        .map(String::as_str)
        .unwrap_or_default();
    format!("{} {script}", process.name())
}

fn compare(view: &View<'_>, processes: &[&Process]) -> Vec<Draft> {
    let peers: Vec<Peer<'_>> = processes.iter().map(|p| peer(view, p)).collect();
    let mut parts: Vec<&'static str> = peers
        .iter()
        .flat_map(|p| p.resolved.keys().copied())
        .collect();
    parts.sort_unstable();
    parts.dedup();
    parts
        .into_iter()
        .filter_map(|part| differ(&peers, part))
        .collect()
}

fn peer<'a>(view: &View<'a>, process: &'a Process) -> Peer<'a> {
    let mut resolved: BTreeMap<&'static str, (String, String, EventId)> = BTreeMap::new();
    for (part, kind) in [("nvcc", Kind::Nvcc), ("ptxas", Kind::Ptxas)] {
        let tool = view
            .tools_of(kind)
            .filter(|t| view.descends(t.process.index, process.index))
            .last();
        if let Some(tool) = tool {
            let key = match &tool.version {
                Some(known) => known.version.without_patch().to_string(),
                None => tool.path().to_owned(),
            };
            let words = format!("{} at {}", tool.named(), tool.path());
            resolved.insert(part, (key, words, tool.process.id));
        }
    }
    for library in view.model.libraries() {
        let Some(part) = LIBRARIES
            .iter()
            .find(|part| view.part_of(&library.what.path) == **part)
        else {
            continue;
        };
        let is_own = library
            .process
            .is_some_and(|p| view.descends(p, process.index));
        if !is_own || resolved.contains_key(part) {
            continue;
        }
        let version = view.version_of(&library.what.path).map(|k| k.version);
        let key = version.map_or_else(|| library.what.path.clone(), |v| v.to_string());
        let words = match version {
            Some(version) => format!("{part} {version} at {}", library.what.path),
            None => library.what.path.clone(),
        };
        resolved.insert(part, (key, words, library.id));
    }
    let name = match rank(process) {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {}", phrase::pid(process.pid)),
    };
    let name = if view.is_joined() && rank(process).is_some() {
        format!("{name} of trace {}", trace_of(process.pid) + 1)
    } else {
        name
    };
    Peer {
        process,
        name,
        resolved,
        failed: view.failed(process.index),
    }
}

fn differ(peers: &[Peer<'_>], part: &str) -> Option<Draft> {
    let mut groups: BTreeMap<&str, Vec<&Peer<'_>>> = BTreeMap::new();
    for peer in peers {
        if let Some((key, _, _)) = peer.resolved.get(part) {
            groups.entry(key).or_default().push(peer);
        }
    }
    if groups.len() < 2 {
        return None;
    }
    let most = groups.values().map(Vec::len).max()?;
    let majority = groups.values().filter(|g| g.len() == most).count() == 1;
    let usual = groups.values().find(|g| g.len() == most)?;
    let others: Vec<&Peer<'_>> = groups
        .values()
        .filter(|g| !std::ptr::eq(*g, usual))
        .flatten()
        .copied()
        .collect();
    let only_they_failed =
        majority && others.iter().all(|p| p.failed) && usual.iter().all(|p| !p.failed);
    let severity = if only_they_failed {
        Severity::Warning
    } else {
        Severity::Note
    };
    let names: Vec<&str> = others.iter().map(|p| p.name.as_str()).collect();
    let words = |peer: &Peer<'_>| {
        peer.resolved
            .get(part)
            .map(|(_, words, _)| words.clone())
            .unwrap_or_default()
    };
    let (first, one) = (others.first()?, usual.first()?);
    let mut draft = Draft::of("ranks-differ", severity)
        .title(format!(
            "{} resolved another {part} than {}",
            few(&names, 3),
            if majority && usual.len() > 1 {
                format!("{} of its peers", usual.len())
            } else {
                one.name.clone()
            }
        ))
        .cause(format!(
            "{} has {}; {} has {}.",
            first.name,
            words(first),
            one.name,
            words(one)
        ));
    for peer in others.iter().take(4).chain(usual.iter().take(2)) {
        if let Some((_, words, event)) = peer.resolved.get(part) {
            draft = draft
                .evidence(*event, format!("{} has {words}", peer.name))
                .in_process(peer.process.pid);
        }
    }
    for name in ["CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "PATH"] {
        let (its, theirs) = (first.process.env(name), one.process.env(name));
        if its != theirs {
            let said =
                |value: Option<&str>| value.map_or_else(|| "unset".to_owned(), str::to_owned);
            draft = draft
                .cause(format!(
                    "{name} is {} in {} and {} in {}.",
                    said(its),
                    first.name,
                    said(theirs),
                    one.name
                ))
                .evidence(
                    first.process.id,
                    format!("{name} in {} is {}", first.name, said(its)),
                )
                .remedy(format!("Let all ranks have the same {name}."));
            break;
        }
    }
    if only_they_failed {
        draft = draft.cause("Only those that differ failed.");
        for peer in &others {
            if let (Some(event), Some(exit)) = (peer.process.exit_event, peer.process.exit) {
                draft = draft.evidence(event, format!("{}: {}", peer.name, exit_words(exit)));
            }
        }
    }
    Some(draft.proven())
}
