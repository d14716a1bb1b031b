//! What lies near a search: the file that would have been next, the other names of a library that was not found, the
//! copy of a tool beside the interpreter.
//!
//! A remedy may only name what is there, and these are the places where it usually is. Looked at once for each
//! directory, and only when something of CUDA was searched.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use jittrace_model::{
    Model,
    event::{Candidate, ExecFailed, FileAccess, LibraryFailed, LibraryLoaded, Outcome},
    resolve::tool,
    toolkit::Part,
};

/// Directories in which a driver lies although no search may lead there.
const DRIVER_DIRECTORIES: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
];

/// How a header of a mathematics library begins, and its run-time library.
const LIBRARIES_OF_HEADERS: &[(&str, &str)] = &[
    ("curand", "libcurand.so"),
    ("cublas", "libcublas.so"),
    ("cusparse", "libcusparse.so"),
    ("cusolver", "libcusolver.so"),
    ("cufft", "libcufft.so"),
    ("nvrtc", "libnvrtc.so"),
    ("nvJitLink", "libnvJitLink.so"),
    ("cudnn", "libcudnn.so"),
    ("nccl", "libnccl.so"),
];

/// Most files that one search brings.
const MOST: usize = 8;

/// Files near searches, each told once.
#[derive(Debug, Default)]
pub(super) struct Vicinity {
    told: HashSet<PathBuf>,
    headers: HashSet<String>,
}

impl Vicinity {
    /// Files of CUDA libraries that a search did not come to.
    pub(super) fn of_loaded(&mut self, loaded: &LibraryLoaded, cwd: &str) -> Vec<String> {
        let paths = loaded
            .candidates
            .iter()
            .filter(|c| c.outcome == Outcome::NotTried && is_cuda(&c.path))
            .map(|c| absolute(cwd, &c.path))
            .take(MOST);
        let mut found = self.existing(paths);
        if !loaded.path.starts_with('/') && is_cuda(&loaded.path) {
            found.push(loaded.realpath.clone());
        }
        found
    }

    /// Files of the part that was not found, under another name or in another place.
    pub(super) fn of_failed(&mut self, failed: &LibraryFailed, cwd: &str) -> Vec<String> {
        let wanted = failed.missing.as_deref().unwrap_or(&failed.requested);
        let part = Part::of_file_name(name(wanted));
        if part == Part::Other {
            // A part of a package that is asked for by its bare name, and lies beside whoever asks.
            let beside = failed
                .requested_by
                .iter()
                .filter(|by| by.contains('/') && !wanted.contains('/'))
                .filter_map(|by| Some(absolute(cwd, by).parent()?.join(wanted)));
            return self.existing(beside);
        }
        let mut directories: Vec<PathBuf> = directories(&failed.candidates, cwd);
        // Beside whoever asked: without a RUNPATH nothing looks there.
        let asker = failed
            .missing_for
            .iter()
            .chain(&failed.requested_by)
            .filter(|by| by.contains('/'))
            .filter_map(|by| absolute(cwd, by).parent().map(Path::to_path_buf));
        directories.extend(asker);
        if part == Part::Libcuda {
            directories.extend(DRIVER_DIRECTORIES.iter().map(PathBuf::from));
        }
        let names = directories.iter().flat_map(|directory| {
            let mut names: Vec<PathBuf> = std::fs::read_dir(directory)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| {
                    entry
                        .file_name()
                        .to_str()
                        .is_some_and(|n| n.contains(".so") && Part::of_file_name(n) == part)
                })
                .map(|entry| entry.path())
                .collect();
            names.sort();
            names
        });
        let names: Vec<PathBuf> = names.take(MOST).collect();
        self.existing(names.into_iter())
    }

    /// Copies of a tool that was not on PATH: beside the interpreters above, and in the active environment.
    pub(super) fn of_failed_tool(
        &mut self,
        failed: &ExecFailed,
        process: Option<usize>,
        model: &Model,
    ) -> Vec<String> {
        let tool = name(&failed.path);
        if tool::Kind::of(tool).is_none_or(|k| k == tool::Kind::Shell) {
            return Vec::new();
        }
        let mut directories: Vec<PathBuf> = Vec::new();
        let mut at = process.and_then(|i| model.process(i));
        while let Some(process) = at {
            let called = process.what.argv.first().filter(|a| a.contains('/'));
            let called = called.map(|a| absolute(&process.what.cwd, a));
            let paths = [called, Some(PathBuf::from(&process.what.exe))];
            for path in paths.into_iter().flatten() {
                directories.extend(path.parent().map(Path::to_path_buf));
            }
            for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
                directories.extend(process.env(variable).map(|v| Path::new(v).join("bin")));
            }
            at = process.parent.and_then(|i| model.process(i));
        }
        self.existing(directories.into_iter().map(|d| d.join(tool)))
    }

    /// The run-time library of a header that a compile did not find: wheels bring the one without the other.
    pub(super) fn of_missing_header<'a>(
        &mut self,
        access: &FileAccess,
        cwd: &str,
        sites: impl Iterator<Item = &'a Path>,
    ) -> Vec<String> {
        let header = name(&access.path);
        let library = LIBRARIES_OF_HEADERS
            .iter()
            .find(|(stem, _)| header.starts_with(stem));
        let (Some((_, library)), 2, true) = (library, access.errno, header.ends_with(".h")) else {
            return Vec::new();
        };
        if !self.headers.insert(header.to_owned()) {
            return Vec::new();
        }
        let beside = Path::new(cwd).join("site-packages");
        let sites: Vec<PathBuf> = sites.map(Path::to_path_buf).chain([beside]).collect();
        let mut found: Vec<PathBuf> = Vec::new();
        for wheel in sites.iter().flat_map(|site| entries(&site.join("nvidia"))) {
            found.extend(
                entries(&wheel.join("lib"))
                    .into_iter()
                    .filter(|path| path.to_str().is_some_and(|p| name(p).starts_with(library))),
            );
        }
        self.existing(found.into_iter().take(MOST))
    }

    fn existing(&mut self, paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
        let mut found = Vec::new();
        for path in paths {
            if self.told.insert(path.clone()) && path.is_file() {
                found.extend(path.to_str().map(str::to_owned));
            }
        }
        found
    }
}

