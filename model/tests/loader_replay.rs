//! The replayed search on file systems that exist only here: other distributions, other processors, hostile files.
//!
//! The search itself is compared with the real loader in the end-to-end tests; here are the cases that this host's
//! loader cannot show.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jittrace_model::elf::{Class, DF_1_NODEFLIB, ElfError, ElfFacts, Kind};
use jittrace_model::loader::{
    FileId, Files, Flags, LdSoCache, LinkMap, Opened, Outcome, ProcessStart, Processor, Request,
    Rule, Search, System, usual_default_directories,
};

const X86_64: u16 = 62;

/// A file system as a table.
#[derive(Default)]
struct Table {
    files: BTreeMap<String, (u64, Result<Arc<ElfFacts>, ElfError>)>,
    denied: BTreeSet<String>,
}

impl Table {
    fn with(mut self, path: &str, elf: ElfFacts) -> Self {
        let inode = self.files.len() as u64 + 1;
        self.files
            .insert(path.to_owned(), (inode, Ok(Arc::new(elf))));
        self
    }

    fn link(mut self, path: &str, target: &str) -> Self {
        let file = self.files[target].clone();
        self.files.insert(path.to_owned(), file);
        self
    }

    fn unusable(mut self, path: &str, error: ElfError) -> Self {
        self.files.insert(path.to_owned(), (999, Err(error)));
        self
    }

    fn id(&self, path: &str) -> FileId {
        FileId {
            dev: 1,
            inode: self.files[path].0,
        }
    }
}

