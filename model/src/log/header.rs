//! The first line of a trace: what was traced, where, and with which sources.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The first line of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format version; [`super::FORMAT`].
    pub jittrace: u32,
    /// Version of the jittrace that wrote it.
    #[serde(default)]
    pub version: String,
    /// The traced command; empty for an attach.
    #[serde(default)]
    pub command: Vec<String>,
    /// The process that was attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<u32>,
    /// When it began: nanoseconds since 1970.
    #[serde(default)]
    pub started_unix_ns: u64,
    /// Where it ran.
    #[serde(default)]
    pub host: Host,
    /// What could be watched, and what could not and why.
    #[serde(default)]
    pub sources: Vec<SourceStatus>,
}

/// Where a trace was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name, masked when asked for.
    #[serde(default)]
    pub name: String,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
    /// Distribution, as `/etc/os-release` names it.
    #[serde(default)]
    pub os: String,
    /// C library and version, e.g. `glibc 2.36`.
    #[serde(default)]
    pub libc: String,
    /// Machine, e.g. `x86_64`.
    #[serde(default)]
    pub machine: String,
    /// Processors.
    #[serde(default)]
    pub cpus: u32,
    /// The kind of container, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Namespace ids (`mnt`, `pid`), to tell hosts and containers apart.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub namespaces: IndexMap<String, String>,
}

/// Whether a source was at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// It watched.
    Active,
    /// It was wanted and could not watch.
    Refused,
    /// It was not asked for.
    #[default]
    #[serde(other)]
    Absent,
}

/// One source and its state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// `preload`, `ebpf`, `procfs`.
    pub name: String,
    /// At work or not.
    pub state: SourceState,
    /// Why not, and what would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
