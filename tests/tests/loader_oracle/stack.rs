//! The real stack: torch, flashinfer, sglang. Skipped where it is not installed.

use std::path::PathBuf;

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
        arguments: vec!["-c".to_owned(), code.to_owned()],
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
    eprintln!("{count} searches agree for {code:?}");
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
