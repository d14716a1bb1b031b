//! Consequences: which finding follows from which.
//!
//! The last error names the victim. A kind that is known to follow from another is attached to it when both befell the
//! same processes, so that a reader sees one cause with what came of it and not a list of equals.

use super::{Draft, View};
use crate::report::Severity;

/// A kind and the kinds that it may follow from, the most telling first.
const FOLLOWS: &[(&str, &[&str])] = &[
    (
        "arch-list-empty",
        &[
            "nvcc-older-than-required",
            "nvcc-missing",
            "toolkit-root-malformed",
            "libcuda-stub",
            "libcuda-compat",
            "libcuda-not-found",
            "driver-too-old",
            "driver-not-ready",
            "mps-unavailable",
            "gpu-not-visible",
        ],
    ),
    (
        "cudart-not-found",
        &["cache-foreign-major", "nvcc-differs-from-built-for"],
    ),
    (
        "cudart-two-majors",
        &[
            "cache-foreign-major",
            "nvcc-differs-from-built-for",
            "cudart-stub-chosen",
        ],
    ),
    (
        "nvcc-differs-from-built-for",
        &[
            "nvcc-older-than-required",
            "cache-stale-build-file",
            "cache-foreign-major",
        ],
    ),
    (
        "nvjitlink-older-than-consumer",
        &["library-shadowed-by-ld-library-path"],
    ),
    (
        "nvjitlink-older-than-nvrtc",
        &[
            "nvjitlink-older-than-consumer",
            "library-shadowed-by-ld-library-path",
        ],
    ),
    ("cudnn-mixed", &["library-shadowed-by-ld-library-path"]),
    (
        "nvrtc-builtins-not-found",
        &["library-shadowed-by-ld-library-path"],
    ),
    (
        "ptxas-too-old-for-ptx",
        &[
            "ptxas-shadowed",
            "ptxas-override-ignored",
            "toolkit-mixed-releases",
        ],
    ),
    (
        "arch-unsupported-by-ptxas",
        &[
            "ptxas-shadowed",
            "ptxas-override-ignored",
            "toolkit-mixed-releases",
        ],
    ),
    (
        "arch-unsupported-by-nvcc",
        &["cache-stale-build-file", "version-disagreement"],
    ),
    (
        "headers-differ-from-nvcc",
        &["toolkit-mixed-releases", "toolkit-root-malformed"],
    ),
    (
        "toolkit-incomplete",
        &["toolkit-root-malformed", "headers-differ-from-nvcc"],
    ),
    (
        "nvcc-missing",
        &["toolkit-root-malformed", "cache-stale-build-file"],
    ),
    (
        "build-tool-missing",
        &[
            "toolkit-root-malformed",
            "toolkit-incomplete",
            "nvcc-missing",
        ],
    ),
    (
        "driver-too-old",
        &[
            "libcuda-compat",
            "libcuda-stub",
            "libcuda-not-found",
            "cache-foreign-major",
        ],
    ),
    ("libcuda-not-found", &["libcuda-stub", "libcuda-compat"]),
    (
        "ptx-too-new-for-driver",
        &["libcuda-compat", "cache-stale-toolkit"],
    ),
    (
        "no-kernel-image",
        &["cache-wrong-arch", "cache-stale-toolkit"],
    ),
    ("cache-rebuilt-without-change", &["cache-unwritable"]),
    ("duplicate-jit-builds", &["cache-unwritable"]),
    ("cache-contended", &["duplicate-jit-builds"]),
    (
        "component-disabled",
        &[
            "library-shadowed-by-ld-library-path",
            "nvjitlink-older-than-consumer",
            "cudart-not-found",
            "cudart-stub-chosen",
            "nvcc-older-than-required",
            "nvcc-missing",
            "nvrtc-builtins-not-found",
            "libcuda-stub",
            "libcuda-compat",
            "libcuda-not-found",
            "driver-too-old",
            "driver-not-ready",
            "mps-unavailable",
            "gpu-not-visible",
            "cudnn-mixed",
        ],
    ),
    (
        "version-disagreement",
        &[
            "toolkit-mixed-releases",
            "headers-differ-from-nvcc",
            "nvcc-older-than-required",
        ],
    ),
    (
        "cudart-same-soname-twice",
        &["cudart-two-majors", "cudart-stub-chosen"],
    ),
];

/// Attaches what follows from something else to it. Chains are cut to their beginning: a finding that is itself a
/// consequence passes its own consequences on.
pub(super) fn link(view: &View<'_>, drafts: &mut [Draft]) {
    for (kind, causes) in FOLLOWS {
        for at in 0..drafts.len() {
            let Some(draft) = drafts.get(at).filter(|d| d.finding.id == *kind) else {
                continue;
            };
            let cause = causes.iter().find_map(|cause| {
                drafts.iter().enumerate().find(|(other, d)| {
                    *other != at
                        && d.finding.id == *cause
                        && explains(d.finding.severity)
                        && befell_the_same(view, d, draft)
                        && (*kind != "component-disabled" || shares_an_event(d, draft))
                })
            });
            let Some((cause, name)) = cause.map(|(i, d)| (i, d.finding.id.clone())) else {
                continue;
            };
            if let Some(draft) = drafts.get_mut(at) {
                draft.finding.consequence_of = Some(name);
            }
            if let Some(cause) = drafts.get_mut(cause) {
                let known = &mut cause.finding.consequences;
                if !known.iter().any(|k| k == kind) {
                    known.push((*kind).to_owned());
                }
            }
        }
    }
}

/// What is only worth a note explains nothing else.
fn explains(cause: Severity) -> bool {
    cause != Severity::Note
}

/// A part that was given up belongs to the failure of that very load.
fn shares_an_event(cause: &Draft, consequence: &Draft) -> bool {
    cause.finding.evidence.iter().any(|a| {
        consequence
            .finding
            .evidence
            .iter()
            .any(|b| a.event == b.event)
    })
}

/// Whether both happened in the same processes, or in processes of which one started the other.
fn befell_the_same(view: &View<'_>, a: &Draft, b: &Draft) -> bool {
    if a.finding.component.is_some() && a.finding.component == b.finding.component {
        return true;
    }
    let images = |draft: &Draft| -> Vec<usize> {
        draft
            .pids
            .iter()
            .filter_map(|pid| view.model.current_process(*pid))
            .collect()
    };
    let (a, b) = (images(a), images(b));
    a.iter()
        .any(|a| b.iter().any(|b| a == b || view.related(*a, *b)))
}
