//! Caches: what was found in them, what was built, and with which toolkit.

use std::collections::HashSet;

use ratatui::text::Line;

use super::Columns;
use crate::{app::App, snapshot::Snapshot, subject::Subject, text, theme::Tone};

/// A row: a cache, or an artefact in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Position of the cache in the report.
    pub cache: usize,
    /// Position of the artefact within it.
    pub artifact: Option<usize>,
    /// The artefacts are left out.
    pub folded: bool,
}

/// The rows.
pub fn rows(snapshot: &Snapshot, folded: &HashSet<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, cache) in snapshot.report.caches.iter().enumerate() {
        let folded = folded.contains(&cache.directory);
        rows.push(Row {
            cache: at,
            artifact: None,
            folded,
        });
        if !folded {
            rows.extend((0..cache.artifacts.len()).map(|artifact| Row {
                cache: at,
                artifact: Some(artifact),
                folded: false,
            }));
        }
    }
    rows
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.caches.get(at)?;
    let cache = app.snapshot.report.caches.get(row.cache)?;
    match row.artifact {
        None => Some(Subject::Cache(cache.directory.clone())),
        Some(at) => cache
            .artifacts
            .get(at)
            .map(|a| Subject::Artifact(a.path.clone())),
    }
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let mut out = Columns::new(app, width);
    out.cell("  owner", 16, Tone::Dim);
    out.right("hits", 5, Tone::Dim);
    out.right("misses", 6, Tone::Dim);
    out.right("built", 5, Tone::Dim);
    out.right("age", 8, Tone::Dim);
    out.cell("built with", 10, Tone::Dim);
    if width >= 100 {
        out.cell("archs", 18, Tone::Dim);
        out.cell("runtime", 18, Tone::Dim);
    }
    out.rest("path", Tone::Dim);
    out.line()
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.caches.get(at)?;
    let cache = app.snapshot.report.caches.get(row.cache)?;
    let mut out = Columns::new(app, width);
    let Some(artifact) = row.artifact.and_then(|at| cache.artifacts.get(at)) else {
        let fold = app.theme.fold(!cache.artifacts.is_empty(), row.folded);
        out.cell(&format!("{fold} {}", cache.owner), 16, Tone::Heading);
        out.right(&text::count(cache.hits), 5, Tone::Good);
        out.right(&text::count(cache.misses), 6, Tone::Plain);
        out.right(&text::count(cache.builds), 5, Tone::Plain);
        let system = match &cache.filesystem {
            Some(system) => format!("  on {system}"),
            None => String::new(),
        };
        let room = out.room().saturating_sub(system.len());
        let path = text::fit_path(&cache.directory, room, app.theme.ellipsis()).into_owned();
        out.rest(&path, Tone::Heading);
        out.rest(&system, Tone::Dim);
        return Some(out.line());
    };
    let used = match (artifact.built, artifact.loaded) {
        (true, true) => "    built+loaded",
        (true, false) => "    built",
        (false, true) => "    hit",
        (false, false) => "    seen",
    };
    out.cell(
        used,
        16,
        if artifact.built {
            Tone::Accent
        } else {
            Tone::Good
        },
    );
    out.cell("", 18, Tone::Dim);
    let age = app.snapshot.age(&artifact.path);
    out.right(&age.map_or(String::new(), text::age), 8, Tone::Plain);
    out.cell(
        artifact.built_with.as_deref().unwrap_or("?"),
        10,
        tone_of(app, artifact.built_with.as_deref()),
    );
    if width >= 100 {
        out.cell(
            &super::resolution::short(&artifact.archs).join(" "),
            18,
            Tone::Plain,
        );
        let runtime = artifact.needed.iter().find(|n| n.starts_with("libcudart"));
        out.cell(runtime.map_or("", String::as_str), 18, Tone::Plain);
    }
    let within = artifact
        .path
        .strip_prefix(cache.directory.as_str())
        .map_or(artifact.path.as_str(), |p| p.trim_start_matches('/'));
    let room = out.room();
    out.path(within, room, Tone::Plain);
    Some(out.line())
}

/// The colour of the toolkit that has this release.
fn tone_of(app: &App, release: Option<&str>) -> Tone {
    let Some(release) = release else {
        return Tone::Dim;
    };
    app.snapshot
        .report
        .toolkits
        .iter()
        .position(|t| {
            t.used
                && t.version.as_deref().is_some_and(|v| {
                    super::resolution::release(v) == super::resolution::release(release)
                })
        })
        .map_or(Tone::Plain, |at| Tone::Toolkit(app.snapshot.rank(at)))
}
