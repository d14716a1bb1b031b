//! Libraries on disk that a command will perhaps load: probes are placed on them before it starts.
//!
//! A library that is found here too much costs one look at its symbols; one that is not found is probed when it is
//! opened, which is in time but for a call within the same millisecond.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use jittrace_model::loader::LdSoCache;
use jittrace_wire::functions::family_of;

/// Most libraries that are probed beforehand.
const MOST: usize = 64;

/// SONAMEs that the loader's cache is asked for: the loader's own entries, and CUDA as a system may have it.
const SYSTEM: &[&str] = &[
    "libc.so.6",
    "libdl.so.2",
    "libcuda.so.1",
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
    "libnvidia-ml.so.1",
];

/// The C library and the CUDA libraries that lead from the loader's cache, the environment and the packages of the
/// program's Python environment.
pub(super) fn libraries(program: Option<&Path>, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    if let Ok(bytes) = fs::read("/etc/ld.so.cache")
        && let Ok(cache) = LdSoCache::parse(&bytes)
    {
        let entries = SYSTEM.iter().flat_map(|name| cache.entries(name));
        found.extend(entries.map(|entry| PathBuf::from(&entry.path)));
    }
    for directory in directories(program, env) {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        found.extend(
            entries
                .flatten()
                .filter(|entry| is_watched(entry.file_name().as_bytes()))
                .map(|entry| entry.path()),
        );
    }
    // One file has many names; each is probed once.
    let files: BTreeSet<PathBuf> = found
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    files.into_iter().take(MOST).collect()
}

fn is_watched(name: &[u8]) -> bool {
    family_of(name).is_some() && name.windows(3).any(|w| w == b".so")
}

/// Directories that the environment and the program's place lead to.
fn directories(program: Option<&Path>, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let variable = |name: &str| {
        env.iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_os_str())
    };
    let mut directories: Vec<PathBuf> = variable("LD_LIBRARY_PATH")
        .map(|list| std::env::split_paths(list).collect())
        .unwrap_or_default();
    for root in ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"] {
        if let Some(root) = variable(root).map(Path::new) {
            directories.push(root.join("lib64"));
            directories.push(root.join("lib"));
        }
    }
    directories.push(PathBuf::from("/usr/local/cuda/lib64"));
    // Libraries of driver containers and of WSL.
    directories.push(PathBuf::from("/usr/lib/wsl/lib"));
    let virtual_env = variable("VIRTUAL_ENV").map(PathBuf::from);
    let prefix = program.and_then(|p| Some(p.parent()?.parent()?.to_path_buf()));
    for prefix in prefix.into_iter().chain(virtual_env) {
        for site in sites(&prefix) {
            for package in children(&site.join("nvidia")) {
                directories.push(package.join("lib"));
            }
            directories.push(site.join("torch/lib"));
        }
    }
    directories
}

/// `lib/python3.*/site-packages` below a prefix.
fn sites(prefix: &Path) -> Vec<PathBuf> {
    children(&prefix.join("lib"))
        .into_iter()
        .filter(|d| {
            d.file_name()
                .unwrap_or(OsStr::new(""))
                .as_bytes()
                .starts_with(b"python3")
        })
        .flat_map(|d| [d.join("site-packages"), d.join("dist-packages")])
        .collect()
}

fn children(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|e| e.path()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_the_environment_and_of_wheels_are_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let wheel = root.join("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
        let toolkit = root.join("cuda/lib64");
        for (directory, names) in [
            (&wheel, ["libcudart.so.13", "libcublas.so.13"]),
            (&toolkit, ["libcudart.so.12", "libcudart_static.a"]),
        ] {
            fs::create_dir_all(directory).unwrap();
            for name in names {
                fs::write(directory.join(name), b"").unwrap();
            }
        }
        let env = [(
            OsString::from("CUDA_HOME"),
            root.join("cuda").into_os_string(),
        )];
        let python = root.join("venv/bin/python");
        let found: Vec<PathBuf> = libraries(Some(&python), &env)
            .into_iter()
            .filter(|p| p.starts_with(&root))
            .collect();
        assert_eq!(
            found,
            [
                toolkit.join("libcudart.so.12"),
                wheel.join("libcudart.so.13")
            ]
        );
    }
}
