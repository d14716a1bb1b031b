//! The snapshot of an attach tells of a live stack what a launch trace tells of it: the same files, the same versions.
//!
//! Needs the real stack; says why it is skipped elsewhere.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{collections::BTreeSet, path::Path, process::Command, time::Duration};

use jittrace_tests::{
    finish, jittrace,
    lab::Lab,
    skip, stack,
    trace::{PATIENCE, Stepping, interrupt},
};
use serde_json::Value;

/// What a serving process has loaded before the first request. Without a driver: a runtime that finds one too old
/// unloads it again, which no snapshot can show.
const SCRIPT: &str =
    "import sys, torch, flashinfer\nprint('at', flush=True)\nsys.stdin.readline()\n";

/// Library parts with file and version, whoever asked for them: who asked is only known to who saw it happen.
fn libraries(report: &Path) -> BTreeSet<(String, String, String)> {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let mut found = BTreeSet::new();
    for component in report["components"].as_array().unwrap() {
        for (role, entries) in component["resolved"].as_object().unwrap() {
            if matches!(
                role.as_str(),
                "nvcc" | "ptxas" | "host_compiler" | "headers"
            ) {
                continue;
            }
            for entry in entries.as_array().unwrap() {
                let path = Path::new(entry["path"].as_str().unwrap());
                let real = path.canonicalize().unwrap();
                found.insert((
                    role.clone(),
                    real.to_str().unwrap().to_owned(),
                    entry["version"].as_str().unwrap_or_default().to_owned(),
                ));
            }
        }
    }
    found
}

#[test]
fn the_snapshot_of_a_live_stack_equals_its_launch_trace() {
    let test = "the_snapshot_of_a_live_stack_equals_its_launch_trace";
    let Some(stack) = stack() else {
        skip(test, "the real stack is not here");
        return;
    };
    let lab = Lab::new();
    let script = lab.write("loads.py", SCRIPT);
    let python = stack.join("venv/bin/python");

    let launched = lab.file("launch.json");
    let output = finish(
        Command::new(jittrace())
            .args(["--no-tui", "--quiet", "--source", "preload", "-o"])
            .arg(lab.file("launch.jtrace"))
            .arg(format!("--report=json={}", launched.display()))
            .arg("--")
            .arg(&python)
            .arg(&script)
            .env_remove("LD_LIBRARY_PATH")
            .stdin(std::process::Stdio::null()),
        Duration::from_secs(180),
    );
    assert!(output.status.success(), "{output:?}");

    let mut process = Stepping::start(
        Command::new(&python)
            .arg(&script)
            .env_remove("LD_LIBRARY_PATH"),
    );
    assert_eq!(process.line(), "at");
    let attached = lab.file("attach.json");
    let trace = lab.file("attach.jtrace");
    let mut attach = Command::new(jittrace())
        .args(["attach", "--quiet", "-o"])
        .arg(&trace)
        .arg(format!("--report=json={}", attached.display()))
        .arg(process.pid().to_string())
        .spawn()
        .unwrap();
    let begun = jittrace_tests::eventually(PATIENCE, || {
        std::fs::read_to_string(&trace).is_ok_and(|t| t.contains("library-loaded"))
    });
    assert!(begun, "the attach has not begun");
    interrupt(attach.id());
    assert!(attach.wait().unwrap().success());
    process.step();
    assert!(process.child.wait().unwrap().success());

    let (launched, attached) = (libraries(&launched), libraries(&attached));
    assert_eq!(attached, launched);
    assert!(
        launched.iter().any(|(role, _, _)| role == "cudart"),
        "nothing was resolved: {launched:?}"
    );
}
