//! `ptx-compiler-missing`: the driver had to compile PTX, and its compiler is not there (221).
//!
//! libcuda asks for `libnvidia-ptxjitcompiler.so.1` (or `libnvidia-nvvm.so.4`) by name when an image has no code for the
//! GPU. A container that was given only some of the driver's files lacks it. Proof: the answer 221, the failed request.

use super::{Draft, View, aftermath::Aftermath, libcuda_compat::release_of, words::places};
use crate::resolve::asker;

/// CUDA_ERROR_JIT_COMPILER_NOT_FOUND.
const JIT_COMPILER_NOT_FOUND: i64 = 221;

/// What else may load or link the same image.
const AGAIN: &[&str] = &["cuModuleLoad", "cuLibraryLoad", "cuLink"];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let refused = view
        .calls(&["cu"])
        .filter(|c| c.what.result == Some(JIT_COMPILER_NOT_FOUND));
    for call in refused {
        let came = Aftermath::of_work(view, call, AGAIN);
        let asker = asker::of_call(
            view.model,
            &call.what.python,
            call.what.caller.as_ref(),
            call.process,
        );
        let driver = view.loaded_part(call.process, "libcuda").next();
        let request = view.model.library_failures().iter().find(|f| {
            // A failure that had to be reconstructed is told at the end; its request is not.
            let asked = f.what.request.unwrap_or(f.id);
            f.process == call.process
                && asked <= call.id
                && ["libnvidia-ptxjitcompiler", "libnvidia-nvvm"]
                    .iter()
                    .any(|stem| f.what.requested.contains(stem))
        });
        let wanted = request.map_or("libnvidia-ptxjitcompiler.so.1", |r| &r.what.requested);
        let mut draft = Draft::of("ptx-compiler-missing", came.of_a_refusal())
            .component(&asker.component)
            .title(format!("The driver had to compile PTX and has no {wanted}"))
            .cause(format!(
                "{} answered 221: the image has no code for this GPU, so the driver had to compile its PTX, and {wanted} was found nowhere.",
                call.what.function
            ))
            .evidence(call.id, format!("{} answered 221", call.what.function))
            .told_aftermath(view, call.process, came)
            .in_process(call.pid);
        if let Some(request) = request {
            let searched = places(&request.what.candidates);
            draft = draft
                .cause(if searched.is_empty() {
                    String::new()
                } else {
                    format!("Searched: {searched}.")
                })
                .evidence(request.id, format!("the request for {wanted} failed"));
        }
        let release = driver.and_then(|l| release_of(view, &l.what.path, &l.what.realpath));
        let of = release
            .as_ref()
            .map(|r| format!(" of driver {r}"))
            .unwrap_or_default();
        if let Some(driver) = driver {
            let words = format!("{} is the driver library{of}", driver.what.path);
            draft = draft.cause(format!("{words}.")).evidence(driver.id, words);
        }
        drafts.push(
            draft
                .remedy(format!(
                    "Let the container have the driver's compute files (NVIDIA_DRIVER_CAPABILITIES=compute,utility), or put {wanted}{of} beside libcuda.so.1; it must be of the same release."
                ))
                .remedy("Or use an image with machine code for this GPU, which the driver need not compile.")
                .proven_if(request.is_some(), "the driver's request for its compiler"),
        );
    }
    drafts
}
