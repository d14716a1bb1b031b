//! Runs small programs bare and with the shim, and reads the records back.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use jittrace_wire::record::{Header, Record, Text};
use jittrace_wire::{SESSION_VARIABLE, decode};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The shim that the build script built.
pub(crate) const SHIM: &str = env!("JITTRACE_SHIM");

/// A directory with small programs in it.
pub(crate) struct Lab {
    directory: tempfile::TempDir,
}

/// How a program ended and what it said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: std::process::ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Outcome {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Compiles C; `flags` follow the source, `$ORIGIN` and relative paths are as in the lab's directory.
    pub(crate) fn cc(&self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let target = self.file(output);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        let file = self.file(&format!("{}.c", output.replace('/', "_")));
        std::fs::write(&file, source).unwrap();
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

    /// A library whose functions have the version `version`, as the real ones have.
    pub(crate) fn versioned(
        &self,
        output: &str,
        soname: &str,
        version: &str,
        source: &str,
    ) -> PathBuf {
        let map = self.file(&format!("{}.map", output.replace('/', "_")));
        std::fs::write(&map, format!("{version} {{ global: *; }};\n")).unwrap();
        let script = format!("-Wl,--version-script={}", map.display());
        self.cc(
            output,
            source,
            &[
                "-shared",
                "-fPIC",
                &format!("-Wl,-soname,{soname}"),
                &script,
            ],
        )
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env_remove("LD_PRELOAD")
            .env_remove(SESSION_VARIABLE);
        command
    }

    /// Runs it without the shim.
    pub(crate) fn bare(&self, build: &dyn Fn(&mut Command)) -> Outcome {
        self.run(build, &[])
    }

    /// Runs it with the shim; gives what it wrote.
    pub(crate) fn traced(&self, build: &dyn Fn(&mut Command)) -> (Outcome, Session) {
        let session = self.file("session");
        std::fs::write(&session, b"").unwrap();
        let outcome = self.run(
            build,
            &[
                (SESSION_VARIABLE, session.to_str().unwrap()),
                ("LD_PRELOAD", SHIM),
            ],
        );
        (outcome, Session::read(&session))
    }

    fn run(&self, build: &dyn Fn(&mut Command), variables: &[(&str, &str)]) -> Outcome {
        // `timeout` and `env` run bare: only the program itself gets the variables.
        let mut program = self.command("");
        build(&mut program);
        let mut command = self.command("timeout");
        command.arg("60").arg("env");
        for (name, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
            command.arg("-u").arg(name);
        }
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.arg(format!(
                    "{}={}",
                    name.to_string_lossy(),
                    value.to_string_lossy()
                ));
            }
        }
        for (name, value) in variables {
            let value = match (*name, program.get_envs().find(|(known, _)| *known == *name)) {
                ("LD_PRELOAD", Some((_, Some(others)))) => {
                    format!("{value}:{}", others.to_string_lossy())
                }
                _ => (*value).to_owned(),
            };
            command.arg(format!("{name}={value}"));
        }
        command.arg(program.get_program()).args(program.get_args());
        command.output().unwrap().into()
    }

    /// Asserts that the program does the same with and without the shim; gives the outcome and the records.
    pub(crate) fn same(&self, what: &str, build: &dyn Fn(&mut Command)) -> (Outcome, Session) {
        let bare = self.bare(build);
        let (traced, session) = self.traced(build);
        assert_eq!(traced, bare, "{what}: the shim changed the program");
        (bare, session)
    }
}

/// What a session file holds.
pub(crate) struct Session {
    bytes: Vec<u8>,
}

impl Session {
    pub(crate) fn read(path: &Path) -> Session {
        Session {
            bytes: std::fs::read(path).unwrap(),
        }
    }

    /// Every record; a damaged byte fails the test.
    pub(crate) fn records(&self) -> Vec<(Header, Record<'_>)> {
        let (mut records, mut at) = (Vec::new(), 0);
        while at < self.bytes.len() {
            match decode(&self.bytes[at..]) {
                Ok((header, record, length)) => {
                    records.push((header, record));
                    at += length;
                }
                Err(error) => panic!("at byte {at}: {error}"),
            }
        }
        records
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What `pick` finds in the records, in order.
    pub(crate) fn all<'a, T>(&'a self, pick: impl Fn(&Header, &Record<'a>) -> Option<T>) -> Vec<T> {
        self.records()
            .iter()
            .filter_map(|(header, record)| pick(header, record))
            .collect()
    }
}

/// The end of a path.
pub(crate) fn name_of<'a>(text: Text<'a>) -> &'a str {
    text.value.rsplit('/').next().unwrap_or_default()
}

/// Says visibly why a test does nothing here.
pub(crate) fn skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Whether a tool is on PATH.
pub(crate) fn has(tool: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

pub(crate) fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

/// The interpreter itself, not a script that chooses one.
pub(crate) fn python() -> String {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
