//! Which change comes first: the one that lies furthest upstream of what went wrong.

use super::{Change, Kind, Weight};
use crate::report::{Finding, Report, Severity, phrase};

/// Orders changes: causes, consequences, what does not matter; within each the most telling first.
pub(super) fn order(good: &Report, bad: &Report, mut changes: Vec<Change>) -> Vec<Change> {
    let primary = new_primary(good, bad);
    respelled_and_rebuilt(&mut changes, primary);
    stale_cache(bad, &mut changes, primary);
    for change in &mut changes {
        change.score = score(change, primary);
    }
    changes.sort_by_key(|change| (change.weight, -change.score));
    changes
}

/// The fault that the bad run has and the good one lacks; in a pair that went the other way, the one that is gone.
fn new_primary<'a>(good: &'a Report, bad: &'a Report) -> Option<&'a Finding> {
    let lacks = |report: &Report, finding: &Finding| {
        report.findings.iter().all(|other| {
            other.severity == Severity::Note
                || other.id != finding.id
                || other.component != finding.component
        })
    };
    phrase::primary(bad)
        .filter(|finding| lacks(good, finding))
        .or_else(|| phrase::primary(good).filter(|finding| lacks(bad, finding)))
}

/// A toolkit that is spelled another way does not matter, unless a cache took the spelling for a change and compiled
/// everything again.
fn respelled_and_rebuilt(changes: &mut [Change], primary: Option<&Finding>) {
    let rebuilt = primary.filter(|finding| finding.id == "cache-rebuilt-without-change");
    let compiled: Vec<String> = changes
        .iter()
        .filter(|change| {
            change.kind == Kind::Build
                || (change.kind == Kind::Cache && change.title.contains("compiled now"))
        })
        .filter_map(|change| change.component.clone())
        .chain(rebuilt.and_then(|finding| finding.component.clone()))
        .collect();
    let caught = |change: &Change| {
        change.kind == Kind::Spelling
            && change
                .component
                .as_ref()
                .is_some_and(|component| compiled.contains(component))
    };
    for change in changes.iter_mut() {
        let mut matters = caught(change);
        for inner in change.led_to.iter_mut().filter(|inner| caught(inner)) {
            inner.weight = Weight::Cause;
            inner.why.clear();
            matters = true;
        }
        if matters {
            change.weight = Weight::Cause;
            change.title.push_str(", yet everything was compiled again");
            "the cache took the other spelling for a change".clone_into(&mut change.why);
        }
    }
}

/// A variable that was changed to no effect, since the cache answered: the variable and the cache are told together.
fn stale_cache(bad: &Report, changes: &mut [Change], primary: Option<&Finding>) {
    let Some(finding) = primary.filter(|finding| finding.id.starts_with("cache-stale")) else {
        return;
    };
    let is_new = bad
        .findings
        .iter()
        .any(|other| std::ptr::eq(other, finding));
    for change in changes {
        let toolkit = matches!(
            change.role.as_deref(),
            Some("CUDA_HOME" | "CUDA_PATH" | "PATH")
        );
        if change.kind == Kind::Environment && toolkit && is_new {
            change.weight = Weight::Cause;
            let said = change
                .title
                .split(": ")
                .next()
                .unwrap_or_default()
                .to_owned();
            change.title = format!("{said}: {}", phrase::one_line(&finding.title));
            change.component.clone_from(&finding.component);
        }
    }
}

fn score(change: &Change, primary: Option<&Finding>) -> i32 {
    let base = match change.kind {
        // The outcome is told from what the user saw down to what it did not do any more.
        Kind::Finding if change.weight == Weight::Consequence => 70,
        Kind::Exit if change.weight == Weight::Consequence => 60,
        // It explains other changes, or a cache that it had no effect on.
        Kind::Environment if !change.led_to.is_empty() || change.component.is_some() => 90,
        Kind::Resolution => 85,
        Kind::Driver => 84,
        Kind::Component if change.role.is_some() => 80,
        Kind::Spelling => 75,
        Kind::Environment => 65,
        Kind::Command => 60,
        Kind::Cache => 50,
        Kind::Finding => 45,
        Kind::Component => 35,
        Kind::Build => 30,
        Kind::Exit => 25,
        Kind::Host => 15,
        Kind::Toolkit => 10,
        Kind::Duration => 5,
    };
    let Some(finding) = primary.filter(|_| change.kind != Kind::Exit) else {
        return base;
    };
    let mut score = base;
    if change.kind == Kind::Finding && change.role.as_deref() == Some(&finding.id) {
        score += 10;
    }
    for part in std::iter::once(change).chain(&change.led_to) {
        if part.component.is_some() && part.component == finding.component {
            score += 10;
        }
        let named = part
            .role
            .as_deref()
            .is_some_and(|role| finding.id.split('-').any(|word| word == role));
        let seen = [&part.good, &part.bad].into_iter().flatten().any(|facet| {
            finding
                .evidence
                .iter()
                .any(|evidence| facet.events.contains(&evidence.event))
        });
        if named || seen {
            score += 20;
        }
    }
    score
}
