//! The loader's memory of one process: what is loaded, under which names, who loaded it, which directories are missing.

mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::elf::{DF_1_NODELETE, DF_1_PIE, ElfFacts, Kind};
use crate::event::{Outcome, Rule};

use super::files::{FileId, Files, Opened};
use super::path::{Directory, Tokens, absolute, directories, directory_of, with_slash};
use super::search::{Flags, Request, Search, Winner};
use super::system::System;
use walk::{Found, Slot};

/// The object may not be opened by `dlopen` (`ld -z nodlopen`).
const DF_1_NOOPEN: u64 = 0x40;

/// An object of a [`LinkMap`]. Never used again for another object of the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);

/// The executable is the first object of every link map.
const EXECUTABLE: ObjectId = ObjectId(0);

/// A loaded object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The path under which it was opened, as the loader spells it.
    pub path: String,
    /// Which file it is; unknown for the vdso.
    pub file: Option<FileId>,
    /// What the file says; unknown for the vdso.
    pub elf: Option<Arc<ElfFacts>>,
    /// The object whose need loaded it; none for one that was asked for by `dlopen`, where inheritance of RPATH ends.
    pub loader: Option<ObjectId>,
    /// Names that it was asked for by.
    names: BTreeSet<String>,
    origin: Option<String>,
    /// Mapped by the kernel (the executable, the loader): the loader has no file identity of it.
    by_kernel: bool,
    /// Loaded with the program, and so never unmapped.
    from_start: bool,
    nodelete: bool,
    /// `dlopen`s that were not yet closed.
    opens: u32,
    needs: Vec<ObjectId>,
    relocation_needs: BTreeSet<ObjectId>,
}

impl Object {
    /// `DT_SONAME`.
    #[must_use]
    pub fn soname(&self) -> Option<&str> {
        self.elf.as_deref()?.soname.as_deref()
    }

    fn answers_to(&self, name: &str) -> bool {
        self.names.contains(name) || self.soname() == Some(name)
    }
}

/// How a process began: what the loader reads once and never again.
#[derive(Clone, Debug, Default)]
pub struct ProcessStart {
    /// The executable, resolved (what `/proc/PID/exe` points to): `$ORIGIN` is its directory.
    pub executable: String,
    /// The current directory at the start.
    pub cwd: String,
    /// `LD_LIBRARY_PATH` of the initial environment.
    pub ld_library_path: Option<String>,
    /// `LD_PRELOAD` of the initial environment.
    pub ld_preload: Option<String>,
    /// The content of `/etc/ld.so.preload`.
    pub preload_file: Option<String>,
    /// `AT_SECURE` (setuid and the like): the loader ignores LD_LIBRARY_PATH, and LD_PRELOAD entries with a slash.
    pub secure: bool,
}

/// What [`LinkMap::reconcile`] had to put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Objects that the replay held for loaded and that are not mapped: their last known paths.
    pub vanished: Vec<String>,
    /// Objects that are mapped and that no replayed request explains.
    pub appeared: Vec<ObjectId>,
}

/// How an object comes to be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Need,
    Preload(&'static str),
    Dlopen(Flags),
}

/// The dynamic loader's memory of one process. See the [module](super).
#[derive(Clone, Debug)]
pub struct LinkMap {
    system: Arc<System>,
    objects: BTreeMap<ObjectId, Object>,
    next: u32,
    cwd: String,
    library_path: Vec<Directory>,
    default_directories: Vec<Directory>,
    slots: HashMap<String, Vec<Slot>>,
}

