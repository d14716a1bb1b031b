//! GPU architectures as tools and images name them, and which image runs on which GPU (resolution.md 2.1).

use serde::{Deserialize, Serialize};
use std::fmt;

/// The letter behind an architecture: how far code for it may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Suffix {
    /// No letter: SASS runs on later GPUs of the same major, PTX on every later GPU.
    None,
    /// `a`, architecture specific: exactly that compute capability, SASS and PTX alike.
    A,
    /// `f`, family specific: the same major from that minor on.
    F,
}

/// A GPU's compute capability, such as 12.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComputeCapability {
    /// The number before the dot: the GPU's generation.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A target of a compiler or of an image: `sm_120f` (real, SASS) or `compute_90a` (virtual, PTX).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Arch {
    /// The compute capability's major number.
    pub major: u32,
    /// The compute capability's minor number.
    pub minor: u32,
    /// The letter behind the number.
    pub suffix: Suffix,
    /// Whether it names PTX (`compute_…`) and not machine code (`sm_…`).
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
}

impl Arch {
    /// The real architecture (`sm_…`) of a number such as 120, with a suffix.
    #[must_use]
    pub const fn real(number: u32, suffix: Suffix) -> Self {
        Self {
            major: number / 10,
            minor: number % 10,
            suffix,
            is_virtual: false,
        }
    }

    /// The virtual architecture (`compute_…`) of a number such as 120, with a suffix.
    #[must_use]
    pub const fn virtual_(number: u32, suffix: Suffix) -> Self {
        Self {
            major: number / 10,
            minor: number % 10,
            suffix,
            is_virtual: true,
        }
    }

    /// Reads `sm_120f`, `compute_90a`, `lto_90`, `12.0f`, `12.0`, `120a`, `90` and torch's `9.0+PTX` (the part
    /// before the plus). A bare number or dotted form is taken as real.
    ///
    /// `None` for what is no single architecture (`native`, `all-major`, a number below 20).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix("+PTX").unwrap_or(text);
        let (is_virtual, text) = if let Some(rest) = text.strip_prefix("sm_") {
            (false, rest)
        } else if let Some(rest) = text.strip_prefix("compute_") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("lto_") {
            (false, rest)
        } else {
            (false, text)
        };
        let (text, suffix) = match text.as_bytes().last()? {
            b'a' | b'A' => (text.get(..text.len().checked_sub(1)?)?, Suffix::A),
            b'f' | b'F' => (text.get(..text.len().checked_sub(1)?)?, Suffix::F),
            _ => (text, Suffix::None),
        };
        let (major, minor) = match text.split_once('.') {
            Some((major, minor)) => (digits(major)?, digits(minor)?),
            None => {
                let number = digits(text)?;
                (number / 10, number % 10)
            }
        };
        if !(2..=99).contains(&major) || minor > 9 {
            return None;
        }
        Some(Self {
            major,
            minor,
            suffix,
            is_virtual,
        })
    }

    /// The number in the name: 120 for `sm_120f`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.major.saturating_mul(10).saturating_add(self.minor)
    }

    /// The compute capability that it names.
    #[must_use]
    pub const fn capability(self) -> ComputeCapability {
        ComputeCapability {
            major: self.major,
            minor: self.minor,
        }
    }

    /// The same target as a real architecture.
    #[must_use]
    pub const fn as_real(self) -> Self {
        Self {
            is_virtual: false,
            ..self
        }
    }
}

fn digits(text: &str) -> Option<u32> {
    let plain =
        !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Whether code for `image` can run on a GPU of capability `device`, as far as the architecture decides
/// (PTX also needs a driver that reads its ISA).
///
/// SASS without a letter: the same major, a minor not above the device's. PTX without a letter: every later
/// device. `a`: exactly the device named. `f`: the same major, from the minor on (resolution.md 2.1).
#[must_use]
pub fn runs_on(image: Arch, device: ComputeCapability) -> bool {
    let same_major_and_later = image.major == device.major && image.minor <= device.minor;
    match image.suffix {
        Suffix::A => image.capability() == device,
        Suffix::F => same_major_and_later,
        Suffix::None if image.is_virtual => image.capability() <= device,
        Suffix::None => same_major_and_later,
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_virtual { "compute" } else { "sm" };
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::A => "a",
            Suffix::F => "f",
        };
        write!(f, "{kind}_{}{}{suffix}", self.major, self.minor)
    }
}

impl From<Arch> for String {
    fn from(arch: Arch) -> Self {
        arch.to_string()
    }
}

/// A text that is no architecture.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no GPU architecture: expected a form such as sm_120f, compute_90a or 12.0")]
pub struct NotAnArch(String);

impl TryFrom<String> for Arch {
    type Error = NotAnArch;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or(NotAnArch(text))
    }
}
