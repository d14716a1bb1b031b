//! Walking a component's search, step by step, on this machine.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
};

use jittrace_model::{
    component::{Component, Search, Step},
    distribution::{Distribution, Index},
    loader::{Flags, LinkMap, ProcessStart, Request},
    report::{Candidate, Outcome, Rule},
    toolkit::{Context, Files, Identity, Version, identify},
};

use super::Part;
use crate::collect::{HostFiles, LoaderHost, loader_system, map_file};

/// What the searches lead through.
pub(super) struct Surroundings<'a> {
    environment: &'a HashMap<String, String>,
    sites: &'a [PathBuf],
    index: &'a Index,
    loader_files: LoaderHost,
    /// The interpreter's link map: libraries are predicted as if it opened them.
    link_map: LinkMap,
    known: RefCell<HashMap<PathBuf, Option<Identity>>>,
}

/// What a walk found.
struct Found {
    path: Option<PathBuf>,
    rule: Rule,
    detail: String,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(
        python: &Path,
        environment: &'a HashMap<String, String>,
        sites: &'a [PathBuf],
        index: &'a Index,
    ) -> Surroundings<'a> {
        let loader_files = LoaderHost::default();
        let start = ProcessStart {
            executable: python
                .canonicalize()
                .unwrap_or_else(|_| python.to_owned())
                .to_string_lossy()
                .into_owned(),
            cwd: std::env::current_dir()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            ld_library_path: environment.get("LD_LIBRARY_PATH").cloned(),
            ..ProcessStart::default()
        };
        let (link_map, _) = LinkMap::start(loader_system(), &start, &loader_files);
        Surroundings {
            environment,
            sites,
            index,
            loader_files,
            link_map,
            known: RefCell::default(),
        }
    }

    /// What a component's searches would find.
    pub(super) fn parts(&self, component: &Component, distribution: &Distribution) -> Vec<Part> {
        component
            .searches
            .iter()
            .filter(|search| search.versions.contains(&distribution.version))
            .map(|search| self.part(component, distribution, search))
            .collect()
    }

    fn part(&self, component: &Component, distribution: &Distribution, search: &Search) -> Part {
        let mut candidates = Vec::new();
        let found = search
            .order
            .iter()
            .find_map(|step| self.step(*step, search.part, distribution, &mut candidates));
        let identity = found
            .as_ref()
            .and_then(|f| f.path.as_deref())
            .and_then(|path| self.identity(path));
        let mut part = Part {
            part: search.part.to_owned(),
            path: found
                .as_ref()
                .and_then(|f| f.path.as_ref())
                .map(|p| p.to_string_lossy().into_owned()),
            version: identity
                .as_ref()
                .and_then(|i| i.version)
                .map(|v| v.to_string()),
            version_from: identity
                .as_ref()
                .and_then(|i| i.version_from)
                .map(|f| f.word().to_owned()),
            rule: found.as_ref().map_or(Rule::Unknown, |f| f.rule).word(),
            rule_detail: found.as_ref().map(|f| f.detail.clone()).unwrap_or_default(),
            candidates,
            remarks: Vec::new(),
        };
        match &found {
            Some(Found {
                path: Some(path), ..
            }) if !path.exists() => {
                part.remarks.push(format!(
                    "{} is not there, and no other place is tried",
                    path.display()
                ));
            }
            None => part
                .remarks
                .push("every place was tried, none has it".to_owned()),
            _ => {}
        }
        if let Some(version) = identity.and_then(|i| i.version) {
            part.remarks
                .extend(gates(component, distribution, search.part, version));
        }
        part
    }

    /// One step: `Some` when it decides, found or not.
    fn step(
        &self,
        step: Step,
        part: &str,
        distribution: &Distribution,
        tried: &mut Vec<Candidate>,
    ) -> Option<Found> {
        let file = |path: PathBuf, rule: Rule, detail: String, tried: &mut Vec<Candidate>| {
            let outcome = if path.exists() {
                Outcome::Chosen
            } else {
                Outcome::Missing
            };
            tried.push(Candidate {
                path: path.to_string_lossy().into_owned(),
                rule,
                outcome,
            });
            (outcome == Outcome::Chosen).then_some(Found {
                path: Some(path),
                rule,
                detail,
            })
        };
        match step {
            // A root that is set decides, even when the tool is not in it.
            Step::Root(name) => {
                let value = self.environment.get(name).filter(|v| !v.is_empty())?;
                let rule = match name {
                    "CUDA_HOME" => Rule::CudaHome,
                    "CUDA_PATH" => Rule::CudaPath,
                    _ => Rule::OverrideVariable,
                };
                let path = below(Path::new(value), part)?;
                Some(
                    file(path.clone(), rule, format!("{name}={value}"), tried).unwrap_or(Found {
                        path: Some(path),
                        rule,
                        detail: format!("{name}={value}"),
                    }),
                )
            }
            Step::File(name) => {
                let value = self.environment.get(name).filter(|v| !v.is_empty())?;
                let path = if value.contains('/') {
                    PathBuf::from(value)
                } else {
                    self.on_path(value)?.0
                };
                file(
                    path,
                    Rule::OverrideVariable,
                    format!("{name}={value}"),
                    tried,
                )
            }
            Step::Path(name) | Step::Which(name) => {
                let (path, entry) = self.on_path(name)?;
                file(path, Rule::Path, format!("PATH entry {entry}"), tried)
            }
            Step::Directory(directory) => file(
                below(Path::new(directory), part)?,
                Rule::DefaultDirectory,
                directory.to_owned(),
                tried,
            ),
            Step::Bundled(relative) => {
                let site = Path::new(&distribution.record).parent()?;
                let folder = distribution.name.to_ascii_lowercase().replace('-', "_");
                file(
                    site.join(folder).join(relative),
                    Rule::Bundled,
                    format!("the copy that {} carries", distribution.name),
                    tried,
                )
            }
            Step::Wheels => self.in_wheels(part).and_then(|path| {
                file(
                    path,
                    Rule::Wheel,
                    "NVIDIA's wheels in site-packages".to_owned(),
                    tried,
                )
            }),
            Step::Conda => {
                let prefix = self.environment.get("CONDA_PREFIX")?;
                file(
                    below(Path::new(prefix), part)?,
                    Rule::Conda,
                    format!("CONDA_PREFIX={prefix}"),
                    tried,
                )
            }
            Step::Loader => self.by_loader(part, tried),
            Step::Loaded | Step::TorchRelease => None,
        }
    }

    fn on_path(&self, name: &str) -> Option<(PathBuf, String)> {
        let path = self.environment.get("PATH")?;
        path.split(':').filter(|e| !e.is_empty()).find_map(|entry| {
            let candidate = Path::new(entry).join(name);
            candidate.is_file().then(|| (candidate, entry.to_owned()))
        })
    }

    /// The file of a part in `nvidia/…` of a package directory.
    fn in_wheels(&self, part: &str) -> Option<PathBuf> {
        self.sites
            .iter()
            .map(|site| site.join("nvidia"))
            .find_map(|nvidia| {
                let mut folders = HostFiles.names(&nvidia);
                folders.sort_unstable();
                folders.iter().find_map(|folder| {
                    let root = nvidia.join(folder);
                    match part {
                        "nvcc" | "ptxas" => {
                            Some(root.join("bin").join(part)).filter(|p| p.is_file())
                        }
                        _ => library_in(&root.join("lib"), part),
                    }
                })
            })
    }

    /// The loader's own search for a part's usual SONAMEs, newest first.
    fn by_loader(&self, part: &str, tried: &mut Vec<Candidate>) -> Option<Found> {
        for soname in sonames(part) {
            let request = Request {
                name: soname,
                requester: None,
                flags: Flags::default(),
            };
            let search = self.link_map.predict(&request, &self.loader_files);
            tried.extend(search.event_candidates());
            if let Some(winner) = &search.winner {
                return Some(Found {
                    path: Some(PathBuf::from(&winner.path)),
                    rule: search.rule,
                    detail: search.rule_detail.clone(),
                });
            }
        }
        None
    }

    fn identity(&self, path: &Path) -> Option<Identity> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let real = path.canonicalize().ok();
        let owner = real
            .as_deref()
            .and_then(|p| self.index.owner(p))
            .or_else(|| self.index.owner(path));
        let context = Context {
            files: &HostFiles,
            owner,
        };
        let identity = map_file(path).map(|bytes| identify(path, &bytes, &context));
        self.known
            .borrow_mut()
            .insert(path.to_owned(), identity.clone());
        identity
    }
}

