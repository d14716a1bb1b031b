//! `nvjitlink-older-than-nvrtc`: nvJitLink was given what a newer NVRTC made, and refused it.
//!
//! Proof: a failed `nvJitLinkAddData` or `nvJitLinkComplete`, and the releases of both libraries in the process. Two
//! releases without a failure are no finding.

use std::sync::Arc;

use super::{Draft, View, aftermath::Aftermath, arch_unsupported::nvrtc_version, view::release_of};
use crate::{
    event::Call,
    fold::Seen,
    resolve::asker,
    toolkit::{Version, ptx_isa_of},
};

/// Calls by which nvJitLink refuses what it is given.
const LINKS: &[&str] = &[
    "__nvJitLinkAddData",
    "__nvJitLinkComplete",
    "nvJitLinkAddData",
    "nvJitLinkComplete",
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.calls(LINKS)
        .filter(|c| c.what.result.is_some_and(|r| r != 0))
        .filter_map(|c| refused(view, c))
        .take(1)
        .collect()
}

fn refused(view: &View<'_>, call: &Seen<Arc<Call>>) -> Option<Draft> {
    let (linker, linker_event) = linker_version(view, call)?;
    let (maker, maker_event) = nvrtc_version(view, call.process, None)?;
    if linker.without_patch() >= maker.without_patch() {
        return None;
    }
    let object = call
        .what
        .object
        .clone()
        .unwrap_or_else(|| "libnvJitLink".to_owned());
    let asker = asker::of_call(
        view.model,
        &call.what.python,
        call.what.caller.as_ref(),
        call.process,
    );
    let isa = |v: Version| {
        ptx_isa_of(v)
            .map(|i| format!(" (PTX ISA {i})"))
            .unwrap_or_default()
    };
    let came = Aftermath::of_work(view, call, LINKS);
    let draft = Draft::of("nvjitlink-older-than-nvrtc", came.of_a_refusal())
        .component(&asker.component)
        .title(format!("nvJitLink {linker} was given what NVRTC {maker} made"))
        .cause(format!(
            "{object} is nvJitLink {linker}{}; NVRTC in the same process is {maker}{}. {} answered {}.",
            isa(linker),
            isa(maker),
            call.what.function,
            call.what.result.unwrap_or_default()
        ))
        .evidence(call.id, format!("{} answered {}", call.what.function, call.what.result.unwrap_or_default()))
        .evidence(linker_event, format!("nvJitLink is {linker}"))
        .evidence(maker_event, format!("NVRTC is {maker}"))
        .told_aftermath(view, call.process, came)
        .in_process(call.pid)
        .proven();
    Some(
        match view.offer("nvjitlink", &object, |v| {
            v.without_patch() >= maker.without_patch()
        }) {
            Some(o) => draft
                .remedy(format!(
                    "Let {} be found first: it is {}.",
                    o.path, o.version
                ))
                .evidence(o.event, format!("{} is {}", o.path, o.version)),
            None => draft.remedy(format!(
                "Install nvJitLink {} or newer.",
                maker.without_patch()
            )),
        },
    )
}

fn linker_version(view: &View<'_>, call: &Seen<Arc<Call>>) -> Option<(Version, u64)> {
    let answered = view
        .calls(&["nvJitLinkVersion"])
        .filter(|c| c.process == call.process)
        .find_map(|c| Some((release_of(c.what.value.as_deref()?)?, c.id)));
    answered.or_else(|| {
        let known = view.version_of(call.what.object.as_deref()?)?;
        Some((known.version, known.event))
    })
}
