//! `cache-foreign-major`: a module in a cache binds a libcudart of another major than this process has.
//!
//! Proof: the module's DT_NEEDED, the load that failed (or that mapped the second runtime), and that the module was not
//! built in this run. What this run itself built with another major is told by `nvcc-differs-from-built-for`.

use super::{
    Draft, View,
    cudart_not_found::major_of,
    provider::{self, Reason},
    words::{directory, name, quoted},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for failure in provider::failures(view) {
        let Reason::NoFile { name: wanted } = &failure.reason else {
            continue;
        };
        let wanted = name(wanted);
        let Some(fact) = view.model.cache_fact(&failure.object) else {
            continue;
        };
        let Some(severity) = provider::severity(view, &failure) else {
            continue;
        };
        let built_now = view
            .report
            .caches
            .iter()
            .flat_map(|c| &c.artifacts)
            .any(|a| a.path == failure.object && a.built);
        if !wanted.starts_with("libcudart") || built_now {
            continue;
        }
        let built = view.built_for(&fact.what.owner);
        let with = fact
            .what
            .built_with
            .as_deref()
            .map(|v| format!(" with CUDA {v}"))
            .unwrap_or_default();
        let mut draft = Draft::of("cache-foreign-major", severity)
            .component(&fact.what.owner)
            .title(format!("{} in the cache is of another CUDA major", name(&failure.object)))
            .cause(format!(
                "{} was built in an earlier run{with} and needs {wanted}, which this process does not have.",
                failure.object
            ))
            .evidence(failure.event, format!("the load failed: {}", quoted(&failure.text)))
            .evidence(fact.id, format!("{} was built{with}", failure.object))
            .in_process(failure.pid)
            .remedy(format!("Delete {} to build it anew, or give each CUDA major a cache directory of its own.", directory(&failure.object)));
        if let Some((package, built)) = &built
            && major_of(wanted) != Some(built.version.major)
        {
            draft = draft
                .cause(format!(
                    "{package} is built for CUDA {}.",
                    built.version.without_patch()
                ))
                .evidence(
                    built.event,
                    format!("{package} is built for CUDA {}", built.version),
                );
        }
        drafts.push(draft.proven());
    }
    drafts.extend(harmless(view));
    drafts
}

/// Loaded, with the other major mapped for it: a finding of its own only where nothing else tells.
fn harmless(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for artifact in view
        .report
        .caches
        .iter()
        .flat_map(|c| &c.artifacts)
        .filter(|a| a.loaded && !a.built)
    {
        let Some(fact) = view.model.cache_fact(&artifact.path) else {
            continue;
        };
        let Some((package, built)) = view.built_for(&fact.what.owner) else {
            continue;
        };
        let foreign = artifact.needed.iter().find(|n| {
            n.starts_with("libcudart.so.") && major_of(n).is_some_and(|m| m != built.version.major)
        });
        let mapped = view
            .model
            .libraries()
            .iter()
            .find(|l| l.what.path == artifact.path);
        let (Some(foreign), Some(mapped)) = (foreign, mapped) else {
            continue;
        };
        drafts.push(
            Draft::warning("cache-foreign-major")
                .component(&fact.what.owner)
                .title(format!("{} in the cache is of another CUDA major", name(&artifact.path)))
                .cause(format!(
                    "{} was built in an earlier run and binds {foreign}; {package} is built for CUDA {}.",
                    artifact.path,
                    built.version.without_patch()
                ))
                .evidence(mapped.id, format!("{} was loaded", artifact.path))
                .evidence(fact.id, format!("{} needs {foreign}", artifact.path))
                .evidence(built.event, format!("{package} is built for CUDA {}", built.version))
                .remedy(format!("Delete {} to build it anew.", directory(&artifact.path)))
                .in_process(mapped.pid)
                .proven(),
        );
    }
    drafts
}
