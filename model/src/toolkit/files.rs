//! The few questions that identification asks about the files next to the one in hand.
//!
//! The model reads no disk of its own accord: the collector answers through [`Files`], from the traced process's
//! own root and mount namespace.

use std::path::{Path, PathBuf};

/// Answers about the file system that the traced program sees. Every method may say "I do not know".
pub trait Files {
    /// At most the first `limit` bytes of a file; `None` if it cannot be read.
    fn head(&self, path: &Path, limit: usize) -> Option<Vec<u8>>;
    /// Runs `look` on the whole file, mapped or read; false if it cannot be read.
    fn with_bytes(&self, path: &Path, look: &mut dyn FnMut(&[u8])) -> bool;
    /// Whether something is there.
    fn exists(&self, path: &Path) -> bool;
    /// The path with all symbolic links resolved.
    fn realpath(&self, path: &Path) -> Option<PathBuf>;
    /// The names in a directory, in any order; empty if it cannot be read.
    fn names(&self, directory: &Path) -> Vec<String>;
}

/// Knows nothing: identification then rests on the path and the bytes alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn head(&self, _: &Path, _: usize) -> Option<Vec<u8>> {
        None
    }
    fn with_bytes(&self, _: &Path, _: &mut dyn FnMut(&[u8])) -> bool {
        false
    }
    fn exists(&self, _: &Path) -> bool {
        false
    }
    fn realpath(&self, _: &Path) -> Option<PathBuf> {
        None
    }
    fn names(&self, _: &Path) -> Vec<String> {
        Vec::new()
    }
}

/// This machine's files, read with the standard library. A file above 2 GiB is not read.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Files for LocalFiles {
    fn head(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        use std::io::Read;
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(limit as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
    fn with_bytes(&self, path: &Path, look: &mut dyn FnMut(&[u8])) -> bool {
        match self.head(path, 1 << 31) {
            Some(bytes) => {
                look(&bytes);
                true
            }
            None => false,
        }
    }
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
    fn realpath(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }
    fn names(&self, directory: &Path) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return Vec::new();
        };
        entries
            .flatten()
            .take(100_000)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }
}

/// At most a mebibyte of a text file.
pub(crate) fn text(files: &dyn Files, path: &Path) -> Option<String> {
    files
        .head(path, 1 << 20)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
