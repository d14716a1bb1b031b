//! Components and what each of them resolved.

use std::{collections::HashMap, sync::Arc};

use indexmap::IndexMap;

use super::{
    asker::{self, Asker},
    headers,
    tool::{self, Kind},
};
use crate::{
    event::{FileAccess, FileFact, FileOp, Rule},
    fold::{Model, Process, Seen},
    report::{BuiltFor, Component, Resolved, Toolkit},
};

/// Parts that are libraries, by the beginning of a file name; used for files that no fact describes.
const LIBRARIES: &[(&str, &str)] = &[
    ("libcudart", "cudart"),
    ("libnvrtc.", "nvrtc"),
    ("libnvrtc-", "nvrtc"),
    ("libnvJitLink", "nvjitlink"),
    ("libcuda.so", "libcuda"),
    ("libcudnn", "cudnn"),
    ("libcublas", "cublas"),
    ("libnccl", "nccl"),
];

/// Parts of the contract that components resolve as libraries.
const LIBRARY_PARTS: &[&str] = &[
    "cudart",
    "nvrtc",
    "nvjitlink",
    "libcuda",
    "cudnn",
    "cublas",
    "nccl",
];

/// Most events that are listed for one resolved file.
const MOST_EVENTS: usize = 20;

/// All components, in the order in which they first resolved something.
pub fn components(model: &Model, toolkits: &[Toolkit]) -> Vec<Component> {
    let mut gathered = Gathered {
        model,
        by_root: toolkits
            .iter()
            .map(|t| (t.root.as_str(), t.id.as_str()))
            .collect(),
        components: IndexMap::new(),
    };
    for process in model.processes() {
        gathered.tool(process);
    }
    for library in model.libraries() {
        gathered.library(library);
    }
    for access in model.accesses() {
        gathered.header(access);
    }
    for distribution in model.distributions() {
        let name = crate::component::name_of(&distribution.what.name);
        let says_cuda = distribution.what.built_for.is_some();
        // Who took all from a cache asked no toolkit, and is there all the same.
        let used_its_cache = model.cache_facts().any(|fact| fact.what.owner == name);
        if says_cuda || used_its_cache || gathered.components.contains_key(&name) {
            let component = gathered.component(&Asker {
                component: name,
                distribution: Some(distribution.what.name.clone()),
                ..Asker::default()
            });
            if component.built_for.cuda.is_none() {
                component.built_for = BuiltFor {
                    cuda: distribution.what.built_for.clone(),
                    from: distribution.what.built_for_from.clone(),
                };
            }
        }
    }
    let mut components: Vec<Component> = gathered.components.into_values().collect();
    for fact in model.cache_facts() {
        if let Some(component) = components.iter_mut().find(|c| c.name == fact.what.owner)
            && !component.caches.contains(&fact.what.directory)
        {
            component.caches.push(fact.what.directory.clone());
        }
    }
    for component in &mut components {
        component.caches.sort();
    }
    components
}

struct Gathered<'a> {
    model: &'a Model,
    by_root: HashMap<&'a str, &'a str>,
    components: IndexMap<String, Component>,
}

