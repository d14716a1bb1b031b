//! Shim and kernel watch the same program: they agree on every exec, load and call, but for the differences that are
//! listed here, and the program does what it does unwatched.
//!
//! These tests need root, BPF and a C compiler; one needs the real stack and its scenarios (`JITTRACE_LAB`). Elsewhere
//! they say why they are skipped.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use jittrace_tests::{
    copy_program, finish, is_root, jittrace,
    lab::Lab,
    python, skip, stack,
    trace::{Trace, alone, base, kernel_source},
};
use serde_json::Value;

/// Something that one source tells and the other does not, and why that is right.
struct Difference {
    kind: &'static str,
    /// Who tells it.
    by: &'static str,
    /// Which of that kind.
    which: fn(&Value, &Trace) -> bool,
    why: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        kind: "exec",
        by: "ebpf",
        which: |event, trace| first_of(trace, "exec") == event["id"],
        why: "the command itself is run by jittrace, where no shim is yet",
    },
    Difference {
        kind: "exec",
        by: "preload",
        which: |event, trace| {
            trace
                .kind("exec-failed")
                .iter()
                .any(|failed| failed["pid"] == event["pid"] && failed["path"] == event["path"])
        },
        why: "an attempt that fails is told by the kernel as the failure alone",
    },
    Difference {
        kind: "exec",
        by: "preload",
        which: |event, _| event["child"].is_u64(),
        why: "posix_spawn is told once more when its child's number is known",
    },
    Difference {
        kind: "exec-failed",
        by: "ebpf",
        which: |event, trace| {
            trace.kind("exec").iter().any(|exec| {
                exec["argv"] == event["argv"] && !exec["path"].as_str().unwrap().contains('/')
            })
        },
        why: "libc's own walk over PATH, of which the shim sees the outcome",
    },
    Difference {
        kind: "process-start",
        by: "ebpf",
        which: |event, _| event["forked"] == true,
        why: "a child between vfork and its exec or end, in which no shim may speak",
    },
    Difference {
        kind: "process-start",
        by: "preload",
        which: |event, trace| {
            event["forked"] == true
                && trace
                    .kind("process-start")
                    .iter()
                    .any(|e| e["pid"] == event["pid"] && e["forked"].is_null())
        },
        why: "a forked child that runs another program at once is told by the kernel as that program",
    },
    Difference {
        kind: "library-loaded",
        by: "preload",
        which: |event, _| event["at_start"] == true,
        why: "what came with a program is left to the shim where there is one",
    },
    Difference {
        kind: "library-loaded",
        by: "ebpf",
        which: |event, _| event["rule"] == "already-loaded",
        why: "the shim is silent on a request that changed nothing until the thread's next one",
    },
    Difference {
        kind: "library-failed",
        by: "ebpf",
        which: |event, _| event["error"] == "dlopen returned no handle",
        why: "the program did not ask why, so the shim did not hear it",
    },
    Difference {
        kind: "call",
        by: "preload",
        which: |event, _| {
            matches!(
                event["function"].as_str().unwrap(),
                "dlsym" | "dlvsym" | "cuGetProcAddress" | "cuGetProcAddress_v2"
            )
        },
        why: "look-ups of symbols are not probed: a probe there costs more than it tells",
    },
];

/// Kinds on which the sources have to agree.
const KINDS: &[&str] = &[
    "exec",
    "exec-failed",
    "process-start",
    "process-exit",
    "library-request",
    "library-loaded",
    "library-failed",
    "call",
];

fn first_of(trace: &Trace, kind: &str) -> Value {
    trace.kind(kind).first().unwrap()["id"].clone()
}

