//! The toolkits that are present on a machine, used or not: what a remedy may name.

use super::identify::{Context, Identity, identify};
use super::root::{ToolkitKind, root_of};
use super::{Files, Part, Version, profile};
use crate::event::ToolkitFact;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where toolkits may be found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// `CUDA_HOME`.
    pub cuda_home: Option<String>,
    /// `CUDA_PATH`.
    pub cuda_path: Option<String>,
    /// `PATH`.
    pub path: Option<String>,
    /// `CONDA_PREFIX`.
    pub conda_prefix: Option<String>,
    /// Directories of Python packages (`site-packages`).
    pub site_packages: Vec<String>,
    /// Roots of toolkits already known; their neighbours are looked at.
    pub known: Vec<String>,
}

/// A directory that may be a toolkit's root, and the rule that named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The directory.
    pub root: String,
    /// `CUDA_HOME`, `CUDA_PATH`, `PATH`, `default directory`, `wheel`, `conda` or `neighbour`.
    pub found_by: String,
}

/// All directories that may be toolkit roots, each once, in the order of the rules. None is promised to hold a
/// toolkit: [`survey`] tells.
#[must_use]
pub fn candidates(places: &Places, files: &dyn Files) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |root: PathBuf, found_by: &str| {
        let root = profile::normalize(&root).to_string_lossy().into_owned();
        if !root.is_empty() && found.len() < 1000 && !found.iter().any(|known| known.root == root) {
            found.push(Candidate {
                root,
                found_by: found_by.to_owned(),
            });
        }
    };
    let mut seeds: Vec<PathBuf> = Vec::new();
    for (value, rule) in [
        (&places.cuda_home, "CUDA_HOME"),
        (&places.cuda_path, "CUDA_PATH"),
    ] {
        // A value that was written like PATH still shows which trees were meant.
        for entry in value
            .iter()
            .flat_map(|value| value.split(':'))
            .map(|entry| entry.trim().trim_matches(['"', '\'']))
            .filter(|entry| !entry.is_empty())
        {
            add(PathBuf::from(entry), rule);
            seeds.push(PathBuf::from(entry));
        }
    }
    for entry in places
        .path
        .iter()
        .flat_map(|path| path.split(':'))
        .filter(|entry| entry.starts_with('/'))
        .take(500)
    {
        let bin = Path::new(entry);
        if files.exists(&bin.join("nvcc"))
            && let Some(root) = bin.parent()
        {
            add(root.to_path_buf(), "PATH");
            seeds.push(root.to_path_buf());
            // A link to nvcc alone: the toolkit is where it leads.
            let real = files.realpath(&bin.join("nvcc"));
            if let Some(real) = real
                .as_deref()
                .and_then(Path::parent)
                .and_then(Path::parent)
                && real != root
            {
                add(real.to_path_buf(), "PATH");
                seeds.push(real.to_path_buf());
            }
        }
    }
    for fixed in [
        "/usr/local/cuda",
        "/opt/cuda",
        "/usr/lib/nvidia-cuda-toolkit",
    ] {
        if files.exists(Path::new(fixed)) {
            add(PathBuf::from(fixed), "default directory");
        }
    }
    for name in cuda_directories(Path::new("/usr/local"), files) {
        add(name, "default directory");
    }
    for site in &places.site_packages {
        let nvidia = Path::new(site).join("nvidia");
        for name in sorted(files.names(&nvidia)) {
            let root = nvidia.join(&name);
            if files.exists(&root.join("bin")) {
                add(root, "wheel");
            }
        }
    }
    if let Some(prefix) = &places.conda_prefix {
        add(PathBuf::from(prefix), "conda");
    }
    seeds.extend(places.known.iter().map(PathBuf::from));
    for seed in seeds {
        for sibling in seed
            .parent()
            .map(|parent| cuda_directories(parent, files))
            .unwrap_or_default()
        {
            add(sibling, "neighbour");
        }
    }
    found
}

/// The directories named `cuda` or `cuda-…` in `parent`, sorted.
fn cuda_directories(parent: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let is_toolkit = |name: &String| {
        name == "cuda" || name.starts_with("cuda-") && !name.starts_with("cuda-compat")
    };
    sorted(files.names(parent))
        .into_iter()
        .filter(is_toolkit)
        .map(|name| parent.join(name))
        .collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// A toolkit that is present: the parts found under one root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolkit {
    /// Its root.
    pub root: String,
    /// Its kind.
    pub kind: ToolkitKind,
    /// The parts found, each with its version.
    pub parts: Vec<Identity>,
}

