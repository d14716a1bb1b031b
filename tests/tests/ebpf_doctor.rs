//! The doctor says what is: its verdicts against the sources themselves, for root and for an ordinary user.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use jittrace::{
    doctor::{Findings, Outcome, examine, refusal::Attempt, refusal::Standing, refusal::explain},
    ebpf::{KernelSource, Options},
};

const NOBODY: u32 = 65534;

fn works(findings: &Findings, name: &str) -> bool {
    findings
        .sources
        .iter()
        .find(|source| source.name == name)
        .expect("a source of this name")
        .works
}

#[test]
fn verdicts_agree_with_the_sources() {
    let findings = examine();
    let started = KernelSource::start(Options::default());
    assert_eq!(
        works(&findings, "attach-ebpf"),
        started.is_ok(),
        "{}\n{:?}",
        findings.text(),
        started.err()
    );
    for check in &findings.checks {
        if let Outcome::No(refusal) = &check.outcome {
            assert!(
                !refusal.reason.is_empty() && !refusal.remedy.is_empty(),
                "{check:?}"
            );
        }
    }
    assert!(
        findings
            .text()
            .lines()
            .all(|line| line.chars().count() <= 100),
        "{}",
        findings.text()
    );
}

/// What the test below runs as nobody.
#[test]
#[ignore = "run by an_ordinary_user_is_told_what_is_missing as another user"]
fn examine_and_print() {
    let findings = examine();
    println!("{}", findings.text());
    println!(
        "launch {} ebpf {} snapshot {}",
        works(&findings, "launch"),
        works(&findings, "attach-ebpf"),
        works(&findings, "attach-snapshot")
    );
    let error = KernelSource::start(Options::default())
        .err()
        .expect("refused to an ordinary user");
    let errno = error.errno().expect("a refusal of the kernel");
    let refusal = explain(Attempt::Bpf, errno, &Standing::here());
    println!("start: {error}: {}; {}", refusal.reason, refusal.remedy);
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!(
            "an_ordinary_user_is_told_what_is_missing: skipped, becoming another user needs root"
        );
        return;
    }
    let directory = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let exe = directory.path().join("doctor");
    jittrace_tests::copy_program(&std::env::current_exe().unwrap(), &exe);
    let output = Command::new(&exe)
        .args(["--exact", "examine_and_print", "--ignored", "--nocapture"])
        .uid(NOBODY)
        .gid(NOBODY)
        .env("TMPDIR", "/tmp")
        .env("HOME", "/tmp")
        .env("PATH", "/usr/bin:/bin")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("LD_LIBRARY_PATH")
        .current_dir("/tmp")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("launch true ebpf false"), "{text}");
    assert!(
        text.contains("this runs as user 65534 without CAP_BPF and CAP_PERFMON"),
        "{text}"
    );
    let start = text
        .lines()
        .find(|line| line.starts_with("start: "))
        .expect("the refusal of the source");
    assert!(start.contains("CAP_BPF"), "{start}");
}