impl Gathered<'_> {
    fn component(&mut self, asker: &Asker) -> &mut Component {
        let component = self
            .components
            .entry(asker.component.clone())
            .or_insert_with(|| Component {
                name: asker.component.clone(),
                ..Component::default()
            });
        if component.distribution.is_none()
            && let Some(distribution) = &asker.distribution
        {
            component.distribution = Some(distribution.clone());
            if let Some(fact) = self.model.distribution(distribution) {
                component.version = Some(fact.what.version.clone()).filter(|v| !v.is_empty());
                component.path = Some(fact.what.path.clone()).filter(|p| !p.is_empty());
            }
        }
        if component.path.is_none() {
            component.path.clone_from(&asker.path);
        }
        component
    }

    fn tool(&mut self, process: &Process) {
        let Some(kind) = Kind::of(process.name()) else {
            return;
        };
        let Some(part) = kind.part().filter(|_| !process.what.forked) else {
            return;
        };
        // A host compiler that a host compiler runs is not a choice of its own.
        let parent = tool::effective_parent(self.model, process);
        if kind == Kind::HostCompiler
            && (parent.is_some_and(|p| Kind::of(p.name()) == Some(Kind::HostCompiler))
                || !compiles(process))
        {
            return;
        }
        let found = tool::rule_of(self.model, process);
        let asker = asker::of_process(self.model, process);
        let requested_by = asker.sentence();
        let mut events = found.events;
        events.extend(self.model.exec_of(process).map(|exec| exec.id));
        events.push(process.id);
        self.add(
            &asker,
            part,
            Resolved {
                rule: found.rule,
                rule_detail: found.detail,
                candidates: found.candidates,
                requested_by,
                events,
                pids: vec![process.pid],
                ..self.described(&process.program, Some(&process.what.exe))
            },
        );
    }

    fn library(&mut self, seen: &Seen<crate::fold::Loaded>) {
        let loaded = &seen.what;
        let fact = self.model.file_of(loaded);
        let Some(part) = part_of(fact, &loaded.path) else {
            return;
        };
        if !LIBRARY_PARTS.contains(&part.as_str()) {
            return;
        }
        let python = self.model.python_of(&loaded.python, loaded.request);
        let asker = asker::of_library(
            self.model,
            loaded.requested_by.as_deref(),
            python,
            seen.process,
        );
        let by_frame = asker::of_frames(python).and_then(|a| a.sentence());
        let requested_by = match &loaded.requested_by {
            Some(object) if asker.frame.is_none() => Some(object.clone()),
            _ => by_frame.or_else(|| loaded.requested_by.clone()),
        };
        self.add(
            &asker,
            &part,
            Resolved {
                rule: loaded.rule,
                rule_detail: loaded.rule_detail.clone(),
                candidates: loaded.candidates.clone(),
                requested_by,
                explanation: Some(loaded.explanation),
                events: vec![seen.id],
                pids: vec![seen.pid],
                ..self.described_as(
                    &loaded.path,
                    Some(&loaded.realpath),
                    fact.or_else(|| self.model.file(&loaded.realpath)),
                )
            },
        );
    }

    fn header(&mut self, seen: &Seen<Arc<FileAccess>>) {
        let access = &seen.what;
        let name = access.path.rsplit('/').next().unwrap_or_default();
        // ninja asks for the time of every header; only who opens one compiles with it.
        if access.errno != 0
            || access.op != FileOp::Open
            || !matches!(name, "cuda_runtime.h" | "cuda_runtime_api.h" | "cuda.h")
        {
            return;
        }
        let process = seen.process.and_then(|i| self.model.process(i));
        let asker = match asker::of_frames(&access.python) {
            Some(asker) => asker,
            None => process
                .map(|p| asker::of_process(self.model, p))
                .unwrap_or_default(),
        };
        let fact = self.model.file(&access.path).map(|f| &f.what);
        let (rule, rule_detail) = process
            .map(|p| headers::rule(self.model, p, &access.path, fact))
            .unwrap_or_default();
        self.add(
            &asker,
            "headers",
            Resolved {
                rule,
                rule_detail,
                requested_by: process.map(|p| p.program.clone()),
                events: vec![seen.id],
                pids: vec![seen.pid],
                ..self.described(&access.path, None)
            },
        );
    }

    /// What the facts say about a file.
    fn described(&self, path: &str, realpath: Option<&str>) -> Resolved {
        let fact = self.model.file(path).or_else(|| self.model.file(realpath?));
        self.described_as(path, realpath, fact)
    }

    fn described_as(
        &self,
        path: &str,
        realpath: Option<&str>,
        fact: Option<&Seen<FileFact>>,
    ) -> Resolved {
        let fact = fact.map(|f| &f.what);
        Resolved {
            path: path.to_owned(),
            realpath: fact
                .map(|f| f.realpath.clone())
                .filter(|r| !r.is_empty())
                .or_else(|| realpath.map(str::to_owned).filter(|r| !r.is_empty()))
                .unwrap_or_else(|| path.to_owned()),
            version: fact.and_then(|f| f.version.clone()),
            version_from: fact.and_then(|f| f.version_from.clone()),
            toolkit: fact
                .and_then(|f| f.toolkit.as_deref())
                .and_then(|root| self.by_root.get(root))
                .map(|id| (*id).to_owned()),
            ..Resolved::default()
        }
    }

    /// Adds an entry, or adds its events to the entry of the same file and rule.
    fn add(&mut self, asker: &Asker, part: &str, entry: Resolved) {
        let entries = self
            .component(asker)
            .resolved
            .entry(part.to_owned())
            .or_default();
        match entries.iter_mut().find(|e| {
            e.path == entry.path
                && e.version == entry.version
                && (e.rule == entry.rule || entry.rule == Rule::AlreadyLoaded)
        }) {
            Some(known) => {
                merge(&mut known.events, entry.events, MOST_EVENTS);
                merge(&mut known.pids, entry.pids, usize::MAX);
                if known.candidates.is_empty() {
                    known.candidates = entry.candidates;
                }
            }
            None => entries.push(entry),
        }
    }
}

/// The part of a toolkit that a file is: by its fact, else by its name.
fn part_of(fact: Option<&Seen<FileFact>>, path: &str) -> Option<String> {
    if let Some(fact) = fact {
        return fact.what.part.clone();
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    LIBRARIES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, part)| (*part).to_owned())
}

fn merge<T: PartialEq>(into: &mut Vec<T>, from: Vec<T>, most: usize) {
    for item in from {
        if into.len() < most && !into.contains(&item) {
            into.push(item);
        }
    }
}

/// Whether a host compiler was run to compile or link, not to be asked something.
fn compiles(process: &Process) -> bool {
    let arguments = process.arguments();
    let is_source = |a: &String| {
        [".c", ".cc", ".cpp", ".cxx", ".cu", ".o", ".s", ".ii", ".i"]
            .iter()
            .any(|end| a.ends_with(end))
            || a == "-"
    };
    arguments
        .iter()
        .any(|a| a == "-c" || a == "-E" || a == "-shared" || a == "-S" || a == "-fsyntax-only")
        && arguments.iter().any(is_source)
}
