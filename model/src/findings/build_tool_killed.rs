//! `build-tool-killed`: a compiler or assembler was ended by a signal, not by an error of its own.
//!
//! SIGKILL is how the kernel's out-of-memory killer ends one of many compilers that run at once; SIGSEGV is a defect of
//! that release of the tool. Proof: the signal in its end, or a tool that never told its end beside whoever ran it, who
//! failed and names the signal. A process that a signal ends says nothing itself, and where only the program was watched
//! from inside, nobody else does.

use super::{
    Draft, View,
    view::Tool,
    words::{count, tool_rule},
};
use crate::{component, resolve::tool::Kind};

/// How the words of a line name a signal.
const SIGNALS: &[(&str, i32)] = &[
    ("SIGKILL", 9),
    ("signal 9", 9),
    ("signal: 9", 9),
    ("Killed", 9),
    ("exit code 137", 9),
    ("exit status 137", 9),
    ("SIGSEGV", 11),
    ("signal 11", 11),
    ("signal: 11", 11),
    ("egmentation fault", 11),
    ("exit code 139", 11),
    ("SIGABRT", 6),
    ("signal 6", 6),
    ("SIGILL", 4),
    ("signal 4", 4),
    ("SIGBUS", 7),
    ("signal 7", 7),
];

const SIGKILL: i32 = 9;

/// Signals by which somebody ends a build that is no longer wanted.
const TOLD_TO_STOP: &[i32] = &[1, 2, 13, 15];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for tool in view.tools().iter().filter(|t| !t.only_asked) {
        let is_compiler = matches!(
            tool.kind,
            Kind::Nvcc | Kind::Ptxas | Kind::CudaTool | Kind::HostCompiler | Kind::HostTool
        );
        if is_compiler && let Some(draft) = killed(view, tool) {
            drafts.push(draft);
        }
    }
    drafts
}

fn killed(view: &View<'_>, tool: &Tool<'_>) -> Option<Draft> {
    let process = tool.process;
    let exit = view.exit_of(process.index);
    let signal = exit.and_then(|e| e.signal);
    // A copy of the tool that was forked to run another is not yet that other, and leaves no word of its own.
    if exit.is_some() && signal.is_none()
        || process.what.forked
        || process.not_followed().is_some()
        || signal.is_some_and(|s| TOLD_TO_STOP.contains(&s))
    {
        return None;
    }
    // Whoever ran it went on to fail: a build that was broken off is not waited for.
    let parent = view.model.process(process.parent?)?;
    let failed = view.failed_line(parent.index)?;
    let said = view.messages().find(|m| {
        signal_in(&m.what.text).is_some()
            && m.t >= process.start
            && m.process.is_some_and(|p| view.descends(process.index, p))
    });
    let parent_is_tool = view.tool(parent.index).is_some_and(|t| !t.only_asked);
    // Silent without a word of anybody, unless its own driver reports the failure, as nvcc ends with 255 when cicc is
    // killed: a program that ends for reasons of its own may kill the compilers that it started. No program sends
    // SIGSEGV.
    let is_reported = parent_is_tool
        && view
            .exit_of(parent.index)
            .is_some_and(|e| e.code.is_some_and(|code| code != 0));
    let is_a_crash = signal.is_some_and(|s| s != SIGKILL);
    if said.is_none() && !is_reported && !is_a_crash {
        return None;
    }
    let signal = signal.or_else(|| signal_in(&said?.what.text));
    let asker = view.asker(tool);
    let name = tool.named();
    let what = match signal {
        Some(SIGKILL) => "was killed (SIGKILL)".to_owned(),
        Some(11) => "crashed (SIGSEGV)".to_owned(),
        Some(signal) => format!("was ended by signal {signal}"),
        None => "ended without a word, as a process does that a signal kills".to_owned(),
    };
    let mut draft = Draft::error("build-tool-killed")
        .component(&asker.component)
        .title(format!("{name} {what}"))
        .cause(format!(
            "{name} at {} {what}, {}.",
            tool.path(),
            tool_rule(&view.found(tool))
        ))
        .evidence(process.id, format!("{} ran", tool.path()))
        .evidence_of(
            exit.and(view.exit_event(process.index))
                .map(|e| (e, what.clone())),
        )
        .evidence_of(said.map(|m| (m.id, view.said_by(m))))
        .evidence_of(
            view.exit_event(failed.index)
                .map(|e| (e, format!("{} failed", failed.name()))),
        )
        .in_process(view.origin(process).pid);
    if let Some(message) = said {
        draft = draft.cause(format!("{}.", view.said_by(message)));
    }
    if signal.is_none_or(|s| s == SIGKILL) {
        draft = out_of_memory(view, draft, tool);
    } else {
        draft = another_release(view, draft, tool);
    }
    Some(draft.proven_if(
        exit.is_some() || said.is_some(),
        "the signal that ended it (the kernel as a source would tell)",
    ))
}

