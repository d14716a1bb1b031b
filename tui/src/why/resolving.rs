//! The chain behind a cell: every file that a component resolved for a part.

use jittrace_model::{
    EventId,
    report::{BuiltFor, Component, Finding, Resolved},
};

use crate::{
    subject::Subject,
    summary, text,
    theme::Tone,
    view::{
        builds, findings,
        resolution::{self, COLUMNS, Difference},
    },
};

use super::*;

pub(super) fn cell(evidence: &Evidence<'_>, name: &str, column: usize, links: &mut Vec<Link>) {
    let snapshot = evidence.snapshot;
    let report = &snapshot.report;
    let (Some(component), Some(column)) = (
        report.components.iter().find(|c| c.name == name),
        COLUMNS.get(column),
    ) else {
        return;
    };
    match column.key {
        "built-for" => {
            match (&component.built_for.cuda, &component.built_for.from) {
                (Some(cuda), from) => {
                    links.push(Link::new("built for", format!("CUDA {cuda}")));
                    if let Some(from) = from {
                        links.push(Link::new("as told by", from.clone()).deep(1));
                    }
                }
                (None, _) => links.push(
                    Link::new("built for", "nothing says for which CUDA it was built")
                        .tone(Tone::Dim),
                ),
            }
            for (label, value) in [
                ("distribution", &component.distribution),
                ("version", &component.version),
                ("lives in", &component.path),
            ] {
                if let Some(value) = value {
                    links.push(Link::new(label, value.clone()));
                }
            }
        }
        "archs" => {
            let archs = resolution::archs(snapshot, component);
            let text = if archs.is_empty() {
                "none were asked for".to_owned()
            } else {
                archs.join(" ")
            };
            links.push(Link::new("architectures", text));
            for build in report
                .builds
                .iter()
                .filter(|b| b.started_by.as_deref() == Some(name) && !b.archs.is_empty())
                .take(20)
            {
                links.push(
                    Link::new(
                        &build.tool,
                        format!(
                            "{} for {}",
                            build.archs.join(" "),
                            build.output.as_deref().unwrap_or("?")
                        ),
                    )
                    .deep(1)
                    .to(Subject::Build(builds::key(build))),
                );
            }
        }
        "caches" => {
            for cache in report.caches.iter().filter(|c| c.owner == name) {
                links.push(
                    Link::new("cache", cache.directory.clone())
                        .to(Subject::Cache(cache.directory.clone())),
                );
                links.push(
                    Link::new(
                        "",
                        format!(
                            "{} hits, {} misses, {} built",
                            cache.hits, cache.misses, cache.builds
                        ),
                    )
                    .deep(1),
                );
            }
        }
        part => {
            for (at, entry) in resolution::entries(component, part, evidence.process).enumerate() {
                if at > 0 {
                    links.push(Link::default());
                }
                let differs = entry
                    .version
                    .as_deref()
                    .filter(|_| column.release)
                    .and_then(|version| differs(snapshot, component, version));
                resolved(evidence, column.title, entry, differs, links);
            }
        }
    }
    if links.is_empty() {
        links.push(Link::new(column.title, format!("{name} resolved none")).tone(Tone::Dim));
    }
    let about: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|f| f.component.as_deref() == Some(name))
        .collect();
    if !about.is_empty() {
        links.push(Link::default());
        links.push(Link::heading("findings"));
        for found in about {
            let (tone, word) = findings::severity(found.severity);
            links.push(
                Link::new(word, found.title.clone())
                    .tone(tone)
                    .deep(1)
                    .to(findings::key(found)),
            );
        }
    }
    // What was seen of each file stands last: it is long, and the file's own line leads to the first of it.
    let entries = || resolution::entries(component, column.key, evidence.process);
    let count = entries().map(|entry| entry.events.len()).sum();
    if count > 1 {
        links.push(Link::default());
        links.push(Link::heading("seen as"));
        let seen = entries().flat_map(|entry| entry.events.iter().copied());
        told(evidence, seen, count, links);
    }
}

