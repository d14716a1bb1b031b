//! Facts: what the model needs to know of the host is looked up once, when an event first names it, and logged.

use std::{
    collections::{HashMap, HashSet},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use jittrace_model::{
    component,
    distribution::{Distribution, Index},
    elf::ElfFacts,
    event::{
        Claimed, DistributionFact, DriverFact, Fact, FileAccess, FileFact, Frame, LibraryFailed,
        Outcome, ProcessStart,
    },
    image,
    toolkit::{Context, Part, Places, candidates, identify, profile::normalize, survey},
};

use super::host_files::{HostFiles, map};
use crate::packages;

/// Most places of one failed search that are looked for in the RECORDs of distributions.
const MOST_PLACES: usize = 32;

/// Looks things up and remembers what was told.
#[derive(Debug, Default)]
pub(super) struct Facts {
    index: Index,
    sites: HashSet<PathBuf>,
    /// Path, device and inode of those that were read.
    read_sites: HashSet<(PathBuf, u64, u64)>,
    /// Path, device and inode: in another mount namespace another file may be there.
    told_files: HashSet<(String, u64, u64)>,
    told_distributions: HashSet<String>,
    surveyed: HashSet<String>,
    places_seen: HashSet<String>,
    owners: HashMap<String, Option<String>>,
    /// Tools that only their own `--version` can tell the release of.
    unversioned: Vec<String>,
}

impl Facts {
    /// The driver, once.
    pub(super) fn driver(&self) -> Vec<Fact> {
        let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
        let release = text.as_deref().and_then(kernel_module_release);
        release
            .map(|version| {
                Fact::Driver(DriverFact {
                    version: Some(version.to_owned()),
                    cuda: None,
                    from: "/proc/driver/nvidia/version".to_owned(),
                })
            })
            .into_iter()
            .collect()
    }

    /// What a process start brings: packages of its interpreter, and toolkits that its environment leads to.
    pub(super) fn process(&mut self, start: &ProcessStart) -> Vec<Fact> {
        let mut facts = Vec::new();
        if start.forked {
            return facts;
        }
        let name = start.exe.rsplit('/').next().unwrap_or_default();
        let mut sites: Vec<PathBuf> = Vec::new();
        if name.starts_with("python") {
            sites.extend(
                start
                    .env
                    .get("PYTHONPATH")
                    .into_iter()
                    .flat_map(|list| list.split(':'))
                    .filter(|e| !e.is_empty())
                    .map(|entry| absolute(&start.cwd, entry)),
            );
            sites.extend(interpreter_sites(start));
        }
        for site in &sites {
            facts.extend(self.site(site));
        }
        let env = |name: &str| start.env.get(name).cloned();
        let key = format!(
            "{:?}{:?}{:?}{:?}{:?}{}",
            named_roots(&start.env),
            env("CUDA_HOME"),
            env("CUDA_PATH"),
            env("PATH"),
            env("CONDA_PREFIX"),
            self.sites.len()
        );
        if self.places_seen.insert(key) && self.places_seen.len() < 50 {
            let mut site_packages: Vec<String> = self
                .sites
                .iter()
                .map(|s| s.to_string_lossy().into_owned())
                .collect();
            site_packages.sort();
            facts.extend(self.toolkits(&Places {
                cuda_home: env("CUDA_HOME"),
                cuda_path: env("CUDA_PATH"),
                path: env("PATH"),
                conda_prefix: env("CONDA_PREFIX"),
                site_packages,
                known: named_roots(&start.env),
            }));
        }
        facts
    }

    /// The toolkits that these places lead to.
    fn toolkits(&mut self, places: &Places) -> Vec<Fact> {
        let mut facts = Vec::new();
        for candidate in candidates(places, &HostFiles) {
            if !self.surveyed.insert(candidate.root.clone()) {
                continue;
            }
            let index = &self.index;
            let toolkit = survey(Path::new(&candidate.root), &HostFiles, &|path| {
                owner_in(index, path).cloned()
            });
            if let Some(toolkit) = toolkit {
                facts.push(Fact::Toolkit(toolkit.to_fact(&candidate.found_by)));
            }
        }
        facts
    }

    /// Reads the records of a directory of Python packages; tells the ones that a report speaks of.
    fn site(&mut self, site: &Path) -> Vec<Fact> {
        let Ok(site) = site.canonicalize() else {
            return Vec::new();
        };
        let Some(metadata) = site.metadata().ok().filter(std::fs::Metadata::is_dir) else {
            return Vec::new();
        };
        let state = (site.clone(), metadata.dev(), metadata.ino());
        if !self.read_sites.insert(state) {
            return Vec::new();
        }
        self.sites.insert(site.clone());
        let before = self.index.distributions().len();
        self.index.add_site_packages(&site, &HostFiles);
        self.owners.clear();
        let of_interest: Vec<Distribution> = self
            .index
            .distributions()
            .iter()
            .skip(before)
            .filter(|d| component::is_known(&d.name) || d.versions_its_files())
            .cloned()
            .collect();
        of_interest
            .iter()
            .filter_map(|d| self.distribution(d))
            .collect()
    }

    /// A distribution's fact, once.
    fn distribution(&mut self, distribution: &Distribution) -> Option<Fact> {
        if !self.told_distributions.insert(distribution.record.clone()) {
            return None;
        }
        let (built_for, built_for_from) = packages::built_for(distribution).unzip();
        Some(Fact::Distribution(DistributionFact {
            name: distribution.name.clone(),
            version: distribution.version.clone(),
            path: distribution.record.clone(),
            built_for,
            built_for_from,
        }))
    }

    /// The distribution that owns a file, and its fact when it was not told before.
    pub(super) fn owner(&mut self, path: &str, facts: &mut Vec<Fact>) -> Option<String> {
        if let Some(known) = self.owners.get(path) {
            return known.clone();
        }
        if let Some(site) = site_of(path) {
            facts.extend(self.site(&site));
        }
        let owner = owner_in(&self.index, Path::new(path)).cloned();
        if let Some(owner) = &owner
            && let Some(fact) = self.distribution(owner)
        {
            facts.push(fact);
        }
        let name = owner.map(|d| d.name);
        self.owners.insert(path.to_owned(), name.clone());
        name
    }

    /// The first place of a failed search that a distribution's RECORD names: it was there once.
    pub(super) fn claimed(
        &mut self,
        failed: &LibraryFailed,
        cwd: &str,
        facts: &mut Vec<Fact>,
    ) -> Option<Claimed> {
        let missing = failed
            .candidates
            .iter()
            .filter(|c| c.outcome == Outcome::Missing);
        missing.take(MOST_PLACES).find_map(|candidate| {
            let path = normalize(&absolute(cwd, &candidate.path));
            let path = path.to_str()?;
            let distribution = self.owner(path, facts)?;
            Some(Claimed {
                path: path.to_owned(),
                distribution,
            })
        })
    }

    /// Fills in who owns the files of frames.
    pub(super) fn frames(&mut self, frames: &mut [Frame], facts: &mut Vec<Fact>) {
        for frame in frames {
            frame.distribution = self.owner(&frame.file, facts);
        }
    }

    /// What a file is, once: its fact when it belongs to a toolkit, carries device code or leans on CUDA.
    pub(super) fn file(&mut self, path: &str, facts: &mut Vec<Fact>) {
        self.tell_file(path, false, facts);
    }

    /// What an object is that could not be loaded, whatever it leans on.
    pub(super) fn failed_object(&mut self, path: &str, facts: &mut Vec<Fact>) {
        self.tell_file(path, true, facts);
    }

    fn tell_file(&mut self, path: &str, whatever_it_is: bool, facts: &mut Vec<Fact>) {
        if !path.starts_with('/') {
            return;
        }
        let on_disk = Path::new(path);
        let Ok(metadata) = on_disk.metadata() else {
            return;
        };
        let state = (path.to_owned(), metadata.dev(), metadata.ino());
        if !metadata.is_file() || !self.told_files.insert(state) {
            return;
        }
        let distribution = self.owner(path, facts);
        let owner = owner_in(&self.index, on_disk).cloned();
        let context = Context {
            files: &HostFiles,
            owner: owner.as_ref(),
        };
        let Some(bytes) = map(on_disk) else {
            let part = Part::of_file_name(path.rsplit('/').next().unwrap_or_default());
            if metadata.len() == 0 && part != Part::Other {
                facts.push(Fact::File(Box::new(FileFact {
                    path: path.to_owned(),
                    dev: metadata.dev(),
                    ino: metadata.ino(),
                    part: Some(part.name().to_owned()),
                    distribution,
                    ..FileFact::default()
                })));
            }
            return;
        };
        // `torch/lib/../../nvidia/cu13/lib/…` belongs to the same toolkit as the plain spelling.
        let identity = identify(&normalize(on_disk), &bytes, &context);
        let elf = ElfFacts::parse(&bytes).ok();
        let images = elf
            .as_ref()
            .filter(|_| identity.part == Part::Other || is_kernel_library(path))
            .and_then(|_| image::read(&bytes));
        let needed = elf.as_ref().map(|e| e.needed.clone()).unwrap_or_default();
        let leans_on_cuda = needed.iter().any(|n| Part::of_file_name(n) != Part::Other);
        if identity.part == Part::Other && images.is_none() && !leans_on_cuda && !whatever_it_is {
            return;
        }
        if identity.needs_probe && identity.is_script {
            self.unversioned.push(path.to_owned());
        }
        let fact = FileFact {
            path: path.to_owned(),
            realpath: on_disk
                .canonicalize()
                .map(|p| p.to_string_lossy().into_owned())
                .unwrap_or_else(|_| path.to_owned()),
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.size(),
            mtime: metadata.mtime(),
            distribution,
            soname: elf.as_ref().and_then(|e| e.soname.clone()),
            needed,
            rpath: elf.as_ref().and_then(|e| e.rpath.clone()),
            runpath: elf.as_ref().and_then(|e| e.runpath.clone()),
            build_id: elf.as_ref().and_then(|e| e.build_id.clone()),
            archs: images
                .as_ref()
                .map(|i| i.archs().iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            ptx_isa: images
                .as_ref()
                .and_then(|i| i.ptx.iter().map(|p| p.isa).max())
                .map(|v| v.to_string()),
            ..identity.to_fact()
        };
        facts.push(Fact::File(Box::new(fact)));
    }

    /// What the use of a file brings: who used it, what lies there.
    pub(super) fn access(&mut self, access: &mut FileAccess, facts: &mut Vec<Fact>) {
        self.frames(&mut access.python, facts);
        let name = access.path.rsplit('/').next().unwrap_or_default();
        if access.errno == 0 && matches!(name, "cuda.h" | "cuda_runtime.h" | "cuda_runtime_api.h") {
            self.file(&access.path, facts);
        }
    }

    /// The directories of Python packages that were seen.
    pub(super) fn sites(&self) -> impl Iterator<Item = &Path> {
        self.sites.iter().map(AsRef::as_ref)
    }

    /// Tools that ran and whose release only they themselves can tell.
    pub(super) fn unversioned(&self) -> &[String] {
        &self.unversioned
    }
}

/// Roots of toolkits whose tools variables name one by one (`TRITON_PTXAS_PATH=/opt/cuda-13.0/bin/ptxas`).
fn named_roots(env: &indexmap::IndexMap<String, String>) -> Vec<String> {
    let mut roots: Vec<String> = env
        .iter()
        .filter(|(name, value)| {
            !matches!(name.as_str(), "PATH" | "LD_LIBRARY_PATH" | "PYTHONPATH")
                && value.starts_with('/')
        })
        .filter_map(|(_, value)| {
            let (directory, file) = value.rsplit_once('/')?;
            let is_tool = !matches!(Part::of_file_name(file), Part::Other | Part::HostCompiler);
            let root = directory.strip_suffix("/bin")?;
            (is_tool && !value.contains(':')).then(|| root.to_owned())
        })
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

/// Extension modules carry kernels; NVIDIA's own libraries are told by their version.
fn is_kernel_library(path: &str) -> bool {
    path.contains(".cubin") || path.contains(".fatbin")
}

/// The owner of a path as it is spelled, else of the file it leads to.
fn owner_in<'a>(index: &'a Index, path: &Path) -> Option<&'a Distribution> {
    index.owner(path).or_else(|| {
        let real = path.canonicalize().ok()?;
        index.owner(&real)
    })
}

/// `…/site-packages` of a path below it.
fn site_of(path: &str) -> Option<PathBuf> {
    ["/site-packages/", "/dist-packages/"]
        .iter()
        .find_map(|marker| {
            let at = path.rfind(marker)? + marker.len() - 1;
            path.get(..at).map(PathBuf::from)
        })
}

/// Where an interpreter keeps its packages: beside the name it was called by (a virtual environment) and beside the
/// real file.
fn interpreter_sites(start: &ProcessStart) -> Vec<PathBuf> {
    let called = start.argv.first().map(|a| absolute(&start.cwd, a));
    let on_path = || {
        let name = start.argv.first().filter(|a| !a.contains('/'))?;
        let search = start.env.get("PATH")?;
        search
            .split(':')
            .map(|d| Path::new(d).join(name))
            .find(|p| p.is_file())
    };
    packages::sites_of(on_path().or(called), Path::new(&start.exe))
}

fn absolute(cwd: &str, path: &str) -> PathBuf {
    Path::new(cwd).join(path)
}

/// `580.159.04` in the first line of `/proc/driver/nvidia/version`.
fn kernel_module_release(text: &str) -> Option<&str> {
    text.lines().next()?.split_ascii_whitespace().find(|word| {
        word.split('.').count() >= 2
            && word
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_module_says_its_release() {
        for (line, release) in [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024",
                Some("550.54.14"),
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
                Some("580.159.04"),
            ),
            ("nothing", None),
        ] {
            assert_eq!(kernel_module_release(line), release);
        }
    }
}