impl Files for Table {
    fn open(&self, path: &str) -> Opened {
        if self.denied.contains(path) {
            return Opened::Denied;
        }
        match self.files.get(path) {
            Some((inode, elf)) => Opened::File {
                id: FileId {
                    dev: 1,
                    inode: *inode,
                },
                elf: elf.clone(),
            },
            None => Opened::Missing,
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        let inside = format!("{}/", path.trim_end_matches('/'));
        self.files.keys().any(|file| file.starts_with(&inside))
    }

    fn cache(&self) -> Option<Arc<LdSoCache>> {
        None
    }
}

fn library(soname: &str, needed: &[&str]) -> ElfFacts {
    ElfFacts {
        class: Class::Elf64,
        big_endian: false,
        machine: X86_64,
        kind: Kind::Shared,
        dynamic: true,
        soname: Some(soname.to_owned()),
        needed: needed.iter().map(|&need| need.to_owned()).collect(),
        rpath: None,
        runpath: None,
        flags: 0,
        flags_1: 0,
        interpreter: None,
        build_id: None,
        defined_versions: Vec::new(),
        required_versions: Vec::new(),
    }
}

fn program(needed: &[&str]) -> ElfFacts {
    ElfFacts {
        soname: None,
        interpreter: Some("/lib64/ld-linux-x86-64.so.2".into()),
        ..library("", needed)
    }
}

/// Fedora, glibc 2.39, a processor of level 3.
fn fedora() -> Arc<System> {
    let processor = Processor {
        level: 3,
        platform: "x86_64".into(),
        capabilities: vec!["x86_64".into()],
    };
    Arc::new(System::glibc(
        (2, 39),
        X86_64,
        &processor,
        usual_default_directories(X86_64, false),
    ))
}

fn start(files: &Table, system: &Arc<System>, begin: ProcessStart) -> (LinkMap, Vec<Search>) {
    let begin = ProcessStart {
        executable: "/opt/app/bin/app".into(),
        cwd: "/work".into(),
        ..begin
    };
    LinkMap::start(Arc::clone(system), &begin, files)
}

fn open(map: &mut LinkMap, files: &Table, name: &str) -> Search {
    map.request(
        &Request {
            name,
            requester: None,
            flags: Flags::default(),
        },
        files,
    )
}

#[test]
fn another_distribution_has_other_constants() {
    let files = Table::default()
        .with("/opt/app/bin/app", program(&["libcuda.so.1"]))
        .with("/usr/lib64/libcuda.so.1", library("libcuda.so.1", &[]))
        .with(
            "/opt/app/bin/../lib64/x86_64/libx.so",
            library("libx.so", &[]),
        );
    let (mut map, searches) = start(&files, &fedora(), ProcessStart::default());
    let tried: Vec<(&str, Outcome)> = searches[0]
        .candidates
        .iter()
        .map(|c| (c.path.as_str(), c.outcome))
        .collect();
    // No legacy subdirectories after glibc 2.36.
    assert_eq!(
        tried,
        [
            (
                "/lib64/glibc-hwcaps/x86-64-v3/libcuda.so.1",
                Outcome::DirectoryMissing
            ),
            (
                "/lib64/glibc-hwcaps/x86-64-v2/libcuda.so.1",
                Outcome::DirectoryMissing
            ),
            ("/lib64/libcuda.so.1", Outcome::DirectoryMissing),
            (
                "/usr/lib64/glibc-hwcaps/x86-64-v3/libcuda.so.1",
                Outcome::DirectoryMissing
            ),
            (
                "/usr/lib64/glibc-hwcaps/x86-64-v2/libcuda.so.1",
                Outcome::DirectoryMissing
            ),
            ("/usr/lib64/libcuda.so.1", Outcome::Chosen),
        ]
    );
    let events = searches[0].event_candidates();
    assert_eq!(events.len(), 2, "{events:?}");
    let search = open(&mut map, &files, "$ORIGIN/../$LIB/$PLATFORM/libx.so");
    assert_eq!(
        search.winner.unwrap().path,
        "/opt/app/bin/../lib64/x86_64/libx.so"
    );
}

#[test]
fn equal_names_keep_their_slots() {
    // On AMD the platform and the capability are both called x86_64 (glibc up to 2.36).
    let processor = Processor {
        level: 4,
        platform: "x86_64".into(),
        capabilities: vec!["x86_64".into()],
    };
    let system = System::glibc(
        (2, 31),
        X86_64,
        &processor,
        usual_default_directories(X86_64, true),
    );
    assert_eq!(
        system.subdirectories,
        [
            "tls/x86_64/x86_64",
            "tls/x86_64",
            "tls/x86_64",
            "tls",
            "x86_64/x86_64",
            "x86_64",
            "x86_64",
            ""
        ]
    );
    let files = Table::default()
        .with("/opt/app/bin/app", program(&[]))
        .with("/lib/x86_64-linux-gnu/x", program(&[]));
    let (mut map, _) = start(&files, &Arc::new(system), ProcessStart::default());
    let paths = |search: &Search| -> Vec<String> {
        let all = search.candidates.iter().map(|c| c.path.clone());
        all.filter(|path| path.starts_with("/lib/x86_64-linux-gnu/tls/x86_64/libabsent"))
            .collect()
    };
    // Both slots are tried once, for each is remembered on its own.
    assert_eq!(paths(&open(&mut map, &files, "libabsent.so")).len(), 2);
    assert_eq!(paths(&open(&mut map, &files, "libabsent.so")).len(), 0);
}

#[test]
fn a_secure_program_ignores_the_environment() {
    let files = Table::default()
        .with("/opt/app/bin/app", program(&["libx.so"]))
        .with("/evil/libx.so", library("libx.so", &[]))
        .with("/lib64/libx.so", library("libx.so", &[]))
        .with("/evil/libpre.so", library("libpre.so", &[]))
        .with("/lib64/libpre2.so", library("libpre2.so", &[]));
    let environment = |secure| ProcessStart {
        ld_library_path: Some("/evil".into()),
        ld_preload: Some("/evil/libpre.so libpre2.so".into()),
        secure,
        ..ProcessStart::default()
    };
    let winners = |secure| -> Vec<String> {
        let (_, searches) = start(&files, &fedora(), environment(secure));
        searches
            .iter()
            .map(|search| search.winner.as_ref().unwrap().path.clone())
            .collect()
    };
    assert_eq!(
        winners(false),
        ["/evil/libpre.so", "/lib64/libpre2.so", "/evil/libx.so"]
    );
    assert_eq!(winners(true), ["/lib64/libpre2.so", "/lib64/libx.so"]);
}

#[test]
fn a_fork_goes_its_own_way() {
    let files = Table::default()
        .with("/opt/app/bin/app", program(&[]))
        .with("/lib64/liba.so", library("liba.so", &[]));
    let (mut parent, _) = start(&files, &fedora(), ProcessStart::default());
    let mut child = parent.clone();
    assert_eq!(
        open(&mut parent, &files, "liba.so").rule,
        Rule::LdDefaultDirectory
    );
    assert_eq!(
        open(&mut parent, &files, "liba.so").rule,
        Rule::AlreadyLoaded
    );
    assert_eq!(
        open(&mut child, &files, "liba.so").rule,
        Rule::LdDefaultDirectory
    );
}

#[test]
fn what_is_mapped_has_the_last_word() {
    let files = Table::default()
        .with("/opt/app/bin/app", program(&[]))
        .with("/lib64/liba.so", library("liba.so", &["libb.so"]))
        .with("/lib64/libb.so", library("libb.so", &[]))
        .with("/opt/torch/libc10.so", library("libc10.so", &["libb.so"]));
    let (mut map, _) = start(&files, &fedora(), ProcessStart::default());
    open(&mut map, &files, "liba.so");
    let mapped = ["/lib64/libb.so", "/opt/torch/libc10.so"].map(|path| (path, files.id(path)));
    let reconciled = map.reconcile(mapped, &files);
    assert_eq!(reconciled.vanished, ["/lib64/liba.so"]);
    let appeared = map.object(reconciled.appeared[0]).unwrap();
    assert_eq!(appeared.path, "/opt/torch/libc10.so");
    assert_eq!(
        open(&mut map, &files, "liba.so").rule,
        Rule::LdDefaultDirectory
    );
    assert_eq!(
        open(&mut map, &files, "libc10.so").rule,
        Rule::AlreadyLoaded
    );
    // Nothing to put right the second time.
    let mapped = ["/lib64/liba.so", "/lib64/libb.so", "/opt/torch/libc10.so"]
        .map(|path| (path, files.id(path)));
    assert_eq!(map.reconcile(mapped, &files), Default::default());
}

#[test]
fn the_verdict_of_a_shadowed_library() {
    let mut consumer = library("libcusparse.so.12", &["libnvJitLink.so.12"]);
    consumer.runpath = Some("$ORIGIN/../../nvjitlink/lib".into());
    let files = Table::default()
        .with("/opt/app/bin/app", program(&[]))
        .with("/site/nvidia/cusparse/lib/libcusparse.so.12", consumer)
        .with(
            "/site/nvidia/cusparse/lib/../../nvjitlink/lib/libnvJitLink.so.12",
            library("libnvJitLink.so.12", &[]),
        )
        .with(
            "/old/lib64/libnvJitLink.so.12",
            library("libnvJitLink.so.12", &[]),
        );
    let environment = ProcessStart {
        ld_library_path: Some("/old/lib64".into()),
        ..ProcessStart::default()
    };
    let (mut map, _) = start(&files, &fedora(), environment);
    let search = open(
        &mut map,
        &files,
        "/site/nvidia/cusparse/lib/libcusparse.so.12",
    );
    let need = &search.needs[0];
    assert_eq!(
        (need.rule, need.rule_detail.as_str()),
        (Rule::LdLibraryPath, "LD_LIBRARY_PATH entry /old/lib64")
    );
    let shadowed = need.shadowed().unwrap();
    assert_eq!(shadowed.outcome, Outcome::NotTried);
    assert_eq!(
        shadowed.rule_detail,
        "RUNPATH $ORIGIN/../../nvjitlink/lib of /site/nvidia/cusparse/lib/libcusparse.so.12"
    );
    // The same file by two rules shadows nothing.
    let files = files.link("/other/libnvJitLink.so.12", "/old/lib64/libnvJitLink.so.12");
    let environment = ProcessStart {
        ld_library_path: Some("/old/lib64:/other".into()),
        ..ProcessStart::default()
    };
    let (mut map, _) = start(&files, &fedora(), environment);
    let search = open(&mut map, &files, "libnvJitLink.so.12");
    assert_eq!(search.not_tried.len(), 1);
    assert!(search.shadowed().is_none());
}

#[test]
fn unusable_files_by_kind() {
    let mut other_class = library("libx.so", &[]);
    other_class.class = Class::Elf32;
    let mut closed = library("libclosed.so", &["libx.so"]);
    closed.flags_1 = DF_1_NODEFLIB;
    let mut files = Table::default()
        .with("/opt/app/bin/app", program(&[]))
        .with("/a/libx.so", other_class)
        .unusable("/c/libx.so", ElfError::NotElf)
        .with("/lib64/libx.so", library("libx.so", &[]))
        .with("/lib64/libclosed.so", closed);
    files.files.insert(
        "/b/libx.so".into(),
        (50, Ok(Arc::new(library("libx.so", &[])))),
    );
    files.denied.insert("/b/libx.so".into());
    let search = |path: &str, name: &str| {
        let environment = ProcessStart {
            ld_library_path: Some(path.into()),
            ..ProcessStart::default()
        };
        let (mut map, _) = start(&files, &fedora(), environment);
        open(&mut map, &files, name)
    };
    let outcomes = |search: &Search| -> Vec<Outcome> {
        search
            .all_candidates()
            .filter(|c| !c.hwcaps)
            .map(|c| c.outcome)
            .collect()
    };
    assert_eq!(
        outcomes(&search("/a:/b", "libx.so")),
        [Outcome::WrongClass, Outcome::Unreadable, Outcome::Chosen]
    );
    let fatal = search("/a:/c", "libx.so");
    assert_eq!(
        outcomes(&fatal),
        [Outcome::WrongClass, Outcome::NotElf, Outcome::NotTried]
    );
    assert_eq!(
        fatal.error.as_deref(),
        Some("/c/libx.so: invalid ELF header")
    );
    let closed = search("", "libclosed.so");
    assert_eq!(
        closed.error.as_deref(),
        Some("libx.so: cannot open shared object file")
    );
    assert!(closed.winner.is_some() && closed.mapped.len() == 1);
}

#[test]
fn needs_in_a_circle_end() {
    let files = Table::default()
        .with("/opt/app/bin/app", program(&["liba.so"]))
        .with("/lib64/liba.so", library("liba.so", &["libb.so"]))
        .with(
            "/lib64/libb.so",
            library("libb.so", &["liba.so", "libb.so"]),
        );
    let (map, searches) = start(&files, &fedora(), ProcessStart::default());
    assert_eq!(searches.len(), 4);
    // The executable, the vdso and the two.
    assert_eq!(map.objects().count(), 4);
}

#[test]
fn an_executable_that_is_gone_leaves_a_usable_map() {
    let files = Table::default().with("/lib64/liba.so", library("liba.so", &[]));
    let (mut map, searches) = start(&files, &fedora(), ProcessStart::default());
    assert!(searches.is_empty());
    assert_eq!(
        open(&mut map, &files, "liba.so").rule,
        Rule::LdDefaultDirectory
    );
}