/// `unreached`: programs that the shim is not in, by the names of their files.
fn assert_agreement(trace: &Trace, unreached: &[&str]) {
    assert_eq!(trace.source("preload").0, "active");
    assert_eq!(trace.source("ebpf").0, "active");
    let lost = trace.kind("lost");
    assert!(lost.is_empty(), "{lost:?}");
    let witnesses = trace.witnesses();
    // Every process of these programs, from its last exec on, is the kernel's alone.
    let theirs: Vec<&Value> = trace
        .kind("process-start")
        .into_iter()
        .filter(|e| unreached.contains(&base(e, "exe")))
        .map(|e| &e["pid"])
        .collect();
    let mut both = 0;
    let mut unexplained = Vec::new();
    for kind in KINDS {
        for event in trace.kind(kind) {
            let sources = &witnesses[&event["id"].as_u64().unwrap()];
            let by: Vec<&str> = ["preload", "ebpf"]
                .into_iter()
                .filter(|s| sources.contains(s))
                .collect();
            match by[..] {
                [_, _] => both += 1,
                ["ebpf"] if theirs.contains(&&event["pid"]) => {}
                [one] => {
                    let explained = DIFFERENCES
                        .iter()
                        .any(|d| d.kind == *kind && d.by == one && (d.which)(event, trace));
                    if !explained {
                        unexplained.push(format!("{one}: {event}"));
                    }
                }
                // jittrace itself, or /proc.
                _ => {}
            }
        }
    }
    assert!(
        unexplained.is_empty(),
        "told by one source alone, and no listed difference ({}):\n{}",
        DIFFERENCES
            .iter()
            .map(|d| d.why)
            .collect::<Vec<_>>()
            .join("; "),
        unexplained.join("\n")
    );
    assert!(both > 10, "hardly anything was told by both: {both}");
}

/// Requests by relative name, RUNPATH and absolute path, calls, every way to start a child, failures.
const PROGRAM: &str = r#"
import ctypes, os, subprocess, sys
here = sys.argv[1]
def ask(lib):
    v = ctypes.c_int(-1)
    return lib.cudaRuntimeGetVersion(ctypes.byref(v)), v.value
print(ask(ctypes.CDLL("libcudart.so.12")))
needing = ctypes.CDLL(here + "/needing.so")
print(needing.through())
try:
    ctypes.CDLL("libnvrtc.so.99")
except OSError as error:
    print(error)
ctypes.CDLL("libcudart.so.12")
print(subprocess.run(["sh", "-c", "exit 7"]).returncode)
print(subprocess.run([here + "/spawns", here + "/answers"]).returncode)
print(os.system("true"))
try:
    subprocess.run(["no-such-tool"])
except FileNotFoundError as error:
    print(error)
