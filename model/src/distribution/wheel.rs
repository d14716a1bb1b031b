//! Python distributions: `METADATA` (or `PKG-INFO`) and `RECORD`.

use super::{Distribution, Kind};

/// How many lines of a record are read, at most.
const MAX_FILES: usize = 500_000;

/// The name and version in the text of a `METADATA` or `PKG-INFO`; `None` if either is missing.
///
/// `record` is the `.dist-info` or `.egg-info` directory that it lies in.
#[must_use]
pub fn read_metadata(text: &str, record: &str) -> Option<Distribution> {
    let (mut name, mut version) = (None, None);
    // The header ends at the first empty line; what follows is the package's readme.
    for line in text.lines().take_while(|line| !line.is_empty()) {
        match line.split_once(':') {
            Some(("Name", value)) => name = name.or(Some(value.trim())),
            Some(("Version", value)) => version = version.or(Some(value.trim())),
            _ => {}
        }
    }
    Some(Distribution {
        kind: Kind::Wheel,
        name: name?.to_owned(),
        version: version?.to_owned(),
        record: record.to_owned(),
    })
}

/// The name and version in the directory's name, for a distribution whose `METADATA` is missing:
/// `nvidia_cuda_nvcc-13.3.33.dist-info`.
#[must_use]
pub(crate) fn from_directory_name(name: &str, record: &str) -> Option<Distribution> {
    let stem = name
        .strip_suffix(".dist-info")
        .or_else(|| name.strip_suffix(".egg-info"))?;
    let (name, rest) = stem.split_once('-')?;
    // Eggs add the Python version: name-1.0-py3.12.egg-info.
    let version = rest.split_once("-py").map_or(rest, |(version, _)| version);
    (!name.is_empty() && !version.is_empty()).then(|| Distribution {
        kind: Kind::Wheel,
        name: name.replace('_', "-"),
        version: version.to_owned(),
        record: record.to_owned(),
    })
}

/// The files in the text of a `RECORD`, relative to the directory that holds the `.dist-info`.
pub fn read_record(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().take(MAX_FILES).filter_map(|line| {
        let path = match line.strip_prefix('"') {
            // A path with a comma is quoted; a quote in it is doubled.
            Some(quoted) => quoted
                .split_once("\",")
                .map(|(path, _)| path.replace("\"\"", "\""))?,
            None => line.split(',').next()?.to_owned(),
        };
        (!path.is_empty()).then_some(path)
    })
}
