//! Findings about JIT caches and about the trace itself: each with the trace that proves it, and the healthy one.

use jittrace_model::{
    event::{FileOp, Rule},
    log::SourceState,
    report::Severity,
};

mod findings;

use findings::{PYTHON, Trace};

const MODULE: &str = "/c/flashinfer/0.6.9/90a/sampling/sampling.so";

fn warm(env: &[(&str, &str)], built: &str) -> Trace {
    let mut trace = Trace::python(env);
    trace.toolkit("/opt/cuda-13.0", "13.0");
    trace.toolkit("/opt/cuda-13.2", "13.2");
    trace.cached(MODULE, |c| {
        c.built_with = Some(built.into());
        c.built_with_from = Some("build.ninja".into());
        c.cuda_home = Some(format!("/opt/cuda-{built}"));
    });
    trace.loaded(PYTHON, MODULE, Rule::AbsolutePath, "", |_| {});
    trace.exit(PYTHON, 0);
    trace
}

#[test]
fn a_module_of_another_toolkit() {
    let found = warm(&[("CUDA_HOME", "/opt/cuda-13.2")], "13.0").finds(
        "cache-stale-toolkit",
        Severity::Warning,
        &[
            MODULE,
            "13.0",
            "CUDA_HOME=/opt/cuda-13.2",
            "no compiler ran",
            "Delete /c/flashinfer/0.6.9/90a/sampling",
        ],
    );
    assert_eq!(found.component.as_deref(), Some("flashinfer"));
    warm(&[("CUDA_HOME", "/opt/cuda-13.0")], "13.0").silent();
    warm(&[("CUDA_HOME", "/opt/cuda-13.0/")], "13.0").silent();
    // Nothing in this run names a toolkit.
    warm(&[], "13.0").silent();
}

#[test]
fn a_module_that_was_built_just_now() {
    let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda-13.2")]);
    trace.toolkit("/opt/cuda-13.2", "13.2");
    trace.is("/opt/cuda-13.0/bin/nvcc", "nvcc", "13.0.88");
    trace.tool(
        200,
        PYTHON,
        "/opt/cuda-13.0/bin/nvcc",
        &["-arch=sm_90a", "-o", MODULE, "s.cu"],
        0,
    );
    trace.cached(MODULE, |c| c.built_with = Some("13.0".into()));
    trace.loaded(PYTHON, MODULE, Rule::AbsolutePath, "", |_| {});
    trace.silent();
}

fn ninja(env: &[(&str, &str)], written: bool, code: i32) -> Trace {
    let mut trace = Trace::python(env);
    trace.toolkit("/opt/cuda-13.0", "13.0");
    trace.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
    trace.cached("/c/flashinfer/page/page.so", |c| {
        c.cuda_home = Some("/opt/cuda-12.4".into())
    });
    if written {
        trace.file(PYTHON, FileOp::Create, "/c/flashinfer/page/build.ninja", 0);
    }
    trace.tool_begins(
        200,
        PYTHON,
        "/usr/bin/ninja",
        &[
            "-v",
            "-C",
            "/c/flashinfer/page",
            "-f",
            "/c/flashinfer/page/build.ninja",
        ],
    );
    trace.tool_begins(
        201,
        200,
        "/opt/cuda-12.4/bin/nvcc",
        &["-gencode=arch=compute_120f,code=sm_120f", "-c", "page.cu"],
    );
    if code != 0 {
        trace.says(
            201,
            "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
        );
    }
    trace.exit(201, code);
    trace.exit(200, code);
    trace
}

#[test]
fn a_build_file_of_another_day() {
    let new = &[("CUDA_HOME", "/opt/cuda-13.0")];
    let found = ninja(new, false, 1).finds(
        "cache-stale-build-file",
        Severity::Error,
        &[
            "/c/flashinfer/page/build.ninja",
            "/opt/cuda-12.4/bin/nvcc",
            "CUDA_HOME=/opt/cuda-13.0",
            "Delete /c/flashinfer/page",
        ],
    );
    assert_eq!(found.consequences, ["arch-unsupported-by-nvcc"]);
    ninja(new, false, 0).finds(
        "cache-stale-build-file",
        Severity::Warning,
        &["had no effect"],
    );
    ninja(&[("CUDA_HOME", "/opt/cuda-12.4")], false, 0).silent();
    ninja(new, true, 0).silent();
}

