//! `child-not-followed`, of another kind: work that was handed to a process which is no child of the program.
//!
//! A compiler cache's server, a container's daemon, a build server: a compile that is done there is not in the trace.
//! Proof: the client's command line, and that no such program ran below it; the server's pid where the collector found
//! it. Always a note: to hand work over is no fault.

use super::{Draft, View, words::name};
use crate::{
    commandline::{HANDED_OVER, handed_over},
    report::phrase,
    resolve::asker,
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for process in view.model.processes() {
        if process.what.forked {
            continue;
        }
        let Some(handed) = handed_over(process.name(), process.arguments()) else {
            continue;
        };
        let Some(program) = handed.work.first().map(|w| name(w).to_owned()) else {
            continue;
        };
        // A launcher that cannot reach its server does the work itself, and a server that it starts is followed.
        let done_here =
            view.model.processes().iter().any(|p| {
                p.index != process.index && p.name() == program && p.start >= process.start
            });
        if done_here {
            continue;
        }
        let note = view
            .model
            .notes()
            .iter()
            .find(|n| n.pid == process.pid && n.what.about == HANDED_OVER);
        let server = note.and_then(|n| pid_in(&n.what.text));
        let to = match server {
            Some(pid) => format!("process {pid}"),
            None => format!("the server of {}", process.name()),
        };
        let asker = asker::of_process(view.model, process);
        let work = handed.work.join(" ");
        let short: String = work.chars().take(160).collect();
        let mut draft = Draft::note("child-not-followed")
            .component(&asker.component)
            .title(format!(
                "{program} was handed to {to}, which is not followed"
            ))
            .cause(format!(
                "{} (process {}) handed `{short}` to {to}; what was done there is missing here.",
                process.name(),
                phrase::pid(process.pid)
            ))
            .evidence(
                process.id,
                format!("{} ran with that command", process.program),
            )
            .evidence_of(note.map(|n| (n.id, n.what.text.clone())))
            .in_process(process.pid)
            .proven();
        if let Some(pid) = server {
            draft = draft.remedy(format!(
                "Watch the other side as well: jittrace attach {pid}."
            ));
        }
        drafts.push(draft);
    }
    drafts
}

/// 45 of `sccache runs as process 45, …`.
fn pid_in(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("process ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
