//! `cudnn-mixed`: the parts of cuDNN in one process are of different releases.
//!
//! Proof: sub-libraries mapped from several directories with different releases, and cuDNN's own refusal
//! (`CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`), a sentence about an incompatible cuDNN, or a failed load of one.
//! Several directories of one release are no finding, several releases without a failure a note.

use super::{
    Draft, View,
    aftermath::Aftermath,
    words::{directory, library_rule, name, quoted},
};
use crate::{event::Rule, fold::Seen, report::Severity, resolve::asker, toolkit::Version};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for process in view.model.processes() {
        let mut parts: Vec<(&Seen<crate::fold::Loaded>, Option<Version>)> = Vec::new();
        for library in view.loaded_part(Some(process.index), "cudnn") {
            if parts.iter().all(|(p, _)| p.what.path != library.what.path) {
                let version = view.version_of(&library.what.path).map(|k| k.version);
                parts.push((library, version));
            }
        }
        let mut directories: Vec<&str> =
            parts.iter().map(|(l, _)| directory(&l.what.path)).collect();
        directories.sort_unstable();
        directories.dedup();
        if directories.len() < 2 {
            continue;
        }
        let mut versions: Vec<Version> = parts.iter().filter_map(|(_, v)| *v).collect();
        versions.sort_unstable();
        versions.dedup_by(|a, b| a.agrees_with(*b));
        let said = view.said_with(&["cudnn"]).find(|m| {
            view.concerns(m, process.index)
                && [
                    "mismatch",
                    "incompatib",
                    "sublibrary",
                    "undefined symbol",
                    "not found",
                ]
                .iter()
                .any(|w| m.what.text.to_ascii_lowercase().contains(w))
        });
        if versions.len() < 2 && said.is_none() {
            continue;
        }
        let severity = if said.is_some() {
            Severity::Error
        } else {
            Severity::Note
        };
        // The stranger is what came from the directory with the fewest parts.
        let count = |d: &str| {
            parts
                .iter()
                .filter(|(l, _)| directory(&l.what.path) == d)
                .count()
        };
        let home = directories
            .iter()
            .max_by_key(|d| count(d))
            .copied()
            .unwrap_or_default();
        let stranger = parts.iter().find(|(l, _)| directory(&l.what.path) != home);
        let asker = stranger
            .map(|(l, _)| {
                asker::of_library(
                    view.model,
                    l.what.requested_by.as_deref(),
                    view.python(&l.what),
                    l.process,
                )
            })
            .unwrap_or_default();
        let list: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let mut draft = Draft::of("cudnn-mixed", severity)
            .component(&asker.component)
            .title(if list.len() > 1 {
                format!("cuDNN of releases {} in one process", list.join(" and "))
            } else {
                format!(
                    "cuDNN from {} directories in one process",
                    directories.len()
                )
            })
            .cause(format!(
                "The parts of cuDNN came from {}.",
                directories.join(" and ")
            ))
            .in_process(process.pid);
        if let Some((library, version)) = stranger {
            draft = draft.cause(format!(
                "{}{} was chosen {}{}; the others lie in {home}.",
                library.what.path,
                version.map(|v| format!(" ({v})")).unwrap_or_default(),
                library_rule(library.what.rule, &library.what.rule_detail),
                asker::of_frames(view.python(&library.what))
                    .and_then(|a| a.sentence())
                    .or_else(|| library
                        .what
                        .requested_by
                        .as_deref()
                        .map(|by| name(by).to_owned()))
                    .map(|by| format!(", asked for by {by}"))
                    .unwrap_or_default()
            ));
        }
        for (library, version) in parts.iter().take(10) {
            draft = draft.evidence(
                library.id,
                format!(
                    "{}{}, {}",
                    library.what.path,
                    version.map(|v| format!(" ({v})")).unwrap_or_default(),
                    library_rule(library.what.rule, &library.what.rule_detail)
                ),
            );
        }
        if let Some(message) = said {
            draft = draft
                .cause(format!("{}.", view.said_by(message)))
                .evidence(message.id, view.said_by(message));
        }
        draft = match stranger {
            Some((l, _)) if l.what.rule == Rule::LdLibraryPath => draft.remedy(format!(
                "Take {} out of LD_LIBRARY_PATH: the rest of cuDNN is in {home}.",
                directory(&l.what.path)
            )),
            Some((l, _)) => draft.remedy(format!(
                "Let all parts come from {home}: remove or hide {}.",
                l.what.path
            )),
            None => draft,
        };
        drafts.push(draft.proven_if(versions.len() > 1, "the releases of the parts"));
    }
    if drafts.iter().all(|d| d.finding.severity == Severity::Note) {
        drafts.extend(older_than_compiled(view));
    }
    drafts
}

/// One cuDNN, of another release than the one that the program was compiled with.
fn older_than_compiled(view: &View<'_>) -> Option<Draft> {
    let said = view
        .said(&["cudnn-mismatch"])
        .find(|m| m.what.text.contains("compiled"))?;
    let process = said.process?;
    let loaded = view
        .loaded_part(Some(process), "cudnn")
        .find(|l| name(&l.what.path).starts_with("libcudnn.so"))
        .or_else(|| view.loaded_part(Some(process), "cudnn").next())?;
    let version = view.version_of(&loaded.what.path);
    let rule = library_rule(loaded.what.rule, &loaded.what.rule_detail);
    let asker = asker::of_library(
        view.model,
        loaded.what.requested_by.as_deref(),
        view.python(&loaded.what),
        loaded.process,
    );
    let names_it = version
        .as_ref()
        .is_some_and(|k| said.what.text.contains(&k.version.to_string()));
    let severity = Aftermath::of_process(view, Some(process)).of_a_sentence(names_it);
    let mut draft = Draft::of("cudnn-mixed", severity)
        .component(&asker.component)
        .title(format!(
            "{}{} is not the release that {} was compiled with",
            name(&loaded.what.path),
            version
                .as_ref()
                .map(|k| format!(" {}", k.version))
                .unwrap_or_default(),
            asker.component
        ))
        .cause(format!(
            "{} was loaded, {rule}; the program refused it: {}.",
            loaded.what.path,
            quoted(&said.what.text)
        ))
        .evidence(
            loaded.id,
            format!("{} was loaded, {rule}", loaded.what.path),
        )
        .evidence(said.id, view.said_by(said))
        .evidence_of(version.as_ref().map(|k| {
            (
                k.event,
                format!("{} is {} ({})", loaded.what.path, k.version, k.how()),
            )
        }))
        .in_process(loaded.pid);
    let own = version.map(|k| k.version);
    draft = match view.offer("cudnn", &loaded.what.path, |v| own.is_none_or(|o| v > o)) {
        Some(o) => draft
            .remedy(format!(
                "Let {} ({}) be found before {}.",
                o.path, o.version, loaded.what.path
            ))
            .evidence(o.event, format!("{} exists", o.path)),
        None => draft.remedy(format!(
            "Update the package that brings {}, or keep it out of this process.",
            loaded.what.path
        )),
    };
    Some(draft.proven())
}
