//! Programs that the dynamic loader ended before their first instruction, or at the first call of a function that no
//! library has.
//!
//! Neither runs any code of the shim, and the loader writes its complaint past it, so that both are told from the search
//! replayed: the need that nothing answers, the symbol that nothing defines. Only what concerns CUDA is looked for.

use std::{collections::HashSet, path::Path, sync::Arc};

use jittrace_model::{
    elf::{Binding, ElfFacts, dynamic_symbols},
    event::{LibraryFailed, ProcessStart},
    loader::{Files, LinkMap, Opened, System},
};

use super::{
    loader_host::LoaderHost,
    replay::{is_of_cuda, loader_start},
};

/// The status with which the loader ends a program (`_exit(127)` in `_dl_signal_error` without a catcher, and in
/// `fatal_error`).
pub(super) const LOADER_STATUS: i32 = 127;

/// How the names of functions begin that libraries of CUDA define.
const PREFIXES: &[&str] = &[
    "cuda",
    "__cuda",
    "cublas",
    "cudnn",
    "cusparse",
    "cusolver",
    "cufft",
    "curand",
    "nccl",
    "nvrtc",
    "nvJitLink",
    "__nvJitLink",
];

/// Most symbols of one prefix that one object is asked for.
const MOST_SYMBOLS: usize = 20_000;

/// What of CUDA the loader missed when it started a program; none when nothing was missing, or when something else was
/// missing first.
pub(super) fn missed(
    start: &ProcessStart,
    system: &Arc<System>,
    files: &LoaderHost,
) -> Option<LibraryFailed> {
    if !is_program(&start.exe, files) {
        return None;
    }
    let (map, searches) = LinkMap::start(system.clone(), &loader_start(start), files);
    let preloaded = start
        .env
        .get("LD_PRELOAD")
        .map(String::as_str)
        .unwrap_or_default();
    // A preload that is missing is complained of and passed over.
    let missing = searches.iter().find(|s| {
        s.winner.is_none() && !preloaded.split([' ', ':']).any(|name| name == s.requested)
    });
    if let Some(search) = missing {
        return is_of_cuda(&search.requested).then(|| LibraryFailed {
            requested: start.exe.clone(),
            missing: Some(search.requested.clone()),
            missing_for: Some(search.requested_by.clone()),
            error: format!(
                "error while loading shared libraries: {}",
                search.error.clone().unwrap_or_else(|| format!(
                    "{}: cannot open shared object file: No such file or directory",
                    search.requested
                ))
            ),
            candidates: search.event_candidates(),
            ..LibraryFailed::default()
        });
    }
    let (object, symbol) = undefined(&map)?;
    // The library that should have had it: the need of that object whose search was answered by an older file.
    let candidates = searches
        .iter()
        .find(|s| s.requested_by == object && is_of_cuda(&s.requested))
        .map(|s| s.event_candidates())
        .unwrap_or_default();
    Some(LibraryFailed {
        requested: object.clone(),
        error: format!("symbol lookup error: {object}: undefined symbol: {symbol}"),
        candidates,
        ..LibraryFailed::default()
    })
}

/// Whether a file is a program that this machine's loader starts.
fn is_program(path: &str, files: &LoaderHost) -> bool {
    match files.open(path) {
        Opened::File { elf: Ok(elf), .. } => is_dynamic(&elf),
        _ => false,
    }
}

fn is_dynamic(elf: &ElfFacts) -> bool {
    let musl = elf
        .interpreter
        .as_deref()
        .is_some_and(|i| i.contains("musl"));
    !elf.is_static() && !musl
}

/// The first object, in the loader's order, with a reference to a function of CUDA that no object defines.
fn undefined(map: &LinkMap) -> Option<(String, String)> {
    let mut defined: HashSet<String> = HashSet::new();
    let mut wanted: Vec<(String, String)> = Vec::new();
    for (_, object) in map.objects() {
        let Some(bytes) = super::host_files::map(Path::new(&object.path)) else {
            continue;
        };
        for prefix in PREFIXES {
            for (symbol, binding) in dynamic_symbols(&bytes, prefix, MOST_SYMBOLS) {
                match binding {
                    Binding::Defined => {
                        defined.insert(symbol);
                    }
                    Binding::Undefined => wanted.push((object.path.clone(), symbol)),
                    Binding::Optional => {}
                }
            }
        }
    }
    wanted
        .into_iter()
        .find(|(_, symbol)| !defined.contains(symbol))
}
