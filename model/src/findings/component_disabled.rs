//! `component-disabled`: a component met a failure, said nothing (or little), and went on without a part of itself.
//!
//! Proof: a load that failed for a component's own object, and a process that went on. Always a note when nothing else
//! tells why; attached to the finding that does.

use super::{
    Draft, View, provider,
    words::{name, quoted},
};
use crate::resolve::asker;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for failure in provider::failures(view) {
        let Some(seen) = failure.seen else { continue };
        let Some(process) = failure.process else {
            continue;
        };
        // A name that was only asked for is no part of a component; an object that could not be completed is.
        let incomplete = seen
            .what
            .missing
            .as_deref()
            .is_some_and(|m| name(m) != name(&seen.what.requested))
            || matches!(
                failure.reason,
                provider::Reason::NoSymbol { .. } | provider::Reason::NoVersion { .. }
            );
        if !incomplete
            || !seen.what.requested.contains('/')
            || provider::loaded_later(view, &failure).is_some()
            || view.failed_line(process).is_some()
        {
            continue;
        }
        let asker = asker::of_library(
            view.model,
            Some(&seen.what.requested),
            view.model.python_of(&seen.what.python, seen.what.request),
            failure.process,
        );
        drafts.push(
            Draft::note("component-disabled")
                .component(&asker.component)
                .title(format!(
                    "{} went on without {}",
                    asker.component,
                    name(&seen.what.requested)
                ))
                .cause(format!(
                    "{} did not load ({}), and the program went on without it.",
                    seen.what.requested,
                    quoted(&failure.text)
                ))
                .evidence(
                    seen.id,
                    format!("the load failed: {}", quoted(&failure.text)),
                )
                .in_process(failure.pid)
                .proven(),
        );
    }
    drafts
}