/// Which release a version differs from, and whose that is.
fn differs(snapshot: &Snapshot, component: &Component, version: &str) -> Option<String> {
    let name = resolution::name(component);
    let (release, whose) = match &component.built_for {
        BuiltFor {
            cuda: Some(cuda),
            from,
        } => {
            let from = from.as_ref().map(|from| format!(" ({from})"));
            let whose = format!("{name} was built for{}", from.unwrap_or_default());
            (cuda.clone(), whose)
        }
        BuiltFor { cuda: None, .. } => {
            let (other, cuda) = resolution::neighbour(snapshot, component)?;
            let whose = format!("{other} in the same processes was built for");
            (cuda.clone(), whose)
        }
    };
    (resolution::difference(version, &release) != Difference::None)
        .then(|| format!("CUDA {release}, which {whose}"))
}

/// The chain behind one resolved file.
pub(super) fn resolved(
    evidence: &Evidence<'_>,
    part: &str,
    entry: &Resolved,
    differs: Option<String>,
    links: &mut Vec<Link>,
) {
    let snapshot = evidence.snapshot;
    let toolkit = entry.toolkit.as_deref().and_then(|id| snapshot.toolkit(id));
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(snapshot.rank(t)));
    let version = entry.version.as_deref().unwrap_or("of unknown version");
    let first = entry.events.first().copied();
    let mut link = Link::new(&format!("{part} {version}"), entry.path.clone())
        .tone(tone)
        .copies(entry.path.clone());
    if let Some(id) = first {
        link = link.event(id);
    }
    links.push(link);
    if !entry.realpath.is_empty() && entry.realpath != entry.path {
        links.push(
            Link::new("really", entry.realpath.clone())
                .deep(1)
                .copies(entry.realpath.clone()),
        );
    }
    if let Some(from) = &entry.version_from {
        links.push(
            Link::new("version from", version_from(from))
                .deep(1)
                .tone(Tone::Dim),
        );
    }
    if let Some(toolkit) = toolkit.and_then(|t| snapshot.report.toolkits.get(t)) {
        links.push(
            Link::new(
                "toolkit",
                format!("{} ({}) {}", toolkit.id, toolkit.kind, toolkit.root),
            )
            .deep(1)
            .copies(toolkit.root.clone()),
        );
    }
    if let Some(differs) = differs {
        links.push(Link::new("differs from", differs).tone(Tone::Warning));
    }
    links.push(rule(entry.rule, &entry.rule_detail, entry.explanation));
    asked(
        evidence,
        entry.requested_by.as_deref(),
        &entry.events,
        links,
    );
    candidates(evidence, &entry.candidates, links);
    if entry.pids.len() > 1 {
        const NAMED: usize = 12;
        let pids: Vec<String> = entry.pids.iter().take(NAMED).map(u32::to_string).collect();
        let rest = match entry.pids.len().saturating_sub(NAMED) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let text = format!("processes {}{rest}", pids.join(", "));
        links.push(Link::new("seen in", text));
    }
}

/// Events, each in a line that leads to it; of many (there may be as many as there are calls) the first ones.
pub(super) fn told(
    evidence: &Evidence<'_>,
    events: impl Iterator<Item = EventId>,
    count: usize,
    links: &mut Vec<Link>,
) {
    let shown = if evidence.expanded { ALL } else { PLACES };
    for id in events.take(shown) {
        if let Some(event) = evidence.store.find(id) {
            links.push(
                Link::new(
                    &format!("#{id}"),
                    format!("{} {}", event.body.kind(), summary::line(&event, 160, "…")),
                )
                .deep(1)
                .tone(Tone::Dim)
                .event(id),
            );
        }
    }
    more(evidence, count.saturating_sub(shown), links);
}

/// Says how many are not shown; they can be, unless all are that ever are.
pub(crate) fn more(evidence: &Evidence<'_>, hidden: usize, links: &mut Vec<Link>) {
    if hidden == 0 {
        return;
    }
    let more = Link::new("", format!("{} more", text::count(hidden as u64))).deep(1);
    links.push(match evidence.expanded {
        false => Link {
            target: Target::Expand,
            ..more.tone(Tone::Accent)
        },
        true => more.tone(Tone::Dim),
    });
}
