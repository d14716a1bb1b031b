//! What each component resolved, part by part.

use super::{Change, Facet, Kind, Weight, caches::compiled, other_host};
use crate::{
    lasting::lasting,
    report::{Component, Report, Resolved, phrase},
};

pub(super) fn compare(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let mut found = Vec::new();
    one_by_one(good, bad, &mut found);
    changes.extend(folded(found));
}

/// Parts that only one run needed share a line for each component: a compiler brings its assembler, headers and host
/// compiler along.
fn folded(changes: Vec<Change>) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for change in changes {
        let is_alike = |other: &Change| {
            other.kind == Kind::Resolution
                && other.weight == Weight::Consequence
                && other.component == change.component
                && other.good.is_some() == change.good.is_some()
        };
        if change.kind != Kind::Resolution || change.weight != Weight::Consequence {
            all.push(change);
        } else if let Some(first) = all.iter_mut().find(|other| is_alike(other)) {
            merge(first, change);
        } else {
            all.push(change);
        }
    }
    all
}

fn merge(into: &mut Change, change: Change) {
    if into.role != change.role
        && let Some(part) = &change.role
        && !into.title.split([' ', ',']).any(|word| word == part)
    {
        into.title = format!("{}, {part}", into.title.trim_end_matches(" as well"));
    }
    for (into, from) in [(&mut into.good, change.good), (&mut into.bad, change.bad)] {
        if let (Some(into), Some(from)) = (into, from) {
            into.text = format!("{}; {}", into.text, from.text);
            into.events.extend(from.events);
        }
    }
}

fn one_by_one(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let apart = other_host(good, bad);
    let mut paired = Vec::new();
    for component in &good.components {
        match counterpart(component, &bad.components) {
            Some(other) => {
                paired.push(std::ptr::from_ref(other));
                versions(component, other, changes);
                let compiles_now = compiled(bad, &other.name) && !compiled(good, &component.name);
                let parts = component.resolved.keys().chain(
                    other
                        .resolved
                        .keys()
                        .filter(|part| !component.resolved.contains_key(*part)),
                );
                for part in parts {
                    let none = Vec::new();
                    let before = component.resolved.get(part).unwrap_or(&none);
                    let after = other.resolved.get(part).unwrap_or(&none);
                    Pairing {
                        component: other,
                        part,
                        apart,
                        compiles_now,
                    }
                    .compare(before, after, changes);
                }
            }
            None => changes.push(one_sided(component, true)),
        }
    }
    for component in &bad.components {
        if !paired.contains(&std::ptr::from_ref(component)) {
            changes.push(one_sided(component, false));
        }
    }
}

/// The same component in another run: by name; a script by its file name, for it may lie elsewhere.
pub(super) fn counterpart<'a>(
    component: &Component,
    others: &'a [Component],
) -> Option<&'a Component> {
    let file = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    others
        .iter()
        .find(|other| other.name == component.name)
        .or_else(|| {
            others.iter().find(|other| {
                component.distribution.is_none()
                    && other.distribution.is_none()
                    && component.name.contains('/')
                    && other.name.contains('/')
                    && file(&other.name) == file(&component.name)
            })
        })
}

fn one_sided(component: &Component, in_good: bool) -> Change {
    let name = phrase::component(component);
    let took: Vec<String> = component
        .resolved
        .iter()
        .flat_map(|(part, entries)| entries.iter().map(move |entry| described(part, entry)))
        .collect();
    let events: Vec<u64> = component
        .resolved
        .values()
        .flatten()
        .flat_map(|entry| entry.events.iter().copied())
        .collect();
    let facet = Facet::new(
        if took.is_empty() {
            name.clone()
        } else {
            took.join(", ")
        },
        &events,
    );
    let weight = if took.is_empty() {
        Weight::None
    } else {
        Weight::Consequence
    };
    let change = Change::new(
        Kind::Component,
        weight,
        format!(
            "only the {} run has component {name}",
            if in_good { "good" } else { "bad" }
        ),
    )
    .of(Some(&component.name), None);
    if in_good {
        change.sides(facet, None)
    } else {
        change.sides(None, facet)
    }
}

