//! JIT caches: what was found in them, what was not, and what was put there.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use crate::{
    commandline::absolute,
    event::FileOp,
    fold::Model,
    report::{Artifact, Build, Cache},
};

/// All caches that were used.
pub fn caches(model: &Model, builds: &[Build]) -> Vec<Cache> {
    let written = written(model, builds);
    let mut touched: HashMap<&str, Touched> = HashMap::new();
    // Only artefacts of caches are asked for below; a trace may hold a million accesses to other files.
    let of_a_cache = |path: &str| model.cache_fact(path).is_some();
    for access in model.accesses() {
        if !of_a_cache(&access.what.path) {
            continue;
        }
        let touched = touched.entry(access.what.path.as_str()).or_default();
        match (access.what.op, access.what.errno) {
            (FileOp::Open, 0) => touched.read.push(access.id),
            (FileOp::Open | FileOp::Stat, 2) => touched.missed.push(access.id),
            _ => {}
        }
    }
    for library in model.libraries() {
        if !of_a_cache(&library.what.path) {
            continue;
        }
        touched
            .entry(library.what.path.as_str())
            .or_default()
            .read
            .push(library.id);
    }
    let mut facts: Vec<_> = model.cache_facts().collect();
    facts.sort_by_key(|f| f.id);
    let mut caches: IndexMap<String, Cache> = IndexMap::new();
    for fact in facts {
        let fact = &fact.what;
        let cache = caches
            .entry(fact.directory.clone())
            .or_insert_with(|| Cache {
                directory: fact.directory.clone(),
                owner: fact.owner.clone(),
                filesystem: model
                    .directory(&fact.directory)
                    .map(|d| d.what.filesystem.clone())
                    .filter(|f| !f.is_empty()),
                ..Cache::default()
            });
        if !is_artifact(&fact.path) {
            continue;
        }
        let seen = touched.get(fact.path.as_str());
        let built = written.contains(fact.path.as_str());
        let loaded = seen.is_some_and(|s| !s.read.is_empty());
        if seen.is_some_and(|s| !s.missed.is_empty()) {
            cache.misses += 1;
        }
        if built {
            cache.builds += 1;
        } else if loaded {
            cache.hits += 1;
        }
        if !built && !loaded {
            continue;
        }
        cache.artifacts.push(Artifact {
            path: fact.path.clone(),
            built_with: fact.built_with.clone(),
            built_with_from: fact.built_with_from.clone(),
            archs: fact.archs.clone(),
            needed: fact.needed.clone(),
            loaded,
            built,
            events: seen
                .map(|s| s.read.iter().take(5).copied().collect())
                .unwrap_or_default(),
        });
    }
    caches.into_values().collect()
}

#[derive(Default)]
struct Touched {
    read: Vec<u64>,
    missed: Vec<u64>,
}

/// Whether a file of a cache is a result, not a recipe or a lock.
fn is_artifact(path: &str) -> bool {
    [".so", ".cubin", ".fatbin", ".nbc"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// Files that came to be in this run: outputs of build tools, and what was created or renamed into place.
fn written<'a>(model: &'a Model, builds: &'a [Build]) -> HashSet<String> {
    let mut written = HashSet::new();
    for build in builds {
        if let Some(output) = &build.output {
            written.insert(absolute(&build.cwd, output));
        }
    }
    for access in model.accesses().iter().filter(|a| a.what.errno == 0) {
        match access.what.op {
            FileOp::Create => {
                written.insert(access.what.path.clone());
            }
            FileOp::Rename => written.extend(access.what.to.clone()),
            _ => {}
        }
    }
    written
}
