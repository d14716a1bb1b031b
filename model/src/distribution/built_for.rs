//! The CUDA release that a component says it was built for, and where it says so.

use super::Distribution;
use crate::toolkit::Version;
use serde::{Deserialize, Serialize};

/// Where a component says what it was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltForFrom {
    /// `cuda = '13.0'` in its `version.py`.
    VersionPy,
    /// `+cu130` in its version.
    LocalVersion,
    /// The major in its name: `cupy-cuda13x`, `nvidia-nccl-cu13`.
    Name,
    /// The libcudart that one of its libraries needs: the major alone.
    NeededCudart,
}

impl BuiltForFrom {
    /// The word that traces and reports use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::VersionPy => "version.py",
            Self::LocalVersion => "local-version",
            Self::Name => "name",
            Self::NeededCudart => "needed-cudart",
        }
    }
}

/// A CUDA release, or only its major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuiltFor {
    /// The major.
    pub major: u32,
    /// The minor, where it is said.
    pub minor: Option<u32>,
    /// Where it is said.
    pub from: BuiltForFrom,
}

impl BuiltFor {
    /// The release, if the minor is known too.
    #[must_use]
    pub fn release(&self) -> Option<Version> {
        self.minor.map(|minor| Version::release(self.major, minor))
    }
}

impl std::fmt::Display for BuiltFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.minor {
            Some(minor) => write!(f, "{}.{minor}", self.major),
            None => write!(f, "{}", self.major),
        }
    }
}

/// From the text of a `version.py`: torch writes `cuda: Optional[str] = '13.0'`, others `cuda = "12.8"`.
#[must_use]
pub fn from_version_py(text: &str) -> Option<BuiltFor> {
    let value = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("cuda")?.trim_start();
        let rest = if rest.starts_with(':') {
            rest.split_once('=')?.1
        } else {
            rest.strip_prefix('=')?
        };
        Some(rest.trim().trim_matches(['\'', '"']))
    })?;
    let version = Version::parse(value)?;
    Some(BuiltFor {
        major: version.major,
        minor: Some(version.minor),
        from: BuiltForFrom::VersionPy,
    })
}

/// From a distribution's local version (`2.11.0+cu130`) or name (`cupy-cuda13x`, `nvidia-cublas-cu12`).
#[must_use]
pub fn from_distribution(distribution: &Distribution) -> Option<BuiltFor> {
    let local = distribution.version.split_once('+').map(|(_, local)| local);
    let mut local_words = local
        .into_iter()
        .flat_map(|local| local.split(['.', '_', '-']));
    if let Some((major, minor)) = local_words.find_map(|word| from_tag(word.strip_prefix("cu")?)) {
        return Some(BuiltFor {
            major,
            minor,
            from: BuiltForFrom::LocalVersion,
        });
    }
    let name = distribution.name.to_ascii_lowercase();
    let (major, minor) = name.split(['-', '_']).find_map(|word| {
        let in_full = word
            .strip_prefix("cuda")
            .map(|rest| rest.trim_end_matches('x'));
        from_tag(in_full.or_else(|| word.strip_prefix("cu"))?)
    })?;
    Some(BuiltFor {
        major,
        minor,
        from: BuiltForFrom::Name,
    })
}

/// The digits of a tag: `130` is 13.0, `13` is major 13, `128` is 12.8.
fn from_tag(digits: &str) -> Option<(u32, Option<u32>)> {
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().ok()?;
    match number {
        9..=20 => Some((number, None)),
        90..=299 => Some((number / 10, Some(number % 10))),
        _ => None,
    }
}

/// From the libraries that an object needs: `libcudart.so.13` says CUDA 13, `libcudart.so.11.0` says 11.
#[must_use]
pub fn from_needed<'a>(needed: impl IntoIterator<Item = &'a str>) -> Option<BuiltFor> {
    let suffix = needed
        .into_iter()
        .find_map(|name| name.strip_prefix("libcudart.so."))?;
    let major = suffix
        .split('.')
        .next()?
        .parse()
        .ok()
        .filter(|major| *major < 100)?;
    Some(BuiltFor {
        major,
        minor: None,
        from: BuiltForFrom::NeededCudart,
    })
}
