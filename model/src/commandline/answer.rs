//! What the tools print when they are asked for their version or their architectures.

use crate::toolkit::{Arch, Part, Version, version_in_tool_string};
use serde::{Deserialize, Serialize};

/// What a `--version` output says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionAnswer {
    /// The tool that speaks, where it names itself.
    pub tool: Option<Part>,
    /// Its version.
    pub version: Version,
    /// Its build, such as `cuda_13.0.r13.0/compiler.36424714_0`.
    pub build: Option<String>,
}

/// Reads what `nvcc --version`, `ptxas --version` and the like print; `None` if no release is in it.
#[must_use]
pub fn read_version(text: &str) -> Option<VersionAnswer> {
    let version = text.lines().take(1000).find_map(version_in_tool_string)?;
    let tool = text.lines().take(1000).find_map(|line| {
        let (name, _) = line.split_once(": ")?;
        let part = if name == "cudafe" {
            Part::Cudafe
        } else {
            Part::of_file_name(name.trim())
        };
        part.is_tool().then_some(part)
    });
    let build = text
        .lines()
        .take(1000)
        .find_map(|line| line.trim().strip_prefix("Build "))
        .map(str::to_owned);
    Some(VersionAnswer {
        tool,
        version,
        build,
    })
}

/// Reads what `nvcc --list-gpu-arch` and `--list-gpu-code` print.
///
/// The list names no `a` and `f` variants (resolution.md 2.1): it cannot tell that one is unsupported.
#[must_use]
pub fn read_arch_list(text: &str) -> Vec<Arch> {
    let is_arch = |word: &&str| word.starts_with("compute_") || word.starts_with("sm_");
    text.lines()
        .take(1000)
        .map(str::trim)
        .filter(is_arch)
        .filter_map(Arch::parse)
        .collect()
}
