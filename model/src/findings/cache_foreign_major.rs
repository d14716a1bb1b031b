//! `cache-foreign-major`: a module in a cache binds a libcudart of another major than this process has.
//!
//! Proof: the module's DT_NEEDED, the load that failed (or that mapped the second runtime), and that the module was not
//! built in this run. What this run itself built with another major is told by `nvcc-differs-from-built-for`.

use super::{
    Draft, View,
    cudart_not_found::major_of,
    provider::{self, Reason},
    words::{directory, name, quoted},
};
use crate::{
    event::EventId,
    fold::{Loaded, ProcessIndex, Seen},
    report::Severity,
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for failure in provider::failures(view) {
        let Reason::NoFile { name: wanted } = &failure.reason else {
            continue;
        };
        let wanted = name(wanted);
        let Some(fact) = view.model.cache_fact(&failure.object) else {
            continue;
        };
        let Some(severity) = provider::severity(view, &failure) else {
            continue;
        };
        let built_now = view
            .report
            .caches
            .iter()
            .flat_map(|c| &c.artifacts)
            .any(|a| a.path == failure.object && a.built);
        if !wanted.starts_with("libcudart") || built_now {
            continue;
        }
        let built = view.built_for(&fact.what.owner);
        let with = fact
            .what
            .built_with
            .as_deref()
            .map(|v| format!(" with CUDA {v}"))
            .unwrap_or_default();
        let mut draft = Draft::of("cache-foreign-major", severity)
            .component(&fact.what.owner)
            .title(format!("{} in the cache is of another CUDA major", name(&failure.object)))
            .cause(format!(
                "{} was built in an earlier run{with} and needs {wanted}, which this process does not have.",
                failure.object
            ))
            .evidence(failure.event, format!("the load failed: {}", quoted(&failure.text)))
            .evidence(fact.id, format!("{} was built{with}", failure.object))
            .in_process(failure.pid)
            .remedy(format!("Delete {} to build it anew, or give each CUDA major a cache directory of its own.", directory(&failure.object)));
        if let Some((package, built)) = &built
            && major_of(wanted) != Some(built.version.major)
        {
            draft = draft
                .cause(format!(
                    "{package} is built for CUDA {}.",
                    built.version.without_patch()
                ))
                .evidence(
                    built.event,
                    format!("{package} is built for CUDA {}", built.version),
                );
        }
        drafts.push(draft.proven());
    }
    drafts.extend(mapped(view));
    drafts
}

/// Loaded, with the other major mapped for it: where nothing else tells, or where the program failed of it.
fn mapped(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for artifact in view
        .report
        .caches
        .iter()
        .flat_map(|c| &c.artifacts)
        .filter(|a| a.loaded && !a.built)
    {
        let Some(fact) = view.model.cache_fact(&artifact.path) else {
            continue;
        };
        let mapped = view
            .model
            .libraries()
            .iter()
            .find(|l| l.what.path == artifact.path || l.what.realpath == artifact.path);
        let Some(mapped) = mapped else { continue };
        let needed = artifact
            .needed
            .iter()
            .find_map(|n| Some((n, major_of(n).filter(|_| n.starts_with("libcudart.so."))?)));
        let Some((foreign, major)) = needed else {
            continue;
        };
        let refusal = refusal(view, mapped.process);
        let Some(own) = own_major(view, &fact.what.owner, mapped, refusal.is_some()) else {
            continue;
        };
        if own.major == major {
            continue;
        }
        let severity = match refusal {
            Some(_) => Severity::Error,
            None => Severity::Warning,
        };
        let mut draft = Draft::of("cache-foreign-major", severity)
            .component(&fact.what.owner)
            .title(format!(
                "{} in the cache is of another CUDA major",
                name(&artifact.path)
            ))
            .cause(format!(
                "{} was built in an earlier run and binds {foreign}; {}.",
                artifact.path, own.words
            ))
            .evidence(mapped.id, format!("{} was loaded", artifact.path))
            .evidence(fact.id, format!("{} needs {foreign}", artifact.path))
            .evidence(own.event, own.words)
            .remedy(format!(
                "Delete {} to build it anew, or give each CUDA major a cache directory of its own.",
                directory(&artifact.path)
            ))
            .in_process(mapped.pid);
        if let Some((event, words)) = refusal {
            draft = draft.cause(format!("{words}.")).evidence(event, words);
        }
        drafts.push(draft.proven());
    }
    drafts
}

/// The CUDA major that a process is of.
struct Own {
    major: u32,
    event: EventId,
    words: String,
}

/// What the component was built for; else, where something failed, the runtime that is mapped for others.
fn own_major(view: &View<'_>, owner: &str, module: &Seen<Loaded>, failed: bool) -> Option<Own> {
    if let Some((package, built)) = view.built_for(owner) {
        return Some(Own {
            major: built.version.major,
            event: built.event,
            words: format!(
                "{package} is built for CUDA {}",
                built.version.without_patch()
            ),
        });
    }
    view.loaded_part(module.process, "cudart")
        .filter(|_| failed)
        .find(|l| l.t < module.t && l.what.requested_by.as_deref() != Some(&module.what.path))
        .and_then(|l| {
            Some(Own {
                major: major_of(name(&l.what.path))?,
                event: l.id,
                words: format!("the process had {} before", l.what.path),
            })
        })
}

/// What a program fails with whose two runtimes do not go together: a handle of the other, a driver for the older.
fn refusal(view: &View<'_>, process: Option<ProcessIndex>) -> Option<(EventId, String)> {
    const REFUSALS: &[i64] = &[35, 400];
    let process = process?;
    view.failed_line(process)?;
    let said = view.messages().find(|m| {
        view.concerns(m, process)
            && (m.what.pattern == "driver-insufficient"
                || m.what.text.contains("invalid resource handle"))
    });
    let call = view.model.calls().iter().find(|c| {
        c.process == Some(process) && c.what.result.is_some_and(|r| REFUSALS.contains(&r))
    });
    said.map(|m| (m.id, view.said_by(m))).or_else(|| {
        call.map(|c| {
            let result = c.what.result.unwrap_or_default();
            (c.id, format!("{} answered {result}", c.what.function))
        })
    })
}
