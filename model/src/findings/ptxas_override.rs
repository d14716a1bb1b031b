//! `ptxas-override-ignored`: a variable that names a tool was set, and another copy of the tool was run.
//!
//! Packages fall back in silence when the named file does not run (Triton), or have a second variable for newer GPUs.
//! Proof: the variable in the environment, the exec of another file of that name, and for anything above a note an exec
//! of the named file that failed, or a failure of the copy that ran in its place. Inductor sets TRITON_PTXAS_PATH by
//! itself, so the variable alone is no more than a note.

use super::{
    Draft, View,
    view::{Tool, exit_words, is_failure},
    words::errno_words,
};
use crate::{
    component,
    report::Severity,
    resolve::tool::{Kind, under},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for tool in view
        .tools()
        .iter()
        .filter(|t| matches!(t.kind, Kind::Ptxas | Kind::Nvcc))
    {
        let part = if tool.kind == Kind::Nvcc {
            "nvcc"
        } else {
            "ptxas"
        };
        for (owner, replaced) in component::overrides(part) {
            drafts.extend(ignored(view, tool, owner.name, replaced));
        }
    }
    drafts
}

fn ignored(
    view: &View<'_>,
    tool: &Tool<'_>,
    owner: &str,
    replaced: &component::Override,
) -> Option<Draft> {
    let value = view.env(tool.process, replaced.variable)?;
    let asker = view.asker(tool);
    let is_owners = asker.component == owner || view.carrier(tool.path()).as_deref() == Some(owner);
    let honoured = tool.path() == value
        || view.real(tool.path()) == view.real(value)
        || under(tool.path(), value);
    if !is_owners || honoured || replaced.not_asked && tool.only_asked {
        return None;
    }
    let failed_exec = view
        .model
        .exec_failures()
        .iter()
        .find(|f| f.what.path == value && f.t <= tool.process.start);
    let failed_run = view
        .tools()
        .iter()
        .find(|t| t.path() == value && view.exit_of(t.process.index).is_some_and(is_failure));
    let copy_failed = view.exit_of(tool.process.index).filter(|e| is_failure(*e));
    let other_file = replaced.replaces != tool.process.name();
    let severity = if copy_failed.is_some() && !other_file {
        Severity::Error
    } else if failed_exec.is_some() || failed_run.is_some() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let origin = view.origin(tool.process);
    let mut draft = Draft::of("ptxas-override-ignored", severity)
        .component(owner)
        .title(format!(
            "{}={value} had no effect: {owner} ran {}",
            replaced.variable,
            tool.path()
        ))
        .evidence(
            origin.id,
            format!("{}={value} in the environment", replaced.variable),
        )
        .evidence(tool.process.id, format!("{} ran instead", tool.path()))
        .in_process(tool.process.pid)
        .in_process(origin.pid);
    if let Some(failure) = failed_exec {
        draft = draft
            .cause(format!(
                "{value} could not be run ({}), and {owner} fell back to {} without a word.",
                errno_words(failure.what.errno),
                tool.named()
            ))
            .evidence(
                failure.id,
                format!("exec of {value} gave {}", errno_words(failure.what.errno)),
            )
            .remedy(format!(
                "Let {} name a file that runs, or unset it.",
                replaced.variable
            ))
            .proven();
    } else if let Some(run) = failed_run {
        let exit = view.exit_of(run.process.index).unwrap_or_default();
        draft = draft
            .cause(format!(
                "{value} was tried and failed ({}), and {owner} fell back to {}.",
                exit_words(exit),
                tool.named()
            ))
            .evidence(
                run.process.id,
                format!("{value} ran and failed ({})", exit_words(exit)),
            )
            .remedy(format!(
                "Let {} name a file that runs, or unset it.",
                replaced.variable
            ))
            .proven();
    } else if other_file {
        let variable = component::override_of(owner, tool.process.name());
        draft = draft
            .cause(format!(
                "{} replaces {}; for this GPU {owner} runs {}{}.",
                replaced.variable,
                replaced.replaces,
                tool.process.name(),
                variable
                    .map(|o| format!(", which {} replaces", o.variable))
                    .unwrap_or_default()
            ))
            .remedy_of(
                variable.map(|o| format!("Set {}={value} if that tool was meant.", o.variable)),
            );
    } else {
        draft = draft
            .cause(format!("{value} was never run."))
            .missing("why it was not tried");
    }
    if let Some(exit) = copy_failed {
        draft = draft.cause(format!("The copy that ran failed ({}).", exit_words(exit)));
    }
    draft = match view.offer(replaced.part, tool.path(), |v| {
        tool.version.as_ref().is_some_and(|t| v > t.version)
    }) {
        Some(offer) if severity != Severity::Note => draft
            .remedy(format!(
                "Set {}={}: it is {}.",
                replaced.variable, offer.path, offer.version
            ))
            .evidence(
                offer.event,
                format!(
                    "{} {} exists at {}",
                    replaced.part, offer.version, offer.path
                ),
            ),
        _ => draft,
    };
    Some(draft)
}
