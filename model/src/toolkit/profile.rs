//! `nvcc.profile`: where an nvcc looks for its own tools, headers and libraries (resolution.md 2.2).
//!
//! nvcc sets `_HERE_` to the directory that it was invoked through, without resolving symbolic links, and reads
//! the profile beside itself. CUDA_HOME plays no part.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What an `nvcc.profile` says, with its variables filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// `TOP`: the toolkit's root.
    pub top: Option<String>,
    /// Directories of `-I` and `-isystem`.
    pub includes: Vec<String>,
    /// Directories of `-L`.
    pub libraries: Vec<String>,
    /// What nvcc puts before `PATH` for its children.
    pub path: Vec<String>,
    /// What nvcc puts before `LD_LIBRARY_PATH` for its children.
    pub ld_library_path: Vec<String>,
}

/// Evaluates the text of an `nvcc.profile` for an nvcc that was invoked through the directory `here`.
#[must_use]
pub fn evaluate(text: &str, here: &Path) -> Profile {
    let mut values: BTreeMap<&str, String> = BTreeMap::from([
        ("_HERE_", here.to_string_lossy().into_owned()),
        ("_SPACE_", " ".to_owned()),
        ("_TARGET_DIR_", String::new()),
        ("_TARGET_SIZE_", "64".to_owned()),
    ]);
    for line in text.lines().take(500) {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let name = name.trim().trim_end_matches('+').trim();
        let value = value.strip_prefix('+').unwrap_or(value);
        let value = fill(value.trim(), &values);
        let all = values.entry(name).or_default();
        if all.len() + value.len() < 1 << 16 {
            all.push_str(&value);
        }
    }
    let value = |name: &str| values.get(name).map_or("", String::as_str);
    let list = |name: &str| {
        value(name)
            .split(':')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(tidy)
            .collect()
    };
    let top = value("TOP");
    Profile {
        top: (!top.is_empty()).then(|| tidy(top)),
        includes: options(
            &format!("{} {}", value("INCLUDES"), value("SYSTEM_INCLUDES")),
            &["-I", "-isystem"],
        ),
        libraries: options(value("LIBRARIES"), &["-L"]),
        path: list("PATH"),
        ld_library_path: list("LD_LIBRARY_PATH"),
    }
}

fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$(") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once(')') else {
            break;
        };
        out.push_str(values.get(name).map_or("", String::as_str));
        rest = tail;
        if out.len() > 1 << 16 {
            return out;
        }
    }
    out.push_str(rest);
    out
}

fn options(text: &str, flags: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = text
        .split_ascii_whitespace()
        .map(|word| word.trim_matches('"'));
    while let Some(word) = words.next() {
        let Some(flag) = flags.iter().find(|flag| word.starts_with(**flag)) else {
            continue;
        };
        let directory = word
            .strip_prefix(flag)
            .filter(|rest| !rest.is_empty())
            .or_else(|| words.next());
        found.extend(directory.map(tidy));
    }
    found
}

fn tidy(path: &str) -> String {
    normalize(Path::new(path)).to_string_lossy().into_owned()
}

/// The path without `.`, `..` and doubled slashes, as text: symbolic links are not asked for.
#[must_use]
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            Component::ParentDir if out.has_root() => {}
            other => out.push(other),
        }
    }
    out
}