fn directories(candidates: &[Candidate], cwd: &str) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    for candidate in candidates {
        let path = absolute(cwd, &candidate.path);
        if let Some(directory) = path.parent()
            && candidate.outcome != Outcome::DirectoryMissing
            && !directories.iter().any(|known| known == directory)
        {
            directories.push(directory.to_path_buf());
        }
    }
    directories
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
}

fn absolute(cwd: &str, path: &str) -> PathBuf {
    // An absolute path replaces what it is joined to.
    Path::new(cwd).join(path)
}

fn is_cuda(path: &str) -> bool {
    Part::of_file_name(name(path)) != Part::Other
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jittrace_model::event::Rule;

    fn candidate(path: &Path, outcome: Outcome) -> Candidate {
        Candidate {
            path: path.to_string_lossy().into_owned(),
            rule: Rule::LdLibraryPath,
            outcome,
        }
    }

    #[test]
    fn the_soname_is_seen_where_the_development_name_was_searched() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("libcuda.so.1"), "x").unwrap();
        let failed = LibraryFailed {
            requested: "libcuda.so".to_owned(),
            candidates: vec![candidate(Path::new("libcuda.so"), Outcome::Missing)],
            ..LibraryFailed::default()
        };
        let cwd = place.path().to_string_lossy().into_owned();
        let mut vicinity = Vicinity::default();
        let found = vicinity.of_failed(&failed, &cwd);
        assert!(found.contains(&format!("{cwd}/libcuda.so.1")), "{found:?}");
        assert!(
            !vicinity
                .of_failed(&failed, &cwd)
                .contains(&format!("{cwd}/libcuda.so.1"))
        );
    }

    #[test]
    fn what_a_search_did_not_come_to_is_looked_at() {
        let place = tempfile::tempdir().unwrap();
        let there = place.path().join("libnvJitLink.so.12");
        std::fs::write(&there, "x").unwrap();
        let loaded = LibraryLoaded {
            path: "/elsewhere/libnvJitLink.so.12".to_owned(),
            candidates: vec![
                candidate(&there, Outcome::NotTried),
                candidate(
                    &place.path().join("gone/libnvJitLink.so.12"),
                    Outcome::NotTried,
                ),
            ],
            ..LibraryLoaded::default()
        };
        assert_eq!(
            Vicinity::default().of_loaded(&loaded, "/"),
            [there.to_string_lossy()]
        );
    }
}
