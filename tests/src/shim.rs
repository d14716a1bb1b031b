//! Small programs bare and with the shim alone, without the command: what they do, and the records that were written.

use std::{
    ffi::{CString, OsStr},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
};

use jittrace_wire::{
    SESSION_NAME, SESSION_VARIABLE, decode,
    record::{Header, Record, Text},
};

use crate::lab::Lab;

/// The shim that the build script built.
pub const SHIM: &str = env!("JITTRACE_SHIM");

/// How a program ended and what it said.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
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
    /// A command in the lab, without input and without a shim from outside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env_remove("LD_PRELOAD")
            .env_remove(SESSION_VARIABLE);
        command
    }

    /// An empty session file, named as the launcher names it.
    pub fn session(&self) -> PathBuf {
        let name = format!("{}{}", SESSION_NAME, mount_of(self.path()));
        let session = self.file(&name);
        fs::write(&session, b"").unwrap();
        session
    }

    /// Runs it without the shim.
    pub fn bare(&self, build: &dyn Fn(&mut Command)) -> Outcome {
        self.run(build, &[])
    }

    /// Runs it with the shim; gives what it wrote.
    pub fn traced(&self, build: &dyn Fn(&mut Command)) -> (Outcome, Session) {
        let session = self.session();
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
    pub fn same(&self, what: &str, build: &dyn Fn(&mut Command)) -> (Outcome, Session) {
        let bare = self.bare(build);
        let (traced, session) = self.traced(build);
        assert_eq!(traced, bare, "{what}: the shim changed the program");
        (bare, session)
    }
}

/// What a session file holds.
pub struct Session {
    bytes: Vec<u8>,
}

impl Session {
    /// Reads a session file.
    ///
    /// # Panics
    /// It cannot be read.
    #[must_use]
    pub fn read(path: &Path) -> Session {
        Session {
            bytes: fs::read(path).unwrap(),
        }
    }

    /// Every record; a damaged byte fails the test.
    pub fn records(&self) -> Vec<(Header, Record<'_>)> {
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

    /// The file as it is.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What `pick` finds in the records, in order.
    pub fn all<'a, T>(&'a self, pick: impl Fn(&Header, &Record<'a>) -> Option<T>) -> Vec<T> {
        self.records()
            .iter()
            .filter_map(|(header, record)| pick(header, record))
            .collect()
    }
}

/// The id of the mount that a directory lies on; empty where the kernel does not tell.
fn mount_of(directory: &Path) -> String {
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap();
    // SAFETY: all zero is a valid value, which the kernel fills in for the string.
    let (asked, status) = unsafe {
        let mut status: libc::statx = std::mem::zeroed();
        let wanted = libc::STATX_MNT_ID;
        let asked = libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, wanted, &raw mut status);
        (asked, status)
    };
    let told = asked == 0 && status.stx_mask & libc::STATX_MNT_ID != 0;
    if told {
        status.stx_mnt_id.to_string()
    } else {
        String::new()
    }
}

/// The end of a path.
pub fn name_of<'a>(text: Text<'a>) -> &'a str {
    text.value.rsplit('/').next().unwrap_or_default()
}
