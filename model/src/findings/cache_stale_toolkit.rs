//! `cache-stale-toolkit`: a compiled module was taken from a cache that does not know of toolkits, and was built with
//! another one than this run resolves.
//!
//! Absence is the evidence: the toolkit changed and nothing was compiled. Proof: the module loaded or read, what it was
//! built with (its build file, its PTX or its stamp), the toolkit that this run names, and no compiler that wrote it.
//! Silent when both are one release, when the module was built in this run, and when nothing in this run names a
//! toolkit.

use super::{
    Draft, View,
    view::{Known, Tool},
    words::{directory, name, tool_rule},
};
use crate::{
    component,
    event::{CacheFact, EventId, FileOp},
    fold::{Process, Seen},
    report::{Artifact, Cache, Severity, phrase::trace_of},
    resolve::{asker, tool::Kind},
    toolkit::Version,
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for cache in &view.report.caches {
        for artifact in cache.artifacts.iter().filter(|a| a.loaded) {
            let Some(fact) = view.model.cache_fact(&artifact.path) else {
                continue;
            };
            for (event, process) in first_uses(view, artifact) {
                drafts.extend(stale(view, cache, artifact, fact, event, process));
            }
        }
    }
    // Many modules of one cache are one story.
    let mut merged: Vec<Draft> = Vec::new();
    for draft in drafts {
        match merged
            .iter_mut()
            .find(|d| d.finding.remedy.first() == draft.finding.remedy.first())
        {
            Some(known) => known.absorb(draft),
            None => merged.push(draft),
        }
    }
    merged
}

/// The first use of a module in each of the joined traces.
fn first_uses<'a>(view: &View<'a>, artifact: &Artifact) -> Vec<(Option<EventId>, &'a Process)> {
    if !view.is_joined() {
        let event = artifact.events.first().copied();
        let process = event
            .and_then(|e| process_of(view, e))
            .or_else(|| view.model.processes().first());
        return process.map(|p| (event, p)).into_iter().collect();
    }
    let opened = view
        .uses_of(&artifact.path)
        .filter(|a| a.what.op == FileOp::Open && a.what.errno == 0)
        .map(|a| (a.id, a.process));
    let mapped = view
        .model
        .libraries()
        .iter()
        .filter(|l| l.what.path == artifact.path)
        .map(|l| (l.id, l.process));
    let mut uses: Vec<(Option<EventId>, &Process)> = Vec::new();
    for (event, process) in opened.chain(mapped) {
        let Some(process) = process.and_then(|p| view.model.process(p)) else {
            continue;
        };
        let trace = trace_of(process.pid);
        if uses.iter().all(|(_, p)| trace_of(p.pid) != trace) {
            uses.push((Some(event), process));
        }
    }
    uses
}

/// The toolkit that a run would compile with.
struct Wanted {
    known: Known,
    words: String,
    variable: Option<String>,
    evidence: EventId,
}

fn stale(
    view: &View<'_>,
    cache: &Cache,
    artifact: &Artifact,
    fact: &Seen<CacheFact>,
    used: Option<EventId>,
    process: &Process,
) -> Option<Draft> {
    let trace = trace_of(process.pid);
    let builder = built_in_another(view, &artifact.path, trace);
    let built = builder
        .and_then(|(_, version)| version)
        .or_else(|| built_with(view, &fact.what))?;
    let wanted = wanted(view, process)?;
    if built.same_release(wanted.known.version) || compiled_since(view, &artifact.path, trace) {
        return None;
    }
    let owner = if matches!(cache.owner.as_str(), "" | "unknown") {
        asker::of_call(view.model, &[], None, Some(process.index)).component
    } else {
        cache.owner.clone()
    };
    let not_keyed = component::find(&owner)
        .and_then(|c| c.caches.first())
        .map(|c| {
            format!(
                "The name of an entry in this cache does not depend on {}.",
                c.not_keyed
            )
        })
        .unwrap_or_default();
    let folder = directory(&artifact.path);
    let variable = wanted
        .variable
        .clone()
        .unwrap_or_else(|| "the toolkit of this run".to_owned());
    let date = date(fact.what.mtime)
        .map(|d| format!(" on {d}"))
        .unwrap_or_default();
    let how = fact
        .what
        .built_with_from
        .as_deref()
        .map(|f| format!(" (by its {f})"))
        .unwrap_or_default();
    let built_with = built.without_patch();
    let home = fact
        .what
        .cuda_home
        .as_deref()
        .map(|h| format!(" of {h}"))
        .unwrap_or_default();
    let mut draft = Draft::of("cache-stale-toolkit", Severity::Warning)
        .component(&owner)
        .title(format!(
            "{} was built with CUDA {built_with}; {variable} ({}) had no effect on it",
            name(&artifact.path),
            wanted.known.version.without_patch()
        ))
        .cause(format!(
            "{} was taken from the cache, where it was built with nvcc {built_with}{home}{date}{how}; this run names {} ({}), and no compiler ran for it.",
            artifact.path,
            wanted.known.version.without_patch(),
            wanted.words
        ))
        .cause(not_keyed)
        .evidence(fact.id, format!("{} was built with {built_with}{how}", artifact.path))
        .evidence(wanted.evidence, wanted.words.clone())
        .evidence(
            wanted.known.event,
            format!("the toolkit of {} is {} ({})", wanted.words, wanted.known.version, wanted.known.how()),
        )
        .in_process(process.pid);
    let shown: Vec<EventId> = if view.is_joined() {
        used.into_iter().collect()
    } else {
        artifact.events.iter().copied().take(2).collect()
    };
    for event in shown {
        draft = draft.evidence(event, format!("{} was used", artifact.path));
    }
    if let Some((tool, _)) = builder {
        draft = draft
            .cause(format!(
                "The build is in another of these traces, by {} ({}).",
                tool.named(),
                tool.path()
            ))
            .evidence(
                tool.process.id,
                format!(
                    "{} wrote {} in trace {}",
                    tool.path(),
                    artifact.path,
                    trace_of(tool.process.pid) + 1
                ),
            );
    }
    Some(
        draft
            .remedy(format!("Delete {folder} to build it anew."))
            .remedy("Or give each toolkit a cache directory of its own.")
            .proven_if(
                fact.what.built_with.is_some() || fact.what.cuda_home.is_some(),
                "what it was built with",
            ),
    )
}

