//! Python packages on this machine: where an interpreter keeps them, and what a distribution was built for.

use std::path::{Path, PathBuf};

use jittrace_model::{
    component,
    distribution::{
        Distribution,
        built_for::{from_distribution, from_version_py},
    },
};

/// Where the interpreters of a process keep their packages. `called`: the name it was called by, which in a virtual
/// environment is a link; its packages come before those of the interpreter that the environment was made from.
pub fn sites_of(called: Option<PathBuf>, executable: &Path) -> Vec<PathBuf> {
    let mut sites = Vec::new();
    for interpreter in called.into_iter().chain([executable.to_owned()]) {
        let Some(prefix) = interpreter.parent().and_then(Path::parent) else {
            continue;
        };
        let Ok(versions) = std::fs::read_dir(prefix.join("lib")) else {
            continue;
        };
        let mut found: Vec<PathBuf> = versions
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("python3"))
            .flat_map(|e| {
                [
                    e.path().join("site-packages"),
                    e.path().join("dist-packages"),
                ]
            })
            .filter(|p| p.is_dir())
            .collect();
        found.sort();
        sites.extend(found);
        if !sites.is_empty() && prefix.join("pyvenv.cfg").is_file() {
            break;
        }
    }
    sites
}

/// The CUDA release a distribution says it was built for, and where it says so: its `version.py`, else its version or
/// name (for components that are known, since `cu13` in the name of a wheel of NVIDIA's is that wheel's own release).
pub fn built_for(distribution: &Distribution) -> Option<(String, String)> {
    let site = Path::new(&distribution.record).parent()?;
    let folder = distribution.name.to_ascii_lowercase().replace('-', "_");
    let by_file = std::fs::read_to_string(site.join(folder).join("version.py"))
        .ok()
        .and_then(|text| from_version_py(&text))
        .map(|built| {
            (
                built.to_string(),
                format!("{}/version.py", distribution.name),
            )
        });
    by_file.or_else(|| {
        from_distribution(distribution)
            .filter(|_| component::is_known(&distribution.name))
            .map(|built| (built.to_string(), built.from.word().to_owned()))
    })
}
