//! Tiny programs, one for each rule and trap of the search, built with the C compiler in a temporary directory.
//!
//! For each operation the replay must give what the program was told (the path in its link map, or the text of
//! `dlerror`), for all searches together what the loader told, and what is unmapped must agree as well.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use jittrace_model::loader::{Flags, ObjectId, Rule, Search};

use super::host;
use super::log::Line;
use super::replay::{Program, Replay, compare, text};

const NOW: i32 = 2;
const LAZY: i32 = 1;
const NOLOAD: i32 = 4;
const DEEPBIND: i32 = 8;
const GLOBAL: i32 = 0x100;
const NODELETE: i32 = 0x1000;

/// What the program does, with the flags of `dlopen`; numbers are those of earlier operations. `@` in a name stands for
/// the directory of the case.
enum Op {
    Open(&'static str),
    OpenWith(i32, &'static str),
    From(usize, &'static str),
    Close(usize),
    Chdir(&'static str),
}
use Op::{Chdir, Close, From, Open, OpenWith};

/// How a search path is written into an object.
#[derive(Clone, Copy)]
enum Path {
    None,
    Run(&'static str),
    R(&'static str),
}

/// A directory with libraries and a program.
struct Case {
    _directory: tempfile::TempDir,
    root: PathBuf,
    environment: Vec<(String, String)>,
}

fn cc(arguments: &[String]) {
    let output = Command::new("cc").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "cc {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn fixture(name: &str) -> String {
    format!("{}/fixtures/loader/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl Case {
    /// None, and says so, on a machine without a C compiler.
    fn new() -> Option<Self> {
        if !Command::new("cc")
            .arg("--version")
            .output()
            .is_ok_and(|out| out.status.success())
        {
            eprintln!("SKIPPED: no C compiler (cc) on PATH");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        Some(Self {
            _directory: directory,
            root,
            environment: Vec::new(),
        })
    }

    fn at(&self, name: &str) -> String {
        name.replace('@', &text(&self.root))
    }

    fn variable(&mut self, name: &str, value: &str) -> &mut Self {
        self.environment.push((name.to_owned(), self.at(value)));
        self
    }

    fn object(&self, output: &str, source: &str, path: Path, needs: &[&str], more: &[&str]) {
        let output = self.root.join(output);
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        let mut arguments = vec![
            "-O0".to_owned(),
            "-o".to_owned(),
            text(&output),
            fixture(source),
        ];
        arguments.extend(
            [
                "-Wl,--no-as-needed",
                "-Wl,--allow-shlib-undefined",
                "-Wl,--unresolved-symbols=ignore-in-shared-libs",
            ]
            .map(str::to_owned),
        );
        match path {
            Path::None => {}
            Path::Run(path) => {
                arguments.push(format!("-Wl,--enable-new-dtags,-rpath,{}", self.at(path)))
            }
            Path::R(path) => {
                arguments.push(format!("-Wl,--disable-new-dtags,-rpath,{}", self.at(path)))
            }
        }
        arguments.extend(needs.iter().map(|need| text(&self.root.join(need))));
        arguments.extend(more.iter().map(|&more| more.to_owned()));
        cc(&arguments);
    }

    /// A library whose SONAME is its file name.
    fn library(&self, output: &str, path: Path, needs: &[&str]) -> &Self {
        self.library_with(output, path, needs, &[])
    }

    fn library_with(&self, output: &str, path: Path, needs: &[&str], more: &[&str]) -> &Self {
        let name = output.rsplit('/').next().unwrap();
        let soname = format!("-Wl,-soname,{name}");
        let mut all = vec!["-shared", "-fPIC", soname.as_str()];
        all.extend(more);
        self.object(output, "library.c", path, needs, &all);
        self
    }

    fn file(&self, name: &str, content: &[u8]) -> &Self {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn program(&self, path: Path, needs: &[&str]) -> &Self {
        self.object("program", "driver.c", path, needs, &[]);
        self
    }

    /// Runs the program with these operations and replays it; gives the replayed answers and the replay.
    fn agrees(&self, operations: &[Op]) -> (Vec<Option<Search>>, Replay) {
        let mut arguments = Vec::new();
        for operation in operations {
            match operation {
                Open(name) => arguments.extend(["open".into(), NOW.to_string(), self.at(name)]),
                OpenWith(flags, name) => {
                    arguments.extend(["open".into(), flags.to_string(), self.at(name)])
                }
                From(by, name) => arguments.extend([
                    "from".into(),
                    by.to_string(),
                    NOW.to_string(),
                    self.at(name),
                ]),
                Close(at) => arguments.extend(["close".into(), at.to_string()]),
                Chdir(directory) => arguments.extend(["chdir".into(), self.at(directory)]),
            }
        }
        let program = Program {
            file: self.root.join("program"),
            arguments,
            cwd: self.root.clone(),
            environment: self.environment.clone(),
        };
        let run = program.run();
        assert!(run.success, "{} {}", run.stdout, run.stderr);
        let told: Vec<&str> = run.stdout.lines().collect();
        assert_eq!(told.len(), operations.len(), "{}", run.stdout);

        let mut replay = Replay::start(&host::system(), &program);
        let mut answers: Vec<Option<Search>> = Vec::new();
        let mut unmapped: Vec<String> = Vec::new();
        for (operation, told) in operations.iter().zip(told) {
            let winner = |answers: &[Option<Search>], at: usize| -> ObjectId {
                answers[at]
                    .as_ref()
                    .unwrap()
                    .winner
                    .as_ref()
                    .unwrap()
                    .object
            };
            let (name, by, flags) = match operation {
                Open(name) => (self.at(name), None, NOW),
                OpenWith(flags, name) => (self.at(name), None, *flags),
                From(by, name) => (self.at(name), Some(winner(&answers, *by)), NOW),
                Close(at) => {
                    let paths: Vec<(ObjectId, String)> = replay
                        .map
                        .objects()
                        .map(|(id, object)| (id, object.path.clone()))
                        .collect();
                    let gone = replay.map.closed(winner(&answers, *at));
                    unmapped.extend(
                        paths
                            .into_iter()
                            .filter(|(id, _)| gone.contains(id))
                            .map(|(_, path)| path),
                    );
                    answers.push(None);
                    continue;
                }
                Chdir(directory) => {
                    replay
                        .map
                        .changed_directory(&text(&self.root.join(self.at(directory))));
                    answers.push(None);
                    continue;
                }
            };
            let search = replay.request(&name, by, Flags::from_bits(flags));
            let rolled_back = || {
                search
                    .iter()
                    .filter_map(|s| s.winner.as_ref())
                    .filter(|w| w.mapped)
                    .map(|w| w.path.clone())
            };
            let replayed = match (&search.winner, &search.error) {
                (Some(winner), None) => format!("loaded {}", winner.path),
                (None, None) if flags & NOLOAD != 0 => "failed ".to_owned(),
                (_, error) => {
                    unmapped.extend(rolled_back());
                    format!("failed {}", error.as_deref().unwrap_or_default())
                }
            };
            if told.contains("undefined symbol") {
                // Beyond the search: the source reports it, and the replay takes the request back.
                assert!(search.error.is_none());
                unmapped.extend(rolled_back());
                replay.map.failed(&search);
            } else {
                assert_eq!(replayed, told, "{search:#?}");
            }
            answers.push(Some(search));
        }
        compare(&replay, &run.log, &program);
        let mut destroyed: Vec<String> = run
            .log
            .iter()
            .filter_map(|line| match line {
                Line::Destroyed(path) => Some(path.clone()),
                _ => None,
            })
            .collect();
        unmapped.sort();
        destroyed.sort();
        assert_eq!(unmapped, destroyed, "replayed and real unmapping");
        (answers, replay)
    }
}

/// Rule and rule detail of an answer or a need, the directory of the case as `@`.
fn why(case: &Case, search: &Search) -> String {
    let detail = search.rule_detail.replace(&text(&case.root), "@");
    format!("{}: {detail}", search.rule.word())
}

fn asked(answers: &[Option<Search>], at: usize) -> &Search {
    answers[at].as_ref().unwrap()
}

fn need<'a>(search: &'a Search, name: &str) -> &'a Search {
    search
        .needs
        .iter()
        .find(|need| need.requested == name)
        .unwrap()
}

#[test]
fn runpath_is_not_inherited() {
    let Some(case) = Case::new() else { return };
    case.library("lib/libdeep.so", Path::None, &[])
        .library("lib/libmiddle.so", Path::None, &["lib/libdeep.so"])
        .library("lib/libtop.so", Path::Run("$ORIGIN"), &["lib/libmiddle.so"])
        .program(Path::Run("$ORIGIN/lib"), &[]);
    let (answers, _) = case.agrees(&[
        Open("libtop.so"),
        Open("libmiddle.so"),
        Open("libdeep.so"),
        Open("libtop.so"),
        From(2, "libmiddle.so"),
    ]);
    let error = "libdeep.so: cannot open shared object file: No such file or directory";
    assert_eq!(asked(&answers, 0).error.as_deref(), Some(error));
    assert_eq!(
        why(&case, asked(&answers, 2)),
        "runpath: RUNPATH $ORIGIN/lib of @/program"
    );
    // Once libdeep is there under its name, the need is met.
    let needs = need(asked(&answers, 3), "libdeep.so");
    assert_eq!(
        why(&case, needs),
        "already-loaded: SONAME libdeep.so already loaded as @/lib/libdeep.so"
    );
}

#[test]
fn rpath_is_inherited_and_beats_ld_library_path() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/other");
    for name in ["other/libmiddle.so", "other/libdeep.so", "deep/libdeep.so"] {
        case.library(name, Path::None, &[]);
    }
    case.library("deep/libmiddle.so", Path::None, &["deep/libdeep.so"])
        .library("libtop.so", Path::R("$ORIGIN/deep"), &["deep/libmiddle.so"])
        .program(Path::None, &[]);
    let (answers, _) = case.agrees(&[Open("@/libtop.so"), From(0, "libdeep.so")]);
    let deep = need(asked(&answers, 0), "libdeep.so");
    assert_eq!(
        why(&case, deep),
        "rpath: RPATH $ORIGIN/deep of @/libtop.so, inherited by @/deep/libmiddle.so"
    );
    assert_eq!(deep.shadowed().unwrap().path, case.at("@/other/libdeep.so"));
    assert_eq!(deep.shadowed().unwrap().rule, Rule::LdLibraryPath);
}

#[test]
fn runpath_switches_rpath_off() {
    let Some(case) = Case::new() else { return };
    case.library("deep/libdeep.so", Path::None, &[])
        .library(
            "deep/libmiddle.so",
            Path::Run("$ORIGIN/nowhere"),
            &["deep/libdeep.so"],
        )
        .library("libtop.so", Path::R("$ORIGIN/deep"), &["deep/libmiddle.so"])
        .program(Path::R("$ORIGIN/deep"), &[]);
    let (answers, _) = case.agrees(&[Open("@/libtop.so"), Open("libdeep.so"), Open("@/libtop.so")]);
    assert!(asked(&answers, 0).error.is_some());
    assert_eq!(
        why(&case, asked(&answers, 1)),
        "rpath: RPATH $ORIGIN/deep of @/program"
    );
    assert!(asked(&answers, 2).error.is_none());
}

#[test]
fn rpath_of_the_executable_serves_everybody_without_runpath() {
    let Some(case) = Case::new() else { return };
    case.library("deep/libdeep.so", Path::None, &[])
        .library("libtop.so", Path::None, &["deep/libdeep.so"])
        .program(Path::R("${ORIGIN}/deep:/nowhere//"), &[]);
    let (answers, _) = case.agrees(&[Open("@/libtop.so"), From(0, "libabsent.so")]);
    let deep = need(asked(&answers, 0), "libdeep.so");
    assert_eq!(
        why(&case, deep),
        "rpath: RPATH ${ORIGIN}/deep of @/program, inherited by @/libtop.so"
    );
}

#[test]
fn ld_library_path_beats_runpath() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "/nowhere:@/old/;@/old:@/wheel");
    case.library("old/libnvJitLink.so.12", Path::None, &[])
        .library("wheel/libnvJitLink.so.12", Path::None, &[])
        .library(
            "cusparse/libcusparse.so.12",
            Path::Run("$ORIGIN/../wheel"),
            &["wheel/libnvJitLink.so.12"],
        )
        .library("libmain.so", Path::None, &[])
        .program(
            Path::Run("$ORIGIN/cusparse"),
            &["cusparse/libcusparse.so.12"],
        );
    let (answers, replay) = case.agrees(&[Open("libnvJitLink.so.12"), Open("libabsent.so")]);
    let start = replay
        .searches
        .iter()
        .find(|search| search.requested == "libnvJitLink.so.12")
        .unwrap();
    assert_eq!(
        why(&case, start),
        "ld-library-path: LD_LIBRARY_PATH entry @/old/"
    );
    let given_up: Vec<(Rule, String)> = start
        .not_tried
        .iter()
        .map(|candidate| {
            (
                candidate.rule,
                candidate.path.replace(&text(&case.root), "@"),
            )
        })
        .collect();
    assert_eq!(
        given_up,
        [
            (Rule::LdLibraryPath, "@/wheel/libnvJitLink.so.12".to_owned()),
            (
                Rule::Runpath,
                "@/cusparse/../wheel/libnvJitLink.so.12".to_owned()
            ),
        ]
    );
    assert_eq!(asked(&answers, 0).rule, Rule::AlreadyLoaded);
}

#[test]
fn an_empty_entry_is_the_current_directory() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "relative::@/x");
    case.library("here.so", Path::None, &[])
        .library("sub/there.so", Path::None, &[])
        .library("sub/relative/third.so", Path::None, &[])
        .program(Path::None, &[]);
    let (answers, _) = case.agrees(&[
        Open("there.so"),
        Open("here.so"),
        Chdir("sub"),
        Open("there.so"),
        Open("third.so"),
        Open("./there.so"),
        Open("../here.so"),
    ]);
    let detail = "ld-library-path: LD_LIBRARY_PATH entry (empty: current directory)";
    assert_eq!(why(&case, asked(&answers, 1)), detail);
    assert_eq!(
        why(&case, asked(&answers, 4)),
        "ld-library-path: LD_LIBRARY_PATH entry relative"
    );
    assert_eq!(asked(&answers, 5).rule, Rule::AlreadyLoaded);
}

#[test]
fn already_loaded_by_soname_path_name_and_inode() {
    let Some(case) = Case::new() else { return };
    case.library_with(
        "a/real.so",
        Path::None,
        &[],
        &["-Wl,-soname,libcudart.so.13"],
    )
    .library("b/libcudart.so.13", Path::None, &[])
    .program(Path::Run("$ORIGIN/b:$ORIGIN/links"), &[]);
    fs::create_dir(case.root.join("links")).unwrap();
    symlink("../a/real.so", case.root.join("links/alias.so")).unwrap();
    let (answers, _) = case.agrees(&[
        Open("@/a/real.so"),
        Open("libcudart.so.13"),
        OpenWith(NOW | GLOBAL, "@/a/real.so"),
        Open("alias.so"),
        Open("alias.so"),
        Open("@/a/../links/alias.so"),
        Open("@/b/libcudart.so.13"),
        Open("libcudart.so.13"),
    ]);
    let loaded = [
        (
            1,
            "already-loaded: SONAME libcudart.so.13 already loaded as @/a/real.so",
        ),
        (2, "already-loaded: already loaded under this path"),
        (
            3,
            "already-loaded: same file as @/a/real.so, which is already loaded; found as @/links/alias.so by RUNPATH \
             $ORIGIN/links of @/program",
        ),
        (
            4,
            "already-loaded: already loaded under this name as @/a/real.so",
        ),
        (
            5,
            "already-loaded: same file as @/a/real.so, which is already loaded; found as @/a/../links/alias.so",
        ),
        (6, "absolute-path: "),
        (
            7,
            "already-loaded: SONAME libcudart.so.13 already loaded as @/a/real.so",
        ),
    ];
    for (at, expected) in loaded {
        assert_eq!(why(&case, asked(&answers, at)), expected, "{at}");
    }
    assert_eq!(
        asked(&answers, 1).shadowed().unwrap().path,
        case.at("@/b/libcudart.so.13")
    );
}

#[test]
fn flags_that_change_symbols_do_not_change_the_search() {
    let Some(case) = Case::new() else { return };
    case.library("lib/libneed.so", Path::None, &[])
        .library("lib/libdeep.so", Path::Run("$ORIGIN"), &["lib/libneed.so"])
        .library(
            "lib/libglobal.so",
            Path::Run("$ORIGIN"),
            &["lib/libneed.so"],
        )
        .program(Path::Run("$ORIGIN/lib"), &[]);
    case.agrees(&[
        OpenWith(NOW | NOLOAD, "libdeep.so"),
        OpenWith(NOW | DEEPBIND, "libdeep.so"),
        OpenWith(LAZY | GLOBAL, "libglobal.so"),
        OpenWith(NOW | NOLOAD, "libdeep.so"),
        OpenWith(NOW | NOLOAD, "libabsent.so"),
        OpenWith(NOW | NOLOAD, "@/absent.so"),
    ]);
}

#[test]
fn dlclose_unmaps_what_nothing_holds() {
    let Some(case) = Case::new() else { return };
    case.library("lib/libdriver.so", Path::None, &[])
        .library("lib/libshared.so", Path::None, &[])
        .library(
            "lib/libuser.so",
            Path::Run("$ORIGIN"),
            &["lib/libdriver.so", "lib/libshared.so"],
        )
        .library(
            "lib/libother.so",
            Path::Run("$ORIGIN"),
            &["lib/libshared.so"],
        )
        .library_with(
            "lib/libpinned.so",
            Path::Run("$ORIGIN"),
            &["lib/libdriver.so"],
            &["-Wl,-z,nodelete"],
        )
        .library("else/libdriver.so", Path::None, &[])
        .program(Path::Run("$ORIGIN/lib"), &[]);
    let (answers, _) = case.agrees(&[
        Open("libuser.so"),                     // 0
        Open("libother.so"),                    // 1
        Open("libuser.so"),                     // 2: a second reference
        Close(0),                               // 3: nothing
        Close(2),                               // 4: user and driver go, shared stays
        Open("@/else/libdriver.so"),            // 5: would be "already loaded" without the close
        Open("libuser.so"),                     // 6: satisfied by the other driver
        Close(5),                               // 7: held by user
        Close(6),                               // 8: user and the other driver go
        Open("libpinned.so"),                   // 9
        Close(9),                               // 10: nothing
        Open("libdriver.so"),                   // 11: held by pinned
        OpenWith(NOW | NODELETE, "libuser.so"), // 12
        Close(12),                              // 13: nothing
        Open("libuser.so"),                     // 14
        Close(1),                               // 15
    ]);
    assert_eq!(asked(&answers, 5).rule, Rule::AbsolutePath);
    assert_eq!(
        need(asked(&answers, 6), "libdriver.so").rule,
        Rule::AlreadyLoaded
    );
    assert_eq!(asked(&answers, 11).rule, Rule::AlreadyLoaded);
    assert_eq!(asked(&answers, 14).rule, Rule::AlreadyLoaded);
}

#[test]
fn rpath_is_not_inherited_from_who_dlopens() {
    let Some(case) = Case::new() else { return };
    case.library("deep/libextra.so", Path::None, &[])
        .library("libneed.so", Path::None, &[])
        .library("libkept.so", Path::None, &["libneed.so"])
        .library("libtop.so", Path::R("$ORIGIN/deep:$ORIGIN"), &[])
        .program(Path::None, &[]);
    let (answers, _) = case.agrees(&[
        Open("@/libtop.so"),
        From(0, "libneed.so"),
        From(0, "@/libkept.so"),
        From(2, "libextra.so"),
        From(0, "libextra.so"),
    ]);
    assert!(asked(&answers, 3).error.is_some());
    assert_eq!(
        why(&case, asked(&answers, 4)),
        "rpath: RPATH $ORIGIN/deep of @/libtop.so"
    );
}

#[test]
fn nodefaultlib_closes_cache_and_default_directories() {
    let Some(case) = Case::new() else { return };
    // The default directories are closed to the library's own needs, so it may need nothing that is not loaded.
    case.library_with("libclosed.so", Path::None, &[], &["-Wl,-z,nodefaultlib"])
        .library("libopen.so", Path::None, &[])
        .program(Path::None, &[]);
    let cached = [
        "libz.so.1",
        "liblzma.so.5",
        "libgcc_s.so.1",
        "libstdc++.so.6",
    ];
    let Some(name) = cached.iter().find(|name| {
        Command::new("ldconfig")
            .arg("-p")
            .output()
            .is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains(**name))
    }) else {
        eprintln!("SKIPPED: no known library in the cache");
        return;
    };
    let (answers, _) = case.agrees(&[
        Open("@/libclosed.so"),
        From(0, name),
        Open("@/libopen.so"),
        From(2, name),
    ]);
    let refused = asked(&answers, 1);
    assert!(refused.error.is_some());
    assert!(
        refused.not_tried[0]
            .rule_detail
            .contains("kept out by -z nodefaultlib of"),
        "{refused:?}"
    );
    assert_eq!(asked(&answers, 3).rule, Rule::LdSoCache);
}

#[test]
fn subdirectories_for_processors() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/lib");
    case.library("lib/libplain.so", Path::None, &[])
        .library("lib/libfast.so", Path::None, &[])
        .program(Path::None, &[]);
    let system = host::system();
    for subdirectory in system.subdirectories.iter().filter(|name| !name.is_empty()) {
        // One library in every second one, so that some exist without it.
        let directory = case.root.join("lib").join(subdirectory);
        fs::create_dir_all(&directory).unwrap();
    }
    let last = system
        .subdirectories
        .iter()
        .rev()
        .nth(1)
        .cloned()
        .unwrap_or_default();
    case.library(&format!("lib/{last}/libfast.so"), Path::None, &[]);
    let (answers, _) = case.agrees(&[
        Open("libplain.so"),
        Open("libfast.so"),
        Open("libabsent.so"),
        Open("libabsent2.so"),
    ]);
    if !last.is_empty() {
        let path = asked(&answers, 1).winner.clone().unwrap().path;
        assert_eq!(path, case.at(&format!("@/lib/{last}/libfast.so")));
    }
}

