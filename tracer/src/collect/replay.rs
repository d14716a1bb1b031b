//! Why each library won: the loader's search, replayed when the shim reports the load.
//!
//! The replay of a process starts when the first object of it is to be explained, so that the many short tools of a
//! build cost nothing.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    sync::Arc,
};

use jittrace_model::{
    event::{
        Body, EventId, Explanation, LibraryFailed, LibraryLoaded, LibraryRequest, ProcessStart,
        Rule,
    },
    loader::{self, FileId, Flags, LinkMap, Request, Search, System},
    toolkit::Part,
};

use super::{
    loader_host::{self, LoaderHost},
    stillborn,
};

/// A file that is mapped in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Its path, as the process spells it.
    pub(super) path: String,
    /// Device number.
    pub(super) dev: u64,
    /// Inode number.
    pub(super) ino: u64,
    /// Some of it is executable: it is an object, not data.
    pub(super) executable: bool,
    /// The file was removed or replaced since.
    pub(super) deleted: bool,
}

impl Mapped {
    fn file(&self) -> FileId {
        FileId {
            dev: self.dev,
            inode: self.ino,
        }
    }
}

/// Requests of one process whose outcome may still be told. A server that asks for libraries all day must not be
/// remembered whole, and an outcome comes soon after its request.
const REQUESTS: usize = 4096;

/// The link maps of the traced processes.
pub(super) struct Replay {
    files: LoaderHost,
    system: Arc<System>,
    processes: HashMap<u32, Process>,
}

enum Process {
    /// Not asked about yet.
    Untouched(Box<ProcessStart>),
    /// Replayed up to its latest event.
    Replayed(Box<Replayed>),
}

struct Replayed {
    map: LinkMap,
    /// Searches of the start.
    start: Vec<Search>,
    /// Searches of requests, by the event of the request; the latest [`REQUESTS`].
    requests: BTreeMap<EventId, Search>,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            files: LoaderHost::default(),
            system: loader_host::system(),
            processes: HashMap::new(),
        }
    }
}

impl Replay {
    /// A process began: by exec with a fresh link map, by fork with its parent's.
    pub(super) fn start(&mut self, pid: u32, start: &ProcessStart) {
        let inherited = match self.processes.get(&start.ppid) {
            Some(Process::Replayed(parent)) if start.forked => {
                Some(Process::Replayed(Box::new(Replayed {
                    map: parent.map.clone(),
                    start: parent.start.clone(),
                    requests: BTreeMap::new(),
                })))
            }
            Some(Process::Untouched(parent)) if start.forked => {
                Some(Process::Untouched(parent.clone()))
            }
            _ => None,
        };
        self.processes.insert(
            pid,
            inherited.unwrap_or_else(|| Process::Untouched(Box::new(start.clone()))),
        );
    }

    /// What of CUDA the loader missed when it started a program.
    pub(super) fn missed(&self, start: &ProcessStart) -> Option<LibraryFailed> {
        stillborn::missed(start, &self.system, &self.files)
    }

