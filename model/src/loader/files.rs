//! The file system as the loader's search sees it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::elf::{ElfError, ElfFacts};

use super::cache::LdSoCache;

/// Identity of a file whatever its name: the loader takes two paths for the same library when these agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    /// Device number, as `stat` gives it.
    pub dev: u64,
    /// Inode number.
    pub inode: u64,
}

/// What opening a path for reading gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// No such file, or no such directory on the way (`ENOENT`, `ENOTDIR`).
    Missing,
    /// It is there and may not be read (`EACCES`). The loader goes on.
    Denied,
    /// It cannot be opened for another reason, in words. The loader leaves the rest of this search path.
    Failed(String),
    /// It opens.
    File {
        /// Which file this is.
        id: FileId,
        /// What it says about itself. A directory or an unreadable device is `Err` of some kind too.
        elf: Result<Arc<ElfFacts>, ElfError>,
    },
}

/// Where the replay looks files up: the live host, the root of another process (`/proc/PID/root`), or a table in a
/// test. Paths are absolute, in the view of the process that is replayed.
///
/// An implementation should remember what it read: the replay asks for the same files again and again.
pub trait Files {
    /// Opens a file as the loader does, following symbolic links.
    fn open(&self, path: &str) -> Opened;

    /// Whether the path is a directory, following symbolic links.
    fn is_directory(&self, path: &str) -> bool;

    /// `/etc/ld.so.cache`, parsed; none when it is absent or unusable.
    fn cache(&self) -> Option<Arc<LdSoCache>>;
}

impl<T: Files + ?Sized> Files for &T {
    fn open(&self, path: &str) -> Opened {
        (**self).open(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        (**self).is_directory(path)
    }

    fn cache(&self) -> Option<Arc<LdSoCache>> {
        (**self).cache()
    }
}
