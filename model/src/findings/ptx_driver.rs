//! `ptx-too-new-for-driver`: the driver was given PTX of a newer ISA than it reads (error 222).
//!
//! Proof: the load that answered 222, the `.version` of the image, and the driver's CUDA release. A cubin for the GPU
//! hides the fault on one machine and not on the other, so that an image without one is part of the cause.

use std::sync::Arc;

use super::{Draft, View, aftermath::Aftermath, view::Known};
use crate::{
    event::Call,
    fold::Seen,
    report::Severity,
    resolve::asker,
    toolkit::{Version, first_branch_for, first_toolkit_for_ptx, ptx_isa_of},
};

/// Calls that take a module image.
pub(super) const LOADS: &[&str] = &[
    "cuModuleLoad",
    "cuLibraryLoad",
    "cuLinkAdd",
    "cuLinkComplete",
    "__nvJitLinkAdd",
];

/// CUDA_ERROR_UNSUPPORTED_PTX_VERSION.
const UNSUPPORTED_PTX_VERSION: i64 = 222;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let refused: Vec<&Seen<Arc<Call>>> = view
        .calls(LOADS)
        .filter(|c| c.what.result == Some(UNSUPPORTED_PTX_VERSION))
        .collect();
    if !refused.is_empty() {
        return refused.iter().map(|c| by_call(view, c)).collect();
    }
    by_message(view)
}

fn by_call(view: &View<'_>, call: &Seen<Arc<Call>>) -> Draft {
    let image = call.what.image.as_ref();
    let isa = image
        .and_then(|i| i.ptx_version.as_deref())
        .and_then(Version::parse);
    let driver = view.driver_cuda(call.process);
    let asker = asker::of_call(
        view.model,
        &call.what.python,
        call.what.caller.as_ref(),
        call.process,
    );
    let has_cubin = image.is_some_and(|i| i.archs.iter().any(|a| a.starts_with("sm_")));
    let came = Aftermath::of_work(view, call, LOADS);
    let mut draft = described(isa, driver.as_ref(), came.of_a_refusal())
        .component(&asker.component)
        .cause(if has_cubin {
            "None of the cubins in the image fits this GPU, so that the driver had to compile the PTX, and refused (222)."
        } else {
            "There is no cubin in the image, so that the driver had to compile the PTX, and refused (222)."
        })
        .evidence(
            call.id,
            format!(
                "{} of {} answered 222",
                call.what.function,
                image.map_or_else(|| "an image".to_owned(), |i| {
                    let version = i.ptx_version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
                    let target = i.target.as_ref().map(|t| format!(" for {t}")).unwrap_or_default();
                    let file = i.file.as_ref().map(|f| format!(" from {f}")).unwrap_or_default();
                    format!("{}{version}{target}{file}", i.kind)
                })
            ),
        )
        .in_process(call.pid);
    if let Some(sentence) = asker.sentence() {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    if let Some(fact) = call
        .what
        .image
        .as_ref()
        .and_then(|i| i.file.as_deref())
        .and_then(|f| view.model.cache_fact(f))
        && let Some(built) = &fact.what.built_with
    {
        draft = draft
            .cause(format!(
                "It came from the cache, where it was built with {built}."
            ))
            .evidence(
                fact.id,
                format!("{} was built with {built}", fact.what.path),
            );
    }
    draft = draft.told_aftermath(view, call.process, came);
    draft = remedies(view, draft, driver.as_ref(), isa);
    draft.proven_if(
        isa.is_some() && driver.is_some(),
        "the image's ISA or the driver's release",
    )
}

fn by_message(view: &View<'_>) -> Vec<Draft> {
    let said = view
        .said(&["ptx-version-unsupported", "cuda-error"])
        .find(|m| {
            m.what.text.contains("unsupported toolchain")
                || m.what.text.contains("UNSUPPORTED_PTX_VERSION")
                || m.what.text.contains("unsupported PTX version")
        });
    let Some(message) = said else {
        return Vec::new();
    };
    let process = message.process;
    let driver = view.driver_cuda(process);
    let asker = asker::of_call(view.model, &[], None, process);
    let runs_on = process.is_some_and(|p| view.exit_of(p).is_none());
    let severity = Aftermath::of_gpu_use(view, process).of_a_sentence(runs_on);
    let draft = described(None, driver.as_ref(), severity)
        .component(&asker.component)
        .cause(format!("{}.", view.said_by(message)))
        .evidence(message.id, view.said_by(message))
        .in_process(message.pid)
        .missing("the load of the image");
    vec![remedies(view, draft, driver.as_ref(), None)]
}

fn described(isa: Option<Version>, driver: Option<&Known>, severity: Severity) -> Draft {
    let reads = driver.and_then(|d| ptx_isa_of(d.version));
    let ptx = isa.map_or_else(|| "newer PTX".to_owned(), |i| format!("PTX {i}"));
    let made_by = isa
        .and_then(first_toolkit_for_ptx)
        .map(|t| format!(" (as nvcc {t} writes it)"))
        .unwrap_or_default();
    let mut draft = Draft::of("ptx-too-new-for-driver", severity)
        .title(match (reads, driver) {
            (Some(reads), Some(driver)) => format!(
                "The driver (CUDA {}) reads PTX up to {reads} and was given {ptx}",
                driver.version.without_patch()
            ),
            _ => format!("The driver was given {ptx}"),
        })
        .cause(match (reads, driver) {
            (Some(reads), Some(driver)) => format!(
                "The driver supports CUDA {}, PTX ISA up to {reads}; it was handed {ptx}{made_by}.",
                driver.version.without_patch()
            ),
            _ => format!("The driver was handed {ptx}{made_by}, which it does not read."),
        });
    if let Some(driver) = driver {
        draft = draft.evidence(
            driver.event,
            format!(
                "the driver states CUDA {} ({})",
                driver.version,
                driver.how()
            ),
        );
    }
    draft
}

fn remedies(view: &View<'_>, draft: Draft, driver: Option<&Known>, isa: Option<Version>) -> Draft {
    let mut draft = draft;
    if let Some(driver) = driver {
        let limit = driver.version.without_patch();
        draft = match view.offer("nvcc", "", |v| {
            v.without_patch() <= limit && v.major + 1 >= limit.major
        }) {
            Some(o) => draft
                .remedy(format!(
                    "Compile with a toolkit no newer than CUDA {limit}: CUDA_HOME={} has nvcc {}.",
                    o.root, o.version
                ))
                .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
            None => draft.remedy(format!(
                "Compile with a toolkit no newer than CUDA {limit}."
            )),
        };
    }
    draft = draft.remedy("Or compile a cubin for this GPU (-gencode … code=sm_XX): it needs no compiler in the driver.");
    match isa
        .and_then(first_toolkit_for_ptx)
        .and_then(first_branch_for)
    {
        Some(branch) => draft.remedy(format!("Or update the driver to {branch} or newer.")),
        None => draft.remedy("Or update the driver."),
    }
}
