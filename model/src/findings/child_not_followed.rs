//! `child-not-followed`: a process of the program could not be watched from inside.
//!
//! A note for most (`ldconfig` with an empty environment is run on every healthy server), a warning when it is a
//! compiler, a build system, a shell or Python: then something that matters may be missing from the trace.

use super::{
    Draft, View,
    words::{count, name},
};
use crate::{fold::Process, report::Severity, resolve::tool::Kind};

/// Programs that only look something up.
const LOOK_UPS: &[&str] = &[
    "ldconfig",
    "ldconfig.real",
    "uname",
    "lsb_release",
    "nvidia-smi",
    "lscpu",
    "which",
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut groups: Vec<(String, String, Vec<&Process>)> = Vec::new();
    for process in view.model.processes() {
        let Some(reason) = process.not_followed() else {
            continue;
        };
        let program = process.name().to_owned();
        match groups
            .iter_mut()
            .find(|(p, r, _)| *p == program && r == reason)
        {
            Some((_, _, list)) => list.push(process),
            None => groups.push((program, reason.to_owned(), vec![process])),
        }
    }
    for (program, reason, processes) in groups {
        let Some(first) = processes.first() else {
            continue;
        };
        let severity = if matters(first) {
            Severity::Warning
        } else {
            Severity::Note
        };
        let mut draft = Draft::of("child-not-followed", severity)
            .title(format!("{program} was not followed: {reason}"))
            .cause(format!(
                "{} of {} could not be watched from inside ({reason}); what it did is missing here.",
                count(processes.len(), "run", "runs"),
                first.program
            ))
            .proven();
        for process in processes.iter().take(5) {
            draft = draft
                .evidence(
                    process.id,
                    format!("process {} is {}: {reason}", process.pid, process.program),
                )
                .in_process(process.pid);
        }
        drafts.push(if severity == Severity::Warning {
            draft.remedy(if reason.contains("--follow-clean-env") {
                "Run it again with jittrace --follow-clean-env, or as root with --source all."
            } else {
                "Run it again as root with jittrace --source all, which follows such a process."
            })
        } else {
            draft
        });
    }
    // Execs that were known to lead out of sight, whose process was never seen.
    for exec in view.model.execs() {
        let Some(reason) = &exec.what.not_followed else {
            continue;
        };
        let seen = exec
            .what
            .child
            .and_then(|c| view.model.current_process(c))
            .or_else(|| {
                view.model
                    .current_process(exec.pid)
                    .filter(|p| view.model.process(*p).is_some_and(|p| p.start >= exec.t))
            })
            .is_some();
        if seen {
            continue;
        }
        let program = name(&exec.what.path).to_owned();
        let matters = (Kind::of(&program).is_some() && !LOOK_UPS.contains(&program.as_str())
            || program.starts_with("python"))
            && !asks(exec.what.argv.get(1..).unwrap_or_default());
        let draft = Draft::of(
            "child-not-followed",
            if matters {
                Severity::Warning
            } else {
                Severity::Note
            },
        )
        .title(format!("{program} was not followed: {reason}"))
        .cause(format!(
            "{} was run and could not be watched from inside ({reason}).",
            exec.what.path
        ))
        .evidence(exec.id, format!("{} was run: {reason}", exec.what.path))
        .in_process(exec.pid)
        .proven();
        drafts.push(draft);
    }
    drafts
}

fn matters(process: &Process) -> bool {
    let program = process.name();
    if LOOK_UPS.contains(&program) {
        return false;
    }
    // A shell that only runs a look-up is one.
    let looks_up = process.arguments().iter().any(|a| {
        LOOK_UPS
            .iter()
            .any(|l| name(a.split(' ').next().unwrap_or(a)) == *l)
    });
    (Kind::of(program).is_some() || program.starts_with("python"))
        && !looks_up
        && !asks(process.arguments())
}

/// Whether a program is only asked who it is: nothing that matters can be missing.
fn asks(arguments: &[String]) -> bool {
    arguments.iter().any(|a| {
        matches!(
            a.as_str(),
            "--version" | "-V" | "--help" | "--list-gpu-arch"
        )
    })
}
