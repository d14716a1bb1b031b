//! `nvcc-older-than-required`: a component asked nvcc for its release and refused it.
//!
//! Proof: the component's own sentence, which names the release that it needs (`SM 12.x requires CUDA >= 12.9`), and a
//! run of nvcc for the same process before it whose release is lower. Without the sentence, a gate that is known of the
//! package ([`crate::component`]) explains an empty list of architectures. Silent when nothing was refused: an old nvcc
//! alone is nobody's fault.

use super::{
    Draft, View,
    view::Tool,
    words::{quoted, tool_rule},
};
use crate::{
    component::{self, Gate},
    event::Message,
    fold::{ProcessIndex, Seen},
    report::Severity,
    resolve::tool::Kind,
    toolkit::{ComputeCapability, Version},
};

/// Patterns by which a demand for a release is recorded.
const DEMANDS: &[&str] = &["requires-cuda", "requires-nvcc", "nvcc-fatal", "cuda-error"];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let said: Vec<Draft> = view
        .said(DEMANDS)
        .filter_map(|m| by_message(view, m))
        .collect();
    if said.is_empty() {
        by_knowledge(view)
    } else {
        said
    }
}

fn by_message(view: &View<'_>, message: &Seen<Message>) -> Option<Draft> {
    let required = required_release(&message.what.text)?;
    let process = message.process?;
    let nvcc = nvcc_before(view, process, message.t)?;
    let version = nvcc.version.as_ref()?;
    if version.version.without_patch() >= required {
        return None;
    }
    let severity = if is_advice(&message.what.text) {
        Severity::Note
    } else if is_refusal(view, message, process) {
        Severity::Error
    } else {
        Severity::Warning
    };
    let asked = view.asker(nvcc).sentence();
    Some(
        described(view, nvcc, required, severity)
            .cause(format!(
                "{} asked this nvcc for its release, and {}.",
                view.asker(nvcc).component,
                view.said_by(message)
            ))
            .evidence(message.id, view.said_by(message))
            .in_process(message.pid)
            .proven_if(
                asked.is_some() || nvcc.only_asked,
                "who asked nvcc for its release",
            ),
    )
}

/// Whether a sentence demands a newer release than the nvcc that was asked before it has.
pub(super) fn is_refused(view: &View<'_>, message: &Seen<Message>) -> bool {
    let refused = || {
        let required = required_release(&message.what.text)?;
        let nvcc = nvcc_before(view, message.process?, message.t)?;
        Some(nvcc.version.as_ref()?.version.without_patch() < required)
    };
    refused().unwrap_or(false)
}

/// A gate that the package is known to have, where its outcome was seen but not its words.
fn by_knowledge(view: &View<'_>) -> Vec<Draft> {
    let outcome = view
        .said(&["requires-gpus", "no-supported-architectures"])
        .next();
    let Some(outcome) = outcome else {
        return Vec::new();
    };
    let capabilities = view.capabilities();
    let mut drafts = Vec::new();
    for nvcc in view.tools_of(Kind::Nvcc).filter(|t| t.only_asked) {
        let asker = view.asker(nvcc);
        let Some((package, gate)) = gate_of(view, &asker.component, &capabilities) else {
            continue;
        };
        let Some(version) = &nvcc.version else {
            continue;
        };
        let concerned = view.concerns(outcome, nvcc.process.index);
        if version.version.without_patch() >= gate.needs || !concerned {
            continue;
        }
        drafts.push(
            described(view, nvcc, gate.needs, Severity::Error)
                .cause(format!(
                    "{package} is known to refuse this GPU below {}; what was seen is that it ended with {}.",
                    gate.needs,
                    quoted(&outcome.what.text)
                ))
                .evidence(outcome.id, view.said_by(outcome))
                .in_process(outcome.pid)
                .missing("the component's own sentence that refuses the release"),
        );
    }
    drafts
}

