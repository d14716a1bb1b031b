//! The files of this machine, for identification: large ones are mapped, not read.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use jittrace_model::toolkit::{Files, LocalFiles};

/// This machine's files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostFiles;

impl Files for HostFiles {
    fn head(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        LocalFiles.head(path, limit)
    }

    fn with_bytes(&self, path: &Path, look: &mut dyn FnMut(&[u8])) -> bool {
        let Some(map) = map(path) else { return false };
        look(&map);
        true
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn realpath(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        LocalFiles.names(directory)
    }
}

/// Maps a regular file.
pub(crate) fn map(path: &Path) -> Option<memmap2::Mmap> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return None;
    }
    // SAFETY: read only. A file that is cut while it is mapped raises SIGBUS; toolkits and libraries in use are replaced
    // by new inodes, not cut, and the traced program would fail the same way.
    unsafe { memmap2::Mmap::map(&file) }.ok()
}
