//! What is wrong now and was not, and what no longer is.

use super::{Change, Facet, Kind, Weight};
use crate::report::{Finding, Report, Severity, phrase};

pub(super) fn compare(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let same =
        |one: &Finding, other: &Finding| one.id == other.id && one.component == other.component;
    for (mine, theirs, is_new) in [(bad, good, true), (good, bad, false)] {
        for finding in &mine.findings {
            if theirs.findings.iter().any(|other| same(finding, other)) {
                continue;
            }
            changes.push(change(finding, is_new));
        }
    }
}

fn change(finding: &Finding, is_new: bool) -> Change {
    let severity = phrase::severity(finding.severity);
    let weight = match finding.severity {
        Severity::Note => Weight::None,
        _ => Weight::Consequence,
    };
    let events: Vec<u64> = finding
        .evidence
        .iter()
        .map(|evidence| evidence.event)
        .collect();
    let facet = Facet::new(phrase::one_line(&finding.title), &events);
    let word = if is_new { "new" } else { "gone" };
    let change = Change::new(
        Kind::Finding,
        weight,
        format!(
            "{word} {severity} {}: {}",
            finding.id,
            phrase::one_line(&finding.title)
        ),
    )
    .of(finding.component.as_deref(), Some(&finding.id));
    match is_new {
        true => change.sides(None, facet),
        false => change.sides(facet, None),
    }
}
