//! `jittrace attach` without privilege: what works, what is missing and said to be, what is refused in one sentence.
//!
//! Run as root these tests become nobody; run as somebody else they stay who they are.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use jittrace_tests::{
    copy_program, eventually, is_root, jittrace,
    lab::Lab,
    skip,
    trace::{PATIENCE, Trace, as_nobody, interrupt},
};

/// A command of an ordinary user.
fn ordinary(program: impl AsRef<OsStr>) -> Command {
    if is_root() {
        as_nobody(program)
    } else {
        Command::new(program)
    }
}

/// Who that is.
fn user() -> u32 {
    // SAFETY: getuid has no preconditions.
    match unsafe { libc::getuid() } {
        0 => 65534,
        uid => uid,
    }
}

/// The command where nobody can run it.
fn reachable(lab: &Lab) -> PathBuf {
    let copy = lab.file("jittrace");
    copy_program(jittrace(), &copy);
    copy
}

#[test]
fn an_own_process_is_attached_to_and_what_is_missing_is_said() {
    let lab = Lab::new();
    let program = reachable(&lab);
    let child = lab.cc(
        "waits",
        "#include <unistd.h>\n#include <stdlib.h>\nint main(void) { system(\"sleep 1\"); sleep(30); return 0; }",
        &[],
    );
    let mut process = ordinary(child)
        .current_dir(lab.path())
        .env("CUDA_HOME", "/opt/cuda-stand-in")
        .spawn()
        .unwrap();
    let trace = lab.file("t.jtrace");
    let attached = ordinary(program)
        .current_dir(lab.path())
        .env("HOME", lab.path())
        .args(["attach", "-o"])
        .arg(&trace)
        .args(["-p", &process.id().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = eventually(PATIENCE, || {
        std::fs::read_to_string(&trace).is_ok_and(|t| t.contains("library-loaded"))
    });
    assert!(begun, "the attach has not begun");
    // The child ends meanwhile, and polling finds that out.
    std::thread::sleep(Duration::from_millis(1800));
    interrupt(attached.id());
    let output = attached.wait_with_output().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");

    let trace = Trace::read(&trace);
    assert_eq!(trace.source("procfs").0, "active");
    let (state, reason) = trace.source("ebpf");
    assert_eq!(state, "refused");
    assert!(
        reason.contains("CAP_BPF") && (reason.contains("sudo") || reason.contains("root")),
        "no reason or no remedy: {reason}"
    );
    assert!(
        said.contains("ebpf was refused"),
        "the report does not say what is missing: {said}"
    );
    let starts = trace.kind("process-start");
    let found = starts
        .iter()
        .find(|e| e["pid"] == u64::from(process.id()))
        .unwrap();
    assert_eq!(found["found"], true);
    assert_eq!(found["uid"], user());
    assert_eq!(found["env"]["CUDA_HOME"], "/opt/cuda-stand-in");
    assert!(
        trace
            .kind("library-loaded")
            .iter()
            .any(|e| e["explanation"] == "reconstructed")
    );
}

/// Nobody asked for the kernel, and the shim does what a launch needs: no word of what may not be.
#[test]
fn a_launch_does_without_the_kernel_and_says_nothing_of_it() {
    let lab = Lab::new();
    let program = reachable(&lab);
    let trace = lab.file("t.jtrace");
    let output = ordinary(program)
        .current_dir(lab.path())
        .arg("-o")
        .arg(&trace)
        .args(["--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let trace = Trace::read(&trace);
    assert_eq!(trace.source("preload"), ("active", ""));
    assert_eq!(trace.source("ebpf"), ("absent", ""));
    assert!(!said.contains("ebpf"), "{said}");
    assert_eq!(trace.kind("process-start")[0]["uid"], user());
}

#[test]
fn a_process_of_root_is_refused_in_one_sentence() {
    let test = "a_process_of_root_is_refused_in_one_sentence";
    if !is_root() {
        skip(test, "only root can start a process of root's");
        return;
    }
    let lab = Lab::new();
    let program = reachable(&lab);
    let trace = lab.file("t.jtrace");
    let output = ordinary(program)
        .current_dir(lab.path())
        .args(["attach", "-o"])
        .arg(&trace)
        .arg(std::process::id().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let pid = std::process::id().to_string();
    for part in [pid.as_str(), "user 0", "sudo"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert!(!trace.exists(), "an attach that saw nothing left a trace");
}

#[test]
fn processes_that_are_not_there_and_sources_that_cannot_be_are_refused() {
    let lab = Lab::new();
    let cases: [(&[&str], i32, &str); 3] = [
        (&["attach", "99999999999"], 2, "99999999999"),
        (&["attach", "4194303"], 1, "there is no process 4194303"),
        (
            &["attach", "--source", "preload", "1"],
            2,
            "cannot be put into a live process",
        ),
    ];
    for (args, status, text) in cases {
        let output = Command::new(jittrace())
            .current_dir(lab.path())
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(text), "{args:?}: {said}");
        assert_eq!(std::fs::read_dir(lab.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_process_that_is_a_zombie_is_no_success() {
    let lab = Lab::new();
    let mut ended = Command::new("true").spawn().unwrap();
    let state = format!("/proc/{}/stat", ended.id());
    assert!(eventually(PATIENCE, || {
        std::fs::read_to_string(&state).is_ok_and(|s| s.contains(") Z "))
    }));
    let output = Command::new(jittrace())
        .current_dir(lab.path())
        .args(["attach", &ended.id().to_string()])
        .output()
        .unwrap();
    ended.wait().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ended before"), "{said}");
    assert_eq!(std::fs::read_dir(lab.path()).unwrap().count(), 0);
}
