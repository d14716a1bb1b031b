//! Probes on the watched functions of objects, placed once per inode.

use std::{
    collections::HashSet,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    sync::{Arc, RwLock},
};

use aya::programs::uprobe::{UProbeAttachPoint, UProbeScope};
use jittrace_ebpf::Cookie;
use memmap2::Mmap;

use super::{
    error::SourceError,
    event::{ReturnProbes, WatchedFunction, WatchedObject},
    load::{Loaded, Probe},
    objects::{FileId, ObjectFile},
    returns::{Gap, Returns, returns},
    symbols::{self, Object, Tables},
    watched::{Function, Holds, holds, index_of},
};

/// Objects by the number in their probes' cookies. Number 0 is no object.
pub(crate) type Objects = Arc<RwLock<Vec<Arc<WatchedObject>>>>;

/// The object that a cookie names.
pub(crate) fn object_of(objects: &Objects, number: u32) -> Option<Arc<WatchedObject>> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    objects.read().ok()?.get(index).cloned()
}

/// One state of a file: an inode number is used again after a file without probes is deleted.
type FileState = (FileId, u64, i64, i64);

/// Largest number of files remembered as looked at; beyond it they may be looked at again.
const REMEMBERED: usize = 65_536;

/// Where probes are placed, and where they were.
pub(crate) struct Probes {
    loaded: Loaded,
    objects: Objects,
    looked_at: HashSet<FileState>,
}

impl Probes {
    pub(crate) fn new(loaded: Loaded) -> Self {
        Self {
            loaded,
            objects: Objects::default(),
            looked_at: HashSet::new(),
        }
    }

    /// The objects, for those who read cookies.
    pub(crate) fn objects(&self) -> Objects {
        Arc::clone(&self.objects)
    }

    /// Probes the watched functions of `object`. `None`: it has none, or it was looked at before.
    pub(crate) fn watch(&mut self, object: &ObjectFile) -> Option<Arc<WatchedObject>> {
        let metadata = object.file.metadata().ok()?;
        let state = (
            object.id,
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        );
        if self.looked_at.len() >= REMEMBERED {
            self.looked_at.clear();
        }
        if !metadata.is_file() || metadata.len() == 0 || !self.looked_at.insert(state) {
            return None;
        }
        // Only the bytes of the symbol tables and of the functions are touched.
        // SAFETY: the mapping is private and read-only; a file that is truncated while it is read raises SIGBUS, which
        // an object that a process has mapped or is about to map does not do to that process either.
        let bytes = unsafe { Mmap::map(&object.file) }.ok()?;
        let name = object.path.file_name().unwrap_or_default();
        if name == crate::launch::SHIM_NAME {
            // Its definitions stand before the real functions, which are probed themselves.
            return None;
        }
        let held = holds(name.as_bytes());
        let code = Object::parse(&bytes).ok()?;
        let functions = watched_functions(&code, held);
        if functions.is_empty() {
            return None;
        }
        let number = u32::try_from(self.objects.read().ok()?.len())
            .ok()?
            .checked_add(1)?;
        let mut watched = WatchedObject {
            path: object.path.clone(),
            id: object.id,
            since_ns: 0,
            functions: Vec::new(),
            refused: None,
        };
        let wanted = functions.len();
        for function in functions {
            match self.probe(object, &code, number, &function) {
                Ok(function) => watched.functions.push(function),
                Err(error) => {
                    watched.refused = Some(format!(
                        "{} of {wanted} functions probed, then: {error}",
                        watched.functions.len()
                    ));
                    break;
                }
            }
        }
        watched.since_ns = monotonic_now();
        let watched = Arc::new(watched);
        self.objects.write().ok()?.push(Arc::clone(&watched));
        Some(watched)
    }

