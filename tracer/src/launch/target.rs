//! Whether the shim can reach a program: the loader would print an error into a 32-bit or musl program's stderr, a
//! static or setuid program would ignore the shim.

use std::{
    ffi::OsStr,
    fs::File,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use jittrace_model::elf::ElfFacts;

use super::child::places;

/// Whether the shim can reach a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It can.
    Yes,
    /// It cannot, for this reason.
    No(String),
}

/// The file that a command's first word names.
pub fn find(program: &OsStr, search: Option<&OsStr>) -> Option<PathBuf> {
    places(program, search).into_iter().find(|p| p.is_file())
}

/// Looks at the program that a command line starts, through the `#!` lines of scripts.
pub fn reach(program: &OsStr, search: Option<&OsStr>) -> Reach {
    let Some(mut path) = find(program, search) else {
        return Reach::Yes;
    };
    for _ in 0..4 {
        match interpreter(&path) {
            Some(next) => path = next,
            None => break,
        }
    }
    look(&path)
}

/// The interpreter that a `#!` line names; `env NAME` is looked up in PATH.
fn interpreter(path: &Path) -> Option<PathBuf> {
    use std::io::Read;
    let mut head = [0_u8; 256];
    let read = File::open(path).ok()?.read(&mut head).ok()?;
    let line = head.get(..read)?.strip_prefix(b"#!")?;
    let line = line.split(|&b| b == b'\n').next()?;
    let mut words = line
        .split(|b| matches!(b, b' ' | b'\t'))
        .filter(|w| !w.is_empty());
    let first = PathBuf::from(OsStr::from_bytes(words.next()?));
    if first.file_name() == Some(OsStr::new("env")) {
        let name = words.find(|w| !w.starts_with(b"-"))?;
        return places(OsStr::from_bytes(name), std::env::var_os("PATH").as_deref())
            .into_iter()
            .find(|p| p.is_file());
    }
    Some(first)
}

fn look(path: &Path) -> Reach {
    let no = |why: &str| Reach::No(format!("{} {why}", path.display()));
    let Ok(file) = File::open(path) else {
        return Reach::Yes;
    };
    let Ok(metadata) = file.metadata() else {
        return Reach::Yes;
    };
    let set_id = metadata.mode() & (libc::S_ISUID | libc::S_ISGID) != 0;
    // SAFETY: getuid and geteuid cannot fail.
    if set_id && unsafe { libc::getuid() } != metadata.uid() {
        return no(
            "is setuid or setgid, and the loader ignores LD_PRELOAD there; trace it as its owner, or as root with --source ebpf",
        );
    }
    // SAFETY: the mapping is read only; a file that is truncated meanwhile is a program that cannot be run either.
    let Ok(map) = (unsafe { memmap2::Mmap::map(&file) }) else {
        return Reach::Yes;
    };
    match ElfFacts::parse(&map) {
        Ok(facts) if facts.is_static() => no(
            "is statically linked, so no library can be preloaded into it; as root, --source ebpf sees it",
        ),
        Ok(facts) if !is_native(&facts) => no("is a program of another machine or word size"),
        Ok(facts)
            if facts
                .interpreter
                .as_deref()
                .is_some_and(|i| i.contains("musl")) =>
        {
            no("is linked against musl, and the shim needs glibc; as root, --source ebpf sees it")
        }
        _ => Reach::Yes,
    }
}

/// Whether an object runs on this machine as the shim was built for it.
fn is_native(facts: &ElfFacts) -> bool {
    /// `EM_X86_64` and `EM_AARCH64` of the ELF specification.
    const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    facts.machine == MACHINE && facts.class == jittrace_model::elf::Class::Elf64
}
