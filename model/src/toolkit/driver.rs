//! Driver branches and the CUDA release each belongs to (resolution.md 2.4).

use super::Version;
use super::version::leading_number;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A driver release such as `580.65.06`; kept as text, since its leading zeros are part of the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DriverRelease(String);

impl DriverRelease {
    /// Reads `580.65.06` or `550.163.01`: a branch of three digits, then at least one more number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.');
        let branch = numbers.next()?;
        let rest: Vec<&str> = numbers.collect();
        let number = |part: &&str| {
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit())
        };
        let plausible = branch.len() == 3
            && number(&branch)
            && (1..=2).contains(&rest.len())
            && rest.iter().all(number);
        plausible.then(|| Self(text.to_owned()))
    }

    /// The branch: 580 for `580.65.06`.
    #[must_use]
    pub fn branch(&self) -> u32 {
        leading_number(&self.0).map_or(0, |(branch, _)| branch)
    }

    /// The release as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DriverRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Branch and the CUDA release that `cuDriverGetVersion` of it states.
const TABLE: &[(u32, Version)] = &[
    (450, Version::release(11, 0)),
    (455, Version::release(11, 1)),
    (460, Version::release(11, 2)),
    (465, Version::release(11, 3)),
    (470, Version::release(11, 4)),
    (495, Version::release(11, 5)),
    (510, Version::release(11, 6)),
    (515, Version::release(11, 7)),
    (520, Version::release(11, 8)),
    (525, Version::release(12, 0)),
    (530, Version::release(12, 1)),
    (535, Version::release(12, 2)),
    (545, Version::release(12, 3)),
    (550, Version::release(12, 4)),
    (555, Version::release(12, 5)),
    (560, Version::release(12, 6)),
    (565, Version::release(12, 7)),
    (570, Version::release(12, 8)),
    (575, Version::release(12, 9)),
    (580, Version::release(13, 0)),
    (590, Version::release(13, 1)),
    (595, Version::release(13, 2)),
    (610, Version::release(13, 3)),
];

/// The CUDA release of a driver branch; `None` for branches that are not in the table.
#[must_use]
pub fn driver_cuda(branch: u32) -> Option<Version> {
    TABLE
        .iter()
        .find(|(known, _)| *known == branch)
        .map(|(_, cuda)| *cuda)
}

/// The first driver branch whose CUDA release is at least `cuda`: what a PTX made by that toolkit needs.
#[must_use]
pub fn first_branch_for(cuda: Version) -> Option<u32> {
    TABLE
        .iter()
        .find(|(_, release)| *release >= cuda.without_patch())
        .map(|(branch, _)| *branch)
}

/// The lowest driver branch on which the runtime of a CUDA major starts (minor-version compatibility).
#[must_use]
pub fn lowest_branch_for_major(major: u32) -> Option<u32> {
    match major {
        11 => Some(450),
        12 => Some(525),
        13 => Some(580),
        _ => None,
    }
}