/// The release that an artefact was built with: as it was read, else as the toolkit that its build file names.
fn built_with(view: &View<'_>, fact: &CacheFact) -> Option<Version> {
    fact.built_with
        .as_deref()
        .and_then(Version::parse)
        .or_else(|| {
            let nvcc = fact
                .nvcc
                .clone()
                .or_else(|| fact.cuda_home.as_ref().map(|h| format!("{h}/bin/nvcc")))?;
            Some(view.version_of(&nvcc)?.version)
        })
}

/// What this run would compile with: the compiler that it asked, else the root that its environment names.
fn wanted(view: &View<'_>, process: &Process) -> Option<Wanted> {
    let asked = view
        .tools_of(Kind::Nvcc)
        .filter(|t| view.related(view.origin(t.process).index, process.index))
        .last();
    if let Some(nvcc) = asked
        && let Some(known) = &nvcc.version
    {
        let found = view.found(nvcc);
        let variable = found.detail.split_once('=').map(|(n, _)| n.to_owned());
        return Some(Wanted {
            known: known.clone(),
            words: format!("{}, {}", nvcc.path(), tool_rule(&found)),
            variable: variable.filter(|v| !v.contains(' ')),
            evidence: nvcc.process.id,
        });
    }
    ["CUDA_HOME", "CUDA_PATH"].iter().find_map(|variable| {
        let root = process.env(variable).filter(|v| !v.is_empty())?;
        let root = root.trim_end_matches('/');
        let known = view
            .version_of(&format!("{root}/bin/nvcc"))
            .or_else(|| release_of_root(view, root))?;
        Some(Wanted {
            known,
            words: format!("{variable}={root}"),
            variable: Some((*variable).to_owned()),
            evidence: process.id,
        })
    })
}

fn release_of_root(view: &View<'_>, root: &str) -> Option<Known> {
    let toolkit = view
        .model
        .toolkits()
        .iter()
        .find(|t| t.what.root.trim_end_matches('/') == root)?;
    Some(Known {
        version: Version::parse(toolkit.what.version.as_deref()?)?,
        event: toolkit.id,
        from: toolkit.what.version_from.clone().unwrap_or_default(),
    })
}

fn process_of<'a>(view: &View<'a>, event: EventId) -> Option<&'a Process> {
    let index = view
        .model
        .accesses()
        .iter()
        .find(|a| a.id == event)
        .and_then(|a| a.process)
        .or_else(|| {
            view.model
                .libraries()
                .iter()
                .find(|l| l.id == event)
                .and_then(|l| l.process)
        })?;
    view.model.process(index)
}

/// The compiler that wrote a module in another trace than this one.
fn built_in_another<'v, 'a>(
    view: &'v View<'a>,
    path: &str,
    trace: u32,
) -> Option<(&'v Tool<'a>, Option<Version>)> {
    if !view.is_joined() {
        return None;
    }
    let build = view.report.builds.iter().find(|b| {
        trace_of(b.pid) != trace
            && b.output
                .as_deref()
                .is_some_and(|o| crate::resolve::absolute(&b.cwd, o) == path)
    })?;
    let tool = view.tool_of_build(build)?;
    Some((tool, tool.version.as_ref().map(|k| k.version)))
}

/// Whether anything was compiled into the directory of a module, or moved to its place, in one of the traces.
fn compiled_since(view: &View<'_>, path: &str, trace: u32) -> bool {
    let folder = directory(path);
    let by_tool = view.report.builds.iter().any(|b| {
        trace_of(b.pid) == trace
            && b.output
                .as_deref()
                .is_some_and(|o| directory(&crate::resolve::absolute(&b.cwd, o)) == folder)
    });
    by_tool
        || view.model.accesses().iter().any(|a| {
            a.what.errno == 0
                && trace_of(a.pid) == trace
                && (a.what.op == FileOp::Create && a.what.path == path
                    || a.what.to.as_deref() == Some(path))
        })
}

/// The day of a time in seconds since 1970, in UTC.
fn date(seconds: i64) -> Option<String> {
    if seconds <= 0 {
        return None;
    }
    // Days to a civil date, by the usual arithmetic on eras of 400 years.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days - era * 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        for (seconds, day) in [
            (86_400, "1970-01-02"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_735_689_600, "2025-01-01"),
        ] {
            assert_eq!(date(seconds).as_deref(), Some(day));
        }
        assert_eq!(date(0), None);
    }
}
