//! Caches and compilations: hit or miss, built with what, compiled how often.

use std::collections::BTreeMap;

use super::{Change, Facet, Kind, Weight};
use crate::{
    lasting::lasting,
    report::{Artifact, Build, Cache, Report, phrase},
};

pub(super) fn compare(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    for owner in owners(good, bad) {
        let before: Vec<&Cache> = good
            .caches
            .iter()
            .filter(|cache| cache.owner == owner)
            .collect();
        let after: Vec<&Cache> = bad
            .caches
            .iter()
            .filter(|cache| cache.owner == owner)
            .collect();
        artifacts(&owner, &before, &after, changes);
    }
    builds(good, bad, changes);
}

fn owners(good: &Report, bad: &Report) -> Vec<String> {
    let mut owners: Vec<String> = Vec::new();
    for cache in good.caches.iter().chain(&bad.caches) {
        if !owners.contains(&cache.owner) {
            owners.push(cache.owner.clone());
        }
    }
    owners
}

/// An artefact within its cache, the same for two cache directories.
fn key(cache: &Cache, artifact: &Artifact) -> String {
    lasting(
        artifact
            .path
            .strip_prefix(&cache.directory)
            .unwrap_or(&artifact.path),
    )
    .into_owned()
}

fn by_key<'a>(caches: &[&'a Cache]) -> BTreeMap<String, &'a Artifact> {
    caches
        .iter()
        .flat_map(|cache| {
            cache
                .artifacts
                .iter()
                .map(|artifact| (key(cache, artifact), artifact))
        })
        .collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn state(artifact: &Artifact) -> String {
    let how = match (artifact.built, artifact.loaded) {
        (true, _) => "built in this run",
        (false, true) => "taken from the cache",
        (false, false) => "there, not used",
    };
    match &artifact.built_with {
        Some(version) => format!("{how}, built with {version}"),
        None => how.to_owned(),
    }
}

fn artifacts(owner: &str, good: &[&Cache], bad: &[&Cache], changes: &mut Vec<Change>) {
    let (before, after) = (by_key(good), by_key(bad));
    let mut rebuilt: Vec<(&Artifact, &Artifact)> = Vec::new();
    let mut reused: Vec<(&Artifact, &Artifact)> = Vec::new();
    for (key, old) in &before {
        let Some(new) = after.get(key) else { continue };
        if let (Some(one), Some(other)) = (&old.built_with, &new.built_with)
            && phrase::release(one) != phrase::release(other)
        {
            changes.push(
                Change::new(
                    Kind::Cache,
                    Weight::Cause,
                    format!(
                        "{} of {owner} was built with {other} instead of {one}",
                        file_name(&new.path)
                    ),
                )
                .of(Some(owner), Some("cache"))
                .sides(
                    Facet::new(state(old), &old.events),
                    Facet::new(state(new), &new.events),
                ),
            );
        } else if old.built && !new.built && new.loaded {
            reused.push((old, new));
        } else if !old.built && old.loaded && new.built {
            rebuilt.push((old, new));
        }
    }
    for (pairs, what) in [
        (
            &reused,
            "was compiled in the good run and comes from the cache now",
        ),
        (
            &rebuilt,
            "came from the cache in the good run and is compiled now",
        ),
    ] {
        if let Some((old, new)) = pairs.first() {
            let more = if pairs.len() > 1 {
                format!(" and {} more", pairs.len() - 1)
            } else {
                String::new()
            };
            let built_with = new
                .built_with
                .as_ref()
                .map(|version| format!(" (built with {version})"))
                .unwrap_or_default();
            changes.push(
                Change::new(
                    Kind::Cache,
                    Weight::Cause,
                    format!(
                        "{}{more} of {owner} {what}{built_with}",
                        file_name(&new.path)
                    ),
                )
                .of(Some(owner), Some("cache"))
                .sides(
                    Facet::new(state(old), &old.events),
                    Facet::new(state(new), &new.events),
                ),
            );
        }
    }
    if reused.is_empty() && rebuilt.is_empty() && before.keys().eq(after.keys()) {
        let counts = |caches: &[&Cache]| {
            caches.iter().fold((0, 0, 0), |sum, cache| {
                (
                    sum.0 + cache.hits,
                    sum.1 + cache.misses,
                    sum.2 + cache.builds,
                )
            })
        };
        let (old, new) = (counts(good), counts(bad));
        // A miss or a build more matters; hits are counted per look-up and vary.
        if (old.1 == 0) != (new.1 == 0) || (old.2 == 0) != (new.2 == 0) {
            let text = |counts: (u64, u64, u64)| {
                format!(
                    "{} hits, {} misses, {} builds",
                    counts.0, counts.1, counts.2
                )
            };
            changes.push(
                Change::new(
                    Kind::Cache,
                    Weight::Cause,
                    format!(
                        "the cache of {owner} had {} instead of {}",
                        text(new),
                        text(old)
                    ),
                )
                .of(Some(owner), Some("cache"))
                .sides(Facet::new(text(old), &[]), Facet::new(text(new), &[])),
            );
        }
        return;
    }
    for (run, only) in [
        (
            "good",
            before
                .iter()
                .filter(|(key, _)| !after.contains_key(*key))
                .map(|(_, artifact)| *artifact)
                .collect::<Vec<_>>(),
        ),
        (
            "bad",
            after
                .iter()
                .filter(|(key, _)| !before.contains_key(*key))
                .map(|(_, artifact)| *artifact)
                .collect(),
        ),
    ] {
        if let Some(first) = only.first() {
            let more = if only.len() > 1 {
                format!(" and {} more", only.len() - 1)
            } else {
                String::new()
            };
            let change = Change::new(
                Kind::Cache,
                Weight::Consequence,
                format!(
                    "only the {run} run used {}{more} of {owner}'s cache",
                    first.path
                ),
            )
            .of(Some(owner), Some("cache"));
            let facet = Facet::new(state(first), &first.events);
            changes.push(if run == "good" {
                change.sides(facet, None)
            } else {
                change.sides(None, facet)
            });
        }
    }
}

