//! Facts: what the collector looked up once, so that the trace needs nothing else to be understood.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Something looked up about the host, a file, a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "kebab-case")]
pub enum Fact {
    /// A file: which part of which toolkit it is.
    File(Box<FileFact>),
    /// A Python distribution, conda or system package.
    Distribution(DistributionFact),
    /// A toolkit that is present, used or not.
    Toolkit(ToolkitFact),
    /// A GPU.
    Gpu(GpuFact),
    /// The driver.
    Driver(DriverFact),
    /// What a tool printed of itself.
    ToolOutput(ToolOutputFact),
    /// A directory: file system, writable or not.
    Directory(DirectoryFact),
    /// What a cache artefact was built with.
    Cache(Box<CacheFact>),
    /// A fact of a newer version.
    #[serde(other)]
    Other,
}

/// One way by which a version was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The version, e.g. `13.0.88`.
    pub version: String,
    /// The way: `tool-string`, `cuda-h`, `file-name`, `wheel-metadata` … (`resolution.md` 2.6).
    pub from: String,
    /// `certain`, `likely` or `guess`.
    #[serde(default)]
    pub certainty: String,
}

/// Which part of which toolkit a file is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileFact {
    /// The file.
    pub path: String,
    /// The same without symbolic links.
    #[serde(default)]
    pub realpath: String,
    /// Device number.
    #[serde(default)]
    pub dev: u64,
    /// Inode number.
    #[serde(default)]
    pub ino: u64,
    /// Size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Modification time, seconds since 1970.
    #[serde(default)]
    pub mtime: i64,
    /// `nvcc`, `ptxas`, `cudart`, `libcuda` … (design section 6); absent when it is no part of a toolkit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Finer than `part`: `stub`, `compat`, `driver`, `wsl`, a cuDNN sub-library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The best version known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_from: Option<String>,
    /// Every way that gave an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    /// Root of the toolkit it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<String>,
    /// `system`, `wheel`, `conda`, `bundled`, `compat` or `stub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit_kind: Option<String>,
    /// The distribution that owns it, `name version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// DT_SONAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// DT_NEEDED.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<String>,
    /// DT_RPATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpath: Option<String>,
    /// DT_RUNPATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runpath: Option<String>,
    /// Build id, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Architectures of the device code inside: `sm_90a`, `compute_120`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// Highest PTX ISA of the device code inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx_isa: Option<String>,
    /// Symbols it needs that tell a minimum version, e.g. `__nvJitLinkCreate_12_9`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// libcudart is linked into it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub static_cudart: bool,
    /// The file is a script; its version can only be learnt by asking it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub script: bool,
    /// What could not be read, and why.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub unread: IndexMap<String, String>,
}

/// A Python distribution, conda or system package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DistributionFact {
    /// Its name as the METADATA spells it.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// The `.dist-info` directory or package record.
    #[serde(default)]
    pub path: String,
    /// The CUDA release it says it was built for, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_for: Option<String>,
    /// Where that is said: `torch/version.py`, `local version`, `DT_NEEDED of …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_for_from: Option<String>,
}

/// A toolkit that is present, used or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolkitFact {
    /// Its root directory.
    pub root: String,
    /// Its release, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_from: Option<String>,
    /// `system`, `wheel`, `conda`, `bundled`, `compat` or `stub`. Written under another name, since every event has a
    /// `kind`.
    #[serde(default, rename = "toolkit_kind")]
    pub kind: String,
    /// Where it was found: a variable, a directory rule, a sibling.
    #[serde(default)]
    pub found_by: String,
    /// Part → path, for the parts that are there.
    #[serde(default)]
    pub parts: IndexMap<String, String>,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuFact {
    /// Index as the driver numbers it.
    pub index: u32,
    /// Marketing name.
    #[serde(default)]
    pub name: String,
    /// Compute capability, e.g. `12.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// How it is known: `nvml`, `call`.
    #[serde(default)]
    pub from: String,
}

/// The driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverFact {
    /// Release of the kernel module or user-mode driver, e.g. `580.159.04`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Newest CUDA it supports, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// How it is known.
    #[serde(default)]
    pub from: String,
}

/// What a tool printed of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutputFact {
    /// The tool.
    pub path: String,
    /// The arguments it was asked with.
    #[serde(default)]
    pub argv: Vec<String>,
    /// What it printed, cut to its beginning.
    pub text: String,
    /// `observed` when the program asked, `probe` when the collector did.
    #[serde(default)]
    pub from: String,
}

/// A directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectoryFact {
    /// The directory.
    pub path: String,
    /// File system type, e.g. `ext4`, `nfs`.
    #[serde(default)]
    pub filesystem: String,
    /// The file system is shared between hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Whether the traced user may write there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable: Option<bool>,
    /// The file system is mounted so that nothing on it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noexec: bool,
}

/// What a cache artefact was built with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheFact {
    /// The artefact.
    pub path: String,
    /// Root of the cache.
    pub directory: String,
    /// The component whose cache it is.
    #[serde(default)]
    pub owner: String,
    /// What identifies the artefact within the cache.
    #[serde(default)]
    pub key: String,
    /// Toolkit release it was built with, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_with: Option<String>,
    /// How that is known: `build.ninja`, `ptx-isa`, `tkinfo`, `needed-cudart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_with_from: Option<String>,
    /// Toolkit root that the build file names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_home: Option<String>,
    /// Compiler that the build file names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvcc: Option<String>,
    /// Architectures inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// DT_NEEDED of the artefact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<String>,
    /// Modification time, seconds since 1970.
    #[serde(default)]
    pub mtime: i64,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}