impl Toolkit {
    /// A part of it.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&Identity> {
        self.parts.iter().find(|identity| identity.part == part)
    }

    /// Its release: nvcc's, else ptxas's, the runtime's, the headers'.
    #[must_use]
    pub fn version(&self) -> Option<(Version, super::VersionFrom)> {
        [
            Part::Nvcc,
            Part::Ptxas,
            Part::Cudart,
            Part::Headers,
            Part::Nvrtc,
        ]
        .into_iter()
        .find_map(|part| {
            let identity = self.part(part)?;
            identity.version.zip(identity.version_from)
        })
    }

    /// Parts numbered as CUDA that are of different releases, each with its own.
    #[must_use]
    pub fn releases(&self) -> Vec<(Part, Version)> {
        let numbered = self
            .parts
            .iter()
            .filter(|identity| identity.part.is_numbered_as_cuda());
        numbered
            .filter_map(|identity| Some((identity.part, identity.version?.without_patch())))
            .collect()
    }

    /// As the trace file keeps it.
    #[must_use]
    pub fn to_fact(&self, found_by: &str) -> ToolkitFact {
        let version = self.version();
        ToolkitFact {
            root: self.root.clone(),
            version: version.map(|(version, _)| version.to_string()),
            version_from: version.map(|(_, from)| from.word().to_owned()),
            kind: self.kind.word().to_owned(),
            found_by: found_by.to_owned(),
            parts: self
                .parts
                .iter()
                .map(|identity| (identity.part.name().to_owned(), identity.path.clone()))
                .collect(),
        }
    }
}

/// Looks at the parts under `root`; `None` if there is none. `owner` tells which distribution owns a file, where
/// the caller has indexed them.
#[must_use]
pub fn survey(
    root: &Path,
    files: &dyn Files,
    owner: &dyn Fn(&Path) -> Option<crate::distribution::Distribution>,
) -> Option<Toolkit> {
    const TOOLS: &[&str] = &[
        "bin/nvcc",
        "bin/ptxas",
        "bin/fatbinary",
        "bin/nvlink",
        "bin/cuobjdump",
        "bin/nvdisasm",
        "nvvm/bin/cicc",
    ];
    const HEADERS: &[&str] = &[
        "include/cuda.h",
        "include/cuda_runtime_api.h",
        "targets/x86_64-linux/include/cuda.h",
    ];
    const LIBRARIES: &[&str] = &["lib64", "lib", "targets/x86_64-linux/lib", "nvvm/lib64"];
    let mut paths: Vec<PathBuf> = TOOLS
        .iter()
        .map(|name| root.join(name))
        .filter(|path| files.exists(path))
        .collect();
    paths.extend(
        HEADERS
            .iter()
            .map(|name| root.join(name))
            .filter(|path| files.exists(path))
            .take(1),
    );
    for directory in LIBRARIES {
        for name in sorted(files.names(&root.join(directory))) {
            let wanted = matches!(
                Part::of_file_name(&name),
                Part::Cudart | Part::Nvrtc | Part::NvrtcBuiltins | Part::Nvjitlink | Part::Nvvm
            ) && !name.contains(".alt.")
                && name.contains(".so");
            if wanted && paths.len() < 64 {
                paths.push(root.join(directory).join(name));
            }
        }
    }
    let mut parts: Vec<Identity> = Vec::new();
    for path in paths {
        let owned = owner(&path);
        let context = Context {
            files,
            owner: owned.as_ref(),
        };
        files.with_bytes(&path, &mut |bytes| {
            let identity = identify(&path, bytes, &context);
            // A directory holds one file under several names; the first name is enough.
            let known = parts.iter().any(|known: &Identity| {
                known.realpath == identity.realpath && known.realpath.is_some()
            });
            if !known {
                parts.push(identity);
            }
        });
    }
    let first = parts.first()?;
    let kind = root_of(Path::new(&first.path), first.part, files)
        .map_or(ToolkitKind::System, |root| root.kind);
    Some(Toolkit {
        root: root.to_string_lossy().into_owned(),
        kind,
        parts,
    })
}
