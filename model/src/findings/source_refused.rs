//! `source-refused`: a way of watching was asked for and could not be used.
//!
//! Always a note about the trace, never about the program.

use super::{Draft, View};
use crate::log::SourceState;

/// A reason as a sentence of its own.
fn sentence(reason: &str) -> String {
    let mut rest = reason.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest.clone()).collect()
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.report
        .sources
        .iter()
        .filter(|s| s.state == SourceState::Refused)
        .map(|source| {
            Draft::note("source-refused")
                .title(format!("The source {} was refused", source.name))
                .cause(sentence(source.reason.as_deref().unwrap_or_default()))
                .remedy("`jittrace doctor` tells what would enable it.")
                .proven()
        })
        .collect()
}