fn signal_in(text: &str) -> Option<i32> {
    SIGNALS
        .iter()
        .find(|(words, _)| {
            text.match_indices(words).any(|(at, _)| {
                // `signal 11` is not `signal 1`.
                !text
                    .get(at + words.len()..)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
        })
        .map(|(_, signal)| *signal)
}

fn out_of_memory(view: &View<'_>, draft: Draft, tool: &Tool<'_>) -> Draft {
    let at = tool.process.start;
    let at_once = view
        .tools()
        .iter()
        .filter(|t| {
            t.kind == tool.kind
                && !t.only_asked
                && t.process.start <= at
                && t.process.end.is_none_or(|end| end >= at)
        })
        .count();
    let jobs = view.env(tool.process, "MAX_JOBS");
    let jobs = match jobs {
        Some(jobs) => format!("MAX_JOBS={jobs}"),
        None => "MAX_JOBS is unset, so that ninja starts as many as the machine has processors"
            .to_owned(),
    };
    draft
        .cause(format!(
            "The kernel ends a compiler so when memory runs out; {} of {} {} under way ({jobs}).",
            count(at_once, "run", "runs"),
            tool.process.name(),
            if at_once == 1 { "was" } else { "were" }
        ))
        .remedy("Let fewer compilers run at once: set MAX_JOBS=2 (and NVCC_THREADS=1 where it is set), or give the machine or container more memory. dmesg, or oom_kill in the container's memory.events, tells whether it was memory.")
}

fn another_release(view: &View<'_>, draft: Draft, tool: &Tool<'_>) -> Draft {
    let part = tool.process.name().to_owned();
    let own = tool.version.as_ref().map(|k| k.version);
    let offer = view.offer(&part, tool.path(), |v| Some(v) != own);
    let variable = view
        .carrier(tool.path())
        .and_then(|carrier| component::override_of(&carrier, &part))
        .map(|o| o.variable);
    match (offer, variable) {
        (Some(offer), Some(variable)) => draft
            .remedy(format!(
                "Set {variable}={}: another release, {}, may not have that defect.",
                offer.path, offer.version
            ))
            .evidence(offer.event, format!("{} is {}", offer.path, offer.version)),
        (Some(offer), None) => draft
            .remedy(format!(
                "Try another release: {} is {}.",
                offer.path, offer.version
            ))
            .evidence(offer.event, format!("{} is {}", offer.path, offer.version)),
        (None, _) => draft.remedy(format!(
            "Install another release of {part}: a crash is a defect of this one, not of its input's architecture."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_from_what_is_said_of_them() {
        for (text, signal) in [
            ("RuntimeError: `ptxas` raised SIGSEGV", Some(11)),
            (
                "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
                Some(9),
            ),
            (
                "g++: internal compiler error: Killed (program cc1plus)",
                Some(9),
            ),
            ("died with <Signals.SIGKILL: 9>", Some(9)),
            ("ninja: build stopped: subcommand failed.", None),
            ("signal 91", None),
        ] {
            assert_eq!(signal_in(text), signal, "{text}");
        }
    }
}