print(os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", "exit 9"]))
"#;

const SPAWNS: &str = r#"
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
int main(int argc, char **argv) {
    char *args[] = {argv[1], "spawned", 0};
    pid_t child; int status;
    if (posix_spawn(&child, argv[1], 0, 0, args, environ)) return 99;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
"#;

fn programs(lab: &Lab) -> PathBuf {
    lab.cudart("lib/libcudart.so.12");
    let search = format!("-L{}", lab.file("lib").display());
    let runtime = [search.as_str(), "-l:libcudart.so.12"];
    let asks = "int cudaRuntimeGetVersion(int *);";
    lab.cc(
        "needing.so",
        &format!("{asks} int through(void) {{ int v; cudaRuntimeGetVersion(&v); return v; }}"),
        &[&["-shared", "-fPIC"], &runtime[..]].concat(),
    );
    lab.cc(
        "answers",
        &format!("{asks} int main(void) {{ int v = 0; cudaRuntimeGetVersion(&v); return v == 12040 ? 5 : 6; }}"),
        &runtime,
    );
    lab.cc("spawns", SPAWNS, &[]);
    lab.write("program.py", PROGRAM)
}

#[test]
fn shim_and_kernel_agree_on_every_exec_load_and_call() {
    if !kernel_source("shim_and_kernel_agree_on_every_exec_load_and_call") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let script = programs(&lab);
    let run = |command: &mut Command| {
        command
            .arg(python())
            .arg(&script)
            .arg(lab.path())
            .env("LD_LIBRARY_PATH", lab.file("lib"));
        let output = finish(command, Duration::from_secs(120));
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let bare = run(&mut Command::new("env"));
    let traced = run(lab.jittrace("t.jtrace").args(["--source", "all", "--"]));
    assert_eq!(traced, bare, "the program notices that it is watched");
    let trace = Trace::read(&lab.file("t.jtrace"));
    assert_agreement(&trace, &[]);
    let calls = trace.kind("call");
    let answers: Vec<&Value> = calls
        .iter()
        .filter(|e| e["function"] == "cudaRuntimeGetVersion")
        .map(|e| &e["value"])
        .collect();
    assert_eq!(answers, ["12040"; 3], "{calls:?}");
    // The Python code that asked is known, although the kernel may have been the first to tell.
    let by_python = calls
        .iter()
        .any(|e| base(&e["python"][0], "file") == "program.py");
    let told_later = trace
        .kind("python-stack")
        .iter()
        .any(|e| base(&e["python"][0], "file") == "program.py");
    assert!(by_python || told_later);
}

/// What no shim sees: a runtime that was linked statically into a program, a program that is static altogether, a child
/// with a cleared environment, a reference that RTLD_DEEPBIND binds.
#[test]
fn the_kernel_alone_sees_what_no_shim_can() {
    if !kernel_source("the_kernel_alone_sees_what_no_shim_can") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    programs(&lab);
    lab.cc(
        "static-runtime",
        "__attribute__((noinline)) static int cudaRuntimeGetVersion(int *v) { __asm__ volatile(\"\"); *v = 11080; return 0; }\n\
         int main(void) { int v = 0; usleep(400000); cudaRuntimeGetVersion(&v); return v == 11080 ? 0 : 1; }",
        &[],
    );
    lab.cc(
        "deep",
        "#include <dlfcn.h>\nint main(int n, char **a) { void *h = dlopen(a[1], RTLD_NOW | RTLD_DEEPBIND); int (*f)(void) = dlsym(h, \"through\"); return f() == 12040 ? 0 : 1; }",
        &[],
    );
    lab.cc("static", "int main(void) { return 5; }", &["-static"]);
    let script = format!(
        "cd {}; ./static; ./static-runtime || exit 1; ./deep ./needing.so || exit 2; \
         env -i LD_LIBRARY_PATH=lib ./answers",
        lab.path().display()
    );
    let output = finish(
        lab.jittrace("t.jtrace")
            .args(["--source", "all", "--", "sh", "-c", &script])
            .env("LD_LIBRARY_PATH", lab.file("lib")),
        Duration::from_secs(120),
    );
    assert_eq!(output.status.code(), Some(5));
    let trace = Trace::read(&lab.file("t.jtrace"));
    let witnesses = trace.witnesses();
    let by = |event: &Value| witnesses[&event["id"].as_u64().unwrap()].clone();
    let starts = trace.kind("process-start");
    for (exe, sources) in [
        ("static", ["ebpf"].as_slice()),
        ("answers", &["ebpf"]),
        ("deep", &["ebpf", "preload"]),
    ] {
        let start = starts.iter().find(|e| base(e, "exe") == exe).unwrap();
        assert_eq!(by(start).into_iter().collect::<Vec<_>>(), sources, "{exe}");
        assert!(start["not_followed"].is_null(), "{exe} is followed");
    }
    let process_of = |exe: &str| {
        let start = starts.iter().find(|e| base(e, "exe") == exe).unwrap();
        start["pid"].clone()
    };
    let calls = trace.kind("call");
    for (exe, value) in [
        ("static-runtime", "11080"),
        ("deep", "12040"),
        ("answers", "12040"),
    ] {
        let pid = process_of(exe);
        let call = calls
            .iter()
            .find(|e| e["pid"] == pid && e["function"] == "cudaRuntimeGetVersion")
            .unwrap_or_else(|| panic!("no call of {exe} is told"));
        assert_eq!(call["value"], value, "{exe}");
        assert!(by(call).contains("ebpf"), "{exe}");
    }
}

/// What root gets without asking: everything that the shim tells, and what only the kernel sees; nothing twice.
#[test]
fn the_kernel_comes_unasked_and_repeats_nothing() {
    if !kernel_source("the_kernel_comes_unasked_and_repeats_nothing") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    programs(&lab);
    lab.cc("static", "int main(void) { return 5; }", &["-static"]);
    let script = format!(
        "cd {}; LD_LIBRARY_PATH=lib ./answers; env -i LD_LIBRARY_PATH=lib ./answers; ./static",
        lab.path().display()
    );
    let output = finish(
        lab.jittrace("t.jtrace").args(["--", "sh", "-c", &script]),
        Duration::from_secs(120),
    );
    assert_eq!(output.status.code(), Some(5));
    let trace = Trace::read(&lab.file("t.jtrace"));
    assert_eq!(trace.source("preload").0, "active");
    assert_eq!(trace.source("ebpf").0, "active");
    assert!(trace.events.iter().all(|e| e["same_as"].is_null()));
    let starts = trace.kind("process-start");
    let told_by = |exe: &str| -> Vec<&str> {
        let of_it = starts.iter().filter(|e| base(e, "exe") == exe);
        of_it.filter_map(|e| e["source"].as_str()).collect()
    };
    assert_eq!(told_by("answers").len(), 2, "{starts:?}");
    assert_eq!(told_by("static"), ["ebpf"]);
    assert!(starts.iter().all(|e| e["not_followed"].is_null()));
    let calls = trace.kind("call");
    let by_shim = calls.iter().any(|e| {
        e["source"] == "preload"
            && e["function"] == "cudaRuntimeGetVersion"
            && e["value"] == "12040"
    });
    assert!(by_shim, "{calls:?}");
}

#[test]
fn a_command_that_no_shim_can_be_in_is_watched_by_the_kernel_unasked() {
    if !kernel_source("a_command_that_no_shim_can_be_in_is_watched_by_the_kernel_unasked") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let program = lab.cc(
        "static",
        "int main(void) { return system(\"exit 6\") >> 8; }",
        &["-static"],
    );
    let output = finish(
        lab.jittrace("t.jtrace").arg("--").arg(program),
        Duration::from_secs(60),
    );
    assert_eq!(output.status.code(), Some(6));
    let trace = Trace::read(&lab.file("t.jtrace"));
    assert_eq!(trace.source("preload").0, "refused");
    assert_eq!(trace.source("ebpf").0, "active");
    let starts = trace.kind("process-start");
    assert!(starts.iter().any(|e| base(e, "exe") == "static"));
    assert!(
        starts.iter().any(|e| e["argv"][2] == "exit 6"),
        "{starts:?}"
    );
}

/// Where the scenarios of the real stack are.
fn scenarios() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/lab");
    let lab = std::env::var_os("JITTRACE_LAB").map_or(beside, PathBuf::from);
    Some(lab.join("sm120-scenario.sh")).filter(|s| s.exists())
}

/// Programs that no shim is in: ctypes.util runs ldconfig with two variables.
const UNREACHED: &[&str] = &["ldconfig"];

/// A scenario that was played: what it said, and its traces in order.
struct Played {
    said: String,
    traces: Vec<(PathBuf, Trace)>,
    /// Where the traces are.
    _lab: Lab,
}

/// Plays a scenario of the real stack under both sources, which have to agree.
fn play(test: &str, scenario: &str) -> Option<Played> {
    if !kernel_source(test) {
        return None;
    }
    let (Some(stack), Some(scenarios)) = (stack(), scenarios()) else {
        skip(test, "the real stack or its scenarios are not here");
        return None;
    };
    let _alone = alone();
    let lab = Lab::new();
    let tracer = format!(
        "{} --no-tui --quiet --report none --source all -o {}/t-%p.jtrace --",
        jittrace().display(),
        lab.path().display()
    );
    let output = Command::new("bash")
        .arg(scenarios)
        .arg(&stack)
        .arg(scenario)
        .env("TRACE", tracer)
        // The scenario removes it.
        .env("FLASHINFER_WORKSPACE_BASE", lab.file("cache"))
        .env_remove("LD_LIBRARY_PATH")
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut traces: Vec<(PathBuf, Trace)> = std::fs::read_dir(lab.path())
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "jtrace"))
        .map(|path| {
            let trace = Trace::read(&path);
            (path, trace)
        })
        .collect();
    traces.sort_by_key(|(_, trace)| trace.header["started_unix_ns"].as_u64());
    for (_, trace) in &traces {
        assert_agreement(trace, UNREACHED);
    }
    Some(Played {
        said,
        traces,
        _lab: lab,
    })
}

