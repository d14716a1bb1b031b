//! `arch-unsupported-by-nvcc`, `arch-unsupported-by-ptxas`, `arch-unsupported-by-nvrtc`: a compiler was given an
//! architecture that its release does not know.
//!
//! Proof: the tool's own sentence about the value, or a failed run with that architecture on its command line and a
//! release that the table ([`crate::toolkit::supports`]) says is too old (or that has dropped it). Silent for runs that
//! succeeded, and for probes that only try what a compiler can do while nothing else fails.

use std::sync::Arc;

use super::{
    Draft, View,
    aftermath::Aftermath,
    view::{Tool, exit_words, is_failure, release_of},
    words::tool_rule,
};
use crate::{
    component,
    event::{Call, EventId, FileAccess, FileOp, Message, Rule},
    fold::Seen,
    report::Severity,
    resolve::{asker, tool::Kind},
    toolkit::{Arch, Version, dropped_in, first_toolkit_for, supports},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = view
        .tools()
        .iter()
        .filter(|t| matches!(t.kind, Kind::Nvcc | Kind::Ptxas | Kind::CudaTool))
        .filter_map(|t| refused(view, t))
        .collect();
    let by_call = by_nvrtc(view);
    if by_call.is_empty() {
        drafts.extend(by_nvrtc_sentence(view));
    }
    drafts.extend(by_call);
    drafts
}

/// NVRTC's complaint about an architecture, where its call was not seen.
fn by_nvrtc_sentence(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["nvrtc-arch"]).next()?;
    let process = said.process?;
    let version = nvrtc_version(view, said.process, None);
    let capability = view.capabilities().first().copied();
    let arch = arch_in(&said.what.text).or_else(|| {
        let (capability, _) = capability?;
        Arch::parse(&format!("sm_{}{}", capability.major, capability.minor))
    });
    let fits = |(release, arch)| supports(release, arch) == Some(false);
    let explained = version.map(|(v, _)| v).zip(arch).is_some_and(fits);
    let asker = asker::of_call(view.model, &[], None, Some(process));
    let named = version
        .map(|(v, _)| format!("NVRTC {}", v.without_patch()))
        .unwrap_or_else(|| "NVRTC".to_owned());
    let target = arch.map_or_else(|| "this GPU".to_owned(), |a| a.to_string());
    let severity = Aftermath::of_process(view, Some(process)).of_a_sentence(explained);
    let mut draft = Draft::of("arch-unsupported-by-nvrtc", severity)
        .component(&asker.component)
        .title(format!("{named} cannot target {target}"))
        .cause(format!(
            "{} compiled with {named} for {target}; {}.",
            asker.component,
            view.said_by(said)
        ))
        .evidence(said.id, view.said_by(said))
        .evidence_of(version.map(|(v, event)| (event, format!("NVRTC is {v}"))))
        .evidence_of(capability.map(|(c, event)| (event, format!("compute capability {c}"))))
        .in_process(said.pid);
    draft = match view.offer("nvrtc", "", |v| {
        arch.is_some_and(|a| supports(v, a) == Some(true))
    }) {
        Some(offer) => draft
            .remedy(format!(
                "Use NVRTC {} at {}, which knows {target}.",
                offer.version, offer.path
            ))
            .evidence(
                offer.event,
                format!("NVRTC {} exists at {}", offer.version, offer.path),
            ),
        None => draft.remedy(match arch.and_then(first_toolkit_for) {
            Some(first) => format!(
                "Install a build of {} for CUDA {first} or newer; no such NVRTC was found on this machine.",
                asker.component
            ),
            None => "Install a newer NVRTC; none was found on this machine.".to_owned(),
        }),
    };
    Some(draft.proven_if(
        explained,
        "NVRTC's release and the architecture that it was asked for",
    ))
}

