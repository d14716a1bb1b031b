//! `driver-too-old`: the runtime is newer than the driver supports.
//!
//! Proof: error 35 of a runtime call, or the program's sentence, and a driver whose CUDA release is below the runtime's
//! major. Without a driver at all the same 35 is answered, which is another matter. A program that goes on without the
//! GPU gets a note.

use super::{
    Draft, View,
    view::{Known, release_of},
    words::quoted,
};
use crate::{
    fold::ProcessIndex,
    report::Severity,
    resolve::asker,
    toolkit::{first_branch_for, lowest_branch_for_major},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let refused = view
        .model
        .calls()
        .iter()
        .find(|c| c.what.function.starts_with("cuda") && c.what.result == Some(35));
    let said = view.said(&["driver-insufficient", "driver-too-old"]).next();
    let Some(process) = refused
        .and_then(|c| c.process)
        .or_else(|| said.and_then(|m| m.process))
    else {
        return Vec::new();
    };
    let Some(driver) = view
        .driver_cuda(Some(process))
        .or_else(|| said.and_then(|m| found_version(&m.what.text, m.id)))
    else {
        return Vec::new();
    };
    let Some((runtime, path)) = runtime(
        view,
        process,
        refused.and_then(|c| c.what.object.as_deref()),
    ) else {
        return Vec::new();
    };
    if runtime.version.major <= driver.version.major {
        return Vec::new();
    }
    let failed = view.failed_line(process).is_some();
    let severity = if failed {
        Severity::Error
    } else {
        Severity::Note
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
            "The driver supports CUDA {}, and the runtime is {}",
            driver.version.without_patch(),
            runtime.version.without_patch()
        ))
        .cause(format!(
            "{path} is CUDA {}; the driver in this process supports CUDA {} at most.",
            runtime.version.without_patch(),
            driver.version.without_patch()
        ))
        .evidence(
            driver.event,
            format!(
                "the driver states CUDA {} ({})",
                driver.version, driver.from
            ),
        )
        .evidence(
            runtime.event,
            format!("the runtime is {} ({})", runtime.version, runtime.from),
        )
        .in_process(view.model.process(process).map_or(0, |p| p.pid));
    if let Some(call) = refused {
        draft = draft.evidence(
            call.id,
            format!(
                "{} answered 35 (driver version is insufficient)",
                call.what.function
            ),
        );
    }
    if let Some(message) = said {
        draft = draft
            .cause(format!("It said {}.", quoted(&message.what.text)))
            .evidence(
                message.id,
                format!("it said {}", quoted(&message.what.text)),
            );
    }
    draft = draft.remedy(match needs {
        Some(branch) => format!(
            "Update the driver to {branch} or newer, or install the packages for CUDA {}.",
            driver.version.major
        ),
        None => format!("Install the packages for CUDA {}.", driver.version.major),
    });
    vec![draft.proven_if(refused.is_some(), "the runtime call that answered 35")]
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