fn gate_of(
    view: &View<'_>,
    component: &str,
    capabilities: &[(ComputeCapability, u64)],
) -> Option<(String, &'static Gate)> {
    let known = component::find(component)?;
    let version = view
        .report
        .components
        .iter()
        .find(|c| c.name == component)?
        .version
        .clone()?;
    let gate = known.gates.iter().find(|gate| {
        gate.part == "nvcc"
            && gate.holds_for(&version)
            && capabilities.iter().any(|(c, _)| gate.concerns(*c))
    })?;
    Some((format!("{component} {version}"), gate))
}

/// What all of these findings say: which nvcc, by which rule, who asked, what it disagrees with, what would do.
fn described(view: &View<'_>, nvcc: &Tool<'_>, required: Version, severity: Severity) -> Draft {
    let asker = view.asker(nvcc);
    let found = view.found(nvcc);
    let rule = tool_rule(&found);
    let version = nvcc
        .version
        .as_ref()
        .map(|k| k.version.without_patch().to_string())
        .unwrap_or_default();
    let who = asker.sentence();
    let mut draft = Draft::of("nvcc-older-than-required", severity)
        .component(&asker.component)
        .title(format!(
            "{} needs CUDA {required} or newer, and the nvcc that it asked is {version}",
            asker.component
        ))
        .cause(format!(
            "{} resolved nvcc {version} at {}, {rule}{}.",
            asker.component,
            nvcc.path(),
            who.as_ref()
                .map(|w| format!(", asked by {w}"))
                .unwrap_or_default()
        ))
        .in_process(nvcc.process.pid)
        .in_process(view.origin(nvcc.process).pid);
    if let Some(exec) = view.model.exec_of(nvcc.process) {
        draft = draft.evidence(
            exec.id,
            format!("{} was asked {}", nvcc.path(), arguments(nvcc)),
        );
    } else {
        draft = draft.evidence(
            nvcc.process.id,
            format!("{} ran {}", nvcc.path(), arguments(nvcc)),
        );
    }
    if let Some(known) = &nvcc.version {
        draft = draft.evidence(
            known.event,
            format!(
                "{} is release {} ({})",
                nvcc.path(),
                known.version,
                known.how()
            ),
        );
    }
    for (capability, event) in view.capabilities().iter().take(1) {
        draft = draft
            .cause(format!(
                "The GPU was read correctly: its compute capability is {capability}."
            ))
            .evidence(*event, format!("compute capability {capability}"));
    }
    if let Some((name, built)) = view.built_for(&asker.component) {
        draft = draft
            .cause(format!(
                "{name} is built for CUDA {} and was not asked.",
                built.version.without_patch()
            ))
            .evidence(
                built.event,
                format!(
                    "{name} is built for CUDA {} ({})",
                    built.version, built.from
                ),
            );
    }
    remedies(view, draft, nvcc, required)
}

fn remedies(view: &View<'_>, draft: Draft, nvcc: &Tool<'_>, required: Version) -> Draft {
    let offer = view.offer("nvcc", nvcc.path(), |v| v.without_patch() >= required);
    let Some(offer) = offer else {
        return draft
            .remedy(format!("Install a CUDA toolkit {required} or newer and set CUDA_HOME to it; none was found on this machine."));
    };
    let root = if offer.root.is_empty() {
        super::words::directory(super::words::directory(&offer.path)).to_owned()
    } else {
        offer.root.clone()
    };
    draft
        .remedy(format!(
            "Set CUDA_HOME={root}: its nvcc is {}, which is {required} or newer.",
            offer.version
        ))
        .evidence(
            offer.event,
            format!("{root} has nvcc {} and was not asked", offer.version),
        )
}

fn arguments(nvcc: &Tool<'_>) -> String {
    let arguments = nvcc.process.arguments();
    super::words::few(arguments, 4).replace(", ", " ")
}

