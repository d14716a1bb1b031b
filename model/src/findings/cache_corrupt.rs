//! `cache-corrupt`: the driver refused an image that came from a cache as no image at all (200, 218).
//!
//! A build that was killed while it wrote, a full disk, a copy that broke off. Proof: the load that answered so, and the
//! file of a cache that the same process had read just before. Silent where the image has code for other GPUs only: that
//! is another kind, and so is an image that was made in this run.

use std::sync::Arc;

use super::{
    Draft, View,
    aftermath::Aftermath,
    ptx_driver::LOADS,
    words::{directory, name},
};
use crate::{
    event::{Call, FileOp},
    fold::Seen,
    resolve::asker,
    toolkit::{Arch, runs_on},
};

/// CUDA_ERROR_INVALID_IMAGE and CUDA_ERROR_INVALID_PTX.
const INVALID: &[i64] = &[200, 218];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.calls(LOADS)
        .filter(|c| c.what.result.is_some_and(|r| INVALID.contains(&r)))
        .filter_map(|c| corrupt(view, c))
        .collect()
}

fn corrupt(view: &View<'_>, call: &Seen<Arc<Call>>) -> Option<Draft> {
    let named = call.what.image.as_ref().and_then(|i| i.file.clone());
    let read = view.model.accesses().iter().rfind(|a| {
        a.process == call.process
            && a.t <= call.t
            && a.what.op == FileOp::Open
            && a.what.errno == 0
            && is_image(&a.what.path)
            && view.model.cache_fact(&a.what.path).is_some()
    });
    let path = named.or_else(|| read.map(|a| a.what.path.clone()))?;
    let fact = view.model.cache_fact(&path)?;
    let artifact = view
        .report
        .caches
        .iter()
        .find_map(|c| Some((c, c.artifacts.iter().find(|a| a.path == path)?)));
    if artifact.is_some_and(|(_, a)| a.built) {
        return None;
    }
    let capability = view.capabilities().first().map(|(c, _)| *c);
    let other_gpu = capability.is_some_and(|capability| {
        let mut archs = fact
            .what
            .archs
            .iter()
            .filter_map(|a| Arch::parse(a))
            .peekable();
        archs.peek().is_some() && archs.all(|a| !runs_on(a, capability))
    });
    if other_gpu {
        return None;
    }
    let result = call.what.result.unwrap_or_default();
    let said = view
        .said(&["cuda-error", "ptxas-error"])
        .find(|m| call.process.is_some_and(|p| view.concerns(m, p)) && m.t >= call.t);
    let owner = if matches!(fact.what.owner.as_str(), "" | "unknown") {
        asker::of_call(
            view.model,
            &call.what.python,
            call.what.caller.as_ref(),
            call.process,
        )
        .component
    } else {
        fact.what.owner.clone()
    };
    let size = fact
        .what
        .size
        .map(|size| format!(" ({size} bytes)"))
        .unwrap_or_default();
    let meaning = if result == 218 {
        "a PTX that does not compile"
    } else {
        "no valid image"
    };
    let came = Aftermath::of_work(view, call, LOADS);
    Some(
        Draft::of("cache-corrupt", came.of_a_refusal())
            .component(&owner)
            .title(format!(
                "{} from the cache is {meaning} ({result})",
                name(&path)
            ))
            .cause(format!(
                "{path}{size} was read from the cache of {owner} and handed to the driver, which answered {result}: {meaning}."
            ))
            .cause("It was not made in this run: a build that was ended while it wrote, a full disk or a broken copy leaves such a file.")
            .evidence(fact.id, format!("{path}{size} lies in the cache"))
            .evidence_of(read.map(|a| (a.id, format!("{} was read", a.what.path))))
            .evidence(call.id, format!("{} answered {result}", call.what.function))
            .evidence_of(said.map(|m| (m.id, view.said_by(m))))
            .told_aftermath(view, call.process, came)
            .in_process(call.pid)
            .remedy(format!("Delete {} to build it anew.", directory(&path)))
            .proven_if(read.is_some(), "that this file was read for the load"),
    )
}

fn is_image(path: &str) -> bool {
    [".cubin", ".ptx", ".fatbin", ".so"]
        .iter()
        .any(|end| path.ends_with(end))
}
