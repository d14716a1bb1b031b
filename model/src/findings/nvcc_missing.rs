//! `nvcc-missing`: a component needed nvcc and found none.
//!
//! Proof: a failed exec of nvcc, or the component's sentence that it found none, where no run of nvcc succeeded for the
//! same process afterwards. Silent when the component went on with something else and nothing failed.

use super::{Draft, View, words::few};
use crate::{
    fold::ProcessIndex,
    report::Severity,
    resolve::{asker, tool::Kind},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let complaint = view
        .said(&["nvcc-not-found", "cuda-home-missing", "command-not-found"])
        .find(|m| is_complaint(&m.what.text));
    let failures: Vec<_> = view
        .model
        .exec_failures()
        .iter()
        .filter(|f| super::words::name(&f.what.path) == "nvcc" && matches!(f.what.errno, 2 | 20))
        .collect();
    let process = failures
        .first()
        .and_then(|f| f.process)
        .or_else(|| complaint.and_then(|m| m.process));
    let Some(process) = process else {
        return drafts;
    };
    let first = failures.first().map(|f| f.t).unwrap_or_default();
    let ran_later = view
        .tools_of(Kind::Nvcc)
        .any(|t| t.process.start >= first && view.related(view.origin(t.process).index, process));
    if ran_later {
        return drafts;
    }
    // A shell that did not find it has failed, and whoever ran the shell may have gone on with something else.
    let owner = view
        .model
        .process(process)
        .map(|p| match Kind::of(p.name()) {
            Some(_) => view.origin(p).index,
            None => p.index,
        });
    let hurt = owner.is_some_and(|p| {
        view.failed_line(p).is_some() || complaint.is_some() && view.exit_of(p).is_none()
    });
    if !hurt {
        return drafts;
    }
    let asker = failures.first().map_or_else(
        || asker::of_call(view.model, &[], None, Some(process)),
        |f| {
            asker::of_call(
                view.model,
                &f.what.python,
                f.what.caller.as_ref(),
                f.process,
            )
        },
    );
    let tried: Vec<&str> = failures.iter().map(|f| f.what.path.as_str()).collect();
    let mut draft = Draft::of("nvcc-missing", Severity::Error)
        .component(&asker.component)
        .title(format!("{} found no nvcc", asker.component))
        .in_process(view.model.process(process).map_or(0, |p| p.pid));
    draft = draft.cause(if tried.is_empty() {
        format!("{} needed nvcc and found none.", asker.component)
    } else {
        format!(
            "nvcc is in none of the places that were tried: {}.",
            few(&tried, 4)
        )
    });
    draft = settings(view, draft, process);
    for failure in failures.iter().take(6) {
        draft = draft.evidence(
            failure.id,
            format!("exec of {} gave ENOENT", failure.what.path),
        );
    }
    if let Some(message) = complaint {
        draft = draft
            .cause(format!("{}.", view.said_by(message)))
            .evidence(message.id, view.said_by(message))
            .in_process(message.pid);
    }
    let wanted = view
        .built_for(&asker.component)
        .map(|(_, k)| k.version.without_patch());
    let offer = wanted
        .and_then(|w| view.offer("nvcc", "", |v| v.major == w.major))
        .or_else(|| view.offer("nvcc", "", |_| true));
    draft = match offer {
        Some(offer) => draft
            .remedy(format!(
                "Set CUDA_HOME={}: it has nvcc {}.",
                offer.root, offer.version
            ))
            .evidence(offer.event, format!("nvcc {} exists at {}", offer.version, offer.path)),
        None => draft.remedy(match wanted {
            Some(wanted) => format!(
                "Install the compiler of CUDA {wanted}, which torch is built for, and set CUDA_HOME to it; no nvcc was found on this machine."
            ),
            None => "Install a CUDA toolkit with nvcc and set CUDA_HOME to it; none was found on this machine.".to_owned(),
        }),
    };
    drafts.push(draft.proven_if(
        !tried.is_empty() || complaint.is_some(),
        "the places that were tried",
    ));
    drafts
}

fn settings(view: &View<'_>, draft: Draft, process: ProcessIndex) -> Draft {
    let Some(image) = view.model.process(process) else {
        return draft;
    };
    let set: Vec<String> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| Some(format!("{name}={}", view.env(image, name)?)))
        .collect();
    let text = if set.is_empty() {
        "CUDA_HOME and CUDA_PATH are unset, and no PATH entry has it.".to_owned()
    } else {
        format!("{}.", set.join(", "))
    };
    draft
        .cause(&text)
        .evidence(image.id, format!("the environment at its start: {text}"))
}

/// torch's "No CUDA runtime is found, using CUDA_HOME=…" is printed on every machine without a GPU.
fn is_complaint(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "nvcc",
        "CUDA_HOME environment variable is not set",
        "CUDA_HOME does not exist",
        "No CMAKE_CUDA_COMPILER",
    ];
    WORDS.iter().any(|words| text.contains(words)) && !text.contains("No CUDA runtime is found")
}