    /// Places the probes of one function: returns first, so that no entry waits for a return that is not seen.
    fn probe(
        &mut self,
        object: &ObjectFile,
        code: &Object<'_>,
        number: u32,
        symbol: &symbols::Function,
    ) -> Result<WatchedFunction, SourceError> {
        let function = Function::by_index(symbol.number)
            .ok_or_else(|| SourceError::Object(format!("{} has no number", symbol.name)))?;
        let entry = code
            .offset(symbol.address)
            .ok_or_else(|| SourceError::Object(format!("{} lies in no segment", symbol.name)))?;
        let wants_return = function.spec().report & jittrace_ebpf::report::RETURN != 0;
        let end = symbol
            .address
            .checked_add(symbol.size)
            .filter(|_| symbol.size > 0);
        let mut found = if wants_return {
            returns(code, symbol.address, end)
        } else {
            Returns::default()
        };
        if leaves_by_static_hook(function, found.gap) {
            found.gap = None;
        }
        // What returns from behind a table is not seen when the table is rewritten; then the entry says that it was called.
        let mut tell_entry = found.through_table;
        let probes = if !wants_return {
            ReturnProbes::NotNeeded
        } else if !found.at.is_empty() && found.gap.is_none() {
            ReturnProbes::EveryRet(found.at.len())
        } else if function.allows_return_probe() {
            tell_entry = false;
            ReturnProbes::Uretprobe
        } else {
            tell_entry = true;
            let why = found.gap.map_or("never returns", Gap::describe);
            ReturnProbes::Partial {
                rets: found.at.len(),
                why: format!("{} {why}", symbol.name),
            }
        };
        if tell_entry && !self.loaded.cookies {
            self.loaded.tell_entries(symbol.number)?;
        }
        let cookie = Cookie::new(number, symbol.number, tell_entry);
        match &probes {
            ReturnProbes::Uretprobe => self.attach(object, Probe::Return, symbol, entry, cookie)?,
            ReturnProbes::EveryRet(_) | ReturnProbes::Partial { .. } => {
                for at in found.at.iter().filter_map(|at| code.offset(*at)) {
                    self.attach(object, Probe::Ret, symbol, at, cookie)?;
                }
            }
            ReturnProbes::NotNeeded => {}
        }
        self.attach(object, Probe::Entry, symbol, entry, cookie)?;
        Ok(WatchedFunction {
            function,
            name: symbol.name.clone(),
            is_static: symbol.is_static,
            returns: probes,
            offset: entry,
        })
    }

    fn attach(
        &mut self,
        object: &ObjectFile,
        probe: Probe,
        symbol: &symbols::Function,
        offset: u64,
        cookie: Cookie,
    ) -> Result<(), SourceError> {
        let cookie = self.loaded.cookies.then_some(cookie.0);
        let program = self.loaded.call_program(probe, symbol.number)?;
        let point = UProbeAttachPoint {
            location: offset.into(),
            cookie,
        };
        // By inode and for every process: children and processes of other namespaces are found by the set of followed
        // processes in the kernel. The path through our descriptor cannot lead to another file.
        program
            .attach(
                point,
                object.path_of_descriptor(),
                UProbeScope::AllProcesses,
            )
            .map(drop)
            .map_err(|error| {
                SourceError::refused(
                    format!("probing {} in {}", symbol.name, object.path.display()),
                    &error,
                )
            })
    }
}

/// The watched functions of an object.
fn watched_functions(code: &Object<'_>, held: Holds) -> Vec<symbols::Function> {
    let is_loader = |number| !matches!(Function::by_index(number), Some(Function::Cuda(_)) | None);
    let number_of = |name: &str| {
        let number = index_of(name)?;
        // The loader's entries only in the C library: an executable's own `dlopen` symbol is somebody's wrapper.
        (is_loader(number) == (held == Holds::Loader)).then_some(number)
    };
    let tables = match held {
        Holds::CudaLibrary | Holds::Loader => Tables::Exported,
        Holds::StaticCopy => Tables::All,
    };
    code.functions(&number_of, tables)
}

/// glibc's dlopen and dlmopen end in two ways: a `ret`, and an indirect tail jump into the hook of statically linked
/// programs (`_dlfcn_hook`), which is null in every program that has loaded libc.so.
fn leaves_by_static_hook(function: Function, gap: Option<Gap>) -> bool {
    matches!(function, Function::Dlopen | Function::Dlmopen) && gap == Some(Gap::IndirectJump)
}

/// CLOCK_MONOTONIC, ns: what the kernel programs count in.
pub(crate) fn monotonic_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