#[test]
fn missing_directories_are_remembered() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/absent:@/present:/etc/passwd");
    fs::create_dir(case.root.join("present")).unwrap();
    case.library(
        "lib/libone.so",
        Path::Run("@/absent:$ORIGIN:/etc/passwd/x"),
        &[],
    )
    .library(
        "lib/libtwo.so",
        Path::R("@/absent:$ORIGIN"),
        &["lib/libone.so"],
    )
    .program(Path::None, &[]);
    let (answers, _) = case.agrees(&[
        Open("libabsent.so"),
        Open("libabsent.so"),
        Open("@/lib/libtwo.so"),
        From(2, "libabsent.so"),
    ]);
    let skipped: Vec<String> = asked(&answers, 1)
        .known_missing
        .iter()
        .map(|c| c.path.replace(&text(&case.root), "@"))
        .collect();
    assert_eq!(
        skipped,
        ["@/absent/libabsent.so", "/etc/passwd/libabsent.so"]
    );
}

#[test]
fn broken_files_end_a_search_and_wrong_ones_do_not() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/first:@/second");
    let names = [
        "libshort.so",
        "libtext.so",
        "libdir.so",
        "libclass.so",
        "libmachine.so",
        "libobject.so",
        "libpie.so",
    ];
    for name in names {
        case.library(&format!("second/{name}"), Path::None, &[]);
    }
    case.program(Path::None, &[]);
    let good = fs::read(case.root.join("second/libshort.so")).unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    case.file("first/libshort.so", b"\x7fELF")
        .file(
            "first/libtext.so",
            "INPUT(libtext.so.1)\n".repeat(10).as_bytes(),
        )
        .file("first/libclass.so", &changed(4, 1))
        .file("first/libmachine.so", &changed(18, 183))
        .file("first/libobject.so", &changed(16, 1));
    fs::create_dir(case.root.join("first/libdir.so")).unwrap();
    fs::copy(case.root.join("program"), case.root.join("first/libpie.so")).unwrap();
    case.library("second/libuser.so", Path::None, &["second/libtext.so"]);
    let (answers, _) = case.agrees(&[
        Open("libshort.so"),
        Open("libtext.so"),
        Open("libdir.so"),
        Open("libclass.so"),
        Open("libmachine.so"),
        Open("libobject.so"),
        Open("libpie.so"),
        Open("@/second/libuser.so"),
        Open("@/first/libclass.so"),
        Open("@/first/libmachine.so"),
    ]);
    use jittrace_model::loader::Outcome::{Broken, Chosen, NotElf, NotTried, WrongClass};
    let expected = [
        (0, Broken),
        (1, NotElf),
        (2, Broken),
        (3, WrongClass),
        (4, WrongClass),
        (5, Broken),
        (6, Broken),
        (8, WrongClass),
        (9, WrongClass),
    ];
    for (at, outcome) in expected {
        let search = asked(&answers, at);
        let first = search
            .candidates
            .iter()
            .find(|c| c.path.contains("/first/lib"))
            .unwrap();
        assert_eq!(first.outcome, outcome, "{}", search.requested);
        let second = search
            .all_candidates()
            .find(|c| c.path.contains("/second/lib"))
            .map(|c| c.outcome);
        let after = match (outcome, at) {
            (_, 8..) => None,
            (WrongClass, _) => Some(Chosen),
            _ => Some(NotTried),
        };
        assert_eq!(second, after, "{}", search.requested);
    }
}

