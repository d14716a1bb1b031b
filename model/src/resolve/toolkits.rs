//! The toolkits of a host: those that were used, and those that are only there.

use indexmap::IndexMap;

use crate::{
    fold::Model,
    report::{Toolkit, ToolkitPart},
};

/// All toolkits, each under a short id that is unique within the report.
pub fn toolkits(model: &Model) -> Vec<Toolkit> {
    let mut by_root: IndexMap<String, Toolkit> = IndexMap::new();
    for fact in model.toolkits() {
        let fact = &fact.what;
        let toolkit = by_root.entry(fact.root.clone()).or_insert_with(|| Toolkit {
            root: fact.root.clone(),
            version: fact.version.clone(),
            kind: fact.kind.clone(),
            ..Toolkit::default()
        });
        for (part, path) in &fact.parts {
            toolkit
                .parts
                .entry(part.clone())
                .or_insert_with(|| part_of(model, path));
        }
    }
    let mut files: Vec<_> = model.files().collect();
    files.sort_by_key(|f| f.id);
    for file in files {
        let (Some(root), Some(part)) = (&file.what.toolkit, &file.what.part) else {
            continue;
        };
        let toolkit = by_root.entry(root.clone()).or_insert_with(|| Toolkit {
            root: root.clone(),
            kind: file.what.toolkit_kind.clone().unwrap_or_default(),
            ..Toolkit::default()
        });
        toolkit.used = true;
        toolkit
            .parts
            .entry(part.clone())
            .or_insert_with(|| part_of(model, &file.what.path));
    }
    let mut toolkits: Vec<Toolkit> = by_root.into_values().collect();
    let mut ids: IndexMap<String, u32> = IndexMap::new();
    for toolkit in &mut toolkits {
        if toolkit.version.is_none() {
            toolkit.version = release_of(toolkit);
        }
        let kind = if toolkit.kind == "system" || toolkit.kind.is_empty() {
            "cuda"
        } else {
            &toolkit.kind
        };
        let base = match &toolkit.version {
            Some(version) => format!("{kind}-{}", release(version)),
            None => kind.to_owned(),
        };
        let count = ids.entry(base.clone()).or_default();
        *count += 1;
        toolkit.id = if *count == 1 {
            base
        } else {
            format!("{base}#{count}")
        };
    }
    toolkits
}

fn part_of(model: &Model, path: &str) -> ToolkitPart {
    let fact = model.file(path);
    ToolkitPart {
        path: path.to_owned(),
        version: fact.and_then(|f| f.what.version.clone()),
        version_from: fact.and_then(|f| f.what.version_from.clone()),
    }
}

/// The release that its compiler, else its runtime, else any part tells.
fn release_of(toolkit: &Toolkit) -> Option<String> {
    ["nvcc", "ptxas", "cudart", "nvrtc"]
        .iter()
        .filter_map(|part| toolkit.parts.get(*part))
        .chain(toolkit.parts.values())
        .find_map(|part| part.version.as_deref())
        .map(release)
}

/// `13.0` of `13.0.88`.
pub(crate) fn release(version: &str) -> String {
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => version.to_owned(),
    }
}