impl LinkMap {
    /// Replays the start of a program: preloads, then all needs, breadth first. The searches come in the order of the
    /// loader; those that were satisfied by what was loaded before are among them.
    ///
    /// Where the executable cannot be read, or is static, the link map holds it alone and later requests are answered
    /// without its RPATH.
    #[must_use]
    pub fn start(
        system: Arc<System>,
        start: &ProcessStart,
        files: &dyn Files,
    ) -> (Self, Vec<Search>) {
        let (file, elf) = match files.open(&start.executable) {
            Opened::File { id, elf } => (Some(id), elf.ok()),
            _ => (None, None),
        };
        let default_directories = system
            .default_directories
            .iter()
            .map(|directory| Directory {
                name: with_slash(directory),
                entry: directory.clone(),
            })
            .collect();
        let mut map = Self {
            objects: BTreeMap::new(),
            next: 0,
            cwd: start.cwd.clone(),
            library_path: Vec::new(),
            default_directories,
            slots: HashMap::new(),
            system,
        };
        let executable = map.add(&start.executable, file, elf, None, true);
        if let Some(object) = map.objects.get_mut(&executable) {
            object.names.clear();
            object.by_kernel = true;
        }
        map.add_vdso();
        map.add_interpreter(files);
        let library_path = start
            .ld_library_path
            .as_deref()
            .filter(|list| !list.is_empty() && !start.secure);
        if let Some(list) = library_path {
            map.library_path = directories(list, &[':', ';'], map.tokens(executable));
        }
        let (mut searches, preloads) = map.preload(start, files);
        let mut queue = vec![executable];
        queue.extend(preloads);
        let mut mapped = Vec::new();
        let _missing = map.load_needs(queue, files, &mut searches, &mut mapped);
        for object in map.objects.values_mut() {
            object.from_start = true;
        }
        (map, searches)
    }

    /// Replays a `dlopen`, with all needs. Afterwards the link map is as the loader's would be if no other error than a
    /// missing or unusable file came up; see [`Self::failed`] for the rest.
    pub fn request(&mut self, request: &Request<'_>, files: &dyn Files) -> Search {
        let requester = request
            .requester
            .filter(|id| self.objects.contains_key(id))
            .unwrap_or(EXECUTABLE);
        let mut search = self.resolve(request.name, requester, Asked::Dlopen(request.flags), files);
        let Some(winner) = search.winner.clone() else {
            return search;
        };
        if winner.mapped {
            let mut needs = Vec::new();
            let mut mapped = vec![winner.object];
            let result = self.load_needs(vec![winner.object], files, &mut needs, &mut mapped);
            search.needs = needs;
            if let Err(error) = result {
                self.unmap(&mapped);
                search.error = Some(error);
            }
            search.mapped = mapped;
        }
        if let Some(object) = self.objects.get_mut(&winner.object) {
            object.opens = object.opens.saturating_add(1);
            object.nodelete |= request.flags.nodelete;
        }
        search
    }

    /// Takes back a request that failed after its search (an undefined symbol, a missing version, no memory): what it
    /// mapped is unmapped.
    pub fn failed(&mut self, search: &Search) {
        match &search.winner {
            Some(winner) if !winner.mapped => {
                if let Some(object) = self.objects.get_mut(&winner.object) {
                    object.opens = object.opens.saturating_sub(1);
                }
            }
            _ => self.unmap(&search.mapped),
        }
    }

    /// Replays a `dlclose`; gives the objects that nothing holds any more and that are unmapped by it.
    ///
    /// Two holds cannot be seen from here: symbols bound across objects (report them with [`Self::bound`] where they
    /// are known) and unique C++ symbols, which pin their object. Let [`Self::reconcile`] put that right.
    pub fn closed(&mut self, object: ObjectId) -> Vec<ObjectId> {
        let Some(closed) = self.objects.get_mut(&object) else {
            return Vec::new();
        };
        closed.opens = closed.opens.saturating_sub(1);
        if closed.opens > 0 || closed.from_start {
            return Vec::new();
        }
        let mut held = BTreeSet::new();
        let pinned = |object: &Object| {
            let flag = object
                .elf
                .as_deref()
                .is_some_and(|elf| elf.flags_1 & DF_1_NODELETE != 0);
            object.from_start || object.opens > 0 || object.nodelete || flag
        };
        let mut queue: VecDeque<ObjectId> = self
            .objects
            .iter()
            .filter(|(_, object)| pinned(object))
            .map(|(id, _)| *id)
            .collect();
        while let Some(id) = queue.pop_front() {
            if held.insert(id)
                && let Some(object) = self.objects.get(&id)
            {
                queue.extend(object.needs.iter().chain(&object.relocation_needs));
            }
        }
        let unmapped: Vec<ObjectId> = self
            .objects
            .keys()
            .filter(|id| !held.contains(id))
            .copied()
            .collect();
        self.unmap(&unmapped);
        unmapped
    }