/// What one component compiled with one tool.
#[derive(Default)]
struct Runs {
    count: usize,
    failed: usize,
    took_ns: u64,
    events: Vec<u64>,
}

impl Runs {
    fn text(&self) -> String {
        let took = phrase::duration(self.took_ns);
        match (self.count, self.failed) {
            (0, _) => "none".to_owned(),
            (count, 0) => format!("{} in {took}", phrase::counted(count, "run")),
            (count, failed) => format!(
                "{} in {took} ({failed} failed)",
                phrase::counted(count, "run")
            ),
        }
    }
}

/// Compilations by who started them and with what. Compilers only: how many shells a build needs is its own affair.
fn builds(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let (before, after) = (runs(&good.builds), runs(&bad.builds));
    let none = Runs::default();
    // Of a condensed trace only some of the runs that were alike are listed: how many is no difference.
    let is_condensed = good.condensed.is_some() || bad.condensed.is_some();
    for key in before
        .keys()
        .chain(after.keys().filter(|key| !before.contains_key(*key)))
    {
        let (old, new) = (
            before.get(key).unwrap_or(&none),
            after.get(key).unwrap_or(&none),
        );
        let is_same = match is_condensed {
            true => (old.count == 0, old.failed == 0) == (new.count == 0, new.failed == 0),
            false => (old.count, old.failed) == (new.count, new.failed),
        };
        if is_same {
            continue;
        }
        let (component, tool) = key;
        let by = match component.is_empty() {
            true => String::new(),
            false => format!(" by {component}"),
        };
        changes.push(
            Change::new(
                Kind::Build,
                Weight::Consequence,
                format!("{tool}{by}: {} instead of {}", new.text(), old.text()),
            )
            .of(
                Some(component.as_str()).filter(|name| !name.is_empty()),
                Some(tool),
            )
            .sides(
                Facet::new(old.text(), &old.events),
                Facet::new(new.text(), &new.events),
            ),
        );
    }
}

fn runs(builds: &[Build]) -> BTreeMap<(String, String), Runs> {
    let mut all: BTreeMap<(String, String), Runs> = BTreeMap::new();
    for build in builds {
        if !is_compilation(build) {
            continue;
        }
        let by = build.started_by.clone().unwrap_or_default();
        let runs = all.entry((by, build.tool.clone())).or_default();
        runs.count += 1;
        runs.failed += usize::from(build.exit.is_some_and(|exit| !exit.is_success()));
        runs.took_ns += build.duration_ns.unwrap_or(0);
        runs.events.extend(&build.events);
    }
    all
}

/// Whether a component compiled device code in a run.
pub(super) fn compiled(report: &Report, component: &str) -> bool {
    report
        .builds
        .iter()
        .any(|build| is_compilation(build) && build.started_by.as_deref() == Some(component))
}

fn is_compilation(build: &Build) -> bool {
    let asks_version = || {
        build
            .argv
            .iter()
            .any(|argument| argument == "--version" || argument == "-V")
    };
    matches!(build.tool.as_str(), "nvcc" | "ptxas" | "ptxas-blackwell") && !asks_version()
}
