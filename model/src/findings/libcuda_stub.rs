//! `libcuda-stub`: the driver library in a process is the one that is only for linking.
//!
//! Proof: a mapped file below `stubs/`, or a driver call that answered 34 (stub library), and the rule that chose it.
//! Its SONAME is libcuda.so.1, so every later request is answered by it too. A stub that is mapped and never called, as
//! a link step or a CPU run may do, is a note.

use std::sync::Arc;

use super::{
    Draft, View,
    aftermath::Aftermath,
    words::{directory, library_rule, name},
};
use crate::{
    event::{Call, Outcome, Rule},
    fold::{Loaded, Seen},
    report::Severity,
    resolve::asker,
};

/// CUDA_ERROR_STUB_LIBRARY.
const STUB_LIBRARY: i64 = 34;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.model
        .libraries()
        .iter()
        .filter(|l| l.what.rule != Rule::AlreadyLoaded && view.part_of(&l.what.path) == "libcuda")
        .filter_map(|l| {
            let answer = answers(view, l).find(|c| c.what.result == Some(STUB_LIBRARY));
            (is_stub(view, l) || answer.is_some()).then(|| stub(view, l))
        })
        .collect()
}

/// Whether a mapped file is a stub, by its place or by what is known of it.
pub(super) fn is_stub(view: &View<'_>, library: &Seen<Loaded>) -> bool {
    let says = |path: &str| {
        directory(path).rsplit('/').next() == Some("stubs")
            || view
                .model
                .file(path)
                .is_some_and(|f| f.what.variant.as_deref() == Some("stub"))
    };
    says(&library.what.path) || says(&library.what.realpath)
}

fn answers<'a>(
    view: &View<'a>,
    library: &'a Seen<Loaded>,
) -> impl Iterator<Item = &'a Seen<Arc<Call>>> + use<'a> {
    view.model.calls().iter().filter(move |c| {
        c.process == library.process
            && c.what.function.starts_with("cu")
            && (c.what.object.as_deref() == Some(library.what.path.as_str())
                || c.what.object.as_deref() == Some(library.what.realpath.as_str()))
    })
}

fn stub(view: &View<'_>, library: &Seen<Loaded>) -> Draft {
    let loaded = &library.what;
    let refused = answers(view, library).find(|c| c.what.result.is_some_and(|r| r != 0));
    let said = view
        .said_with(&["stub library"])
        .find(|m| library.process.is_some_and(|p| view.concerns(m, p)));
    let came = Aftermath::of_gpu_use(view, library.process);
    let severity = if refused.is_some() || said.is_some() {
        // A stub answers no program of a healthy machine.
        came.of_a_refusal()
    } else if came == Aftermath::Failed {
        Severity::Warning
    } else {
        Severity::Note
    };
    let asker = asker::of_library(
        view.model,
        loaded.requested_by.as_deref(),
        view.python(loaded),
        library.process,
    );
    let rule = library_rule(loaded.rule, &loaded.rule_detail);
    let who = asker::of_frames(view.python(loaded))
        .and_then(|a| a.sentence())
        .or_else(|| loaded.requested_by.clone())
        .unwrap_or_else(|| asker.component.clone());
    let asked = loaded
        .requested
        .clone()
        .unwrap_or_else(|| name(&loaded.path).to_owned());
    let mut draft = Draft::of("libcuda-stub", severity)
        .component(&asker.component)
        .title(format!(
            "The CUDA driver library in this process is a stub: {}",
            loaded.path
        ))
        .cause(format!(
            "{who} asked for {asked} and got {}, {rule}. It is a stub for linking, not a driver.",
            loaded.path
        ))
        .evidence(library.id, format!("{} was loaded, {rule}", loaded.path))
        .in_process(library.pid);
    if let Some(call) = refused {
        let result = call.what.result.unwrap_or_default();
        draft = draft
            .cause(format!(
                "{} answered {result}{}.",
                call.what.function,
                if result == STUB_LIBRARY {
                    " (stub library)"
                } else {
                    ""
                }
            ))
            .evidence(call.id, format!("{} answered {result}", call.what.function));
    }
    if let Some(message) = said {
        draft = draft.evidence(message.id, view.said_by(message));
    }
    draft = draft.told_aftermath(view, library.process, came);
    let later: Vec<_> = view
        .loaded(library.process)
        .filter(|l| {
            l.id != library.id && l.what.rule == Rule::AlreadyLoaded && l.what.path == loaded.path
        })
        .collect();
    let asked_later = view.model.requests().iter().find(|r| {
        r.process == library.process && r.t > library.t && r.what.name.starts_with("libcuda.so")
    });
    draft = draft.cause(if later.is_empty() && asked_later.is_none() {
        "Its SONAME is libcuda.so.1, so later requests for libcuda.so.1 are answered by it too."
    } else {
        "Its SONAME is libcuda.so.1, and a later request for libcuda.so.1 was answered by it too."
    });
    for l in later.iter().take(2) {
        draft = draft.evidence(
            l.id,
            format!(
                "a later request for {} was answered by it",
                l.what.requested.as_deref().unwrap_or("libcuda.so.1")
            ),
        );
    }
    if later.is_empty()
        && let Some(request) = asked_later
    {
        draft = draft.evidence(
            request.id,
            format!("{} was asked for later", request.what.name),
        );
    }
    let real = real_driver(view, library);
    let then = real
        .as_ref()
        .map(|(path, _)| format!("; {path} is then found"))
        .unwrap_or_default();
    draft = match loaded.rule {
        Rule::LdLibraryPath => draft.remedy(format!(
            "Take {} out of LD_LIBRARY_PATH, it is for linking only{then}.",
            directory(&loaded.path)
        )),
        _ => draft.remedy(format!(
            "Keep {} out of the search of running programs, it is for linking only{then}.",
            directory(&loaded.path)
        )),
    };
    if let Some((path, event)) = real {
        draft = draft
            .cause(format!("The real driver is at {path}."))
            .evidence(event, format!("{path} was next in the search, or is there"));
    }
    draft.proven_if(
        severity != Severity::Warning,
        "a call of the driver that failed",
    )
}

/// The driver that lost, or that is elsewhere on the machine.
fn real_driver(view: &View<'_>, library: &Seen<Loaded>) -> Option<(String, u64)> {
    let is_stub = |path: &str| directory(path).rsplit('/').next() == Some("stubs");
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| {
            f.what.part.as_deref() == Some("libcuda")
                && f.what.variant.as_deref() != Some("stub")
                && !is_stub(&f.what.path)
                && f.what.path != library.what.path
                && f.what.path != library.what.realpath
        })
        .collect();
    files.sort_by_key(|f| (name(&f.what.path) != "libcuda.so.1", f.id));
    files
        .first()
        .map(|f| (f.what.path.clone(), f.id))
        .or_else(|| {
            library
                .what
                .candidates
                .iter()
                .find(|c| c.outcome == Outcome::NotTried && !is_stub(&c.path))
                .map(|c| (c.path.clone(), library.id))
        })
}
