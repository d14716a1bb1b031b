//! Which installation a file belongs to, by where it lies.

use super::{Files, Part};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The kind of installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolkitKind {
    /// A tree by itself: `/usr/local/cuda-13.0`, a distribution's packages, an unpacked archive.
    System,
    /// NVIDIA's wheels below `site-packages/nvidia`.
    Wheel,
    /// A conda environment.
    Conda,
    /// Carried inside another package: Triton's ptxas, `torchvision.libs`.
    Bundled,
    /// A forward-compatibility driver (`cuda-compat`).
    Compat,
    /// For linking only.
    Stub,
}

/// An installation's root directory and its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Root {
    /// The directory, spelled as the file's path was.
    pub path: String,
    /// Its kind.
    pub kind: ToolkitKind,
}

/// Folders below `site-packages/nvidia` that NVIDIA's wheels make.
fn is_wheel_folder(name: &str) -> bool {
    matches!(
        name,
        "cu11"
            | "cu12"
            | "cu13"
            | "cu14"
            | "cublas"
            | "cudnn"
            | "cufft"
            | "cufile"
            | "curand"
            | "cusolver"
            | "cusparse"
            | "cusparselt"
            | "nccl"
            | "nvjitlink"
            | "nvshmem"
            | "nvtx"
            | "nvjpeg"
            | "npp"
            | "nvvm"
            | "cuda_cupti"
    ) || name.starts_with("cuda_")
}

fn names(path: &Path) -> Vec<&str> {
    path.components()
        .map(|component| component.as_os_str().to_str().unwrap_or(""))
        .collect()
}

/// The first `count` components of `path`.
fn ancestor(path: &Path, count: usize) -> PathBuf {
    path.components().take(count).collect()
}

fn is_site_packages(name: &str) -> bool {
    matches!(name, "site-packages" | "dist-packages")
}

/// The installation that the file at `path` belongs to; `None` for a file that lies in no recognised place.
///
/// Goes by the path as it is spelled, and asks `files` whether a directory has `conda-meta`.
#[must_use]
pub fn root_of(path: &Path, part: Part, files: &dyn Files) -> Option<Root> {
    let names = names(path);
    let file = names.len().checked_sub(1)?;
    let at = |kind, count: usize| {
        Some(Root {
            path: ancestor(path, count).to_string_lossy().into_owned(),
            kind,
        })
    };

    if part == Part::Libcuda || part.is_of_driver() {
        if let Some(stubs) = names.iter().rposition(|name| *name == "stubs") {
            return at(ToolkitKind::Stub, stubs + 1);
        }
        if let Some(compat) = names.get(..file)?.iter().rposition(|name| is_compat(name)) {
            return at(ToolkitKind::Compat, compat + 1);
        }
        return None;
    }
    if let Some(nvidia) = names
        .windows(2)
        .rposition(|pair| matches!(pair, ["nvidia", folder] if is_wheel_folder(folder)))
    {
        return at(ToolkitKind::Wheel, nvidia + 2);
    }
    if let Some(site) = names.iter().rposition(|name| is_site_packages(name)) {
        // Up to the directory over bin, lib or nvvm; else the package itself.
        let inner = installation_depth(&names, file).filter(|depth| *depth > site + 1);
        let depth = inner.unwrap_or_else(|| (site + 2).min(file));
        return at(ToolkitKind::Bundled, depth);
    }
    if let Some(libs) = names
        .get(..file)?
        .iter()
        .rposition(|name| name.ends_with(".libs"))
    {
        return at(ToolkitKind::Bundled, libs + 1);
    }
    if names.get(..file)?.contains(&"stubs") && part != Part::Headers {
        let stubs = names.iter().rposition(|name| *name == "stubs")?;
        return at(ToolkitKind::Stub, stubs + 1);
    }
    let depth = installation_depth(&names, file)?;
    let root = ancestor(path, depth);
    let kind = if files.exists(&root.join("conda-meta")) {
        ToolkitKind::Conda
    } else {
        ToolkitKind::System
    };
    at(kind, depth)
}

fn is_compat(name: &str) -> bool {
    name == "compat" || name.starts_with("cuda-compat")
}

/// How many components of the path are above `bin`, `lib`, `nvvm`, `include` or `targets/…`.
fn installation_depth(names: &[&str], file: usize) -> Option<usize> {
    let directories = names.get(..file)?;
    // targets/x86_64-linux/lib and targets/x86_64-linux/include, also in conda.
    if let Some(targets) = directories.iter().rposition(|name| *name == "targets") {
        return Some(targets);
    }
    let nvvm = directories.iter().rposition(|name| *name == "nvvm");
    if let Some(nvvm) = nvvm.filter(|nvvm| {
        matches!(
            directories.get(nvvm + 1),
            Some(&("bin" | "lib" | "lib64" | "libdevice" | "include"))
        )
    }) {
        return Some(nvvm);
    }
    let is_inner = |name: &&str| matches!(*name, "bin" | "lib" | "lib64" | "include");
    let inner = directories.iter().rposition(is_inner)?;
    // /usr/lib/nvidia-cuda-toolkit/bin is a root of its own; /usr/lib/x86_64-linux-gnu belongs to /usr.
    Some(inner)
}

/// Where the driver's user-mode library in hand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverKind {
    /// Installed with the kernel module, or mounted from the host into a container.
    Driver,
    /// From a `cuda-compat` package: for an older kernel module.
    Compat,
    /// For linking only: every call fails with 34.
    Stub,
    /// Windows' driver, seen from WSL.
    Wsl,
}

/// What the path says of a driver library.
pub(crate) fn driver_kind_of_path(path: &Path) -> DriverKind {
    let names = names(path);
    let directories = names.get(..names.len().saturating_sub(1)).unwrap_or(&[]);
    if directories.contains(&"stubs") {
        DriverKind::Stub
    } else if directories.iter().any(|name| is_compat(name)) {
        DriverKind::Compat
    } else if directories
        .windows(2)
        .any(|pair| matches!(pair, ["wsl", "lib" | "drivers"]))
    {
        DriverKind::Wsl
    } else {
        DriverKind::Driver
    }
}
