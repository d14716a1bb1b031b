//! Processes: what runs, what was asked to run, and how it ended.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Caller, Frame};

/// A program image began to run in a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStart {
    /// Parent process.
    #[serde(default)]
    pub ppid: u32,
    /// Path of the executable.
    #[serde(default)]
    pub exe: String,
    /// Arguments, credentials masked.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Working directory.
    #[serde(default)]
    pub cwd: String,
    /// Environment at the start, names of the allow-list only; empty when it is inherited.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// The captured environment is that of the parent, or of the image before the exec: the hundred compilers of a build
    /// do not repeat it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub env_inherited: bool,
    /// The user who runs it, as its own user namespace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Pid in the initial namespace, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_pid: Option<u32>,
    /// Pid in the process's own namespace, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_pid: Option<u32>,
    /// The process was found running (attach), not seen starting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
    /// It began by fork: the same program goes on in a new process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forked: bool,
    /// Why its inside cannot be seen; absent when it is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_followed: Option<String>,
    /// Fields that could not be read, with the reason of each.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub unread: IndexMap<String, String>,
}

/// A process ended: by `exit` with a code, or by a signal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// Exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// A process asked for another program image, by an exec of its own or for a new child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    /// The libc entry or system call: `execve`, `posix_spawn`, `system` …
    #[serde(default)]
    pub call: String,
    /// The path or file name that was asked for.
    pub path: String,
    /// Arguments, credentials masked.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Who asked, in Python.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
    /// Who asked, in native code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The process that forked to exec this, when the fork has not been told as a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppid: Option<u32>,
    /// The child's pid, where the call made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<u32>,
    /// Why the new image cannot be followed; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_followed: Option<String>,
}

/// An exec that did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecFailed {
    /// The path that was tried.
    pub path: String,
    /// Arguments, credentials masked.
    #[serde(default)]
    pub argv: Vec<String>,
    /// The error number, e.g. 2 for ENOENT.
    pub errno: i32,
    /// The libc entry or system call.
    #[serde(default)]
    pub call: String,
    /// Who asked, in Python.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
    /// Who asked, in native code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The process that forked to exec this, when the fork has not been told as a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppid: Option<u32>,
    /// Places that a PATH walk inside libc tried, when it could be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<String>,
}
