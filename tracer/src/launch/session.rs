//! The private directory of a launch: the shim and the file it writes to.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use jittrace_wire::SESSION_NAME;
use thiserror::Error;

/// The shim, built by `build.rs`.
const SHIM: &[u8] = include_bytes!(env!("JITTRACE_SHIM"));

/// Name of the shim: nothing that Python could take for a module.
pub const SHIM_NAME: &str = "libjittrace_shim.so";

/// Why no session could be made.
#[derive(Debug, Error)]
#[error("cannot make a private directory for the trace session in {}: {error}; set TMPDIR to a directory that can be written", .place.display())]
pub struct SessionError {
    place: PathBuf,
    error: io::Error,
}

/// A session directory; removed when dropped, unless processes [outlive](Session::outlived) it.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
    records: PathBuf,
    shim: PathBuf,
}

impl Session {
    /// Makes the directory, writes the shim into it and creates the empty session file.
    ///
    /// # Errors
    /// No directory could be made or written to.
    pub fn create(owner: Option<(u32, u32)>) -> Result<Session, SessionError> {
        let place = place(owner.is_none());
        let wrap = |error| SessionError {
            place: place.clone(),
            error,
        };
        let directory = fresh_directory(&place).map_err(wrap)?;
        let session = Session {
            records: directory.join(session_name(&directory)),
            shim: directory.join(SHIM_NAME),
            directory,
        };
        write_file(&session.shim, SHIM, 0o555).map_err(wrap)?;
        write_file(&session.records, b"", 0o600).map_err(wrap)?;
        if let Some((uid, gid)) = owner {
            for path in [&session.directory, &session.records, &session.shim] {
                std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(wrap)?;
            }
        }
        Ok(session)
    }

    /// Leaves the shim to the processes that outlive jittrace: they find no session and are silent.
    ///
    /// Without the file the loader would complain, on the stderr of all that they start from now on, of a preload that
    /// is not there. The temporary directory's own cleaning takes it in the end.
    pub fn outlived(self) {
        let session = std::mem::ManuallyDrop::new(self);
        let _ = fs::remove_file(&session.records);
    }

    /// The file that the shim appends to.
    pub fn records(&self) -> &Path {
        &self.records
    }

    /// The shim.
    pub fn shim(&self) -> &Path {
        &self.shim
    }

    /// Opens the session file to read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> io::Result<File> {
        File::open(&self.records)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What cannot be removed is left to the temporary directory's own cleaning.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where session directories go: the user's runtime directory or the temporary one, if LD_PRELOAD can name it (the
/// loader splits the variable at spaces and colons).
///
/// Another user's command cannot reach our runtime directory: `own` says that the command is ours.
fn place(own: bool) -> PathBuf {
    let nameable = |path: &PathBuf| {
        path.is_absolute()
            && !path.to_string_lossy().contains([' ', ':', '\t', '\n'])
            && path.is_dir()
    };
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let runtime = from("XDG_RUNTIME_DIR").filter(|_| own);
    let temporary = from("TMPDIR").filter(|_| own);
    [runtime, temporary]
        .into_iter()
        .flatten()
        .find(nameable)
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn fresh_directory(place: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..100_u32 {
        let directory = place.join(format!("jittrace-{pid}-{attempt}"));
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The session file's name, which tells the shim which mount it lies on for us ([`jittrace_wire::launcher_mount`]).
///
/// Where the kernel does not tell the mount (before 5.8) the shim asks for its namespaces each time.
fn session_name(directory: &Path) -> String {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let mount = statx(CWD, directory, AtFlags::empty(), StatxFlags::MNT_ID)
        .ok()
        .filter(|status| status.stx_mask & StatxFlags::MNT_ID.bits() != 0)
        .map(|status| status.stx_mnt_id.to_string());
    format!("{SESSION_NAME}{}", mount.unwrap_or_default())
}

fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}
