//! Pairs of real runs whose cause is known: the first line of the diff is it; and ten runs of the same healthy program
//! differ in nothing that matters.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use jittrace_tests::{case, finish, jittrace, skip, stack::Stack};

/// A JIT build on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(400);

/// Runs one of the scripts in `cases/`; the trace of each program start in it.
fn traces(script: &str, place: &Path) -> Vec<PathBuf> {
    case::play(script, place, "auto", false).files("jtrace")
}

/// Status and text of a diff.
fn diff(good: &Path, bad: &Path) -> (Option<i32>, String) {
    let output = finish(
        Command::new(jittrace()).arg("diff").args([good, bad]),
        PATIENCE,
    );
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn the_first_line_is_the_cause() {
    for (script, good, bad, parts) in [
        (
            "d06",
            2,
            1,
            [
                "LD_LIBRARY_PATH=",
                "unset in the good run: ",
                "nvjitlink is 12.1 instead of 12.9",
            ],
        ),
        (
            "d14",
            2,
            1,
            [
                "LD_LIBRARY_PATH has compat as well: ",
                "libcuda is 12.9 instead of 13.0",
                "",
            ],
        ),
        (
            "d15",
            1,
            2,
            [
                "PATH has ",
                "the same file",
                "yet everything was compiled again",
            ],
        ),
        (
            "d16",
            1,
            2,
            ["CUDA_HOME=", "cuda-13.2 instead of ", "had no effect"],
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        let traces = traces(script, place.path());
        assert!(traces.len() >= 2, "{script}: {traces:?}");
        let (status, text) = diff(&traces[good - 1], &traces[bad - 1]);
        let first = text.lines().next().unwrap_or_default();
        assert_eq!(status, Some(1), "{script}: {text}");
        for part in parts {
            assert!(first.contains(part), "{script} lacks {part:?}:\n{text}");
        }
    }
}

#[test]
fn ten_runs_of_a_healthy_program_are_the_same() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("app.py");
    let toolkit = place.path().join("cuda");
    fs::create_dir_all(toolkit.join("bin")).unwrap();
    let nvcc = toolkit.join("bin/nvcc");
    fs::write(
        &nvcc,
        "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n",
    )
    .unwrap();
    fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(
        &program,
        "import os, subprocess, tempfile, threading\n\
         home = os.environ['CUDA_HOME']\n\
         ask = lambda: subprocess.run([home + '/bin/nvcc', '--version'], check=True, capture_output=True, cwd=tempfile.mkdtemp())\n\
         threads = [threading.Thread(target=ask) for _ in range(4)]\n\
         [t.start() for t in threads]; [t.join() for t in threads]\n",
    )
    .unwrap();
    let traces: Vec<PathBuf> = (0..10)
        .map(|run| {
            let trace = place.path().join(format!("{run}.jtrace"));
            let output = finish(
                Command::new(jittrace())
                    .args(["--no-tui", "--quiet", "--report", "none", "-o"])
                    .arg(&trace)
                    .args(["--", "python3"])
                    .arg(&program)
                    .env("CUDA_HOME", &toolkit),
                PATIENCE,
            );
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            trace
        })
        .collect();
    let (first, others) = traces.split_first().unwrap();
    for other in others {
        let (status, text) = diff(first, other);
        assert_eq!(
            (status, text.lines().next()),
            (Some(0), Some("no difference that matters")),
            "{text}"
        );
    }
}

/// Builds and loads FlashInfer's `page` module, as a server would.
const PAGE: &str = r#"
import importlib
try:
    importlib.import_module("flashinfer.jit.page").gen_page_module().build_and_load()
    print("loaded")
except Exception as e:
    print("failed", type(e).__name__, str(e).splitlines()[-1][-160:])
"#;

/// The heavy runs take turns.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Traces a run under a toolkit; what the program said must begin with `said`.
fn traced(stack: &Stack, name: &str, toolkit: &str, archs: Option<&str>, said: &str) -> PathBuf {
    let trace = stack.work.path().join(format!("{name}.jtrace"));
    let mut command = stack.tracer(&trace, "none");
    command.args(["-c", PAGE]);
    let home = stack.root.join("toolkits").join(toolkit);
    let mut env = vec![("CUDA_HOME", home.display().to_string())];
    env.push(match archs {
        Some(archs) => ("FLASHINFER_CUDA_ARCH_LIST", archs.to_owned()),
        None => stack.fake_sm120(),
    });
    stack.dress(&mut command, &env);
    let output = finish(&mut command, PATIENCE);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.lines().last().unwrap_or_default().starts_with(said),
        "{name}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    trace
}

/// Asserts that the first line of a diff has all of `parts`.
fn first_line_has(good: &Path, bad: &Path, parts: &[&str]) {
    let (status, text) = diff(good, bad);
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(status, Some(1), "{text}");
    for part in parts {
        assert!(
            first.contains(part),
            "no {part:?} in the first line:\n{text}"
        );
    }
}

#[test]
fn the_real_stack_in_pairs_and_ten_times() {
    let Some(stack) = Stack::here("pairs") else {
        return;
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let cold = traced(&stack, "cold", "cuda-13.0", None, "loaded");
    let healthy: Vec<PathBuf> = (0..10)
        .map(|run| {
            traced(
                &stack,
                &format!("healthy-{run}"),
                "cuda-13.0",
                None,
                "loaded",
            )
        })
        .collect();
    for other in &healthy[1..] {
        let (status, text) = diff(&healthy[0], other);
        assert_eq!(
            (status, text.lines().next()),
            (Some(0), Some("no difference that matters")),
            "{text}"
        );
    }
    first_line_has(
        &cold,
        &healthy[0],
        &["page.so of flashinfer was compiled in the good run and comes from the cache now"],
    );

    // What was built by the new toolkit answers for the old one.
    let warm = traced(&stack, "warm", "cuda-12.4", Some("12.0f"), "loaded");
    first_line_has(
        &cold,
        &warm,
        &[
            "CUDA_HOME=",
            "cuda-12.4 instead of ",
            "page.so",
            "had no effect",
        ],
    );

    // The check that the old toolkit fails, a warm cache or none.
    let check = traced(&stack, "check", "cuda-12.4", None, "failed RuntimeError");
    for good in [&healthy[0], &cold] {
        first_line_has(
            good,
            &check,
            &[
                "CUDA_HOME=",
                "cuda-12.4 instead of ",
                "flashinfer's nvcc is 12.4.131 instead of 13.0.88",
            ],
        );
    }
}

/// The wheel of FlashInfer 0.6.6 (`pip download flashinfer-python==0.6.6 --no-deps`), where CI put it.
fn older_flashinfer() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let wheel = cache.join("jittrace/wheels/flashinfer_python-0.6.6-py3-none-any.whl");
    wheel.exists().then_some(wheel)
}

/// It worked with 0.6.6 and an old toolkit, out of the cache; then somebody upgraded (real-stack.md 3.2).
#[test]
fn an_upgrade_is_the_first_line() {
    let Some(mut stack) = Stack::here("upgrade") else {
        return;
    };
    let Some(wheel) = older_flashinfer() else {
        skip(
            "upgrade",
            "the wheel of flashinfer-python 0.6.6 is not in ~/.cache/jittrace/wheels",
        );
        return;
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    // An environment whose FlashInfer can be changed; the rest is the stack's.
    let venv = stack.work.path().join("venv");
    let packages = venv.join("lib/python3.12/site-packages");
    let run = |command: &mut Command| {
        let output = finish(command, PATIENCE);
        assert!(output.status.success(), "{command:?}: {output:?}");
    };
    run(Command::new(&stack.python)
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv));
    fs::write(
        packages.join("stack.pth"),
        format!("{}\n", stack.packages().display()),
    )
    .unwrap();
    run(Command::new(&stack.python)
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, &packages]));
    stack.python = venv.join("bin/python");

    let older_new = traced(&stack, "0.6.6 with 13.0", "cuda-13.0", None, "loaded");
    let older_old = traced(&stack, "0.6.6 with 12.4", "cuda-12.4", None, "loaded");

    for name in ["flashinfer", "flashinfer_python-0.6.6.dist-info"] {
        fs::remove_dir_all(packages.join(name)).unwrap();
    }
    for name in ["flashinfer", "flashinfer_python-0.6.8.post1.dist-info"] {
        run(Command::new("cp")
            .arg("-a")
            .arg(stack.packages().join(name))
            .arg(&packages));
    }
    let newer_old = traced(
        &stack,
        "0.6.8 with 12.4",
        "cuda-12.4",
        None,
        "failed RuntimeError",
    );
    let newer_new = traced(&stack, "0.6.8 with 13.0", "cuda-13.0", None, "loaded");

    let upgrade = "flashinfer is 0.6.8.post1 instead of 0.6.6";
    first_line_has(&older_old, &newer_old, &[upgrade]);
    // Its cache is a new one: that everything is compiled again follows from the upgrade.
    first_line_has(&older_new, &newer_new, &[upgrade]);
    // The toolkit was changed as well, but the run that worked asked none: it took all from the cache.
    first_line_has(&older_old, &newer_new, &[upgrade]);
    let (_, text) = diff(&older_old, &newer_new);
    let also = text.split("also changed").nth(1).unwrap_or_default();
    assert!(also.contains("CUDA_HOME="), "{text}");
}
