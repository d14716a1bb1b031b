//! What the end-to-end tests share: the built command, the real stack, and a visible way to skip.
//!
//! - [`case`]: the scripts in `cases/`, played under the built command.
//! - [`lab`]: a directory with small programs in it.
//! - [`shim`]: those programs bare and with the shim alone, and the records that it wrote.
//! - [`stack`](mod@stack): programs of the real stack.
//! - [`trace`]: traces of the built command, read back; processes that are traced step by step.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod case;
pub mod lab;
pub mod shim;
pub mod stack;
pub mod trace;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The `jittrace` binary, built from this workspace.
///
/// # Panics
/// The build fails.
#[must_use]
pub fn jittrace() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = manifest.parent().unwrap_or(manifest);
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| workspace.join("target"), PathBuf::from);
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "jittrace",
                "--bin",
                "jittrace",
            ])
            .current_dir(workspace)
            .status();
        assert!(
            status.is_ok_and(|s| s.success()),
            "cargo build of the jittrace binary failed"
        );
        target.join("debug/jittrace")
    })
}

/// The real stack (`JITTRACE_STACK`, else `~/.cache/jittrace/stack`), when it is there.
#[must_use]
pub fn stack() -> Option<PathBuf> {
    let place = std::env::var_os("JITTRACE_STACK")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(PathBuf::from(home).join(".cache/jittrace/stack"))
        })?;
    place.join("venv/bin/python").exists().then_some(place)
}

/// Says that a test is skipped, and why. Written to the real stderr, past the capture of the test harness.
pub fn skip(test: &str, lacks: &str) {
    use std::io::Write;
    let line = format!("SKIPPED {test}: {lacks}\n");
    if let Ok(mut stderr) = std::fs::OpenOptions::new()
        .append(true)
        .open("/proc/self/fd/2")
    {
        let _ = stderr.write_all(line.as_bytes());
    }
}

/// Runs a command to its end, at most for `patience`; ends it otherwise.
///
/// # Panics
/// The command cannot be started, or did not end in time.
pub fn finish(command: &mut Command, patience: Duration) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => panic!("{command:?}: {error}"),
    };
    let pid = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(patience) {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => panic!("{command:?}: {error}"),
        Err(_) => {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            panic!("{command:?} did not end within {patience:?}");
        }
    }
}

/// Waits until something holds, at most for `patience`; tells whether it came to hold.
pub fn eventually(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    holds()
}

/// Whether a tool is on PATH.
#[must_use]
pub fn has(tool: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Copies a program so that everybody may run it. `cp` does it: a child that another test starts meanwhile would inherit
/// a descriptor of ours that writes to the copy, and what is written to cannot be run.
///
/// # Panics
/// It cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()));
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).expect("an own file");
}

/// Whether the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The Python interpreter itself, not a script that chooses one.
///
/// # Panics
/// There is no `python3`.
#[must_use]
pub fn python() -> String {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
