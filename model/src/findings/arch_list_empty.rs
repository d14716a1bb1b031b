//! `arch-list-empty`: a component was left without a single architecture to build for, and blamed the GPU.
//!
//! Proof: its complaint about the GPU (`requires GPUs with sm75 or higher`) beside a compute capability that satisfies
//! it; or a cache path from which the architecture is missing (resolution.md 0.6); or, with neither, a refused
//! capability, no compile with an architecture, and a process that failed. Silent without a GPU: then the complaint is
//! true.

use super::{
    Draft, View,
    nvcc_older::{self, required_release},
    view::exit_words,
    words::quoted,
};
use crate::{
    event::Message,
    fold::Seen,
    report::Severity,
    resolve::asker,
    toolkit::{Arch, ComputeCapability},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let capabilities = view.capabilities();
    let newest = capabilities.iter().max_by_key(|(c, _)| *c).copied();
    let mut drafts: Vec<Draft> = view
        .said(&["requires-gpus", "no-supported-architectures"])
        .filter_map(|m| by_complaint(view, m, newest))
        .take(1)
        .collect();
    if drafts.is_empty() {
        drafts.extend(by_absence(view, newest));
    }
    if drafts.is_empty() {
        drafts.extend(unset(view));
    }
    drafts
}

const VARIABLE: &str = "TORCH_CUDA_ARCH_LIST";

/// torch was told no architecture and saw no GPU to take one from, as in a build of an image: it fails at the first
/// entry of an empty list, and its traceback shows the line.
fn unset(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["arch-list-unset"]).next()?;
    let process = said.process?;
    let failed = view.failed_line(process)?;
    let image = view.model.process(process)?;
    if view.env(image, VARIABLE).is_some() || compiled(view) {
        return None;
    }
    let component = asker::of_call(view.model, &[], None, Some(process)).component;
    let driver = view
        .model
        .library_failures()
        .iter()
        .find(|f| f.process == Some(process) && f.what.requested.contains("libcuda.so"));
    let exit = view.exit_of(failed.index)?;
    let mut draft = Draft::error("arch-list-empty")
        .component(&component)
        .title(format!(
            "torch was left without an architecture to build for: {VARIABLE} is unset and no GPU is seen"
        ))
        .cause(format!(
            "{component} builds through torch, which takes the architectures from {VARIABLE}, and without it from the GPUs that it sees. {VARIABLE} is unset, and it saw none: its list is empty, and {} fails at the first entry.",
            quoted(&said.what.text)
        ))
        .evidence(said.id, view.said_by(said))
        .evidence(
            image.id,
            format!("the environment at its start: {VARIABLE} is unset"),
        )
        .evidence_of(view.exit_event(failed.index).map(|e| (e, exit_words(exit))))
        .in_process(said.pid);
    if let Some(driver) = driver {
        draft = draft
            .cause("There is no driver here, as in the build of an image.")
            .evidence(
                driver.id,
                format!("{} was not found", driver.what.requested),
            );
    }
    Some(
        draft
            .remedy(format!(
                "Set {VARIABLE} to what the machines have that will run it, for example {VARIABLE}=\"9.0;12.0\", or build where a GPU is visible."
            ))
            .proven(),
    )
}

