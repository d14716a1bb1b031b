//! Files of toolkits and JIT caches.

use serde::{Deserialize, Serialize};

/// What was done to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOp {
    /// Opened to read.
    #[default]
    Open,
    /// Opened to write, or created.
    Create,
    /// Asked about (stat, access, readlink).
    Stat,
    /// Renamed or linked to `to`.
    Rename,
    /// Removed.
    Unlink,
    /// A directory was made.
    Mkdir,
    /// A directory was listed.
    List,
    /// A lock was waited for; still waiting when no `locked` follows.
    LockWait,
    /// A lock was taken.
    Locked,
    /// A lock was given back.
    Unlock,
    /// An operation of a newer version.
    #[serde(other)]
    Other,
}

/// A file of a toolkit or of a JIT cache was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileAccess {
    /// What was done.
    pub op: FileOp,
    /// The file, absolute.
    pub path: String,
    /// The error number; 0 when it succeeded.
    #[serde(default)]
    pub errno: i32,
    /// The new name of a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Text of a small file just before it was overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// Nanoseconds that a lock was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// Python code that did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<super::Frame>,
}