#[test]
fn the_compiler_of_a_build_file_is_gone() {
    let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda-13.0")]);
    trace.toolkit("/opt/cuda-13.0", "13.0");
    trace.cached("/c/flashinfer/page/page.so", |c| {
        c.cuda_home = Some("/opt/cuda-12.4".into())
    });
    trace.tool_begins(
        200,
        PYTHON,
        "/usr/bin/ninja",
        &[
            "-v",
            "-C",
            "/c/flashinfer/page",
            "-f",
            "/c/flashinfer/page/build.ninja",
        ],
    );
    trace.tool_begins(
        201,
        200,
        "/bin/sh",
        &["-c", "/opt/cuda-12.4/bin/nvcc -c page.cu"],
    );
    trace.exec_failed(201, "/opt/cuda-12.4/bin/nvcc", 2);
    trace.exit(201, 127);
    trace.exit(200, 1);
    trace.exit(PYTHON, 1);
    trace.finds(
        "cache-stale-build-file",
        Severity::Error,
        &["not there any more", "CUDA_HOME=/opt/cuda-13.0"],
    );
}

fn respelled(same: bool) -> Trace {
    let mut trace = Trace::python(&[("PATH", "/opt/cuda/bin:/usr/bin")]);
    trace.file_with(PYTHON, FileOp::Create, "/c/build.ninja", 0, |a| {
        a.old_text = Some("ninja_required_version = 1.3\ncuda_home = /opt/cuda-13.2\n".into());
    });
    trace.is_with("/opt/cuda/bin/nvcc", "nvcc", "13.2.10", |f| {
        f.realpath = if same {
            "/opt/cuda-13.2/bin/nvcc"
        } else {
            "/opt/cuda-13.3/bin/nvcc"
        }
        .into();
    });
    for pid in 200..203 {
        trace.tool(
            pid,
            PYTHON,
            "/opt/cuda/bin/nvcc",
            &["-arch=sm_100a", "-c", "a.cu"],
            0,
        );
    }
    trace
}

#[test]
fn the_same_toolkit_by_another_spelling() {
    respelled(true).finds(
        "cache-rebuilt-without-change",
        Severity::Warning,
        &[
            "/opt/cuda-13.2 before",
            "/opt/cuda now",
            "3 runs of nvcc",
            "same directory",
            "CUDA_HOME=/opt/cuda-13.2",
        ],
    );
    // Another toolkit: the rebuild is right.
    respelled(false).silent();
}

#[test]
fn a_module_for_another_gpu() {
    let run = |arch: &str, fails: bool| {
        let mut trace = Trace::python(&[]);
        trace.capability(12, 1);
        trace.cached(MODULE, |c| c.archs = vec![arch.into()]);
        trace.loaded(PYTHON, MODULE, Rule::AbsolutePath, "", |_| {});
        if fails {
            trace.says(PYTHON, "RuntimeError: CUDA error: no kernel image is available for execution on the device");
            trace.exit(PYTHON, 1);
        }
        trace
    };
    let found = run("sm_120a", true).finds(
        "cache-wrong-arch",
        Severity::Error,
        &["sm_120a", "12.1", MODULE],
    );
    assert_eq!(found.consequences, ["no-kernel-image"]);
    run("sm_120a", false).notes("cache-wrong-arch");
    run("sm_120f", false).silent();
    assert!(run("sm_120f", false).findings().is_empty());
}

#[test]
fn a_cache_that_cannot_be_written() {
    let run = |errno: i32, ends: i32, elsewhere: bool| {
        let mut trace = Trace::python(&[("HOME", "/home/u")]);
        trace.file(
            PYTHON,
            FileOp::Mkdir,
            "/home/u/.cache/flashinfer/0.6.8/90a",
            errno,
        );
        if elsewhere {
            trace.file(
                PYTHON,
                FileOp::Create,
                "/tmp/flashinfer/0.6.8/90a/build.ninja",
                0,
            );
        }
        trace.exit(PYTHON, ends);
        trace
    };
    for (errno, words) in [(13, "EACCES"), (30, "EROFS"), (28, "ENOSPC")] {
        run(errno, 1, false).finds(
            "cache-unwritable",
            Severity::Error,
            &[words, "/home/u/.cache/flashinfer", "HOME=/home/u"],
        );
    }
    run(13, 0, true).notes("cache-unwritable");
    assert!(run(17, 0, false).findings().is_empty());
}