/// Findings that are more than notes.
fn accusations(trace: &Path) -> Vec<String> {
    let report = Command::new(jittrace())
        .args(["report", "--format", "json"])
        .arg(trace)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["severity"] != "note")
        .map(|f| f["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_founding_failure_is_told_alike_by_both() {
    let Some(Played { said, traces, _lab }) =
        play("the_founding_failure_is_told_alike_by_both", "check")
    else {
        return;
    };
    let refused = said.matches("FlashInfer requires GPUs with sm75").count();
    assert_eq!(refused, 2, "{said}");
    assert_eq!(traces.len(), 2);
    for (path, _) in &traces {
        // The empty list of architectures is its consequence.
        let both = ["nvcc-older-than-required", "arch-list-empty"];
        assert_eq!(accusations(path), both);
    }
}

#[test]
fn a_cold_build_is_told_alike_by_both() {
    let Some(Played { said, traces, _lab }) = play("a_cold_build_is_told_alike_by_both", "cold")
    else {
        return;
    };
    assert!(said.contains("OK loaded"), "{said}");
    let [(path, trace)] = &traces[..] else {
        panic!("one trace: {traces:?}")
    };
    assert_eq!(accusations(path), [""; 0]);
    let starts = trace.kind("process-start");
    let ran = |tool: &str| starts.iter().filter(|e| base(e, "exe") == tool).count();
    assert_eq!((ran("nvcc"), ran("ptxas"), ran("cicc")), (3, 2, 2));
}

#[test]
fn two_runtimes_in_one_process_are_told_alike_by_both() {
    let test = "two_runtimes_in_one_process_are_told_alike_by_both";
    let Some(Played { said, traces, _lab }) = play(test, "mixed") else {
        return;
    };
    assert!(
        said.contains("FAILED") && said.contains("OK loaded"),
        "{said}"
    );
    let [(missing, _), (two, _)] = &traces[..] else {
        panic!("two traces: {traces:?}")
    };
    assert!(
        accusations(missing).contains(&"nvcc-differs-from-built-for".to_owned()),
        "{:?}",
        accusations(missing)
    );
    assert!(
        accusations(two).contains(&"cudart-two-majors".to_owned()),
        "{:?}",
        accusations(two)
    );
}

/// `sudo jittrace`: only the collector is elevated. sudo is played by a shell of that name.
#[test]
fn through_sudo_the_command_runs_as_its_user_with_the_users_environment() {
    let test = "through_sudo_the_command_runs_as_its_user_with_the_users_environment";
    if !is_root() {
        skip(test, "only root can become another user");
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let sudo = lab.file("sudo");
    copy_program(Path::new("/bin/sh"), &sudo);
    // sudo clears the environment and says who called it.
    let elevated = format!(
        "env -i PATH=/usr/bin:/bin SUDO_UID=65534 SUDO_GID=65534 {} --no-tui --quiet --report none -o {} -- \
         sh -c 'id -u; id -g; echo \"$CUDA_HOME|$SUDO_UID|$HOME\"; exit 3'; exit $?",
        jittrace().display(),
        lab.file("t.jtrace").display()
    );
    let output = finish(
        Command::new(&sudo)
            .args(["-c", &elevated])
            .env("CUDA_HOME", "/opt/the-users-own")
            .env("HOME", "/home/the-users-own"),
        Duration::from_secs(60),
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "65534\n65534\n/opt/the-users-own||/home/the-users-own\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(3));
    let trace = Trace::read(&lab.file("t.jtrace"));
    // The shim could write: the user may reach the session.
    let started = trace.kind("process-start");
    assert!(
        started.iter().any(|e| e["source"] == "preload"),
        "{started:?}"
    );
    assert_eq!(started[0]["env"]["CUDA_HOME"], "/opt/the-users-own");
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(lab.file("t.jtrace")).unwrap());
    assert_eq!(owner, 65534, "the trace is the user's");
}