    /// Notes that a symbol of `user` was bound to `provider`, which holds the provider as long as the user is there.
    pub fn bound(&mut self, user: ObjectId, provider: ObjectId) {
        if self.objects.contains_key(&provider)
            && let Some(object) = self.objects.get_mut(&user)
        {
            object.relocation_needs.insert(provider);
        }
    }

    /// Notes that an object was seen to be unmapped.
    pub fn unmapped(&mut self, object: ObjectId) {
        self.unmap(&[object]);
    }

    /// Notes that the process changed its directory, which relative names count from.
    pub fn changed_directory(&mut self, cwd: &str) {
        cwd.clone_into(&mut self.cwd);
    }

    /// Notes an object that was seen to be loaded while the replay had another answer or none; gives it its place.
    pub fn observed(&mut self, path: &str, files: &dyn Files) -> ObjectId {
        let (file, elf) = match files.open(&absolute(path, &self.cwd)) {
            Opened::File { id, elf } => (Some(id), elf.ok()),
            _ => (None, None),
        };
        if let Some(known) = file.and_then(|file| self.object_of_file(file)) {
            return known;
        }
        let id = self.add(path, file, elf, None, false);
        // Nothing is known of its needs' owners: they hold what answers to their names.
        let names: Vec<String> = self
            .objects
            .get(&id)
            .and_then(|o| o.elf.clone())
            .map(|elf| elf.needed.clone())
            .unwrap_or_default();
        let needs: Vec<ObjectId> = names
            .iter()
            .filter_map(|name| self.object_by_name(name))
            .collect();
        if let Some(object) = self.objects.get_mut(&id) {
            object.opens = 1;
            object.needs = needs;
        }
        id
    }

    /// Compares with the files that are mapped in the process (`/proc/PID/maps`) and follows them: objects that are not
    /// mapped are dropped, mapped ELF files that are unknown are taken in.
    pub fn reconcile<'a>(
        &mut self,
        mapped: impl IntoIterator<Item = (&'a str, FileId)>,
        files: &dyn Files,
    ) -> Reconciled {
        let mapped: BTreeMap<FileId, &str> =
            mapped.into_iter().map(|(path, id)| (id, path)).collect();
        let gone: Vec<ObjectId> = self
            .objects
            .iter()
            .filter(|(id, object)| {
                **id != EXECUTABLE && object.file.is_some_and(|file| !mapped.contains_key(&file))
            })
            .map(|(id, _)| *id)
            .collect();
        let vanished = gone
            .iter()
            .filter_map(|id| self.objects.get(id))
            .map(|object| object.path.clone())
            .collect();
        self.unmap(&gone);
        let mut appeared = Vec::new();
        for (file, path) in mapped {
            let known = self
                .objects
                .values()
                .any(|object| object.file == Some(file));
            let is_object = || match files.open(path) {
                Opened::File { id, elf: Ok(elf) } => {
                    id == file && elf.dynamic && elf.kind != Kind::Other
                }
                _ => false,
            };
            if !known && is_object() {
                appeared.push(self.observed(path, files));
            }
        }
        Reconciled { vanished, appeared }
    }

