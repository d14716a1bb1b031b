//! `driver-too-old`: the runtime is newer than the driver supports.
//!
//! Proof: error 35 of a runtime call, or the program's sentence, and a driver whose CUDA release is below the runtime's
//! major. Without a driver at all the same 35 is answered, which is another matter. A warning when the program went on
//! without the GPU, a note when no GPU was wanted or another runtime reached it ([`super::aftermath`]).

use std::sync::Arc;

use super::{
    Draft, View,
    aftermath::Aftermath,
    view::{Known, release_of},
};
use crate::{
    event::{Call, Message},
    fold::{ProcessIndex, Seen},
    resolve::asker,
    toolkit::{first_branch_for, lowest_branch_for_major},
};

/// cudaErrorInsufficientDriver.
const INSUFFICIENT_DRIVER: i64 = 35;

/// What programs say of it.
const SENTENCES: &[&str] = &["driver-insufficient", "driver-too-old"];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut told: Vec<ProcessIndex> = Vec::new();
    let calls = view
        .calls(&["cuda"])
        .filter(|c| c.what.result == Some(INSUFFICIENT_DRIVER))
        .filter_map(|c| Some((c.process?, Some(c), sentence_in(view, c.process))));
    let sentences = view
        .said(SENTENCES)
        .filter_map(|m| Some((m.process?, None, Some(m))));
    for (process, refused, said) in calls.chain(sentences) {
        if told.contains(&process) {
            continue;
        }
        told.push(process);
        drafts.extend(too_old(view, process, refused, said));
    }
    drafts
}

fn sentence_in<'a>(view: &View<'a>, process: Option<ProcessIndex>) -> Option<&'a Seen<Message>> {
    view.said(SENTENCES).find(|m| m.process == process)
}

fn too_old(
    view: &View<'_>,
    process: ProcessIndex,
    refused: Option<&Seen<Arc<Call>>>,
    said: Option<&Seen<Message>>,
) -> Option<Draft> {
    let stated = view.driver_cuda(Some(process));
    let agreed = stated.is_some();
    let driver = stated.or_else(|| said.and_then(|m| found_version(&m.what.text, m.id)))?;
    let object = refused.and_then(|c| c.what.object.as_deref());
    let (runtime, path) = runtime(view, process, object)
        .into_iter()
        .chain(newest_runtime(view, process).filter(|_| refused.is_none()))
        .find(|(runtime, _)| runtime.version.major > driver.version.major)?;
    let (came, severity) = match refused {
        Some(call) => {
            let came = Aftermath::of_question(view, call);
            (came, came.of_a_question())
        }
        None => {
            let came = Aftermath::of_gpu_use(view, Some(process));
            (came, came.of_a_sentence(agreed))
        }
    };
    let asker = match refused {
        Some(call) => asker::of_call(
            view.model,
            &call.what.python,
            call.what.caller.as_ref(),
            call.process,
        ),
        None => asker::of_call(view.model, &[], None, Some(process)),
    };
    let needs = lowest_branch_for_major(runtime.version.major)
        .or_else(|| first_branch_for(runtime.version));
    let mut draft = Draft::of("driver-too-old", severity)
        .component(&asker.component)
        .title(format!(
            "The driver is too old for the CUDA {} runtime: it supports CUDA {} at most",
            runtime.version.without_patch(),
            driver.version.without_patch()
        ))
        .cause(format!(
            "{} uses the runtime {path}, which is CUDA {}; the driver{} supports CUDA {} at most.",
            asker.component,
            runtime.version.without_patch(),
            view.loaded_part(Some(process), "libcuda")
                .next()
                .map(|l| format!(" {}", l.what.path))
                .unwrap_or_default(),
            driver.version.without_patch()
        ))
        .evidence(
            driver.event,
            format!(
                "the driver states CUDA {} ({})",
                driver.version,
                driver.how()
            ),
        )
        .evidence(
            runtime.event,
            format!("the runtime is {} ({})", runtime.version, runtime.how()),
        )
        .in_process(view.model.process(process).map_or(0, |p| p.pid));
    if let Some(call) = refused {
        let words = format!(
            "{} answered 35 (driver version is insufficient)",
            call.what.function
        );
        draft = draft.cause(format!("{words}.")).evidence(call.id, words);
    }
    if let Some(message) = said {
        draft = draft
            .cause(format!("{}.", view.said_by(message)))
            .evidence(message.id, view.said_by(message));
    }
    if came == Aftermath::WentWithout {
        draft = draft.cause("The program went on without a GPU.");
    }
    draft = draft.told_aftermath(view, Some(process), came);
    let major = driver.version.major;
    let packages = match asker.distribution {
        Some(_) => format!("the build of {} for CUDA {major}", asker.component),
        None => format!("the packages for CUDA {major}"),
    };
    draft = draft.remedy(match needs {
        Some(branch) => format!(
            "Update the driver to {branch} or newer (nvidia-smi shows the one that is installed), or install {packages}."
        ),
        None => format!("Install {packages}."),
    });
    if let Some(offer) = view.offer("cudart", &path, |v| v.major == major) {
        draft = draft.evidence(
            offer.event,
            format!("a runtime that this driver serves is at {}", offer.path),
        );
    }
    Some(draft.proven_if(refused.is_some(), "the runtime call that answered 35"))
}

/// The runtime of a process and its file.
fn runtime(
    view: &View<'_>,
    process: ProcessIndex,
    object: Option<&str>,
) -> Option<(Known, String)> {
    let answered = view
        .calls(&["cudaRuntimeGetVersion"])
        .filter(|c| c.process == Some(process))
        .filter(|c| object.is_none() || c.what.object.as_deref() == object)
        .find_map(|c| {
            Some((
                Known {
                    version: release_of(c.what.value.as_deref()?)?,
                    event: c.id,
                    from: c.what.function.clone(),
                },
                c.what
                    .object
                    .clone()
                    .unwrap_or_else(|| "libcudart".to_owned()),
            ))
        });
    answered.or_else(|| {
        view.loaded_part(Some(process), "cudart").find_map(|l| {
            let path = l.what.path.clone();
            if object.is_some_and(|o| o != path && o != l.what.realpath) {
                return None;
            }
            Some((view.version_of(&path)?, path))
        })
    })
}

/// The newest runtime of a process: where there are several, a sentence is of the one that the driver is too old for.
fn newest_runtime(view: &View<'_>, process: ProcessIndex) -> Option<(Known, String)> {
    view.loaded_part(Some(process), "cudart")
        .filter_map(|l| Some((view.version_of(&l.what.path)?, l.what.path.clone())))
        .max_by_key(|(known, _)| known.version)
}

/// 12.4 of torch's `(found version 12040)`.
fn found_version(text: &str, event: u64) -> Option<Known> {
    let (_, rest) = text.split_once("found version ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(Known {
        version: release_of(&digits)?,
        event,
        from: "the program's own sentence".to_owned(),
    })
}