fn versions(good: &Component, bad: &Component, changes: &mut Vec<Change>) {
    if let (Some(before), Some(after)) = (&good.version, &bad.version)
        && before != after
    {
        changes.push(
            Change::new(
                Kind::Component,
                Weight::Cause,
                format!("{} is {after} instead of {before}", bad.name),
            )
            .of(Some(&bad.name), Some("version"))
            .sides(Facet::new(before, &[]), Facet::new(after, &[])),
        );
    }
    if let (Some(before), Some(after)) = (&good.built_for.cuda, &bad.built_for.cuda)
        && before != after
    {
        changes.push(
            Change::new(
                Kind::Component,
                Weight::Cause,
                format!(
                    "{} was built for CUDA {after} instead of {before}",
                    bad.name
                ),
            )
            .of(Some(&bad.name), Some("built_for"))
            .sides(Facet::new(before, &[]), Facet::new(after, &[])),
        );
    }
}

/// One part of one component in both runs.
struct Pairing<'a> {
    component: &'a Component,
    part: &'a str,
    apart: bool,
    /// The component compiled in the bad run alone.
    compiles_now: bool,
}

impl Pairing<'_> {
    fn compare(&self, good: &[Resolved], bad: &[Resolved], changes: &mut Vec<Change>) {
        let mut before: Vec<&Resolved> = good.iter().collect();
        let mut after: Vec<&Resolved> = bad.iter().collect();
        // The same file first, then the same file name, then what is left in order.
        let same_file = |one: &Resolved, other: &Resolved| {
            one.realpath == other.realpath || lasting(&one.realpath) == lasting(&other.realpath)
        };
        for (one, other) in take_pairs(&mut before, &mut after, same_file) {
            self.same_file(one, other, changes);
        }
        let alike = |one: &Resolved, other: &Resolved| {
            one.version.is_some()
                && one.version == other.version
                && file_name(one) == file_name(other)
        };
        for (one, other) in take_pairs(&mut before, &mut after, alike) {
            self.moved(one, other, changes);
        }
        let same_name = |one: &Resolved, other: &Resolved| file_name(one) == file_name(other);
        let mut pairs = take_pairs(&mut before, &mut after, same_name);
        pairs.extend(take_pairs(&mut before, &mut after, |_, _| true));
        for (one, other) in pairs {
            self.replaced(one, other, changes);
        }
        for left in before {
            changes.push(self.one_sided(left, good.len() > 1 || !bad.is_empty(), true));
        }
        for left in after {
            changes.push(self.one_sided(left, bad.len() > 1 || !good.is_empty(), false));
        }
    }

    fn change(
        &self,
        kind: Kind,
        weight: Weight,
        title: String,
        good: Option<&Resolved>,
        bad: Option<&Resolved>,
    ) -> Change {
        let facet = |entry: Option<&Resolved>| {
            entry.and_then(|entry| Facet::new(described_in_full(entry), &entry.events))
        };
        Change::new(kind, weight, title)
            .of(Some(&self.component.name), Some(self.part))
            .sides(facet(good), facet(bad))
    }

    fn subject(&self) -> String {
        format!("{}'s {}", self.component.name, self.part)
    }

    fn same_file(&self, good: &Resolved, bad: &Resolved, changes: &mut Vec<Change>) {
        if let (Some(before), Some(after)) = (&good.version, &bad.version)
            && before != after
        {
            let title = format!(
                "{} is {after} instead of {before}, in the same place",
                self.subject()
            );
            changes.push(self.change(
                Kind::Resolution,
                Weight::Cause,
                title,
                Some(good),
                Some(bad),
            ));
        } else if good.path != bad.path && lasting(&good.path) != lasting(&bad.path) {
            let title = format!(
                "{} was named {} and is named {} now, the same file",
                self.subject(),
                good.path,
                bad.path
            );
            changes.push(
                self.change(Kind::Spelling, Weight::None, title, Some(good), Some(bad))
                    .because("both names lead to the same file"),
            );
        } else if good.rule != bad.rule {
            let title = format!(
                "{} was found by rule {} and is found by {} now, the same file",
                self.subject(),
                good.rule.word(),
                bad.rule.word()
            );
            changes.push(
                self.change(Kind::Resolution, Weight::None, title, Some(good), Some(bad))
                    .because("another rule led to the same file"),
            );
        }
    }

    /// Another file of the same name and version: another venv, another host.
    fn moved(&self, good: &Resolved, bad: &Resolved, changes: &mut Vec<Change>) {
        let version = bad.version.as_deref().unwrap_or_default();
        let title = format!(
            "{} {version} is {} instead of {}",
            self.subject(),
            bad.path,
            good.path
        );
        let (weight, why) = match self.apart {
            true => (Weight::None, "another machine, the same version"),
            // The same version in another place is another installation: its headers and libraries may differ.
            false if good.rule == bad.rule && good.toolkit == bad.toolkit => {
                (Weight::None, "the same version by the same rule")
            }
            false => (Weight::Cause, "another installation of the same version"),
        };
        changes.push(
            self.change(Kind::Resolution, weight, title, Some(good), Some(bad))
                .because(why),
        );
    }

    fn replaced(&self, good: &Resolved, bad: &Resolved, changes: &mut Vec<Change>) {
        let title = match (&good.version, &bad.version) {
            (Some(before), Some(after)) if before != after => {
                format!("{} is {after} instead of {before}", self.subject())
            }
            _ => format!(
                "{} is {} instead of {}",
                self.subject(),
                bad.path,
                good.path
            ),
        };
        let title = match good.rule == bad.rule {
            true => format!("{title} (rule {})", bad.rule.word()),
            false => format!(
                "{title} (rule {} instead of {})",
                bad.rule.word(),
                good.rule.word()
            ),
        };
        changes.push(self.change(
            Kind::Resolution,
            Weight::Cause,
            title,
            Some(good),
            Some(bad),
        ));
    }

    fn one_sided(&self, entry: &Resolved, beside_another: bool, in_good: bool) -> Change {
        let run = if in_good { "good" } else { "bad" };
        let what = described(self.part, entry);
        let title = match beside_another {
            true => format!(
                "only in the {run} run {} took {what} as well",
                self.component.name
            ),
            false => format!("only in the {run} run {} took {what}", self.component.name),
        };
        // A part that was not needed is a consequence (nothing was compiled); a further one beside another may clash,
        // unless it is what every compilation takes.
        let with_compiling =
            self.compiles_now && matches!(self.part, "host_compiler" | "headers" | "ptxas");
        let weight = if beside_another && !in_good && !with_compiling {
            Weight::Cause
        } else {
            Weight::Consequence
        };
        match in_good {
            true => self.change(Kind::Resolution, weight, title, Some(entry), None),
            false => self.change(Kind::Resolution, weight, title, None, Some(entry)),
        }
    }
}

/// Takes out of both lists what belongs together.
fn take_pairs<'a>(
    good: &mut Vec<&'a Resolved>,
    bad: &mut Vec<&'a Resolved>,
    belong: impl Fn(&Resolved, &Resolved) -> bool,
) -> Vec<(&'a Resolved, &'a Resolved)> {
    let mut pairs = Vec::new();
    good.retain(
        |one| match bad.iter().position(|other| belong(one, other)) {
            Some(at) => {
                pairs.push((*one, bad.remove(at)));
                false
            }
            None => true,
        },
    );
    pairs
}

fn file_name(entry: &Resolved) -> &str {
    entry.path.rsplit('/').next().unwrap_or_default()
}

fn described(part: &str, entry: &Resolved) -> String {
    match &entry.version {
        Some(version) => format!("{part} {version} at {}", entry.path),
        None => format!("{part} at {}", entry.path),
    }
}

fn described_in_full(entry: &Resolved) -> String {
    let version = entry.version.as_deref().unwrap_or("unknown version");
    format!("{version}  {}  by {}", entry.path, phrase::rule(entry))
}
