//! `no-kernel-image`: nothing in a module fits the GPU (error 209), or the function that was launched is in no image that
//! does (error 98, "invalid device function").
//!
//! Proof: the load that answered 209 with the architectures of its image, or the program's sentence, beside the GPU's
//! compute capability. An `a` image fits exactly one capability, an `f` image its family.

use std::sync::Arc;

use super::{Draft, View, aftermath::Aftermath, ptx_driver::LOADS, words::few};
use crate::{
    event::Call,
    fold::Seen,
    resolve::asker,
    toolkit::{Arch, ComputeCapability, Suffix, runs_on},
};

/// CUDA_ERROR_NO_BINARY_FOR_GPU.
const NO_BINARY_FOR_GPU: i64 = 209;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let gpu = view.capabilities().first().copied();
    let refused: Vec<&Seen<Arc<Call>>> = view
        .calls(LOADS)
        .filter(|c| c.what.result == Some(NO_BINARY_FOR_GPU))
        .collect();
    if !refused.is_empty() {
        return refused.iter().map(|c| by_call(view, c, gpu)).collect();
    }
    let Some(message) = view.said(&["no-kernel-image", "cuda-error"]).find(|m| {
        m.what.text.contains("no kernel image")
            || m.what.text.contains("NO_BINARY_FOR_GPU")
            || m.what.text.contains("invalid device function")
    }) else {
        return Vec::new();
    };
    let unfit = gpu.map_or_else(Vec::new, |(capability, _)| {
        unfit(view, message.process, capability)
    });
    let runs_on = message.process.is_some_and(|p| view.exit_of(p).is_none());
    let severity =
        Aftermath::of_gpu_use(view, message.process).of_a_sentence(!unfit.is_empty() || runs_on);
    let asker = asker::of_call(view.model, &[], None, message.process);
    let mut draft = Draft::of("no-kernel-image", severity)
        .component(&asker.component)
        .title(if message.what.text.contains("invalid device function") {
            "A function is in none of the images that fit this GPU"
        } else {
            "A module has no code for this GPU"
        })
        .cause(format!("{}.", view.said_by(message)))
        .evidence(message.id, view.said_by(message))
        .in_process(message.pid)
        .missing("the load of the module, with its architectures");
    // What the framework says of itself: the GPU that it has no code for, and those that it has.
    for told in view.messages().filter(|m| {
        m.process == message.process
            && (m.what.text.contains("is not compatible with the current")
                || m.what.text.contains("supports CUDA capabilities"))
    }) {
        draft = draft
            .cause(format!("Before, {}.", view.said_by(told)))
            .evidence(told.id, view.said_by(told));
    }
    // Which of the modules of this process it can have been.
    if let Some((capability, event)) = gpu {
        draft = draft
            .cause(format!("The GPU has compute capability {capability}."))
            .evidence(event, format!("compute capability {capability}"));
        for (path, archs, fact) in unfit.into_iter().take(3) {
            draft = draft
                .cause(format!("{path} has code for {archs} only."))
                .evidence(fact, format!("{path} has {archs}"));
        }
    }
    vec![draft.remedy("Install or build the module for this GPU's architecture.")]
}

fn by_call(
    view: &View<'_>,
    call: &Seen<Arc<Call>>,
    gpu: Option<(ComputeCapability, u64)>,
) -> Draft {
    let image = call.what.image.clone().unwrap_or_default();
    let mut archs = image.archs.clone();
    if archs.is_empty() {
        archs.extend(image.target.clone());
    }
    let asker = asker::of_call(
        view.model,
        &call.what.python,
        call.what.caller.as_ref(),
        call.process,
    );
    let list = few(&archs, 8);
    let from = image
        .file
        .as_ref()
        .map(|f| format!(" from {f}"))
        .unwrap_or_default();
    let came = Aftermath::of_work(view, call, LOADS);
    let mut draft = Draft::of("no-kernel-image", came.of_a_refusal())
        .component(&asker.component)
        .title(match (&gpu, archs.is_empty()) {
            (Some((capability, _)), false) => {
                format!("A module has code for {list} and none for this GPU ({capability})")
            }
            (Some((capability, _)), true) => {
                format!("A module has no code for this GPU ({capability})")
            }
            (None, false) => format!("A module has code for {list} and none for this GPU"),
            (None, true) => "A module has no code for this GPU".to_owned(),
        })
        .cause(format!(
            "{} was given {}{from}{}; the GPU{} runs none of it (209).",
            call.what.function,
            if image.kind.is_empty() {
                "an image".to_owned()
            } else {
                format!("a {}", image.kind)
            },
            if archs.is_empty() {
                String::new()
            } else {
                format!(" with code for {list}")
            },
            gpu.map(|(c, _)| format!(", compute capability {c},"))
                .unwrap_or_default()
        ))
        .evidence(call.id, format!("{} answered 209", call.what.function))
        .in_process(call.pid);
    if let Some((capability, event)) = gpu {
        draft = draft.evidence(event, format!("compute capability {capability}"));
        let exact = archs
            .iter()
            .filter_map(|a| Arch::parse(a))
            .any(|a| a.suffix != Suffix::None && !runs_on(a, capability));
        if exact {
            draft = draft.cause(
                "Code with the suffix a runs on exactly that GPU, with f only on its family.",
            );
        }
        draft = draft.remedy(format!(
            "Compile for sm_{}{}, or add PTX (compute_…) that the driver can compile for it.",
            capability.major, capability.minor
        ));
    }
    draft.told_aftermath(view, call.process, came).proven_if(
        !archs.is_empty() && gpu.is_some(),
        "the image's architectures or the GPU's compute capability",
    )
}

/// Mapped files of a process whose device code fits the GPU nowhere.
fn unfit(
    view: &View<'_>,
    process: Option<usize>,
    capability: ComputeCapability,
) -> Vec<(String, String, u64)> {
    let mut found = Vec::new();
    for library in view.loaded(process) {
        let path = &library.what.path;
        let fact = view
            .model
            .file(path)
            .map(|f| (f.id, &f.what.archs))
            .or_else(|| view.model.cache_fact(path).map(|f| (f.id, &f.what.archs)));
        let Some((event, archs)) = fact.filter(|(_, archs)| !archs.is_empty()) else {
            continue;
        };
        let fits = archs
            .iter()
            .filter_map(|a| Arch::parse(a))
            .any(|a| runs_on(a, capability));
        if !fits {
            found.push((path.clone(), few(archs, 6), event));
        }
    }
    found
}