fn refused(view: &View<'_>, tool: &Tool<'_>) -> Option<Draft> {
    let exit = view.exit_of(tool.process.index)?;
    if !is_failure(exit) {
        return None;
    }
    let message = view
        .said(&[
            "unsupported-gpu-architecture",
            "value-not-defined-for-option",
            "tool-fatal",
            "nvcc-fatal",
            "ptxas-fatal",
        ])
        .find(|m| is_about_arch(&m.what.text) && speaks_for(view, m, tool));
    let version = tool.version.as_ref();
    let arch = message
        .and_then(|m| arch_in(&m.what.text))
        .filter(|a| tool.archs.is_empty() || tool.archs.iter().any(|t| t.number() == a.number()))
        .or_else(|| {
            let version = version?.version;
            tool.archs
                .iter()
                .copied()
                .find(|a| supports(version, *a) == Some(false))
        })?;
    // The ptxas below an nvcc that refuses is told of by itself; the nvcc above it only passes the failure on.
    let inner_failed = view.tools().iter().any(|t| {
        t.process.index != tool.process.index
            && t.kind == Kind::Ptxas
            && view.descends(t.process.index, tool.process.index)
            && view.exit_of(t.process.index).is_some_and(is_failure)
    });
    if tool.kind == Kind::Nvcc && inner_failed {
        return None;
    }
    if message.is_none() && version.is_none_or(|v| supports(v.version, arch) != Some(false)) {
        return None;
    }
    // A build system that tries what its compiler can do fails for many a value; Triton's own refusal stands for itself.
    if Aftermath::of_tool(view, tool) == Aftermath::WorkedLater
        && view.said(&["ptxas-codegen"]).next().is_none()
    {
        return None;
    }
    let part = if tool.kind == Kind::Nvcc {
        "nvcc"
    } else {
        "ptxas"
    };
    let asker = view.asker(tool);
    let found = view.found(tool);
    let rule = tool_rule(&found);
    let needs = first_toolkit_for(arch);
    let mut draft = Draft::of(&format!("arch-unsupported-by-{part}"), Severity::Error)
        .component(&asker.component)
        .title(format!("{} cannot target {arch}", tool.named()))
        .cause(format!(
            "{} ran {} at {}, {rule}{}; it was asked for {arch} and failed ({}).",
            asker.component,
            tool.named(),
            tool.path(),
            asker
                .sentence()
                .map(|w| format!(", asked by {w}"))
                .unwrap_or_default(),
            exit_words(exit)
        ))
        .in_process(tool.process.pid)
        .in_process(view.origin(tool.process).pid);
    draft = draft.cause(match (needs, dropped_in(arch)) {
        (_, Some(dropped)) if version.is_some_and(|v| v.version.without_patch() >= dropped) => {
            format!("{arch} was dropped in {dropped}.")
        }
        (Some(first), _) => format!("{arch} needs {part} {first} or newer."),
        _ => String::new(),
    });
    draft = override_sentence(view, draft, tool, part);
    draft = draft.evidence(
        tool.process.id,
        format!("{} ran with {arch} on its command line", tool.path()),
    );
    if let Some(exit_event) = view.exit_event(tool.process.index) {
        draft = draft.evidence(exit_event, exit_words(exit));
    }
    if let Some(known) = version {
        draft = draft.evidence(
            known.event,
            format!(
                "{} is release {} ({})",
                tool.path(),
                known.version,
                known.how()
            ),
        );
    }
    if let Some(message) = message {
        draft = draft
            .cause(format!("{}.", view.said_by(message)))
            .evidence(message.id, view.said_by(message));
    }
    draft = remedy(view, draft, tool, part, arch);
    let known = version.is_some() && message.is_some()
        || version.is_some_and(|v| supports(v.version, arch) == Some(false));
    Some(draft.proven_if(known, "the tool's release, or its own sentence"))
}

/// Which variable would have replaced the tool, and that it was not set.
fn override_sentence(view: &View<'_>, draft: Draft, tool: &Tool<'_>, part: &str) -> Draft {
    let owner = view.asker(tool).component;
    let Some(variable) = override_variable(view, tool) else {
        return draft;
    };
    let origin = view.origin(tool.process);
    match view.env(tool.process, variable) {
        Some(value) => draft
            .cause(format!("{variable}={value} was set."))
            .evidence(origin.id, format!("{variable}={value} in the environment")),
        None => {
            let on_path = view
                .offers(part)
                .into_iter()
                .find(|o| o.path != tool.path() && is_on_path(view, tool, &o.path));
            let path = match &on_path {
                Some(o) => format!(
                    " PATH and CUDA_HOME are not used for it, so {} {} at {} was never run.",
                    part, o.version, o.path
                ),
                None => " PATH and CUDA_HOME are not used for it.".to_owned(),
            };
            draft
                .cause(format!(
                    "{variable} is unset, so {owner} takes the copy that it carries.{path}"
                ))
                .evidence(origin.id, format!("{variable} is not in the environment"))
        }
    }
}

