//! Traces of the built command, read back, and small programs to trace.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use jittrace_tests::{eventually, jittrace, skip};
use serde_json::Value;

/// Set where the kernel source must work: then a test that cannot use it fails instead of being skipped.
const REQUIRE: &str = "JITTRACE_TESTS_REQUIRE_EBPF";

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One kernel source at a time: some tests count what is loaded.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether the kernel source works here, as `jittrace doctor` finds it; says that the test is skipped otherwise.
pub(crate) fn kernel_source(test: &str) -> bool {
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
pub(crate) struct Trace {
    pub(crate) header: Value,
    pub(crate) events: Vec<Value>,
}

impl Trace {
    pub(crate) fn read(path: &Path) -> Trace {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
        Trace {
            header: lines.next().unwrap(),
            events: lines.collect(),
        }
    }

    /// The events of a kind that tell a fact first.
    pub(crate) fn kind(&self, kind: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|e| e["kind"] == kind && e["same_as"].is_null())
            .collect()
    }

    /// State of a source in the header.
    pub(crate) fn source(&self, name: &str) -> (&str, &str) {
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
    pub(crate) fn witnesses(&self) -> BTreeMap<u64, BTreeSet<&str>> {
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
pub(crate) fn base<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field]
        .as_str()
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

/// A directory with small programs in it that any user may run.
pub(crate) struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        Lab { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn cc(&self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let target = self.file(output);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        let file = self.write(&format!("{}.c", output.replace('/', "_")), source);
        let compiled = Command::new("cc")
            .current_dir(self.path())
            .args(["-w", "-O1", "-D_GNU_SOURCE", "-o"])
            .arg(&target)
            .arg(&file)
            .args(flags)
            .output()
            .unwrap();
        assert!(
            compiled.status.success(),
            "{output}: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        target
    }

    /// A stand-in for a CUDA runtime that answers 12040, with the symbol version that the real one has.
    pub(crate) fn cudart(&self, output: &str) -> PathBuf {
        let map = self.write("cudart.map", "libcudart.so.12 { global: *; };\n");
        let script = format!("-Wl,--version-script={}", map.display());
        self.cc(
            output,
            "int cudaRuntimeGetVersion(int *v) { *v = 12040; return 0; }",
            &["-shared", "-fPIC", "-Wl,-soname,libcudart.so.12", &script],
        )
    }

    /// `jittrace` with the trace in this lab.
    pub(crate) fn jittrace(&self, trace: &str) -> Command {
        let mut command = Command::new(jittrace());
        command
            .args(["--no-tui", "--report", "none", "-o"])
            .arg(self.file(trace));
        // cargo's own search path is not part of any test.
        command.env_remove("LD_LIBRARY_PATH");
        command
    }

    /// `jittrace attach` to a process, once it follows it.
    pub(crate) fn attach(&self, trace: &str, pid: u32) -> Attached {
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
                std::fs::read_to_string(&attached.path)
                    .is_ok_and(|text| text.contains("\"found\":true"))
            }),
            "the attach has not begun"
        );
        attached
    }
}

/// A running `jittrace attach`.
pub(crate) struct Attached {
    child: Child,
    path: PathBuf,
}

impl Attached {
    /// Waits for its end, which the end of the process brings.
    pub(crate) fn end(self) -> Trace {
        let output = self.child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Trace::read(&self.path)
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Trace {
        interrupt(self.child.id());
        self.end()
    }
}

pub(crate) fn interrupt(pid: u32) {
    let status = Command::new("kill")
        .args(["-INT", &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// A process that waits for a line before each of its steps.
pub(crate) struct Stepping {
    pub(crate) child: Child,
}

impl Stepping {
    pub(crate) fn start(command: &mut Command) -> Stepping {
        let child = command
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Stepping { child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on.
    pub(crate) fn step(&mut self) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Waits for a line that it prints.
    pub(crate) fn line(&mut self) -> String {
        use std::io::Read;
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

/// The interpreter itself, not a script that chooses one.
pub(crate) fn python() -> String {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Runs a command as nobody.
pub(crate) fn as_nobody(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.uid(65534).gid(65534);
    command
}
