//! The ids of kernel tracepoints, from tracefs.
//!
//! Where tracefs is not mounted it is not mounted for anybody else either: a detached mount (fsopen, fsmount) is read
//! through its descriptor and disappears with it. Nothing is left behind, whoever dies.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

/// Where tracefs is usually mounted; the second place only before 4.1.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An opened tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs {
    root: OwnedFd,
    /// Whether this is a mount of our own.
    pub(crate) private: bool,
}

impl Tracefs {
    /// Opens the mounted tracefs, else a private detached one.
    pub(crate) fn open() -> io::Result<Self> {
        for place in PLACES {
            let Ok(root) = openat(
                CWD,
                place,
                OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            ) else {
                continue;
            };
            // The directory exists even where nothing is mounted on it.
            if openat(
                &root,
                "events/syscalls",
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .is_ok()
            {
                return Ok(Self {
                    root,
                    private: false,
                });
            }
        }
        Self::detached()
    }

    /// A mount that is in nobody's tree.
    pub(crate) fn detached() -> io::Result<Self> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        Ok(Self {
            root,
            private: true,
        })
    }

    /// The id of tracepoint `category:name`.
    pub(crate) fn id(&self, category: &str, name: &str) -> io::Result<u64> {
        let path = format!("events/{category}/{name}/id");
        let file = openat(
            &self.root,
            &path,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| {
            io::Error::new(
                io::Error::from(error).kind(),
                format!("tracefs {path}: {error}"),
            )
        })?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        text.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("tracefs {path} holds no number")))
    }
}