    /// The loaded objects, in the order of loading; the executable first.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.objects.iter().map(|(id, object)| (*id, object))
    }

    /// A loaded object.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(&id)
    }

    /// The executable.
    #[must_use]
    pub fn executable(&self) -> ObjectId {
        EXECUTABLE
    }

    /// The object that was opened under this path.
    #[must_use]
    pub fn object_by_path(&self, path: &str) -> Option<ObjectId> {
        self.objects
            .iter()
            .find(|(_, object)| object.path == path)
            .map(|(id, _)| *id)
    }

    /// The object that a request for this name would be answered with at once.
    #[must_use]
    pub fn object_by_name(&self, name: &str) -> Option<ObjectId> {
        self.objects
            .iter()
            .find(|(_, object)| object.answers_to(name))
            .map(|(id, _)| *id)
    }

    /// The loaded object that is this file.
    #[must_use]
    pub fn object_of_file(&self, file: FileId) -> Option<ObjectId> {
        self.objects
            .iter()
            .find(|(_, object)| object.file == Some(file))
            .map(|(id, _)| *id)
    }

    /// The same as the loader knows it: opening the executable or the loader itself by path is no "already loaded".
    fn already_loaded(&self, file: FileId) -> Option<ObjectId> {
        self.objects
            .iter()
            .find(|(_, object)| !object.by_kernel && object.file == Some(file))
            .map(|(id, _)| *id)
    }

    fn path_of(&self, id: ObjectId) -> &str {
        self.objects
            .get(&id)
            .map_or("", |object| object.path.as_str())
    }

    fn tokens(&self, id: ObjectId) -> Tokens<'_> {
        Tokens {
            origin: self
                .objects
                .get(&id)
                .and_then(|object| object.origin.as_deref()),
            lib: &self.system.lib,
            platform: &self.system.platform,
        }
    }

    fn add(
        &mut self,
        path: &str,
        file: Option<FileId>,
        elf: Option<Arc<ElfFacts>>,
        loader: Option<ObjectId>,
        from_start: bool,
    ) -> ObjectId {
        let id = ObjectId(self.next);
        self.next = self.next.saturating_add(1);
        let object = Object {
            origin: directory_of(&absolute(path, &self.cwd)),
            path: path.to_owned(),
            file,
            elf,
            loader,
            names: BTreeSet::from([path.to_owned()]),
            by_kernel: false,
            from_start,
            nodelete: false,
            opens: 0,
            needs: Vec::new(),
            relocation_needs: BTreeSet::new(),
        };
        self.objects.insert(id, object);
        id
    }

    fn add_vdso(&mut self) {
        let vdso = self.add("linux-vdso.so.1", None, None, None, true);
        if let Some(object) = self.objects.get_mut(&vdso) {
            object.origin = None;
        }
    }

    /// The dynamic loader is an object of the process too, and libc needs it.
    fn add_interpreter(&mut self, files: &dyn Files) {
        let interpreter = self
            .objects
            .get(&EXECUTABLE)
            .and_then(|o| o.elf.as_deref())
            .and_then(|elf| elf.interpreter.clone());
        if let Some(path) = interpreter
            && let Opened::File { id, elf } = files.open(&path)
        {
            let loader = self.add(&path, Some(id), elf.ok(), None, true);
            if let Some(object) = self.objects.get_mut(&loader) {
                object.by_kernel = true;
            }
        }
    }

    fn preload(&mut self, start: &ProcessStart, files: &dyn Files) -> (Vec<Search>, Vec<ObjectId>) {
        let variable = start
            .ld_preload
            .as_deref()
            .unwrap_or_default()
            .split([' ', ':']);
        let variable = variable
            .filter(|name| !start.secure || !name.contains('/'))
            .map(|name| ("LD_PRELOAD", name));
        // In the file a `#` begins a comment.
        let lines = start.preload_file.as_deref().unwrap_or_default().lines();
        let file = lines
            .flat_map(|line| {
                line.split('#')
                    .next()
                    .unwrap_or_default()
                    .split([' ', ':', '\t'])
            })
            .map(|name| ("/etc/ld.so.preload", name));
        let mut searches = Vec::new();
        let mut objects = Vec::new();
        for (source, name) in variable.chain(file).filter(|(_, name)| !name.is_empty()) {
            let mut search = self.resolve(name, EXECUTABLE, Asked::Preload(source), files);
            if let Some(winner) = &search.winner
                && winner.mapped
            {
                objects.push(winner.object);
                search.mapped = vec![winner.object];
            }
            searches.push(search);
        }
        (searches, objects)
    }

    /// Loads what the objects in `queue` need, breadth first, and puts every search into `searches`.
    ///
    /// # Errors
    /// The loader's words for the first need that is missing or unusable.
    fn load_needs(
        &mut self,
        mut queue: Vec<ObjectId>,
        files: &dyn Files,
        searches: &mut Vec<Search>,
        mapped: &mut Vec<ObjectId>,
    ) -> Result<(), String> {
        let mut queued: BTreeSet<ObjectId> = queue.iter().copied().collect();
        let fresh_from = queue.len();
        let mut at = 0;
        while let Some(&id) = queue.get(at) {
            let fresh = at < fresh_from || mapped.contains(&id);
            at += 1;
            let mut needs = Vec::new();
            if fresh {
                let names = self
                    .objects
                    .get(&id)
                    .and_then(|o| o.elf.clone())
                    .map(|e| e.needed.clone())
                    .unwrap_or_default();
                for name in names {
                    // Tokens are allowed in needs as well; without a value the name stays and is not found.
                    let name = self.tokens(id).expand(&name).unwrap_or(name);
                    let mut search = self.resolve(&name, id, Asked::Need, files);
                    if let Some(winner) = &search.winner {
                        needs.push(winner.object);
                        if winner.mapped {
                            mapped.push(winner.object);
                            search.mapped = vec![winner.object];
                        }
                    }
                    let error = search.error.clone();
                    searches.push(search);
                    if let Some(error) = error {
                        return Err(error);
                    }
                }
                if let Some(object) = self.objects.get_mut(&id) {
                    object.needs.clone_from(&needs);
                }
            } else if let Some(object) = self.objects.get(&id) {
                // Loaded before: its needs are satisfied, and were searched for then.
                needs.clone_from(&object.needs);
            }
            queue.extend(needs.into_iter().filter(|need| queued.insert(*need)));
        }
        Ok(())
    }

    fn unmap(&mut self, gone: &[ObjectId]) {
        for id in gone.iter().filter(|id| **id != EXECUTABLE) {
            self.objects.remove(id);
        }
        for object in self.objects.values_mut() {
            if object.loader.is_some_and(|loader| gone.contains(&loader)) {
                object.loader = None;
            }
            object.needs.retain(|need| !gone.contains(need));
            object.relocation_needs.retain(|need| !gone.contains(need));
        }
    }

    /// Resolves one name and maps the object, without its needs.
    fn resolve(
        &mut self,
        name: &str,
        requester: ObjectId,
        asked: Asked,
        files: &dyn Files,
    ) -> Search {
        let mut search = Search {
            requested: name.to_owned(),
            requested_by: self.path_of(requester).to_owned(),
            ..Search::default()
        };
        let is_path = name.contains('/');
        let steps = if is_path {
            Vec::new()
        } else {
            self.steps(requester)
        };
        if let Some(loaded) = self.object_by_name(name) {
            self.answer_with_loaded(&mut search, loaded);
            search.not_tried = self.would_find(name, &steps, (0, 0), requester, files);
            return search;
        }
        let found = if is_path {
            self.try_path(name, requester, files, &mut search)
        } else {
            self.walk(name, &steps, requester, files, &mut search)
        };
        match found {
            Found::Nothing { error } => search.error = Some(error),
            Found::Fatal { error, resume } => {
                search.error = Some(error);
                search.not_tried = self.would_find(name, &steps, resume, requester, files);
            }
            Found::File {
                at,
                id,
                elf,
                resume,
            } => {
                search.not_tried = self.would_find(name, &steps, resume, requester, files);
                self.take(&mut search, at, id, elf, requester, asked);
            }
        }
        if let Asked::Preload(source) = asked
            && search.winner.is_some()
        {
            if search.rule != Rule::AbsolutePath && !search.rule_detail.is_empty() {
                search.rule_detail =
                    format!("{source} entry {name}, found by {}", search.rule_detail);
            } else {
                search.rule_detail = format!("{source} entry {name}");
            }
            search.rule = Rule::Preload;
        }
        search
    }

    fn answer_with_loaded(&mut self, search: &mut Search, loaded: ObjectId) {
        let Some(object) = self.objects.get_mut(&loaded) else {
            return;
        };
        let name = &search.requested;
        search.rule = Rule::AlreadyLoaded;
        search.rule_detail = if object.soname() == Some(name) {
            format!("SONAME {name} already loaded as {}", object.path)
        } else if object.path == *name {
            "already loaded under this path".to_owned()
        } else {
            format!("already loaded under this name as {}", object.path)
        };
        object.names.insert(name.clone());
        search.winner = Some(Winner {
            object: loaded,
            path: object.path.clone(),
            file: object.file,
            mapped: false,
        });
    }

    /// Maps the file that the search found, unless it is an object that is loaded already, or cannot be loaded at all.
    fn take(
        &mut self,
        search: &mut Search,
        at: usize,
        file: FileId,
        elf: Arc<ElfFacts>,
        requester: ObjectId,
        asked: Asked,
    ) {
        let Some(candidate) = search.candidates.get_mut(at) else {
            return;
        };
        let path = candidate.path.clone();
        if let Some(loaded) = self.already_loaded(file) {
            search.rule = Rule::AlreadyLoaded;
            if let Some(object) = self.objects.get_mut(&loaded) {
                object.names.insert(search.requested.clone());
                search.rule_detail = format!(
                    "same file as {}, which is already loaded; found as {path}",
                    object.path
                );
                if !candidate.rule_detail.is_empty() && candidate.rule != Rule::AbsolutePath {
                    search.rule_detail =
                        format!("{} by {}", search.rule_detail, candidate.rule_detail);
                }
                search.winner = Some(Winner {
                    object: loaded,
                    path: object.path.clone(),
                    file: Some(file),
                    mapped: false,
                });
            }
            return;
        }
        let dlopened = matches!(asked, Asked::Dlopen(_));
        let refusal = if elf.kind == Kind::Executable {
            Some("cannot dynamically load executable")
        } else if elf.flags_1 & DF_1_PIE != 0 {
            Some("cannot dynamically load position-independent executable")
        } else if dlopened && elf.flags_1 & DF_1_NOOPEN != 0 {
            Some("shared object cannot be dlopen()ed")
        } else if !elf.dynamic {
            Some("object file has no dynamic section")
        } else {
            None
        };
        if let Asked::Dlopen(Flags { noload: true, .. }) = asked {
            candidate.outcome = Outcome::NotTried;
            search.rule_detail = format!("{path} is there and not loaded; RTLD_NOLOAD only asks");
            return;
        }
        if let Some(refusal) = refusal {
            candidate.outcome = Outcome::Broken;
            search.error = Some(format!("{}: {refusal}", search.requested));
            return;
        }
        let loader = if dlopened { None } else { Some(requester) };
        search.rule = candidate.rule;
        search.rule_detail.clone_from(&candidate.rule_detail);
        let id = self.add(&path, Some(file), Some(elf), loader, false);
        if let Some(object) = self.objects.get_mut(&id) {
            object.names.insert(search.requested.clone());
        }
        search.winner = Some(Winner {
            object: id,
            path,
            file: Some(file),
            mapped: true,
        });
    }
}
