//! Traces of the built command, read back, and processes that are traced step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use serde_json::Value;

use crate::{eventually, jittrace, lab::Lab, skip};

/// Set where the kernel source must work: then a test that cannot use it fails instead of being skipped.
const REQUIRE: &str = "JITTRACE_TESTS_REQUIRE_EBPF";

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One kernel source at a time: some tests count what is loaded.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether the kernel source works here, as `jittrace doctor` finds it; says that the test is skipped otherwise.
pub fn kernel_source(test: &str) -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let output = Command::new(jittrace())
            .args(["doctor", "--format", "json"])
            .output()
            .unwrap();
        let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
        findings["sources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|source| source["name"] == "attach-ebpf" && source["works"] == true)
    });
    if !works {
        assert!(
            std::env::var_os(REQUIRE).is_none(),
            "{REQUIRE} is set, but `jittrace doctor` says that the kernel source does not work"
        );
        skip(
            test,
            "the kernel source does not work here (`jittrace doctor` says why)",
        );
    }
    works
}

/// A trace that was read back.
#[derive(Debug)]
pub struct Trace {
    /// Its first line.
    pub header: Value,
    /// Its events, in order of arrival.
    pub events: Vec<Value>,
}

impl Trace {
    /// Reads a trace file.
    ///
    /// # Panics
    /// It cannot be read, or is no trace.
    #[must_use]
    pub fn read(path: &Path) -> Trace {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
        Trace {
            header: lines.next().unwrap(),
            events: lines.collect(),
        }
    }

    /// The events of a kind that tell a fact first.
    pub fn kind(&self, kind: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|e| e["kind"] == kind && e["same_as"].is_null())
            .collect()
    }

    /// State of a source in the header.
    pub fn source(&self, name: &str) -> (&str, &str) {
        let source = self.header["sources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["name"] == name)
            .unwrap_or_else(|| panic!("no source {name} in {}", self.header));
        (
            source["state"].as_str().unwrap(),
            source["reason"].as_str().unwrap_or_default(),
        )
    }

    /// Which sources told each fact: by the number of its first event.
    pub fn witnesses(&self) -> BTreeMap<u64, BTreeSet<&str>> {
        let mut witnesses: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
        for event in &self.events {
            let fact = event["same_as"].as_u64().or(event["id"].as_u64()).unwrap();
            witnesses
                .entry(fact)
                .or_default()
                .insert(event["source"].as_str().unwrap());
        }
        witnesses
    }
}

/// The last part of a path in a field.
pub fn base<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field]
        .as_str()
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

impl Lab {
    /// `jittrace` with the trace in this lab.
    pub fn jittrace(&self, trace: &str) -> Command {
        let mut command = Command::new(jittrace());
        command
            .args(["--no-tui", "--report", "none", "-o"])
            .arg(self.file(trace));
        // cargo's own search path is not part of any test.
        command.env_remove("LD_LIBRARY_PATH");
        command
    }

    /// `jittrace attach` to a process, once it follows it.
    pub fn attach(&self, trace: &str, pid: u32) -> Attached {
        let path = self.file(trace);
        let child = Command::new(jittrace())
            .args(["attach", "--report", "none", "-o"])
            .arg(&path)
            .arg(pid.to_string())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let attached = Attached { child, path };
        assert!(
            eventually(PATIENCE, || {
                fs::read_to_string(&attached.path).is_ok_and(|text| text.contains("\"found\":true"))
            }),
            "the attach has not begun"
        );
        attached
    }
}

/// A running `jittrace attach`.
pub struct Attached {
    child: Child,
    path: PathBuf,
}

impl Attached {
    /// Waits for its end, which the end of the process brings.
    pub fn end(self) -> Trace {
        let output = self.child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Trace::read(&self.path)
    }

    /// Ends it as Ctrl-C does.
    pub fn interrupt(self) -> Trace {
        interrupt(self.child.id());
        self.end()
    }
}

/// Sends what Ctrl-C sends.
///
/// # Panics
/// There is no such process.
pub fn interrupt(pid: u32) {
    let status = Command::new("kill")
        .args(["-INT", &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// A process that waits for a line before each of its steps.
pub struct Stepping {
    /// The process.
    pub child: Child,
}

impl Stepping {
    /// Starts it.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(command: &mut Command) -> Stepping {
        let child = command
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Stepping { child }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on.
    pub fn step(&mut self) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Waits for a line that it prints.
    pub fn line(&mut self) -> String {
        let output = self.child.stdout.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        while output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        // Ended already, if the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command as nobody.
pub fn as_nobody(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.uid(65534).gid(65534);
    command
}
