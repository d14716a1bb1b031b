//! Conda packages: the records in `conda-meta`.

use super::{Distribution, Kind};

/// The package and its files (relative to the environment's prefix) in the text of a `conda-meta/NAME.json`.
#[must_use]
pub fn read_conda_meta(json: &str, record: &str) -> Option<(Distribution, Vec<String>)> {
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    let text = |key: &str| Some(json.get(key)?.as_str()?.to_owned());
    let package = Distribution {
        kind: Kind::Conda,
        name: text("name")?,
        version: text("version")?,
        record: record.to_owned(),
    };
    let files = json.get("files").and_then(serde_json::Value::as_array);
    let files = files
        .into_iter()
        .flatten()
        .filter_map(|file| Some(file.as_str()?.to_owned()))
        .collect();
    Some((package, files))
}
