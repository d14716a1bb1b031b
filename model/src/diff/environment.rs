//! Variables: which differ, and which of the other changes they explain.

use super::{Change, Facet, Kind, Weight};
use crate::{
    event::Rule,
    report::{Report, Resolved},
};

/// Variables that differ between any two runs and decide nothing.
const NOISE: &[&str] = &[
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "HOSTNAME",
    "TERM",
    "COLUMNS",
    "LINES",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
];

/// Variables that are lists of directories.
const LISTS: &[&str] = &[
    "PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "PYTHONPATH",
];

/// Puts variables in front of what they explain; the others are listed by themselves.
pub(super) fn explain(good: &Report, bad: &Report, mut changes: Vec<Change>) -> Vec<Change> {
    let mut names: Vec<&String> = good.environment.keys().collect();
    names.extend(
        bad.environment
            .keys()
            .filter(|name| !good.environment.contains_key(*name)),
    );
    let mut variables = Vec::new();
    for name in names {
        let before = good.environment.get(name).map(String::as_str);
        let after = bad.environment.get(name).map(String::as_str);
        if before == after || NOISE.contains(&name.as_str()) {
            continue;
        }
        let (explained, rest): (Vec<Change>, Vec<Change>) = changes
            .into_iter()
            .partition(|change| explains(name, good, bad, change));
        changes = rest;
        variables.push(variable(name, before, after, explained));
    }
    // A variable that explains nothing is suspicious only when something went another way.
    let outcome_differs = good.exit != bad.exit
        || changes
            .iter()
            .any(|change| change.weight != Weight::None && change.kind != Kind::Duration);
    for variable in &mut variables {
        if variable.led_to.is_empty() {
            let decides = decides(variable.role.as_deref().unwrap_or_default());
            variable.weight = match outcome_differs && decides {
                true => Weight::Cause,
                false => Weight::None,
            };
            if !outcome_differs || !decides {
                "nothing was resolved differently by it".clone_into(&mut variable.why);
            }
        }
    }
    variables.extend(changes);
    variables
}

/// Whether a component may decide by this variable without that a file shows it.
fn decides(name: &str) -> bool {
    const FAMILIES: &[&str] = &[
        "CUDA",
        "NV",
        "FLASHINFER",
        "TRITON",
        "TORCH",
        "XLA",
        "JAX",
        "CUPY",
        "NUMBA",
        "LD_",
        "DG_",
        "SGL",
        "VLLM",
        "CC",
        "CXX",
        "CONDA_PREFIX",
    ];
    LISTS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

fn variable(name: &str, before: Option<&str>, after: Option<&str>, led_to: Vec<Change>) -> Change {
    let (said, good_text, bad_text) = match (before, after) {
        (Some(before), Some(after)) if LISTS.contains(&name) => {
            (list_change(name, before, after), before, after)
        }
        (Some(before), Some(after)) => {
            (format!("{name}={after} instead of {before}"), before, after)
        }
        (None, Some(after)) => (
            format!("{name}={after}, unset in the good run"),
            "unset",
            after,
        ),
        (Some(before), None) => (
            format!("{name} is unset, it was {before} in the good run"),
            before,
            "unset",
        ),
        (None, None) => (name.to_owned(), "unset", "unset"),
    };
    let title = match led_to.as_slice() {
        [] => said,
        [one] => format!("{said}: {}", one.title),
        [one, rest @ ..] => format!("{said}: {}, and {} more", one.title, rest.len()),
    };
    let weight = led_to
        .iter()
        .map(|change| change.weight)
        .min()
        .unwrap_or_default();
    let mut change = Change::new(Kind::Environment, weight, title)
        .of(
            led_to
                .first()
                .and_then(|change| change.component.as_deref()),
            Some(name),
        )
        .sides(Facet::new(good_text, &[]), Facet::new(bad_text, &[]));
    if weight == Weight::None && !led_to.is_empty() {
        change.why = "what it changed leads to the same files".to_owned();
    }
    change.led_to = led_to;
    change
}

/// What happened to a list of directories: the first entry that differs tells.
fn list_change(name: &str, before: &str, after: &str) -> String {
    let entries = |value: &str| -> Vec<String> {
        value
            .split(':')
            .filter(|entry| !entry.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (old, new) = (entries(before), entries(after));
    let added: Vec<&String> = new.iter().filter(|entry| !old.contains(entry)).collect();
    let removed: Vec<&String> = old.iter().filter(|entry| !new.contains(entry)).collect();
    let more = |list: &[&String]| match list.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    match (added.first(), removed.first()) {
        (Some(one), Some(other)) => {
            format!(
                "{name} has {one}{} instead of {other}{}",
                more(&added),
                more(&removed)
            )
        }
        (Some(one), None) => format!("{name} has {one}{} as well", more(&added)),
        (None, Some(one)) => format!("{name} lacks {one}{}", more(&removed)),
        (None, None) => format!("{name} has the same directories in another order"),
    }
}

/// Whether a variable decided what a change is about.
fn explains(name: &str, good: &Report, bad: &Report, change: &Change) -> bool {
    // What was not needed in one of the runs was not decided by a variable.
    if !matches!(change.kind, Kind::Resolution | Kind::Spelling)
        || change.weight == Weight::Consequence
    {
        return false;
    }
    let of = |report: &Report, facet: &Option<Facet>| {
        facet.is_some()
            && entries(report, change).any(|entry| decided_by(name, entry, facet.as_ref()))
    };
    of(good, &change.good) || of(bad, &change.bad)
}

fn entries<'a>(report: &'a Report, change: &'a Change) -> impl Iterator<Item = &'a Resolved> {
    report
        .components
        .iter()
        .filter(|component| Some(&component.name) == change.component.as_ref())
        .filter_map(|component| component.resolved.get(change.role.as_deref()?))
        .flatten()
}

fn decided_by(name: &str, entry: &Resolved, facet: Option<&Facet>) -> bool {
    if !facet.is_some_and(|facet| facet.text.contains(&entry.path)) {
        return false;
    }
    let by_rule = match entry.rule {
        Rule::CudaHome => name == "CUDA_HOME",
        Rule::CudaPath => name == "CUDA_PATH",
        Rule::Path => name == "PATH",
        Rule::LdLibraryPath => name == "LD_LIBRARY_PATH",
        Rule::Preload => name == "LD_PRELOAD",
        Rule::Conda => name == "CONDA_PREFIX",
        _ => false,
    };
    // Rule details name the variable: `TRITON_PTXAS_PATH=/opt/…`, `…, CUDA_HOME unset`.
    let named = entry
        .rule_detail
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == name);
    by_rule || named
}
