//! Versions of CUDA parts, and the numbers that stand for them in headers and calls (resolution.md 2.5).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version as NVIDIA's parts state it: `major.minor`, and the patch level where it is known.
///
/// Ordered by number; an unknown patch level sorts before every known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// The number before the first dot.
    pub major: u32,
    /// The number after the first dot.
    pub minor: u32,
    /// The third number, where the source states one.
    pub patch: Option<u32>,
}

impl Version {
    /// A release without a patch level, such as 12.8.
    #[must_use]
    pub const fn release(major: u32, minor: u32) -> Self {
        Self {
            major,
            minor,
            patch: None,
        }
    }

    /// A version with its patch level, such as 13.0.88.
    #[must_use]
    pub const fn exact(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch: Some(patch),
        }
    }

    /// The version at the beginning of `text`: `13.0`, `V12.8.93`, `13.0.96.post1`, `2.27.3+cuda12.9`.
    ///
    /// At least major and minor must be there: a lone `13` (a SONAME's major) is not a version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let text = text.strip_prefix(['V', 'v']).unwrap_or(text);
        let (major, rest) = leading_number(text)?;
        let (minor, rest) = leading_number(rest.strip_prefix('.')?)?;
        let patch = rest
            .strip_prefix('.')
            .and_then(leading_number)
            .map(|(patch, _)| patch);
        Some(Self {
            major,
            minor,
            patch,
        })
    }

    /// The release that `CUDA_VERSION`, `CUDART_VERSION`, `cudaRuntimeGetVersion` or `cuDriverGetVersion` states
    /// as 1000 × major + 10 × minor (13000 is 13.0). `None` for numbers that are no CUDA release.
    #[must_use]
    pub const fn from_cuda_number(number: u32) -> Option<Self> {
        if number < 2000 || number > 99_999 || !number.is_multiple_of(10) || number % 1000 > 200 {
            return None;
        }
        Some(Self::release(number / 1000, number % 1000 / 10))
    }

    /// 1000 × major + 10 × minor.
    #[must_use]
    pub const fn cuda_number(self) -> u32 {
        self.major
            .saturating_mul(1000)
            .saturating_add(self.minor.saturating_mul(10))
    }

    /// The version that `cudnnGetVersion` states: 10000 × major + 100 × minor + patch since 9 (91100 is 9.11.0),
    /// 1000 × major + 100 × minor + patch before (8902 is 8.9.2).
    #[must_use]
    pub const fn from_cudnn_number(number: u32) -> Option<Self> {
        match number {
            7000..=8999 => Some(Self::exact(
                number / 1000,
                number % 1000 / 100,
                number % 100,
            )),
            90_000..=999_999 => Some(Self::exact(
                number / 10_000,
                number % 10_000 / 100,
                number % 100,
            )),
            _ => None,
        }
    }

    /// The version that `ncclGetVersion` states: 10000 × major + 100 × minor + patch (22703 is 2.27.3).
    #[must_use]
    pub const fn from_nccl_number(number: u32) -> Option<Self> {
        match number {
            20_900..=99_999 => Some(Self::exact(
                number / 10_000,
                number % 10_000 / 100,
                number % 100,
            )),
            _ => None,
        }
    }

    /// Without the patch level: what compatibility rules compare.
    #[must_use]
    pub const fn without_patch(self) -> Self {
        Self::release(self.major, self.minor)
    }

    /// Whether both are of one release (same major and minor).
    #[must_use]
    pub const fn same_release(self, other: Self) -> bool {
        self.major == other.major && self.minor == other.minor
    }

    /// Whether the two can be statements about the same thing: equal as far as both say.
    #[must_use]
    pub fn agrees_with(self, other: Self) -> bool {
        self.same_release(other)
            && match (self.patch, other.patch) {
                (Some(one), Some(two)) => one == two,
                _ => true,
            }
    }
}

/// The decimal number at the beginning of `text` and what follows it; at most nine digits, so that it fits.
pub(crate) fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 || end > 9 {
        return None;
    }
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            Some(patch) => write!(f, "{}.{}.{}", self.major, self.minor, patch),
            None => write!(f, "{}.{}", self.major, self.minor),
        }
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// A text that is no version.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no version: expected MAJOR.MINOR or MAJOR.MINOR.PATCH")]
pub struct NotAVersion(String);

impl TryFrom<String> for Version {
    type Error = NotAVersion;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or(NotAVersion(text))
    }
}
