//! Which toolkit an artefact was built with, by each kind of evidence.

use super::ninja::BuildFile;
use crate::distribution::built_for;
use crate::elf::ElfFacts;
use crate::image::{self, ImageFacts};
use crate::toolkit::{Certainty, Version, first_toolkit_for_ptx};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BuiltWithFrom {
    /// `.note.nv.tkinfo` of a cubin: the ptxas that made it.
    #[serde(rename = "tkinfo")]
    ToolStamp,
    /// A cubin's header, or a PTX text's signature.
    #[serde(rename = "image-header")]
    ImageHeader,
    /// The PTX ISA that the nvcc wrote: that release, or a later one asked for older PTX.
    #[serde(rename = "ptx-isa")]
    PtxIsa,
    /// The toolkit that the `build.ninja` beside it names.
    #[serde(rename = "build.ninja")]
    BuildFile,
    /// The libcudart that it needs: the major alone.
    #[serde(rename = "needed-cudart")]
    NeededCudart,
}

impl BuiltWithFrom {
    /// The word that traces and reports use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ToolStamp => "tkinfo",
            Self::ImageHeader => "image-header",
            Self::PtxIsa => "ptx-isa",
            Self::BuildFile => "build.ninja",
            Self::NeededCudart => "needed-cudart",
        }
    }
}

/// One answer to "which toolkit built it?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltWith {
    /// The toolkit's major.
    pub major: u32,
    /// Its minor and patch, where the evidence tells.
    pub version: Option<Version>,
    /// The evidence.
    pub from: BuiltWithFrom,
    /// How sure it is.
    pub certainty: Certainty,
    /// The toolkit's root or compiler, where the evidence names one.
    pub toolkit: Option<String>,
}

impl std::fmt::Display for BuiltWith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            Some(version) => write!(f, "{version}"),
            None => write!(f, "{}", self.major),
        }
    }
}

/// Everything that tells the toolkit of an artefact, the surest first.
///
/// `bytes` is the artefact; `build_file` the `build.ninja` beside it; `version_of` answers with the version of a
/// compiler or toolkit root by its path, where that is known.
#[must_use]
pub fn built_with(
    bytes: &[u8],
    build_file: Option<&BuildFile>,
    version_of: &dyn Fn(&Path) -> Option<Version>,
) -> Vec<BuiltWith> {
    let mut found = Vec::new();
    if let Some(facts) = image::read(bytes) {
        found.extend(from_image(&facts));
    }
    if let Some(build_file) = build_file {
        let compiler = build_file.nvcc.as_deref();
        let home = build_file.cuda_home.as_deref();
        let known = [compiler, home]
            .into_iter()
            .flatten()
            .find_map(|path| version_of(Path::new(path)));
        // The path's own name is a last resort: a directory may be called anything.
        let named = || home.and_then(version_in_directory_name);
        let (version, certainty) = match known {
            Some(version) => (Some(version), Certainty::Likely),
            None => (named(), Certainty::Guess),
        };
        if let Some(version) = version {
            found.push(BuiltWith {
                major: version.major,
                version: Some(version),
                from: BuiltWithFrom::BuildFile,
                certainty,
                toolkit: home.or(compiler).map(str::to_owned),
            });
        }
    }
    if let Some(elf) = ElfFacts::parse(bytes).ok()
        && let Some(built) = built_for::from_needed(elf.needed.iter().map(String::as_str))
    {
        found.push(BuiltWith {
            major: built.major,
            version: None,
            from: BuiltWithFrom::NeededCudart,
            certainty: Certainty::Certain,
            toolkit: None,
        });
    }
    found.sort_by_key(|one| (one.version.is_none(), std::cmp::Reverse(one.certainty)));
    found
}

fn from_image(facts: &ImageFacts) -> Vec<BuiltWith> {
    let one = |version: Version, from, certainty| BuiltWith {
        major: version.major,
        version: Some(version),
        from,
        certainty,
        toolkit: None,
    };
    let mut found = Vec::new();
    if let Some(version) = facts.stamps.iter().filter_map(|stamp| stamp.version).max() {
        found.push(one(version, BuiltWithFrom::ToolStamp, Certainty::Certain));
    }
    if let Some(version) = facts.stated_toolkit {
        found.push(one(version, BuiltWithFrom::ImageHeader, Certainty::Certain));
    }
    if let Some(version) = facts
        .ptx
        .iter()
        .map(|ptx| ptx.isa)
        .max()
        .and_then(first_toolkit_for_ptx)
    {
        found.push(one(version, BuiltWithFrom::PtxIsa, Certainty::Likely));
    }
    found
}

/// The release in a directory's name: `cuda-13.0`.
fn version_in_directory_name(path: &str) -> Option<Version> {
    path.rsplit('/')
        .find_map(|name| Version::parse(name.strip_prefix("cuda-")?))
}
