//! `cache-wrong-arch`: a module from a cache has no code for this GPU.
//!
//! Proof: the module's architectures, the GPU's compute capability, and a load or launch that failed for want of code
//! (209, 200, 98, or the sentence). Without such a failure a note.

use super::{
    Draft, View,
    words::{directory, few, name},
};
use crate::{
    report::Severity,
    toolkit::{Arch, runs_on},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let Some((capability, event)) = view.capabilities().first().copied() else {
        return Vec::new();
    };
    let refused = view
        .model
        .calls()
        .iter()
        .find(|c| matches!(c.what.result, Some(209 | 200 | 98)));
    let said = view.said(&["no-kernel-image", "cuda-error"]).find(|m| {
        [
            "no kernel image",
            "invalid device function",
            "kernel image is invalid",
        ]
        .iter()
        .any(|words| m.what.text.contains(words))
    });
    let mut drafts = Vec::new();
    for cache in &view.report.caches {
        for artifact in cache.artifacts.iter().filter(|a| a.loaded) {
            let archs: Vec<Arch> = artifact
                .archs
                .iter()
                .filter_map(|a| Arch::parse(a))
                .collect();
            if archs.is_empty() || archs.iter().any(|a| runs_on(*a, capability)) {
                continue;
            }
            let severity = if refused.is_some() || said.is_some() {
                Severity::Error
            } else {
                Severity::Note
            };
            let list = few(&artifact.archs, 6);
            let mut draft = Draft::of("cache-wrong-arch", severity)
                .component(&cache.owner)
                .title(format!("{} in the cache has code for {list}, not for this GPU ({capability})", name(&artifact.path)))
                .cause(format!(
                    "{} was taken from the cache; it has code for {list}, and the GPU's compute capability is {capability}.",
                    artifact.path
                ))
                .evidence(event, format!("compute capability {capability}"))
                .evidence_of(refused.map(|c| (c.id, format!("{} answered {}", c.what.function, c.what.result.unwrap_or_default()))))
                .evidence_of(said.map(|m| (m.id, view.said_by(m))))
                .remedy(format!("Delete {} to build it for this GPU, or give each GPU model a cache directory of its own.", directory(&artifact.path)));
            if let Some(fact) = view.model.cache_fact(&artifact.path) {
                draft = draft.evidence(fact.id, format!("{} has {list}", artifact.path));
            }
            for e in artifact.events.iter().take(2) {
                draft = draft.evidence(*e, format!("{} was used", artifact.path));
            }
            if let Some(call) = refused {
                draft = draft.in_process(call.pid);
            }
            if let Some(message) = said {
                draft = draft.in_process(message.pid);
            }
            drafts.push(draft.proven());
        }
    }
    drafts
}
