//! `build-lock-stale`: a process waits for a build lock that nobody will give back.
//!
//! Two kinds of lock: one held by a descriptor, whose holder is known by the kernel, and a file whose mere existence is
//! the lock (torch's `lock`), which a killed build leaves behind. Proof: a wait without an end, or an exclusive create
//! that found the file there, with nobody in this trace who made it or removed it, and a process that did not get
//! further. Silent when the lock was got in the end.

use std::{collections::HashSet, sync::Arc};

use super::{
    Draft, View,
    view::exit_words,
    words::{duration, name},
};
use crate::{
    event::{FileAccess, FileOp},
    fold::Seen,
    report::Severity,
    resolve::{asker, tool::Kind},
};

/// A wait without an end that is worth a word while it lasts, in nanoseconds.
const STUCK_NS: u64 = 30_000_000_000;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut told: HashSet<(u32, &str)> = HashSet::new();
    for access in view.model.accesses() {
        let path = access.what.path.as_str();
        if told.contains(&(access.pid, path)) {
            continue;
        }
        let stale = match (access.what.op, access.what.errno) {
            (FileOp::LockWait, _) => by_descriptor(view, access),
            (FileOp::Create | FileOp::Mkdir, 17) if is_lock(path) => by_file(view, access),
            (FileOp::Open | FileOp::Stat, 0) if is_lock(path) => by_polling(view, access),
            _ => None,
        };
        if let Some(draft) = stale {
            told.insert((access.pid, path));
            drafts.push(draft);
        }
    }
    drafts
}

fn is_lock(path: &str) -> bool {
    let file = name(path);
    file == "lock" || file.ends_with(".lock") || file == "baton" || file.ends_with(".lck")
}

/// flock, lockf, fcntl: waiting, and no sign of having got it.
fn by_descriptor(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    let path = access.what.path.as_str();
    let got = view
        .uses_of(path)
        .any(|a| a.pid == access.pid && a.what.op == FileOp::Locked && a.t >= access.t);
    if got {
        return None;
    }
    let end = access
        .process
        .and_then(|p| view.model.process(p))
        .and_then(|p| p.end);
    let waited = end
        .unwrap_or_else(|| view.model.last_t())
        .saturating_sub(access.t);
    let ended = access.process.and_then(|p| view.exit_of(p));
    let broke_off = ended.is_some_and(|e| !e.is_success());
    if waited < STUCK_NS && !broke_off {
        return None;
    }
    let holder = view
        .uses_of(path)
        .rfind(|a| a.what.op == FileOp::Locked && a.pid != access.pid && a.t <= access.t)
        .filter(|l| {
            !view
                .uses_of(path)
                .any(|a| a.pid == l.pid && a.what.op == FileOp::Unlock && a.t > l.t)
        });
    let severity = if broke_off {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut draft = waiting(view, access, severity, waited);
    draft = match holder {
        Some(holder) => {
            let building = view
                .tools()
                .iter()
                .any(|t| view.origin(t.process).pid == holder.pid && t.process.end.is_none());
            draft
                .cause(format!(
                    "Process {} of this run holds it{}.",
                    holder.pid,
                    if building { " and is building" } else { "" }
                ))
                .evidence(holder.id, format!("process {} got the lock", holder.pid))
                .remedy(if building {
                    format!("Wait for the build of process {}.", holder.pid)
                } else {
                    format!(
                        "Look at process {}, which holds it and builds nothing.",
                        holder.pid
                    )
                })
        }
        None => draft
            .cause("No process of this run holds it.")
            .remedy(format!(
                "Find the process that holds it (`lsof {}`) and end it.",
                access.what.path
            )),
    };
    Some(draft.proven())
}

/// An exclusive create that found the file there.
fn by_file(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    let path = access.what.path.as_str();
    let of_lock = |ops: &'static [FileOp]| {
        view.uses_of(path)
            .filter(move |a| a.what.errno == 0 && ops.contains(&a.what.op))
    };
    let made_here = of_lock(&[FileOp::Create, FileOp::Mkdir]).any(|a| a.t <= access.t);
    let freed = of_lock(&[FileOp::Unlink]).any(|a| a.t >= access.t);
    // Once the file is gone, whoever polls for it sees ENOENT.
    let gone = view
        .uses_of(path)
        .any(|a| a.what.errno == 2 && a.t >= access.t);
    if made_here || freed || gone {
        return None;
    }
    stuck(view, access)
}

/// A program that only looks whether the file is there, again and again.
fn by_polling(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    const POLLS: usize = 5;
    let path = access.what.path.as_str();
    let polls = view
        .uses_of(path)
        .filter(|a| a.pid == access.pid && a.what.errno == 0)
        .filter(|a| matches!(a.what.op, FileOp::Stat | FileOp::Open))
        .count();
    let touched = view.uses_of(path).any(|a| {
        a.what.errno == 2
            || a.what.errno == 0
                && matches!(
                    a.what.op,
                    FileOp::Create | FileOp::Unlink | FileOp::Locked | FileOp::LockWait
                )
    });
    if polls < POLLS || touched {
        return None;
    }
    stuck(view, access)
}

fn stuck(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    let process = access.process?;
    let image = view.model.process(process)?;
    let built_later = view.tools().iter().any(|t| {
        !t.only_asked
            && matches!(t.kind, Kind::Nvcc | Kind::Ptxas | Kind::BuildSystem)
            && t.process.start > access.t
            && view.origin(t.process).pid == access.pid
    });
    if built_later {
        return None;
    }
    let waited = image
        .end
        .unwrap_or_else(|| view.model.last_t())
        .saturating_sub(access.t);
    let ended = view.exit_of(process);
    // A wait that was cut off, by a timeout of its own or by whoever lost patience, or that still lasts.
    let broke_off = ended.is_some_and(|e| !e.is_success());
    if !broke_off && waited < STUCK_NS {
        return None;
    }
    let severity = if broke_off {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut draft = waiting(view, access, severity, waited).cause(
        "The file was there before this run, and no process of this run made it or removed it: a build that was killed left it behind.",
    );
    if let Some(exit) = ended {
        draft = draft
            .cause(format!("The process ended waiting ({}).", exit_words(exit)))
            .evidence_of(view.exit_event(process).map(|e| (e, exit_words(exit))));
    }
    let fact = view.model.file(&access.what.path);
    if let Some(fact) = fact {
        draft = draft.evidence(fact.id, format!("{} exists", access.what.path));
    }
    Some(
        draft
            .remedy(format!(
                "If no build is under way, delete {} and start again.",
                access.what.path
            ))
            .proven(),
    )
}

fn waiting(
    view: &View<'_>,
    access: &Seen<Arc<FileAccess>>,
    severity: Severity,
    waited: u64,
) -> Draft {
    let asker = asker::of_call(view.model, &access.what.python, None, access.process);
    Draft::of("build-lock-stale", severity)
        .component(&asker.component)
        .title(format!(
            "{} waits for the lock {}",
            asker.component, access.what.path
        ))
        .cause(format!(
            "Process {} has waited {} for {}{}.",
            access.pid,
            duration(waited),
            access.what.path,
            asker
                .sentence()
                .map(|s| format!(", asked by {s}"))
                .unwrap_or_default()
        ))
        .evidence(
            access.id,
            if access.what.errno == 17 {
                format!("{} exists already (EEXIST)", access.what.path)
            } else {
                format!("{} was waited for", access.what.path)
            },
        )
        .in_process(access.pid)
}