/// Where a part lies below a toolkit's root; `None` for parts that are not looked for there.
fn below(root: &Path, part: &str) -> Option<PathBuf> {
    match part {
        "nvcc" | "ptxas" | "cuobjdump" | "nvdisasm" => Some(root.join("bin").join(part)),
        "host_compiler" => None,
        _ => ["lib64", "lib", "targets/x86_64-linux/lib"]
            .iter()
            .find_map(|directory| library_in(&root.join(directory), part)),
    }
}

fn library_in(directory: &Path, part: &str) -> Option<PathBuf> {
    let mut names = HostFiles.names(directory);
    names.sort_unstable();
    let stems: Vec<&str> = sonames(part)
        .iter()
        .filter_map(|s| s.split(".so").next())
        .collect();
    names
        .into_iter()
        .find(|name| {
            stems.iter().any(|stem| {
                name.strip_prefix(stem)
                    .is_some_and(|rest| rest.starts_with(".so"))
            })
        })
        .map(|name| directory.join(name))
}

/// SONAMEs by which a part is asked for, newest first.
fn sonames(part: &str) -> &'static [&'static str] {
    match part {
        "cudart" => &["libcudart.so.13", "libcudart.so.12"],
        "nvrtc" => &["libnvrtc.so.13", "libnvrtc.so.12"],
        "nvjitlink" => &["libnvJitLink.so.13", "libnvJitLink.so.12"],
        "libcuda" => &["libcuda.so.1"],
        "cudnn" => &["libcudnn.so.9", "libcudnn.so.8"],
        "cublas" => &["libcublas.so.13", "libcublas.so.12"],
        "nccl" => &["libnccl.so.2"],
        _ => &[],
    }
}

/// Releases that a component refuses, for the GPUs that it refuses them on.
fn gates(
    component: &Component,
    distribution: &Distribution,
    part: &str,
    version: Version,
) -> Vec<String> {
    component
        .gates
        .iter()
        .filter(|gate| {
            gate.part == part && gate.holds_for(&distribution.version) && version < gate.needs
        })
        .map(|gate| {
            let (major, lowest, highest) = gate.capability;
            let gpus = if lowest == highest {
                format!("{major}.{lowest}")
            } else {
                format!("{major}.x")
            };
            format!(
                "{} {} needs {} or newer for GPUs of compute capability {gpus}",
                component.name, distribution.version, gate.needs
            )
        })
        .collect()
}
