//! Which package a file belongs to, and what the package says of itself: wheels, conda and Debian packages.
//!
//! The texts are handed in; [`Index`] gathers them into one answer per path.

pub mod built_for;
mod conda;
mod debian;
mod index;
mod wheel;

pub use built_for::{BuiltFor, BuiltForFrom};
pub use conda::read_conda_meta;
pub use debian::{DebianStatus, read_dpkg_list, read_dpkg_status};
pub use index::Index;
pub use wheel::{read_metadata, read_record};

use serde::{Deserialize, Serialize};

/// The kind of package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A Python distribution with `.dist-info` or `.egg-info`.
    Wheel,
    /// A conda package with a record in `conda-meta`.
    Conda,
    /// A Debian or Ubuntu package.
    Debian,
}

/// A package: name, version, and where its record lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Distribution {
    /// Its kind.
    pub kind: Kind,
    /// Its name, as it spells it.
    pub name: String,
    /// Its version, with epoch, local part and revision.
    pub version: String,
    /// The record: the `.dist-info` directory, the `conda-meta` file or the dpkg list.
    pub record: String,
}

impl Distribution {
    /// Whether the package's version is the version of NVIDIA's files in it. torch's is not the version of the
    /// ptxas that it carries.
    #[must_use]
    pub fn versions_its_files(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('_', "-");
        let is_nvidia_part = || {
            ["cuda-", "libnv", "libcu"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        };
        match self.kind {
            Kind::Wheel => name.starts_with("nvidia-"),
            Kind::Conda => is_nvidia_part() || matches!(name.as_str(), "cudnn" | "nccl"),
            Kind::Debian => is_nvidia_part() || name.starts_with("nvidia-cuda"),
        }
    }

    /// The upstream part of the version: `12.4.131` of Debian's `12.4.131~12.4.1-2`, `2.11.0` of `2.11.0+cu130`.
    #[must_use]
    pub fn upstream_version(&self) -> &str {
        let without_epoch = self
            .version
            .split_once(':')
            .map_or(self.version.as_str(), |(_, rest)| rest);
        without_epoch
            .split(['~', '+', '-'])
            .next()
            .unwrap_or(without_epoch)
    }
}
