//! sglang's JIT cache: `sgl_deps.json`, the headers that a build really read.

use serde::{Deserialize, Serialize};

/// How many dependencies are kept, at most.
const MAX_DEPENDENCIES: usize = 100_000;

/// One file that the compiler read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// What the path is relative to: `toolkit` (the CUDA_HOME of the build), `pkg:nvidia`, `pkg:flashinfer`,
    /// `sitepkgs`, `sys`, or `abs` for an absolute path.
    pub root: String,
    /// The path below it.
    pub path: String,
}

/// Reads the text of an `sgl_deps.json`: an array of `[root, path, digest]`.
#[must_use]
pub fn read(json: &str) -> Vec<Dependency> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    let dependency = |entry: &serde_json::Value| {
        Some(Dependency {
            root: entry.get(0)?.as_str()?.to_owned(),
            path: entry.get(1)?.as_str()?.to_owned(),
        })
    };
    entries
        .iter()
        .take(MAX_DEPENDENCIES)
        .filter_map(dependency)
        .collect()
}
