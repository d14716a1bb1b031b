//! `host-headers-unsupported`: the C library's headers are newer than the toolkit's, and both declare the same function.
//!
//! glibc 2.41 and 2.42 brought functions (`sinpi`, `cospi`, `rsqrt` …) that CUDA's headers declared before, without an
//! exception specification. Proof: the compiler's sentence, and the toolkit's header that it names. No code and no flag of
//! the package changes it.

use super::{
    Draft, View,
    arch_unsupported::speaks_for,
    view::Tool,
    words::{quoted, tool_rule},
};
use crate::resolve::tool::Kind;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let Some(message) = view.said(&["host-headers-clash"]).next() else {
        return Vec::new();
    };
    let nvcc: Option<&Tool<'_>> = view
        .tools_of(Kind::Nvcc)
        .filter(|t| !t.only_asked && speaks_for(view, message, t))
        .last();
    let Some(nvcc) = nvcc else {
        return Vec::new();
    };
    if !view.failed(nvcc.process.index) {
        return Vec::new();
    }
    let named = nvcc.named();
    let mut draft = Draft::error("host-headers-unsupported")
        .component(&view.asker(nvcc).component)
        .title(format!(
            "{named} does not know the headers of this machine's C library"
        ))
        .cause(format!(
            "The headers of {named} at {} and those of the C library declare one function in two ways: {}.",
            nvcc.path(),
            quoted(&message.what.text)
        ))
        .cause("The C library is newer than the toolkit.")
        .evidence(message.id, view.said_by(message))
        .evidence(
            nvcc.process.id,
            format!("{} ran, {}", nvcc.path(), tool_rule(&view.found(nvcc))),
        )
        .evidence_of(
            view.exit_event(nvcc.process.index)
                .map(|e| (e, format!("{named} failed"))),
        )
        .in_process(view.origin(nvcc.process).pid);
    let own = nvcc.version.as_ref().map(|k| k.version);
    draft = match own.and_then(|own| view.offer("nvcc", nvcc.path(), |v| v > own)) {
        Some(offer) => draft
            .remedy(format!(
                "Set CUDA_HOME={}: nvcc {} is newer and may know this C library.",
                offer.root, offer.version
            ))
            .evidence(
                offer.event,
                format!("nvcc {} exists at {}", offer.version, offer.path),
            ),
        None => draft.remedy("Install a newer CUDA toolkit, whose headers know this C library."),
    };
    vec![
        draft
            .remedy("Or build in an image with an older C library (one that the toolkit's release notes list).")
            .proven(),
    ]
}
