//! `python-headers-missing`: a JIT compiles a module for Python, and Python's own headers are not installed.
//!
//! Triton, tvm-ffi and every extension include `Python.h`, which distributions keep in a package of its own. Proof: the
//! look-ups of a host compiler that all failed, or its sentence, and its failed run.

use super::{
    Draft, View,
    aftermath::Aftermath,
    words::{directory, few},
};
use crate::{fold::ProcessIndex, report::Severity, resolve::tool::Kind};

const HEADER: &str = "Python.h";

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut told: Vec<ProcessIndex> = Vec::new();
    let mut drafts = Vec::new();
    let failed = view
        .tools()
        .iter()
        .filter(|t| matches!(t.kind, Kind::HostCompiler | Kind::HostTool | Kind::Nvcc))
        .filter(|t| view.failed(t.process.index));
    for tool in failed {
        let process = tool.process.index;
        if told.iter().any(|known| view.related(*known, process)) {
            continue;
        }
        let looked: Vec<_> = view
            .model
            .accesses()
            .iter()
            .filter(|a| {
                a.what.path.ends_with("/Python.h")
                    && a.process.is_some_and(|p| view.descends(p, process))
            })
            .collect();
        let said = view.said(&["header-not-found"]).find(|m| {
            m.what.text.contains(HEADER) && super::arch_unsupported::speaks_for(view, m, tool)
        });
        let found = looked.iter().any(|a| a.what.errno == 0);
        if found || looked.is_empty() && said.is_none() {
            continue;
        }
        told.push(process);
        let asker = view.asker(tool);
        let came = Aftermath::of_tool(view, tool);
        let severity = match came {
            Aftermath::WorkedLater => Severity::Note,
            _ => came.of_a_refusal(),
        };
        let mut places: Vec<&str> = looked.iter().map(|a| directory(&a.what.path)).collect();
        places.dedup();
        let searched = if places.is_empty() {
            String::new()
        } else {
            format!(" (searched: {})", few(&places, 6))
        };
        let python = view
            .line(process)
            .find(|p| p.name().starts_with("python"))
            .map(|p| p.what.exe.clone());
        let mut draft = Draft::of("python-headers-missing", severity)
            .component(&asker.component)
            .title(format!(
                "{} compiles a module for Python, and Python.h is not installed",
                asker.component
            ))
            .cause(format!(
                "{} ran {} for a module of Python; Python.h is in none of its include directories{searched}.",
                asker.component,
                tool.path()
            ))
            .evidence(tool.process.id, format!("{} ran", tool.path()))
            .in_process(view.origin(tool.process).pid);
        if let Some(sentence) = asker.sentence() {
            draft = draft.cause(format!("The request came from {sentence}."));
        }
        for access in looked.iter().take(4) {
            draft = draft.evidence(access.id, format!("{} is not there", access.what.path));
        }
        draft = draft
            .evidence_of(said.map(|m| (m.id, view.said_by(m))))
            .evidence_of(
                view.exit_event(process)
                    .map(|e| (e, format!("{} failed", tool.process.name()))),
            );
        let release = python.as_deref().and_then(release_of);
        draft = draft.remedy(match &release {
            Some(release) => format!(
                "Install the headers of the Python that runs, {}: package python{release}-dev (Debian, Ubuntu) or python{release}-devel (Fedora, RHEL); an environment of conda or uv brings its own.",
                python.as_deref().unwrap_or_default()
            ),
            None => "Install the headers of the Python that runs (python3-dev or python3-devel).".to_owned(),
        });
        drafts.push(draft.proven());
    }
    drafts
}

/// 3.12 of `/usr/bin/python3.12`.
fn release_of(python: &str) -> Option<&str> {
    let release = super::words::name(python).strip_prefix("python")?;
    release.contains('.').then_some(release)
}
