//! Pairs of real runs whose cause is known: the first line of the diff is it; and ten runs of the same healthy program
//! differ in nothing that matters.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use jittrace_tests::{finish, jittrace};

const PATIENCE: Duration = Duration::from_secs(180);

/// Runs one of the scripts in `cases/`; the trace of each program start in it.
fn traces(script: &str, place: &Path) -> Vec<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let (work, out) = (place.join("work"), place.join("out"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&out).unwrap();
    let run = place.join("run");
    let text = format!(
        "#!/bin/sh\nn=1; while [ -e '{out}'/$n.started ]; do n=$((n+1)); done; : > '{out}'/$n.started\n\
         exec '{jittrace}' --no-tui --quiet --report none -o '{out}'/$n.jtrace -- \"$@\"\n",
        out = out.display(),
        jittrace = jittrace().display()
    );
    fs::write(&run, text).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    finish(
        Command::new("sh")
            .arg(cases.join(format!("{script}.sh")))
            .env("CASES", &cases)
            .env("RUN", &run)
            .env("TMPDIR", &work)
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .env_remove("LD_LIBRARY_PATH"),
        PATIENCE,
    );
    (1..)
        .map(|number| out.join(format!("{number}.jtrace")))
        .take_while(|trace| trace.exists())
        .collect()
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
