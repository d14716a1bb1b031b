//! `cache-rebuilt-without-change`: everything was compiled anew although nothing that matters had changed.
//!
//! The text of a toolkit's path is part of a build file; the same toolkit through a link is another text. Proof: the
//! build file overwritten, the old and the new spelling, one real directory (or one release), and the compilers that ran
//! because of it. Silent when the two spellings lead to different toolkits: then the rebuild is right.

use std::sync::Arc;

use super::{
    Draft, View,
    toolkit_mixed::root_of,
    view::Tool,
    words::{count, directory, duration, tool_rule},
};
use crate::{
    event::{FileAccess, FileOp},
    fold::Seen,
    report::Severity,
    resolve::{asker, tool::Kind},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.model
        .accesses()
        .iter()
        .filter(|a| {
            a.what.errno == 0 && matches!(a.what.op, FileOp::Create | FileOp::Open | FileOp::Rename)
        })
        .filter_map(|a| rebuilt(view, a))
        .collect()
}

fn rebuilt(view: &View<'_>, access: &Seen<Arc<FileAccess>>) -> Option<Draft> {
    let before = toolkit_in(access.what.old_text.as_deref()?)?;
    let process = access.process?;
    let file = access.what.to.as_deref().unwrap_or(&access.what.path);
    let folder = directory(file);
    let compiles: Vec<&Tool<'_>> = view
        .tools_of(Kind::Nvcc)
        .filter(|t| {
            !t.only_asked
                && t.process.start >= access.t
                && view.related(view.origin(t.process).index, process)
        })
        .collect();
    let first = compiles.first()?;
    let now = root_of(first.path()).to_owned();
    if now == before {
        return None;
    }
    let old_nvcc = format!("{before}/bin/nvcc");
    // One directory: by the links, or because both spellings lead to one file.
    let real = view.real(first.path()).to_owned();
    let same_file = real == view.real(&old_nvcc) || root_of(&real) == before || {
        let (a, b) = (view.model.file(first.path()), view.model.file(&old_nvcc));
        a.zip(b).is_some_and(|(a, b)| {
            a.what.ino != 0 && (a.what.dev, a.what.ino) == (b.what.dev, b.what.ino)
        })
    };
    if !same_file {
        return None;
    }
    let time: u64 = compiles
        .iter()
        .filter_map(|t| t.process.end.map(|e| e.saturating_sub(t.process.start)))
        .sum();
    let python = asker::of_frames(&access.what.python);
    let asker = match &python {
        Some(asker) => asker.clone(),
        None => view.asker(first),
    };
    let release = first
        .version
        .as_ref()
        .map(|k| format!(" {}", k.version.without_patch()))
        .unwrap_or_default();
    let found = view.found(first);
    let n = count(compiles.len(), "run of nvcc", "runs of nvcc");
    let mut draft = Draft::of("cache-rebuilt-without-change", Severity::Warning)
        .component(&asker.component)
        .title(format!("{folder} was rebuilt without a real change: {n}, {}", duration(time)))
        .cause(format!(
            "{file} said cuda_home = {before} before and {now} now ({}); both are the same directory ({}) and the same nvcc{release}.",
            tool_rule(&found),
            root_of(&real)
        ))
        .cause(format!("Only the spelling differs, so {n} ({} in all) made what was there already.", duration(time)))
        .evidence(access.id, format!("{file} was overwritten; before, it named {before}"))
        .in_process(access.pid);
    if let Some(fact) = view.model.file(first.path()) {
        draft = draft.evidence(fact.id, format!("{} is {real}", first.path()));
    }
    for tool in compiles.iter().take(5) {
        draft = draft.evidence(tool.process.id, format!("{} ran", tool.path()));
    }
    Some(
        draft
            .remedy(format!(
                "Set CUDA_HOME={} everywhere (login shell, service, launcher), so that one spelling is written.",
                root_of(&real)
            ))
            .proven(),
    )
}

/// The toolkit that a build file names.
fn toolkit_in(text: &str) -> Option<String> {
    let named = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().trim_end_matches('/').to_owned())
        })
    };
    named("cuda_home")
        .or_else(|| named("nvcc").map(|nvcc| root_of(&nvcc).to_owned()))
        .filter(|root| root.starts_with('/'))
}