/// The variable by which the component that carries a tool lets it be replaced.
fn override_variable(view: &View<'_>, tool: &Tool<'_>) -> Option<&'static str> {
    let carrier = view.carrier(tool.path())?;
    component::override_of(&carrier, tool.process.name()).map(|o| o.variable)
}

fn is_on_path(view: &View<'_>, tool: &Tool<'_>, path: &str) -> bool {
    let directory = super::words::directory(path);
    view.env(tool.process, "PATH").is_some_and(|p| {
        p.split(':')
            .any(|entry| entry.trim_end_matches('/') == directory)
    })
}

fn remedy(view: &View<'_>, draft: Draft, tool: &Tool<'_>, part: &str, arch: Arch) -> Draft {
    let offer = view.offer(part, tool.path(), |v| supports(v, arch) == Some(true));
    let Some(offer) = offer else {
        return draft.remedy(match first_toolkit_for(arch) {
            Some(first) => format!(
                "Install {part} {first} or newer for {arch}; none was found on this machine."
            ),
            None => format!("Install a {part} that knows {arch}; none was found on this machine."),
        });
    };
    if let Some((file, event)) = configured_before(view, tool) {
        return draft
            .cause(format!(
                "{file} keeps the compiler of an earlier configuration, whatever CUDACXX or CUDA_HOME say now."
            ))
            .evidence(event, format!("{file} was read before it ran"))
            .remedy(format!(
                "Delete {file} and configure anew with -DCMAKE_CUDA_COMPILER={}: it is {part} {}, which knows {arch}.",
                offer.path, offer.version
            ))
            .evidence(
                offer.event,
                format!("{part} {} exists at {}", offer.version, offer.path),
            );
    }
    let text = match (override_variable(view, tool), part) {
        (Some(variable), _) => format!(
            "Set {variable}={}: it is {part} {}, which knows {arch}.",
            offer.path, offer.version
        ),
        (None, "nvcc") => format!(
            "Set CUDA_HOME={}: its nvcc {} knows {arch}.",
            offer.root, offer.version
        ),
        _ => format!(
            "Use {part} {} at {}, which knows {arch}.",
            offer.version, offer.path
        ),
    };
    draft.remedy(text).evidence(
        offer.event,
        format!("{part} {} exists at {}", offer.version, offer.path),
    )
}

/// The CMakeCache.txt that was read before a compiler ran which was asked for by its path, and was not written since.
fn configured_before(view: &View<'_>, tool: &Tool<'_>) -> Option<(String, EventId)> {
    if view.found(tool).rule != Rule::AbsolutePath {
        return None;
    }
    let origin = view.origin(tool.process).index;
    let is_cmakes = |a: &&Seen<Arc<FileAccess>>| {
        a.what.errno == 0
            && super::words::name(&a.what.path) == "CMakeCache.txt"
            && a.process
                .is_some_and(|p| view.related(p, origin) || view.related(p, tool.process.index))
    };
    let read = view
        .model
        .accesses()
        .iter()
        .filter(|a| a.what.op == FileOp::Open && a.t <= tool.process.start)
        .find(is_cmakes)?;
    Some((read.what.path.clone(), read.id))
}

/// Whether a message came from this run: written by it or by what it runs, or read by whoever ran it.
pub(super) fn speaks_for(view: &View<'_>, message: &Seen<Message>, tool: &Tool<'_>) -> bool {
    let Some(process) = message.process else {
        return false;
    };
    if view.descends(process, tool.process.index) {
        return true;
    }
    let end = tool.process.end.unwrap_or(u64::MAX);
    // A reader may be told a little after the writer ended.
    message.t >= tool.process.start
        && message.t <= end.saturating_add(5_000_000_000)
        && view.descends(tool.process.index, process)
}

fn is_about_arch(text: &str) -> bool {
    arch_in(text).is_some()
        && [
            "not defined",
            "Unsupported gpu architecture",
            "unsupported gpu",
            "not supported",
            "not a supported",
            "invalid value",
        ]
        .iter()
        .any(|w| text.contains(w))
}

/// The first architecture that a text names.
pub(super) fn arch_in(text: &str) -> Option<Arch> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| w.starts_with("sm_") || w.starts_with("compute_"))
        .find_map(Arch::parse)
}

/// What NVRTC compiles by.
const COMPILES: &[&str] = &["nvrtcCompileProgram"];

