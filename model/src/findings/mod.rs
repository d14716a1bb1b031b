//! What is wrong: one file for each kind of finding.
//!
//! A finding states a cause only as far as its evidence goes, and a healthy run has none above a note. To add a kind,
//! write a file with a function of type [`Find`] and list it in [`KINDS`].

use crate::{
    fold::Model,
    report::{Finding, Report},
};

/// Looks for one kind of finding. The report holds everything but the findings.
pub type Find = fn(&Model, &Report) -> Vec<Finding>;

/// All kinds, in the order in which they are looked for.
const KINDS: &[Find] = &[];

/// Everything that is wrong, the primary cause first.
pub fn find(model: &Model, report: &Report) -> Vec<Finding> {
    let mut findings: Vec<Finding> = KINDS.iter().flat_map(|find| find(model, report)).collect();
    findings.sort_by_key(|f| (f.consequence_of.is_some(), f.severity, f.confidence));
    findings
}
