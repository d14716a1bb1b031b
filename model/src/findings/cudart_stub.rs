//! `cudart-stub-chosen`: a stand-in for libcudart was taken for the real one.
//!
//! Packages that scan /proc/self/maps for "libcudart" bound TileLang's `libcudart_stub.so` (resolution.md 3, class 17).
//! Proof: the failed look-up in that file, or its request by another component after a read of the maps. Silent while
//! the stand-in only serves its own package.

use super::{
    Draft, View,
    provider::{self, Failure, Reason},
    words::{name, quoted},
};
use crate::resolve::asker;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for failure in provider::failures(view)
        .iter()
        .filter(|f| is_stub_failure(f))
    {
        let Reason::NoSymbol { symbol, .. } = &failure.reason else {
            continue;
        };
        let scan = view.model.accesses().iter().rfind(|a| {
            a.process == failure.process && a.t <= failure.t && a.what.path.ends_with("/maps")
        });
        let python = failure.python(view).to_vec();
        let asker = asker::of_call(view.model, &python, None, failure.process);
        let real = view
            .loaded_part(failure.process, "cudart")
            .find(|l| !is_stub(&l.what.path));
        let mut draft = Draft::error("cudart-stub-chosen")
            .component(&asker.component)
            .title(format!("{} was taken for libcudart", name(&failure.object)))
            .cause(format!(
                "{} looked for {symbol} in {}, a stand-in that loads the real runtime later and does not have it.",
                asker.component, failure.object
            ))
            .cause(match scan {
                Some(_) => format!(
                    "{} had read the memory map of the process and taken the first name with \"libcudart\" in it.",
                    asker.component
                ),
                None => String::new(),
            })
            .evidence(failure.event, format!("the look-up failed: {}", quoted(&failure.text)))
            .evidence_of(scan.map(|a| (a.id, format!("{} was read before", a.what.path))))
            .in_process(failure.pid);
        draft = match real {
            Some(real) => draft
                .remedy(format!(
                    "Update {}: newer releases match whole file names; the real runtime is {}.",
                    asker.component, real.what.path
                ))
                .evidence(real.id, format!("{} is loaded", real.what.path)),
            None => draft.remedy(format!(
                "Update {}: newer releases match whole file names.",
                asker.component
            )),
        };
        drafts.push(draft.proven_if(
            scan.is_some() || failure.seen.is_some(),
            "the look-up in the stand-in",
        ));
    }
    drafts
}

fn is_stub(path: &str) -> bool {
    let file = name(path);
    file.contains("cudart") && file.contains("stub")
}

/// Whether a failed look-up was made in a stand-in for libcudart.
pub(super) fn is_stub_failure(failure: &Failure<'_>) -> bool {
    is_stub(&failure.object)
}
