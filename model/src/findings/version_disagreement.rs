//! `version-disagreement`: one question, two answers.
//!
//! Two kinds. What a library answers when it is called is another release than its file says: a note. One component
//! asked one nvcc for its release and compiled with another (`FLASHINFER_NVCC` beside CUDA_HOME): a note, and an error
//! when that compile failed on a flag or architecture that was chosen for the other.

use std::collections::HashMap;

use super::{
    Draft, Tool, View,
    view::{exit_words, is_failure, release_of},
    words::tool_rule,
};
use crate::{report::Severity, resolve::tool::Kind};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = answers(view);
    drafts.extend(believed_and_used(view));
    drafts
}

/// cudaRuntimeGetVersion, nvrtcVersion and nvJitLinkVersion against the file they are in.
fn answers(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for call in view
        .calls(&["cudaRuntimeGetVersion", "nvrtcVersion", "nvJitLinkVersion"])
        .filter(|c| c.what.result == Some(0))
    {
        let (Some(object), Some(answer)) = (
            call.what.object.as_deref(),
            call.what.value.as_deref().and_then(release_of),
        ) else {
            continue;
        };
        let Some(file) = view.version_of(object) else {
            continue;
        };
        if file.version.same_release(answer) {
            continue;
        }
        // A directory's name is no statement about the file.
        let certain = view.model.file(object).is_some_and(|f| {
            f.what.readings.is_empty()
                || f.what.readings.iter().any(|r| {
                    r.certainty != "guess"
                        && r.version
                            .starts_with(&file.version.without_patch().to_string())
                })
        });
        if !certain {
            continue;
        }
        drafts.push(
            Draft::note("version-disagreement")
                .title(format!(
                    "{object} answers {} and its file says {}",
                    answer.without_patch(),
                    file.version
                ))
                .cause(format!(
                    "{} of {object} answered {}; the file says {} ({}).",
                    call.what.function,
                    answer.without_patch(),
                    file.version,
                    file.how()
                ))
                .evidence(
                    call.id,
                    format!("{} answered {}", call.what.function, answer.without_patch()),
                )
                .evidence(
                    file.event,
                    format!("the file says {} ({})", file.version, file.how()),
                )
                .in_process(call.pid)
                .proven(),
        );
    }
    drafts
}

fn believed_and_used(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut asked_by: HashMap<String, Vec<&Tool<'_>>> = HashMap::new();
    for asked in view.tools_of(Kind::Nvcc).filter(|t| t.only_asked) {
        let component = view.asker(asked).component;
        asked_by.entry(component).or_default().push(asked);
    }
    for used in view.tools_of(Kind::Nvcc).filter(|t| !t.only_asked) {
        let asker = view.asker(used);
        let origin = view.origin(used.process).index;
        // The last one that was asked before.
        let believed = asked_by.get(&asker.component).and_then(|asked| {
            asked.iter().rfind(|t| {
                t.process.start <= used.process.start
                    && view.related(view.origin(t.process).index, origin)
            })
        });
        let Some(believed) = believed else { continue };
        let (Some(a), Some(b)) = (&believed.version, &used.version) else {
            continue;
        };
        if a.version.same_release(b.version) {
            continue;
        }
        let exit = view.exit_of(used.process.index).filter(|e| is_failure(*e));
        let said = view
            .said(&[
                "nvcc-fatal",
                "unsupported-gpu-architecture",
                "value-not-defined-for-option",
            ])
            .find(|m| super::arch_unsupported::speaks_for(view, m, used));
        let severity = if exit.is_some() && said.is_some() {
            Severity::Error
        } else {
            Severity::Note
        };
        let (asked_rule, used_rule) = (
            tool_rule(&view.found(believed)),
            tool_rule(&view.found(used)),
        );
        let mut draft = Draft::of("version-disagreement", severity)
            .component(&asker.component)
            .title(format!(
                "{} asked {} and compiled with {}",
                asker.component,
                believed.named(),
                used.named()
            ))
            .cause(format!(
                "{} asked {} ({}, {asked_rule}) for the release, and compiled with {} ({}, {used_rule}).",
                asker.component,
                believed.path(),
                believed.named(),
                used.path(),
                used.named()
            ))
            .evidence(believed.process.id, format!("{} was asked", believed.path()))
            .evidence(a.event, format!("{} is release {}", believed.path(), a.version))
            .evidence(used.process.id, format!("{} compiled", used.path()))
            .evidence(b.event, format!("{} is release {}", used.path(), b.version))
            .in_process(view.origin(used.process).pid);
        if let Some(exit) = exit {
            draft = draft.cause(format!("The compile failed ({}).", exit_words(exit)));
        }
        if let Some(message) = said {
            draft = draft
                .cause(format!("{}.", view.said_by(message)))
                .evidence(message.id, view.said_by(message));
        }
        drafts.push(
            draft
                .remedy(format!(
                    "Let both be one: the one that was asked is {}, the one that compiled {}.",
                    believed.path(),
                    used.path()
                ))
                .proven(),
        );
        break;
    }
    drafts
}
