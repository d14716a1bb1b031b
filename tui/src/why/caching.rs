//! The chain behind a cache and its artefacts.

use crate::{subject::Subject, summary, theme::Tone, view::builds};

use super::*;

pub(super) fn cache(evidence: &Evidence<'_>, directory: &str, links: &mut Vec<Link>) {
    let report = &evidence.snapshot.report;
    let Some(cache) = report.caches.iter().find(|c| c.directory == directory) else {
        return;
    };
    links.push(Link::new("directory", directory).copies(directory));
    links.push(Link::new("owner", cache.owner.clone()).to(Subject::Cell {
        component: cache.owner.clone(),
        column: 8,
    }));
    links.push(Link::new(
        "used",
        format!(
            "{} hits, {} misses, {} built",
            cache.hits, cache.misses, cache.builds
        ),
    ));
    if let Some(filesystem) = &cache.filesystem {
        links.push(Link::new("on", filesystem.clone()));
    }
    for artifact in &cache.artifacts {
        links.push(
            Link::new(
                artifact.built_with.as_deref().unwrap_or("?"),
                artifact.path.clone(),
            )
            .deep(1)
            .to(Subject::Artifact(artifact.path.clone())),
        );
    }
}

pub(super) fn artifact(evidence: &Evidence<'_>, path: &str, links: &mut Vec<Link>) {
    let report = &evidence.snapshot.report;
    let Some((cache, artifact)) = report
        .caches
        .iter()
        .find_map(|c| c.artifacts.iter().find(|a| a.path == path).map(|a| (c, a)))
    else {
        return;
    };
    links.push(Link::new("artefact", path).copies(path));
    let with = match (&artifact.built_with, &artifact.built_with_from) {
        (Some(with), Some(from)) => format!("CUDA {with} (by {from})"),
        (Some(with), None) => format!("CUDA {with}"),
        _ => "not known".to_owned(),
    };
    links.push(Link::new("built with", with));
    let when = match (artifact.built, artifact.loaded) {
        (true, true) => "built and loaded in this run",
        (true, false) => "built in this run",
        (false, true) => "found in the cache and loaded",
        (false, false) => "seen",
    };
    links.push(Link::new("use", when));
    if let Some(age) = evidence.snapshot.age(path).filter(|age| *age >= 0) {
        let age = format!("{} when the trace began", text::age(age));
        links.push(Link::new("old", age));
    }
    if !artifact.archs.is_empty() {
        links.push(Link::new("architectures", artifact.archs.join(" ")));
    }
    if !artifact.needed.is_empty() {
        links.push(Link::new("needs", artifact.needed.join(" ")));
    }
    links.push(
        Link::new("in cache", cache.directory.clone()).to(Subject::Cache(cache.directory.clone())),
    );
    for build in report
        .builds
        .iter()
        .filter(|b| b.output.as_deref().is_some_and(|o| path.ends_with(o)))
        .take(PLACES)
    {
        links.push(
            Link::new(
                "built by",
                format!("{} {}", build.tool, build.version.as_deref().unwrap_or("")),
            )
            .to(Subject::Build(builds::key(build))),
        );
    }
    for id in &artifact.events {
        if let Some(event) = evidence.store.find(*id) {
            links.push(
                Link::new(
                    &format!("#{id}"),
                    format!("{} {}", event.body.kind(), summary::line(&event, 160, "…")),
                )
                .tone(Tone::Dim)
                .event(*id),
            );
        }
    }
}
