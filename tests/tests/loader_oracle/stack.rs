//! The real stack: torch, flashinfer, sglang. Skipped where it is not installed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use jittrace_model::loader::{FileId, LinkMap};

use super::host;
use super::replay::{Program, Replay, compare, text};

/// The directory of the stack (`JITTRACE_STACK`, else where shared scripts put it).
fn stack() -> Option<PathBuf> {
    let directory = match std::env::var_os("JITTRACE_STACK") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/jittrace/stack"),
    };
    directory
        .join("venv/bin/python")
        .exists()
        .then_some(directory)
}

fn agrees(code: &str, at_least: usize, environment: impl Fn(&PathBuf) -> Vec<(String, String)>) {
    let Some(stack) = stack() else {
        eprintln!("SKIPPED: no stack of wheels (set JITTRACE_STACK to one)");
        return;
    };
    let workspace = tempfile::tempdir().unwrap();
    let mut variables = environment(&stack);
    variables.push((
        "FLASHINFER_WORKSPACE_BASE".to_owned(),
        text(workspace.path()),
    ));
    let program = Program {
        file: stack.join("venv/bin/python"),
        // Ends at once, or the maps would not be those of the end.
        arguments: vec![
            "-c".to_owned(),
            format!(
                "{code}\nimport os\nprint(open('/proc/self/maps').read(), flush=True)\nos._exit(0)"
            ),
        ],
        cwd: workspace.path().to_owned(),
        environment: variables,
    };
    let run = program.run();
    if !run.success && run.stderr.contains("ModuleNotFoundError") {
        eprintln!(
            "SKIPPED: the stack lacks a package for {code:?}: {}",
            run.stderr
        );
        return;
    }
    assert!(run.success, "{code}: {}", run.stderr);
    let mut replay = Replay::start(&host::system(), &program);
    replay.follow(&run.log, &program);
    let count = compare(&replay, &run.log, &program);
    assert!(count >= at_least, "only {count} searches");
    let (right, all) = reconstructed(&replay, &program, &run.stdout);
    eprintln!("{count} searches agree for {code:?}; reconstructed from its maps: {right} of {all}");
    // Who asked for a library by path cannot be seen afterwards, nor what was closed again.
    assert!(right * 10 >= all * 9, "reconstructed {right} of {all}");
}

/// The same process explained from its maps alone, as attaching to it would: how many of its libraries get the rule that
/// was observed, of how many.
fn reconstructed(replay: &Replay, program: &Program, maps: &str) -> (usize, usize) {
    let mut mapped: Vec<(String, FileId)> = Vec::new();
    for path in maps
        .lines()
        .filter_map(|line| line.find(" /").map(|at| &line[at + 1..]))
    {
        let Ok(meta) = fs::metadata(path) else {
            continue;
        };
        let file = FileId {
            dev: meta.dev(),
            inode: meta.ino(),
        };
        if !mapped.iter().any(|(_, known)| *known == file) && path.contains(".so") {
            mapped.push((path.to_owned(), file));
        }
    }
    let (map, explained) =
        LinkMap::reconstruct(host::system(), &program.start(), &mapped, &replay.files);
    let paths = |map: &LinkMap| -> BTreeSet<String> {
        let known = map.objects().filter(|(_, object)| object.file.is_some());
        known
            .map(|(_, object)| text(&fs::canonicalize(&object.path).unwrap()))
            .collect()
    };
    let (guessed, real) = (paths(&map), paths(&replay.map));
    let differences: Vec<&String> = guessed.symmetric_difference(&real).collect();
    assert!(
        differences.is_empty(),
        "objects of one link map alone: {differences:#?}"
    );
    let observed = |file: FileId| {
        let winners = replay
            .searches
            .iter()
            .rev()
            .filter(|search| search.error.is_none());
        winners.into_iter().find_map(|search| {
            let winner = search
                .winner
                .as_ref()
                .filter(|winner| winner.mapped && winner.file == Some(file))?;
            Some((search.rule, winner.path.clone()))
        })
    };
    let mut right = 0;
    let mut all = 0;
    for library in &explained {
        let Some(truth) = observed(library.file) else {
            continue;
        };
        all += 1;
        let guess = library
            .search
            .as_ref()
            .map(|search| (search.rule, search.winner.clone().unwrap().path));
        if guess.as_ref().is_some_and(|(rule, _)| *rule == truth.0) {
            right += 1;
        } else {
            eprintln!(
                "  {}: observed {truth:?}, reconstructed {guess:?}",
                library.path
            );
        }
    }
    (right, all)
}

#[test]
fn torch() {
    agrees("import torch", 70, |_| Vec::new());
}

#[test]
fn flashinfer() {
    agrees("import torch, flashinfer", 80, |_| Vec::new());
}

#[test]
fn sglang_server() {
    agrees(
        "import sgl_kernel, sglang.srt.entrypoints.http_server",
        150,
        |stack| {
            vec![
                ("LD_LIBRARY_PATH".to_owned(), text(&stack.join("driver"))),
                (
                    "CUDA_HOME".to_owned(),
                    text(&stack.join("toolkits/cuda-13.0")),
                ),
            ]
        },
    );
}