fn by_complaint(
    view: &View<'_>,
    message: &Seen<Message>,
    newest: Option<(ComputeCapability, u64)>,
) -> Option<Draft> {
    let refused = refused_capability(view, message);
    let path = path_without_arch(view);
    let satisfied = newest.filter(|(c, _)| {
        wanted_arch(&message.what.text).is_none_or(|wanted| *c >= wanted.capability())
    });
    // Without a GPU, and without a sign that one was read, the complaint is simply true.
    if satisfied.is_none() && refused.is_none() && path.is_none() {
        return None;
    }
    let component = component_of(view, message);
    // A process that ended well may have caught it, as servers and notebooks do, or only quoted the words: then events
    // have to agree.
    let ended_well = message
        .process
        .and_then(|p| view.exit_of(p))
        .is_some_and(|e| e.is_success());
    let agreed = satisfied.is_some() && path.is_some()
        || refused.is_some_and(|m| nvcc_older::is_refused(view, m));
    let severity = if ended_well && !agreed {
        Severity::Note
    } else {
        Severity::Error
    };
    let mut draft = Draft::of("arch-list-empty", severity)
        .component(&component)
        .title(format!(
            "{component} was left without an architecture to build for; its message about the GPU is a consequence"
        ))
        .cause(format!(
            "The message {} does not tell the cause.",
            quoted(&message.what.text)
        ))
        .evidence(message.id, view.said_by(message))
        .in_process(message.pid);
    if let Some((capability, event)) = satisfied {
        draft = draft
            .cause(format!(
                "The GPU's compute capability {capability} satisfies what the message asks for."
            ))
            .evidence(event, format!("compute capability {capability}"));
    }
    if let Some(refused) = refused {
        draft = draft
            .cause(format!(
                "Before that, {}; {component} caught this error and went on with an empty list.",
                view.said_by(refused)
            ))
            .evidence(refused.id, view.said_by(refused));
    }
    if let Some((path, event)) = &path {
        draft = draft
            .cause(format!(
                "The cache path {path} has no architecture in it, which only happens with an empty list."
            ))
            .evidence(*event, format!("{path} was used"));
    }
    let proven = satisfied.is_some() || refused.is_some() || path.is_some();
    Some(draft.proven_if(proven && !compiled(view), "that nothing was compiled"))
}

/// Without a complaint in known words: a capability was refused, nothing was compiled for any architecture, and the
/// process failed.
fn by_absence(view: &View<'_>, newest: Option<(ComputeCapability, u64)>) -> Option<Draft> {
    let refused = view
        .said(&["requires-cuda", "device-capability"])
        .find(|m| {
            required_release(&m.what.text).is_some() || m.what.pattern == "device-capability"
        })?;
    let process = refused.process?;
    let failed = view.failed_line(process)?;
    if compiled(view) {
        return None;
    }
    let (capability, event) = newest?;
    let component = component_of(view, refused);
    let exit = view.exit_of(failed.index)?;
    let draft = Draft::error("arch-list-empty")
        .component(&component)
        .title(format!(
            "{component} was left without an architecture to build for; what it says about the GPU is a consequence"
        ))
        .cause(format!(
            "Compute capability {capability} was read and then refused ({}), no compiler was run for any architecture, and the process failed ({}).",
            quoted(&refused.what.text),
            exit_words(exit)
        ))
        .evidence(event, format!("compute capability {capability}"))
        .evidence(refused.id, view.said_by(refused))
        .evidence_of(view.exit_event(failed.index).map(|e| (e, exit_words(exit))))
        .in_process(refused.pid)
        .missing("the list itself");
    Some(draft)
}

fn refused_capability<'a>(view: &View<'a>, message: &Seen<Message>) -> Option<&'a Seen<Message>> {
    let process = message.process?;
    view.said(&["device-capability", "requires-cuda"])
        .find(|m| m.id != message.id && view.concerns(m, process))
}

/// `<base>/flashinfer/<version>/cached_ops`: the directory between the version and `cached_ops` is missing.
fn path_without_arch(view: &View<'_>) -> Option<(String, u64)> {
    view.model.accesses().iter().find_map(|access| {
        let path = access.what.path.as_str();
        let (before, _) = path.split_once("/cached_ops")?;
        let parent = before.rsplit('/').next()?;
        let is_version = parent.contains('.')
            && parent.starts_with(|c: char| c.is_ascii_digit())
            && Arch::parse(parent).is_none_or(|_| parent.matches('.').count() > 1);
        is_version.then(|| (format!("{before}/cached_ops"), access.id))
    })
}

/// sm75 of `requires GPUs with sm75 or higher`.
fn wanted_arch(text: &str) -> Option<Arch> {
    let rest = text.split_once("sm").map(|(_, rest)| rest)?;
    let digits: String = rest
        .trim_start_matches(['_', ' '])
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Arch::parse(&digits)
}

/// Whether anything was compiled for an architecture.
fn compiled(view: &View<'_>) -> bool {
    view.tools()
        .iter()
        .any(|t| !t.only_asked && !t.archs.is_empty())
}

fn component_of(view: &View<'_>, message: &Seen<Message>) -> String {
    let asked = view.tools().iter().rfind(|t| {
        t.only_asked
            && t.process.start <= message.t
            && message
                .process
                .is_some_and(|p| view.related(p, t.process.index))
    });
    match asked {
        Some(tool) => view.asker(tool).component,
        None => asker::of_call(view.model, &[], None, message.process).component,
    }
}