#[test]
fn an_unreadable_file_is_passed_over() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/first:@/second");
    case.library("first/libx.so", Path::None, &[])
        .library("second/libx.so", Path::None, &[])
        .program(Path::None, &[]);
    let first = case.root.join("first/libx.so");
    fs::set_permissions(&first, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&first).is_ok() {
        eprintln!("SKIPPED: this user may read everything (root)");
        return;
    }
    let (answers, _) = case.agrees(&[Open("libx.so"), Open("@/first/libx.so")]);
    assert_eq!(
        asked(&answers, 0).winner.clone().unwrap().path,
        case.at("@/second/libx.so")
    );
}

#[test]
fn paths_and_tokens() {
    let Some(case) = Case::new() else { return };
    let system = host::system();
    let (lib, platform) = (&system.lib, &system.platform);
    case.library("liba.so", Path::None, &[])
        .library(
            "sub/libb.so",
            Path::Run("$ORIGIN/../t/$LIB:${ORIGIN}/../t/$PLATFORM:$ORIGIN/$UNKNOWN:$ORIGINAL"),
            &[],
        )
        .library(&format!("t/{lib}/libin_lib.so"), Path::None, &[])
        .library(&format!("t/{platform}/libin_platform.so"), Path::None, &[])
        .program(Path::None, &[]);
    let (answers, _) = case.agrees(&[
        Open("$ORIGIN/liba.so"),
        Open("./sub/libb.so"),
        From(1, "$ORIGIN/../liba.so"),
        From(1, "libin_lib.so"),
        From(1, "libin_platform.so"),
        From(1, "libabsent.so"),
        Open("@/absent.so"),
        Open("@/program"),
    ]);
    assert_eq!(
        why(&case, asked(&answers, 3)),
        "runpath: RUNPATH $ORIGIN/../t/$LIB of ./sub/libb.so"
    );
}