fn ranks(n: u32, view_of_others: Option<i32>, network: bool) -> Trace {
    let mut trace = Trace::python(&[]);
    if network {
        trace.on_network("/shared");
    }
    let ptxas = "/v/site-packages/triton/backends/nvidia/bin/ptxas";
    trace.is_with(ptxas, "ptxas", "12.8.93", |f| {
        f.toolkit_kind = Some("bundled".into())
    });
    for rank in 0..n {
        trace.process(
            300 + rank,
            PYTHON,
            "/usr/bin/python3",
            &["python3", "/w/app.py"],
            &[],
        );
    }
    for rank in 0..n {
        trace.tool_begins(
            400 + rank,
            300 + rank,
            ptxas,
            &[
                "--gpu-name=sm_90a",
                "k.ptx",
                "-o",
                &format!("/shared/abc/tmp.{rank}/k.cubin"),
            ],
        );
    }
    for rank in 0..n {
        trace.exit(400 + rank, 0);
        trace.file_with(
            300 + rank,
            FileOp::Rename,
            &format!("/shared/abc/tmp.{rank}/k.cubin"),
            0,
            |a| a.to = Some("/shared/abc/k.cubin".into()),
        );
    }
    if let Some(errno) = view_of_others {
        trace.file(300 + n - 1, FileOp::Open, "/shared/abc/k.cubin", errno);
    }
    trace
}

#[test]
fn ranks_that_compile_the_same_kernel() {
    let found = ranks(8, Some(2), false).finds(
        "duplicate-jit-builds",
        Severity::Error,
        &[
            "abc",
            "8 times",
            "at once",
            "8 processes",
            "7 of them for nothing",
            "1 process then failed",
        ],
    );
    assert_eq!(found.consequences, ["cache-contended"]);
    ranks(8, Some(2), true).finds("duplicate-jit-builds", Severity::Error, &["nfs4"]);
    ranks(8, None, true).finds("duplicate-jit-builds", Severity::Warning, &["nfs4"]);
    // Every cold start of several ranks does this.
    ranks(8, None, false).notes("duplicate-jit-builds");
    assert!(ranks(1, None, false).findings().is_empty());
}

#[test]
fn a_lock_that_nobody_gives_back() {
    let lock = "/c/torch_extensions/py312_cu130/ext/lock";
    let mut killed = Trace::python(&[]);
    killed.file(PYTHON, FileOp::Create, lock, 17);
    killed.wait(120);
    killed.killed(PYTHON, 15);
    killed.finds(
        "build-lock-stale",
        Severity::Error,
        &[lock, "EEXIST", "left it behind", "delete"],
    );
    // It still waits: a hang must be visible while it lasts.
    let mut waits = Trace::python(&[]);
    waits.file(PYTHON, FileOp::LockWait, "/c/flashinfer/tmp/page.lock", 0);
    waits.wait(60);
    waits.says(PYTHON, "still waiting: nothing is not found: x: not found");
    waits.finds(
        "build-lock-stale",
        Severity::Warning,
        &["/c/flashinfer/tmp/page.lock", "60"],
    );
    // Another process of the run held it and gave it back.
    let mut fine = Trace::python(&[]);
    fine.file(200, FileOp::Create, lock, 0);
    fine.file(PYTHON, FileOp::Create, lock, 17);
    fine.file(200, FileOp::Unlink, lock, 0);
    fine.tool(201, PYTHON, "/usr/bin/ninja", &["-v"], 0);
    fine.exit(PYTHON, 0);
    fine.silent();
    let mut got = Trace::python(&[]);
    got.file(PYTHON, FileOp::LockWait, lock, 0);
    got.wait(60);
    got.file_with(PYTHON, FileOp::Locked, lock, 0, |a| {
        a.wait_ns = Some(60_000_000_000)
    });
    got.exit(PYTHON, 0);
    got.notes("cache-contended");
}

#[test]
fn children_out_of_sight() {
    let cleared = "the program cleared its child's environment";
    let mut look_up = Trace::python(&[]);
    look_up.unseen(200, "/sbin/ldconfig", &["ldconfig", "-p"], cleared);
    look_up.notes("child-not-followed");
    for (exe, argv) in [
        ("/opt/cuda/bin/nvcc", &["nvcc", "-c", "a.cu"][..]),
        ("/usr/bin/python3", &["python3", "w.py"]),
        ("/usr/bin/ninja", &["ninja"]),
    ] {
        let mut trace = Trace::python(&[]);
        trace.unseen(200, exe, argv, cleared);
        trace.finds("child-not-followed", Severity::Warning, &[exe, cleared]);
    }
}

#[test]
fn a_source_that_was_refused() {
    let mut trace = Trace::python(&[]);
    trace.source("ebpf", SourceState::Refused, "no CAP_BPF");
    trace.notes("source-refused");
    let mut absent = Trace::python(&[]);
    absent.source("ebpf", SourceState::Absent, "");
    assert!(absent.findings().is_empty());
}