/// Whether whoever was refused an architecture then compiled for another with the same NVRTC.
fn compiled_for_another(view: &View<'_>, call: &Seen<Arc<Call>>, arch: Arch) -> bool {
    let asker = |c: &Seen<Arc<Call>>| {
        let what = &c.what;
        asker::of_call(view.model, &what.python, what.caller.as_ref(), c.process).component
    };
    view.calls(COMPILES).any(|c| {
        c.t > call.t
            && c.process == call.process
            && c.what.object == call.what.object
            && c.what.result == Some(0)
            && c.what
                .args
                .iter()
                .find_map(|a| arch_in(a))
                .is_some_and(|other| other.number() != arch.number())
            && asker(c) == asker(call)
    })
}

/// NVRTC refuses an architecture by result 5 (invalid option).
fn by_nvrtc(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for call in view
        .calls(COMPILES)
        .filter(|c| matches!(c.what.result, Some(5)))
    {
        let Some(arch) = call.what.args.iter().find_map(|a| arch_in(a)) else {
            continue;
        };
        let version = nvrtc_version(view, call.process, call.what.object.as_deref());
        if version
            .as_ref()
            .is_none_or(|(v, _)| supports(*v, arch) != Some(false))
        {
            continue;
        }
        let asker = asker::of_call(
            view.model,
            &call.what.python,
            call.what.caller.as_ref(),
            call.process,
        );
        let Some((release, event)) = version else {
            continue;
        };
        let object = call.what.object.clone().unwrap_or_default();
        let came = match Aftermath::of_work(view, call, COMPILES) {
            // As with nvcc: what was then compiled for another architecture was a question.
            Aftermath::WentWithout if compiled_for_another(view, call, arch) => {
                Aftermath::WorkedLater
            }
            other => other,
        };
        let mut draft = Draft::of("arch-unsupported-by-nvrtc", came.of_a_refusal())
            .component(&asker.component)
            .title(format!(
                "NVRTC {} cannot target {arch}",
                release.without_patch()
            ))
            .cause(format!(
                "{} asked NVRTC {} ({object}) for {arch}; it refused the option.",
                asker.component,
                release.without_patch()
            ))
            .evidence(
                call.id,
                format!("nvrtcCompileProgram with {arch} gave 5 (invalid option)"),
            )
            .evidence(event, format!("{object} is NVRTC {release}"))
            .told_aftermath(view, call.process, came)
            .in_process(call.pid)
            .proven();
        draft = match view.offer("nvrtc", &object, |v| supports(v, arch) == Some(true)) {
            Some(offer) => draft
                .remedy(format!(
                    "Use NVRTC {} at {}, which knows {arch}.",
                    offer.version, offer.path
                ))
                .evidence(
                    offer.event,
                    format!("NVRTC {} exists at {}", offer.version, offer.path),
                ),
            None => draft.remedy(match first_toolkit_for(arch) {
                Some(first) => {
                    format!("Install NVRTC {first} or newer; none was found on this machine.")
                }
                None => "Install a newer NVRTC; none was found on this machine.".to_owned(),
            }),
        };
        drafts.push(draft);
    }
    drafts
}

/// The release of the NVRTC in a process: what it answered, else what its file says.
pub(super) fn nvrtc_version(
    view: &View<'_>,
    process: Option<usize>,
    object: Option<&str>,
) -> Option<(Version, u64)> {
    let answered = view
        .calls(&["nvrtcVersion"])
        .filter(|c| c.process == process)
        .filter(|c| {
            object.is_none() || c.what.object.as_deref() == object || c.what.object.is_none()
        })
        .find_map(|c| Some((release_of(c.what.value.as_deref()?)?, c.id)));
    answered.or_else(|| {
        let known = match object {
            Some(object) => view.version_of(object),
            None => view
                .loaded_part(process, "nvrtc")
                .find_map(|l| view.version_of(&l.what.path)),
        }?;
        Some((known.version, known.event))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_read_from_each_tools_words() {
        for (text, arch) in [
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
                Some("compute_120f"),
            ),
            (
                "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
                Some("sm_121a"),
            ),
            (
                "nvcc fatal   : Value 'sm_110' is not defined for option 'gpu-architecture'",
                Some("sm_110"),
            ),
            ("ptxas fatal   : Unsupported .version 9.0", None),
        ] {
            assert_eq!(
                arch_in(text).map(|a| a.to_string()).as_deref(),
                arch,
                "{text}"
            );
            assert_eq!(is_about_arch(text), arch.is_some(), "{text}");
        }
    }
}