/// The run of nvcc that decided what a process believed at `t`: the last one before it, by the process or near it.
fn nvcc_before<'v, 'a>(view: &'v View<'a>, process: ProcessIndex, t: u64) -> Option<&'v Tool<'a>> {
    let before = || {
        view.tools_of(Kind::Nvcc)
            .filter(move |n| n.process.start <= t && n.version.is_some())
    };
    before()
        .filter(|n| view.descends(n.process.index, process))
        .last()
        .or_else(|| {
            before()
                .filter(|n| view.related(view.origin(n.process).index, process))
                .last()
        })
}

/// A hint that asks for nothing: DeepGEMM's "please use at least NVCC 12.9" for speed.
fn is_advice(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["please use", "recommend", "for best performance"]
        .iter()
        .any(|w| text.contains(w))
}

/// Whether the sentence told of a refusal that had an effect.
fn is_refusal(view: &View<'_>, message: &Seen<Message>, process: ProcessIndex) -> bool {
    let text = message.what.text.to_ascii_lowercase();
    ["fail", "error", "cannot", "unsupported", "assert"]
        .iter()
        .any(|w| text.contains(w))
        || view.failed_line(process).is_some()
        || view
            .said(&[
                "requires-gpus",
                "no-supported-architectures",
                "device-capability",
            ])
            .any(|m| view.concerns(m, process))
}

/// The CUDA or nvcc release that a sentence demands: 12.9 of `SM 12.x requires CUDA >= 12.9`.
pub(super) fn required_release(text: &str) -> Option<Version> {
    let lower = text.to_ascii_lowercase();
    let names_a_toolkit = ["cuda", "nvcc", "toolkit"]
        .iter()
        .any(|w| lower.contains(w));
    if !names_a_toolkit || lower.contains("driver") {
        return None;
    }
    let bytes = lower.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let starts = bytes.get(at).is_some_and(u8::is_ascii_digit)
            && (at == 0
                || !bytes
                    .get(at - 1)
                    .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'.'));
        if !starts {
            at += 1;
            continue;
        }
        let rest = lower.get(at..)?;
        let length = rest
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'.')
            .count();
        let version = Version::parse(rest.get(..length)?).filter(|v| (9..=30).contains(&v.major));
        let before = lower.get(..at)?.trim_end();
        let after = rest.get(length..)?.trim_start();
        let demanded = [">=", "at least", "minimum", "newer than", "requires cuda"]
            .iter()
            .any(|w| {
                before.ends_with(w)
                    || before
                        .trim_end_matches(" nvcc")
                        .trim_end_matches(" cuda")
                        .ends_with(w)
            })
            || [
                "or newer",
                "or later",
                "or higher",
                "or above",
                "or greater",
                "and above",
                "and later",
                "and newer",
                "+",
            ]
            .iter()
            .any(|w| after.starts_with(w));
        if let Some(version) = version.filter(|_| demanded) {
            return Some(version.without_patch());
        }
        at += length.max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_read_in_the_words_of_several_packages() {
        for (text, release) in [
            (
                "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
                Some((12, 9)),
            ),
            ("RuntimeError: SM 120 requires CUDA >= 12.8", Some((12, 8))),
            ("NVCC version should be >= 12.3", Some((12, 3))),
            (
                "For better performance, please use at least NVCC 12.9",
                Some((12, 9)),
            ),
            ("this kernel requires CUDA 12.8 or newer", Some((12, 8))),
            ("requires CUDA 12.8+", Some((12, 8))),
            (
                "FlashAttention is only supported on CUDA 11.7 and above.",
                Some((11, 7)),
            ),
            ("FlashInfer requires GPUs with sm75 or higher", None),
            ("driver requires CUDA >= 13.0", None),
            ("torch 2.9 requires numpy >= 1.26", None),
        ] {
            assert_eq!(
                required_release(text).map(|v| (v.major, v.minor)),
                release,
                "{text}"
            );
        }
    }
}
