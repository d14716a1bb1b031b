//! `cache-unwritable`: a JIT cache could not be written.
//!
//! Proof: a create, mkdir or rename below a cache that failed for want of permission or space, and a program that failed
//! or said so. Silent when the program took another directory and went on: that is a note.

use std::sync::Arc;

use super::{
    Draft, View,
    words::{directory, errno_words},
};
use crate::{
    component,
    event::{FileAccess, FileOp},
    fold::Seen,
    report::Severity,
    resolve::asker,
};

/// EPERM, EACCES, ENOTDIR, ENOSPC, EROFS, EDQUOT.
const NOT_WRITABLE: &[i32] = &[1, 13, 20, 28, 30, 122];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut told: Vec<(String, u32)> = Vec::new();
    for access in view.model.accesses() {
        let writes = matches!(
            access.what.op,
            FileOp::Create | FileOp::Mkdir | FileOp::Rename | FileOp::LockWait
        );
        if !writes
            || !NOT_WRITABLE.contains(&access.what.errno)
            || is_python_cache(&access.what.path)
            || access.what.path.starts_with("/dev/")
        {
            continue;
        }
        let key = (directory(&access.what.path).to_owned(), access.pid);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        drafts.extend(unwritable(view, access));
    }
    drafts
}

/// `__pycache__` is Python's own, which does without.
fn is_python_cache(path: &str) -> bool {
    path.contains("__pycache__") || path.ends_with(".pyc")
}

/// The variable that moves the cache whose usual place a path lies in.
fn variable_of_cache(path: &str) -> Option<&'static str> {
    component::ALL
        .iter()
        .flat_map(|c| c.caches)
        .filter(|cache| !cache.variable.is_empty())
        .find(|cache| {
            let Some(usual) = cache.directory.strip_prefix("~/") else {
                return false;
            };
            // Its own directory: `.triton` of `.triton/cache`, but `.cache/flashinfer` as a whole.
            let own = match usual.strip_prefix(".cache/") {
                Some(_) => usual,
                None => usual.split('/').next().unwrap_or(usual),
            };
            let own = format!("/{own}");
            path.contains(&format!("{own}/")) || path.ends_with(&own)
        })
        .map(|cache| cache.variable)
}

fn unwritable(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    let path = &access.what.path;
    let process = access.process?;
    let said = view.messages().find(|m| {
        view.concerns(m, process)
            && (m.what.text.contains(path.as_str())
                || [
                    "Permission denied",
                    "Read-only file system",
                    "No space left",
                    "not writable",
                    "PermissionError",
                ]
                .iter()
                .any(|w| m.what.text.contains(w)))
    });
    let failed = view.failed_line(process);
    // Another place was taken: something was made elsewhere in a cache afterwards.
    let elsewhere = view.model.accesses().iter().any(|a| {
        a.t > access.t
            && a.what.errno == 0
            && a.process == access.process
            && matches!(a.what.op, FileOp::Create | FileOp::Rename)
    });
    let severity = if failed.is_some() && (said.is_some() || !elsewhere) {
        Severity::Error
    } else {
        Severity::Note
    };
    let asker = asker::of_call(view.model, &access.what.python, None, access.process);
    let errno = errno_words(access.what.errno);
    let variable = component::find(&asker.component)
        .and_then(|c| c.caches.iter().map(|c| c.variable).find(|v| !v.is_empty()))
        .or_else(|| variable_of_cache(path));
    let mut draft = Draft::of("cache-unwritable", severity)
        .component(&asker.component)
        .title(format!(
            "The cache {} cannot be written: {errno}",
            directory(path)
        ))
        .cause(format!(
            "{} could not {} {path}: {errno}.",
            asker.component,
            match access.what.op {
                FileOp::Mkdir => "make the directory",
                FileOp::Rename => "move a file to",
                FileOp::LockWait => "lock",
                _ => "write",
            }
        ))
        .evidence(access.id, format!("{path} gave {errno}"))
        .in_process(access.pid);
    if let Some(sentence) = asker.sentence() {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    draft = draft.evidence_of(said.map(|m| (m.id, view.said_by(m))));
    if let Some(failed) = failed {
        draft = draft.evidence_of(
            view.exit_event(failed.index)
                .map(|e| (e, "the process failed".to_owned())),
        );
    }
    let image = view.model.process(process)?;
    let set = variable.and_then(|v| Some(format!("{v}={}", image.env(v)?)));
    draft = match (set, image.env("HOME")) {
        (Some(set), _) => draft
            .cause(format!("{set} put it there."))
            .evidence(image.id, set),
        (None, Some(home)) if path.starts_with(home) => draft
            .cause(format!("That is below HOME={home}."))
            .evidence(image.id, format!("HOME={home}")),
        _ => draft,
    };
    if let Some(fact) = view
        .model
        .directory(directory(path))
        .filter(|d| d.what.writable == Some(false))
    {
        draft = draft.evidence(
            fact.id,
            format!(
                "{} is not writable ({})",
                fact.what.path, fact.what.filesystem
            ),
        );
    }
    let space = matches!(access.what.errno, 28 | 122);
    draft = draft.remedy(match (variable, space) {
        (_, true) => format!("Make room in the file system of {}.", directory(path)),
        (Some(variable), false) => format!(
            "Let {variable} name a directory that this user can write, or give the user write access to {}.",
            directory(path)
        ),
        (None, false) => format!("Give this user write access to {}, or move the cache.", directory(path)),
    });
    Some(draft.proven())
}