    /// A process ended.
    pub(super) fn end(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    fn process(&mut self, pid: u32) -> Option<&mut Replayed> {
        let entry = self.processes.get_mut(&pid)?;
        if let Process::Untouched(start) = entry {
            let (map, searches) =
                LinkMap::start(self.system.clone(), &loader_start(start), &self.files);
            *entry = Process::Replayed(Box::new(Replayed {
                map,
                start: searches,
                requests: BTreeMap::new(),
            }));
        }
        match entry {
            Process::Replayed(replayed) => Some(replayed),
            Process::Untouched(_) => None,
        }
    }

    /// A library is asked for.
    pub(super) fn request(&mut self, pid: u32, event: EventId, request: &LibraryRequest) {
        if request.call != "dlopen" || request.name.is_empty() {
            return;
        }
        self.process(pid);
        let Some(Process::Replayed(process)) = self.processes.get_mut(&pid) else {
            return;
        };
        let requester = request
            .caller
            .as_ref()
            .and_then(|c| process.map.object_by_path(&c.object));
        let search = process.map.request(
            &Request {
                name: &request.name,
                requester,
                flags: Flags::from_bits(request.flags),
            },
            &self.files,
        );
        process.requests.insert(event, search);
        if process.requests.len() > REQUESTS {
            process.requests.pop_first();
        }
    }

    /// Completes a load with its search.
    pub(super) fn loaded(&mut self, pid: u32, loaded: &mut LibraryLoaded) {
        loaded.realpath = realpath(&loaded.path);
        self.process(pid);
        let Some(Process::Replayed(process)) = self.processes.get_mut(&pid) else {
            return;
        };
        let of_request = loaded
            .request
            .and_then(|event| process.requests.get(&event));
        let searches: Box<dyn Iterator<Item = &Search>> = match of_request {
            Some(search) => Box::new(search.iter()),
            None => Box::new(process.start.iter()),
        };
        let id = loaded.dev.zip(loaded.ino);
        let is_it = |search: &&Search| {
            search.winner.as_ref().is_some_and(|w| {
                let same_file = w
                    .file
                    .zip(id)
                    .is_some_and(|(file, (dev, ino))| file.dev == dev && file.inode == ino);
                (same_file || w.path == loaded.path)
                    && (w.mapped || loaded.rule == Rule::AlreadyLoaded)
            })
        };
        if let Some(search) = searches.into_iter().find(is_it) {
            tell(search, loaded);
            loaded.explanation = Explanation::Confirmed;
        } else {
            // The observation stands; what the replay would have taken instead is told beside it.
            let name = loaded.path.rsplit('/').next().unwrap_or_default();
            let other = of_request.and_then(|s| {
                s.iter()
                    .find(|s| s.requested.rsplit('/').next() == Some(name))
            });
            if let Some(other) = other {
                loaded.candidates = other.event_candidates();
                loaded.explanation = Explanation::Differs;
            }
            process.map.observed(&loaded.path, &self.files);
        }
        loaded.soname = process
            .map
            .object_by_path(&loaded.path)
            .and_then(|object| process.map.object(object))
            .and_then(|object| object.soname())
            .map(str::to_owned);
        if !is_of_cuda(&loaded.path) {
            loaded.candidates.clear();
        }
    }

    /// Completes a failure with its search. A request that nothing settled may have been answered after all: then the
    /// body becomes the load that the replay and the process's map agree on.
    pub(super) fn failed(&mut self, pid: u32, mut failed: LibraryFailed) -> Body {
        self.process(pid);
        let Some(Process::Replayed(process)) = self.processes.get_mut(&pid) else {
            return Body::LibraryFailed(Box::new(failed));
        };
        let Some(search) = failed
            .request
            .and_then(|event| process.requests.get(&event))
        else {
            return Body::LibraryFailed(Box::new(failed));
        };
        let said_nothing = failed.error.is_empty();
        let unresolved = search.iter().find(|s| s.winner.is_none());
        if let Some(culprit) = unresolved {
            failed.candidates = culprit.event_candidates();
            if culprit.requested != failed.requested {
                failed.missing = Some(culprit.requested.clone());
                failed.missing_for = Some(culprit.requested_by.clone());
            }
            if said_nothing {
                failed.error = search.error.clone().unwrap_or_default();
            }
            return Body::LibraryFailed(Box::new(failed));
        }
        let Some(winner) = search
            .winner
            .clone()
            .filter(|_| said_nothing && search.error.is_none())
        else {
            // The files were found: symbols or versions were missing, and all was unmapped again.
            // The loader's sentence begins with the library that lacks a version.
            let is_named = |s: &&Search| {
                s.winner.as_ref().is_some_and(|w| {
                    failed
                        .error
                        .strip_prefix(w.path.as_str())
                        .is_some_and(|rest| rest.starts_with(": version `"))
                })
            };
            failed.candidates = search
                .iter()
                .find(is_named)
                .or_else(|| search.iter().find(|s| is_of_cuda(&s.requested)))
                .map(Search::event_candidates)
                .unwrap_or_default();
            let search = search.clone();
            process.map.failed(&search);
            return Body::LibraryFailed(Box::new(failed));
        };
        let mut loaded = LibraryLoaded {
            realpath: realpath(&winner.path),
            path: winner.path,
            requested: Some(failed.requested),
            requested_by: failed.requested_by,
            request: failed.request,
            python: failed.python,
            ..LibraryLoaded::default()
        };
        tell(search, &mut loaded);
        loaded.explanation = Explanation::Reconstructed;
        if !is_of_cuda(&loaded.path) {
            loaded.candidates.clear();
        }
        Body::LibraryLoaded(Box::new(loaded))
    }

    /// Explains objects that were found mapped: their requests were not seen, so they are reconstructed.
    pub(super) fn found(&mut self, pid: u32, objects: &[Mapped]) -> Vec<LibraryLoaded> {
        let files: Vec<(String, FileId)> =
            objects.iter().map(|o| (o.path.clone(), o.file())).collect();
        let explained: Vec<(String, FileId, Option<Search>)> = match self.processes.get_mut(&pid) {
            Some(Process::Replayed(process)) => {
                let loader_files = &self.files;
                files
                    .into_iter()
                    .map(|(path, file)| {
                        let search = process.met(&path, file, loader_files);
                        (path, file, search)
                    })
                    .collect()
            }
            Some(entry @ Process::Untouched(_)) => {
                let Process::Untouched(start) = &*entry else {
                    return Vec::new();
                };
                let (map, explained) = LinkMap::reconstruct(
                    self.system.clone(),
                    &loader_start(start),
                    &files,
                    &self.files,
                );
                *entry = Process::Replayed(Box::new(Replayed {
                    map,
                    start: Vec::new(),
                    requests: BTreeMap::new(),
                }));
                explained
                    .into_iter()
                    .map(|e| (e.path, e.file, e.search))
                    .collect()
            }
            None => files
                .into_iter()
                .map(|(path, file)| (path, file, None))
                .collect(),
        };
        let deleted: HashSet<FileId> = objects
            .iter()
            .filter(|o| o.deleted)
            .map(Mapped::file)
            .collect();
        explained
            .into_iter()
            .map(|(path, file, search)| {
                found_load(path, file, search.as_ref(), deleted.contains(&file))
            })
            .collect()
    }

    /// A library was unmapped.
    pub(super) fn unloaded(&mut self, pid: u32, path: &str) {
        if let Some(Process::Replayed(process)) = self.processes.get_mut(&pid)
            && let Some(object) = process.map.object_by_path(path)
        {
            process.map.unmapped(object);
        }
    }

    /// Searches that a failed request made and that a verdict needs: needs that were answered by a file of CUDA.
    pub(super) fn searches_of(&self, pid: u32, request: EventId) -> Vec<LibraryLoaded> {
        let Some(Process::Replayed(process)) = self.processes.get(&pid) else {
            return Vec::new();
        };
        let Some(search) = process.requests.get(&request) else {
            return Vec::new();
        };
        search
            .iter()
            .filter(|s| is_of_cuda(&s.requested))
            .filter_map(|s| {
                let winner = s.winner.as_ref()?;
                let mut loaded = LibraryLoaded {
                    realpath: realpath(&winner.path),
                    path: winner.path.clone(),
                    request: Some(request),
                    explanation: Explanation::Reconstructed,
                    ..LibraryLoaded::default()
                };
                tell(s, &mut loaded);
                Some(loaded)
            })
            .collect()
    }
}

impl Replayed {
    /// An object that was not there at the last look: the search that gives it, and from now on it is there.
    fn met(&mut self, path: &str, file: FileId, files: &LoaderHost) -> Option<Search> {
        if self.map.object_of_file(file).is_some() {
            return None;
        }
        let request = Request {
            name: path,
            requester: None,
            flags: Flags::default(),
        };
        let search = self.map.request(&request, files);
        let found = search
            .iter()
            .find(|s| s.winner.as_ref().is_some_and(|w| w.file == Some(file)))
            .cloned();
        if found.is_none() {
            self.map.observed(path, files);
        }
        found
    }
}

/// What the loader read at the start of a process.
pub(super) fn loader_start(start: &ProcessStart) -> loader::ProcessStart {
    let env = |name: &str| start.env.get(name).cloned();
    loader::ProcessStart {
        executable: start.exe.clone(),
        cwd: start.cwd.clone(),
        ld_library_path: env("LD_LIBRARY_PATH"),
        ld_preload: env("LD_PRELOAD"),
        preload_file: fs::read_to_string("/etc/ld.so.preload").ok(),
        secure: false,
    }
}

/// The load of an object that was found mapped.
fn found_load(path: String, file: FileId, search: Option<&Search>, deleted: bool) -> LibraryLoaded {
    let mut loaded = LibraryLoaded {
        realpath: path.clone(),
        path,
        dev: Some(file.dev),
        ino: Some(file.inode),
        explanation: Explanation::Reconstructed,
        ..LibraryLoaded::default()
    };
    match search {
        Some(search) => tell(search, &mut loaded),
        None => {
            loaded.rule_detail =
                "mapped before jittrace looked; no replayed search gives it".to_owned()
        }
    }
    if deleted {
        loaded
            .rule_detail
            .push_str("; the file was removed or replaced since");
    }
    if !is_of_cuda(&loaded.path) {
        loaded.candidates.clear();
    }
    loaded
}

/// A path without symbolic links; as it is when the file cannot be looked at.
fn realpath(path: &str) -> String {
    fs::canonicalize(path).map_or_else(|_| path.to_owned(), |p| p.to_string_lossy().into_owned())
}

/// Puts a search's answer into a load.
fn tell(search: &Search, loaded: &mut LibraryLoaded) {
    loaded.requested = Some(search.requested.clone());
    loaded.requested_by = Some(search.requested_by.clone()).filter(|r| !r.is_empty());
    loaded.rule = search.rule;
    loaded.rule_detail.clone_from(&search.rule_detail);
    loaded.candidates = search.event_candidates();
}

/// Whether a name is that of a library of CUDA or its driver.
pub(super) fn is_of_cuda(path: &str) -> bool {
    Part::of_file_name(path.rsplit('/').next().unwrap_or(path)) != Part::Other
}
