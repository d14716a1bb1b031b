//! Shared libraries: asked for, mapped, refused.

use serde::{Deserialize, Serialize};

use super::{Caller, EventId, Frame};

/// Why a file was chosen. The words are a contract (design section 6).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// `CUDA_HOME` named the toolkit.
    CudaHome,
    /// `CUDA_PATH` named the toolkit.
    CudaPath,
    /// The first match of a walk over `PATH`.
    Path,
    /// A variable that names one tool or library.
    OverrideVariable,
    /// A built-in directory such as `/usr/local/cuda`.
    DefaultDirectory,
    /// The component carries its own copy.
    Bundled,
    /// A wheel's directory in site-packages.
    Wheel,
    /// A conda environment.
    Conda,
    /// DT_RPATH of the requester or of one of its loaders.
    Rpath,
    /// DT_RUNPATH of the requester.
    Runpath,
    /// `LD_LIBRARY_PATH` of the initial environment.
    LdLibraryPath,
    /// ld.so.cache.
    LdSoCache,
    /// The loader's default directories.
    LdDefaultDirectory,
    /// A path with a slash was asked for.
    AbsolutePath,
    /// An object of that SONAME or inode was mapped before.
    AlreadyLoaded,
    /// `LD_PRELOAD`.
    Preload,
    /// The answer came with the process from its parent.
    Inherited,
    /// A build file named it.
    BuildFile,
    /// A tool found it relative to its own place.
    ToolRelative,
    /// Not known.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Rule {
    /// The word used in traces and reports.
    pub fn word(self) -> &'static str {
        match self {
            Rule::CudaHome => "cuda-home",
            Rule::CudaPath => "cuda-path",
            Rule::Path => "path",
            Rule::OverrideVariable => "override-variable",
            Rule::DefaultDirectory => "default-directory",
            Rule::Bundled => "bundled",
            Rule::Wheel => "wheel",
            Rule::Conda => "conda",
            Rule::Rpath => "rpath",
            Rule::Runpath => "runpath",
            Rule::LdLibraryPath => "ld-library-path",
            Rule::LdSoCache => "ld-so-cache",
            Rule::LdDefaultDirectory => "ld-default-directory",
            Rule::AbsolutePath => "absolute-path",
            Rule::AlreadyLoaded => "already-loaded",
            Rule::Preload => "preload",
            Rule::Inherited => "inherited",
            Rule::BuildFile => "build-file",
            Rule::ToolRelative => "tool-relative",
            Rule::Unknown => "unknown",
        }
    }
}

/// What became of one place in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// This file was taken.
    Chosen,
    /// No such file.
    Missing,
    /// The directory does not exist.
    DirectoryMissing,
    /// A file that is no ELF object.
    NotElf,
    /// An ELF object of another class or machine.
    WrongClass,
    /// May not be read.
    Unreadable,
    /// An ELF object that cannot be mapped; it ends the search.
    Broken,
    /// It would have been next, had the search not ended before.
    NotTried,
}

/// One place of a search.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// The file.
    pub path: String,
    /// The rule that led there.
    pub rule: Rule,
    /// What became of it.
    pub outcome: Outcome,
}

/// How the replayed search compares with what was mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explanation {
    /// The replay chose the file that was mapped.
    Confirmed,
    /// The replay chose another file; the observation stands.
    Differs,
    /// The load was not seen happening; the search was replayed afterwards.
    #[default]
    Reconstructed,
}

/// A library was asked for at run time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LibraryRequest {
    /// The name given to dlopen; empty for the program itself.
    pub name: String,
    /// `dlopen`, `dlmopen`.
    #[serde(default)]
    pub call: String,
    /// RTLD flags.
    #[serde(default)]
    pub flags: i32,
    /// Native code that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// Python code that asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
}

/// A library was mapped, or a request was answered by one that was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LibraryLoaded {
    /// Path by which it was mapped.
    pub path: String,
    /// The same without symbolic links.
    #[serde(default)]
    pub realpath: String,
    /// DT_SONAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// The name that was asked for (a dlopen argument or a DT_NEEDED entry).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Path of the object that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// The request that led here, directly or through DT_NEEDED.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<EventId>,
    /// The rule that chose it.
    #[serde(default)]
    pub rule: Rule,
    /// The variable, directory or object that decided.
    #[serde(default)]
    pub rule_detail: String,
    /// How the replay compares.
    #[serde(default)]
    pub explanation: Explanation,
    /// The whole search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Python code that asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
    /// Device number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<u64>,
    /// Inode number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// The object was mapped at process start, not by a later request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_start: bool,
}

/// A library could not be loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LibraryFailed {
    /// The name that was asked for.
    pub requested: String,
    /// Path of the object that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<EventId>,
    /// The loader's own text, or the replay's reason when the program did not ask for it.
    #[serde(default)]
    pub error: String,
    /// The whole search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// When a needed library was the reason: its name, who needs it, and where it was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Path of the object that needs `missing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_for: Option<String>,
    /// A place of the search that an installed distribution claims, and where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claimed>,
    /// Python code that asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
}

/// A file that a distribution's RECORD names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claimed {
    /// The file.
    pub path: String,
    /// The distribution.
    pub distribution: String,
}

/// A library was unmapped again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LibraryUnloaded {
    /// Path by which it had been mapped.
    pub path: String,
}