#[test]
fn preloads_come_first() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_PRELOAD", "@/pre/libone.so:libtwo.so libabsent.so");
    case.variable("LD_LIBRARY_PATH", "@/pre");
    case.library("pre/libneed.so", Path::None, &[])
        .library("pre/libone.so", Path::None, &["pre/libneed.so"])
        .library("pre/libtwo.so", Path::None, &[])
        .library("lib/libtwo.so", Path::None, &[])
        .program(Path::Run("$ORIGIN/lib"), &["lib/libtwo.so"]);
    let (_, replay) = case.agrees(&[Open("libone.so"), Open("libneed.so")]);
    let details: Vec<String> = replay
        .searches
        .iter()
        .take(4)
        .map(|search| why(&case, search))
        .collect();
    assert_eq!(
        details,
        [
            "preload: LD_PRELOAD entry @/pre/libone.so",
            "preload: LD_PRELOAD entry libtwo.so, found by LD_LIBRARY_PATH entry @/pre",
            "unknown: ",
            "already-loaded: SONAME libtwo.so already loaded as @/pre/libtwo.so",
        ]
    );
}

#[test]
fn a_failed_request_leaves_nothing_but_names() {
    let Some(case) = Case::new() else { return };
    case.library("lib/libgood.so", Path::None, &[])
        .library_with(
            "lib/libbad.so",
            Path::Run("$ORIGIN"),
            &["lib/libgood.so"],
            &["-DUNDEFINED", "-Wl,--unresolved-symbols=ignore-all"],
        )
        .library("lib/libgone.so", Path::None, &[])
        .library(
            "lib/libneedy.so",
            Path::Run("$ORIGIN"),
            &["lib/libgood.so", "lib/libgone.so"],
        )
        .program(Path::Run("$ORIGIN/lib"), &[]);
    fs::remove_file(case.root.join("lib/libgone.so")).unwrap();
    let (answers, _) = case.agrees(&[
        Open("libbad.so"),
        Open("libneedy.so"),
        Open("libgood.so"),
        Open("libneedy.so"),
        Open("libgood.so"),
    ]);
    assert_eq!(asked(&answers, 2).rule, Rule::Runpath);
    assert_eq!(asked(&answers, 4).rule, Rule::AlreadyLoaded);
}

#[test]
fn directories_that_several_search_paths_name() {
    let Some(mut case) = Case::new() else { return };
    case.variable("LD_LIBRARY_PATH", "@/lib:@/absent:@/more");
    case.library(
        "more/libmore.so",
        Path::Run("@/lib:@/absent:$ORIGIN/."),
        &[],
    )
    .library("last/liblast.so", Path::Run("@/more:$ORIGIN:/usr/lib"), &[])
    .library("lib/libfirst.so", Path::R("@/last:@/lib"), &[])
    .program(Path::Run("@/last:@/lib"), &[]);
    case.agrees(&[
        Open("liblast.so"),
        From(0, "libmore.so"),
        From(1, "libfirst.so"),
        From(2, "libabsent.so"),
        From(0, "libabsent.so"),
    ]);
}
