//! Debian and Ubuntu packages: dpkg's `status` and `info/*.list`.

use super::{Distribution, Kind};
use std::collections::BTreeMap;

/// Installed packages and their versions, as dpkg's `status` lists them. Keyed by `name` and `name:arch`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DebianStatus {
    versions: BTreeMap<String, String>,
}

impl DebianStatus {
    /// The package whose file list is `NAME.list` (or `NAME:ARCH.list`), if it is installed.
    #[must_use]
    pub fn package(&self, list: &str) -> Option<Distribution> {
        let key = list.strip_suffix(".list").unwrap_or(list);
        let name = key.split_once(':').map_or(key, |(name, _)| name);
        let version = self.versions.get(key).or_else(|| self.versions.get(name))?;
        Some(Distribution {
            kind: Kind::Debian,
            name: name.to_owned(),
            version: version.clone(),
            record: list.to_owned(),
        })
    }
}

/// Reads dpkg's `status`: packages that are installed now.
#[must_use]
pub fn read_dpkg_status(text: &str) -> DebianStatus {
    let mut status = DebianStatus::default();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            paragraph
                .lines()
                .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let (Some(name), Some(version)) = (field("Package"), field("Version")) else {
            continue;
        };
        if !field("Status").is_some_and(|status| status.ends_with(" installed")) {
            continue;
        }
        if let Some(arch) = field("Architecture") {
            status
                .versions
                .insert(format!("{name}:{arch}"), version.to_owned());
        }
        status.versions.insert(name.to_owned(), version.to_owned());
    }
    status
}

/// The absolute paths in the text of an `info/NAME.list`.
pub fn read_dpkg_list(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| line.len() > 2 && line.starts_with('/'))
}
