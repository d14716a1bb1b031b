//! `cache-stale-build-file`: a build file in a cache names a toolkit of another day, and its compiler was run although
//! the environment names another.
//!
//! Proof: the compiler that ran below ninja, the build file that names it and was not written in this run, and the
//! CUDA_HOME that it does not follow. Build files that are no JIT cache's are their project's business. A build that
//! failed is an error, one that succeeded with the wrong compiler a warning.

use super::{
    Draft, View,
    toolkit_mixed::root_of,
    view::{exit_words, is_failure},
    words::directory,
};
use crate::{
    event::{FileOp, Rule},
    fold::Process,
    report::Severity,
    resolve::tool::{Kind, under},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for nvcc in view.tools_of(Kind::Nvcc).filter(|t| !t.only_asked) {
        let found = view.found(nvcc);
        let file = if found.rule == Rule::BuildFile {
            Some(found.detail)
        } else {
            read_before(view, nvcc.path(), nvcc.process)
        };
        if let Some(file) = file {
            drafts.extend(stale(view, nvcc.path(), nvcc.process.index, &file));
        }
    }
    // The compiler that the file names may be gone: then only the failed exec, or a shell's 127, is there.
    for failure in view.model.exec_failures() {
        let path = failure.what.path.as_str();
        if super::words::name(path) != "nvcc" {
            continue;
        }
        let Some(process) = failure.process else {
            continue;
        };
        let ninja = view
            .line(process)
            .find(|p| Kind::of(p.name()) == Some(Kind::BuildSystem));
        let Some(file) = ninja.and_then(|n| build_file_of(&n.what.argv, &n.what.cwd)) else {
            continue;
        };
        drafts.extend(stale(view, path, process, &file));
    }
    drafts
}

/// A build file that names this compiler and that was read before it ran, where no build system ran it.
fn read_before(view: &View<'_>, nvcc: &str, process: &Process) -> Option<String> {
    // Few build files name a compiler, and many files are opened: the names come first.
    let naming: Vec<&str> = view
        .model
        .cache_facts()
        .filter(|f| {
            f.what.path.ends_with("/build.ninja")
                && (f.what.nvcc.as_deref() == Some(nvcc)
                    || f.what.cuda_home.as_deref() == Some(root_of(nvcc)))
        })
        .map(|f| f.what.path.as_str())
        .collect();
    if naming.is_empty() {
        return None;
    }
    let origin = view.origin(process).index;
    naming
        .into_iter()
        .filter_map(|path| {
            view.uses_of(path).find(|a| {
                a.what.op == FileOp::Open
                    && a.what.errno == 0
                    && a.t <= process.start
                    && a.process.is_some_and(|p| view.related(p, origin))
            })
        })
        .min_by_key(|a| a.id)
        .map(|a| a.what.path.clone())
}

fn stale(view: &View<'_>, nvcc: &str, process: usize, file: &str) -> Option<Draft> {
    let image = view.model.process(process)?;
    let (variable, home) = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .find_map(|n| Some((*n, view.env(image, n)?)))?;
    let in_cache = view
        .model
        .cache_facts()
        .any(|f| directory(&f.what.path) == directory(file));
    let written = view.model.accesses().iter().any(|a| {
        a.what.errno == 0
            && (a.what.op == FileOp::Create && a.what.path == file
                || a.what.to.as_deref() == Some(file))
    });
    let root = root_of(nvcc);
    let same = under(nvcc, home)
        || view.real(root) == view.real(home)
        || under(view.real(nvcc), view.real(home));
    if !in_cache || written || same {
        return None;
    }
    let tool = view.tool(process).filter(|t| t.kind == Kind::Nvcc);
    let exit = view.exit_of(process).filter(|e| is_failure(*e));
    let severity = if exit.is_some() || tool.is_none() {
        Severity::Error
    } else {
        Severity::Warning
    };
    let asker = match tool {
        Some(tool) => view.asker(tool),
        None => crate::resolve::asker::of_process(view.model, image),
    };
    let gone = tool.is_none();
    let named = tool.map_or_else(|| nvcc.to_owned(), |t| format!("{} at {nvcc}", t.named()));
    let mut draft = Draft::of("cache-stale-build-file", severity)
        .component(&asker.component)
        .title(format!("{file} still names {nvcc}; {variable}={home} had no effect"))
        .cause(format!(
            "{file} was written in an earlier run and names {named}; this run has {variable}={home} and did not write it anew{}.",
            if gone { ". That compiler is not there any more" } else { "" }
        ))
        .evidence(image.id, format!("{nvcc} was run by the build file, with {variable}={home} in the environment"))
        .in_process(view.origin(image).pid);
    if let Some(exit) = exit {
        draft = draft
            .cause(format!("The build failed ({}).", exit_words(exit)))
            .evidence_of(view.exit_event(process).map(|e| (e, exit_words(exit))));
    }
    if let Some(fact) = view
        .model
        .cache_facts()
        .find(|f| directory(&f.what.path) == directory(file) && f.what.cuda_home.is_some())
    {
        let home = fact.what.cuda_home.clone().unwrap_or_default();
        draft = draft.evidence(fact.id, format!("the build file says cuda_home = {home}"));
    }
    if let Some(message) = view
        .said(&[
            "unsupported-gpu-architecture",
            "value-not-defined-for-option",
            "nvcc-not-found",
            "command-not-found",
        ])
        .find(|m| view.concerns(m, process))
    {
        draft = draft.evidence(message.id, view.said_by(message));
    }
    Some(
        draft
            .remedy(format!(
                "Delete {}: the build file is then written for {home}.",
                directory(file)
            ))
            .proven(),
    )
}

fn build_file_of(argv: &[String], cwd: &str) -> Option<String> {
    let after = |flag: &str| argv.iter().skip_while(|a| *a != flag).nth(1).cloned();
    let file = after("-f").unwrap_or_else(|| "build.ninja".to_owned());
    let base = after("-C").map_or_else(|| cwd.to_owned(), |c| crate::resolve::absolute(cwd, &c));
    Some(crate::resolve::absolute(&base, &file))
}
