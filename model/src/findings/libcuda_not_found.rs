//! `libcuda-not-found`: the driver library was asked for and not found.
//!
//! Proof: the failed request with the places that were searched, no successful one in the same process afterwards, and a
//! program that says so and fails. When libcuda.so.1 is on the machine and the development name libcuda.so was asked
//! for, the name is the cause. Silent on machines without a driver where the program goes on, as CPU runs do.

use super::{
    Draft, View, provider,
    words::{name, places, quoted},
};
use crate::{event::LibraryFailed, fold::Seen, report::Severity, resolve::asker};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let mut told: Vec<(u32, &str)> = Vec::new();
    for failed in view
        .model
        .library_failures()
        .iter()
        .filter(|f| is_libcuda(wanted(&f.what)) && !provider::is_of_a_defect(&f.what))
    {
        let name = wanted(&failed.what);
        if told.contains(&(failed.pid, name)) {
            continue;
        }
        if let Some(draft) = not_found(view, failed, name) {
            told.push((failed.pid, name));
            drafts.push(draft);
        }
    }
    if drafts.is_empty() {
        drafts.extend(by_sentence(view));
    }
    drafts
}

/// What a package says that looked for the driver without loading it: in the loader's cache, in the directories of
/// LD_LIBRARY_PATH.
fn by_sentence(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["libcuda-not-found"]).next()?;
    let process = said.process?;
    let ended = view.failed_line(process)?;
    if view.loaded_part(Some(process), "libcuda").next().is_some() {
        return None;
    }
    let image = view.model.process(process)?;
    let asker = asker::of_call(view.model, &[], None, Some(process));
    let listing = view
        .model
        .processes()
        .iter()
        .find(|p| p.name().starts_with("ldconfig") && p.parent == Some(process));
    let path = view.env(image, "LD_LIBRARY_PATH");
    let mut draft = Draft::error("libcuda-not-found")
        .component(&asker.component)
        .title(format!("{} found no libcuda.so.1", asker.component))
        .cause(format!(
            "{} looked for libcuda.so.1 and found none{}; LD_LIBRARY_PATH{}.",
            asker.component,
            if listing.is_some() {
                " in the listing of the loader cache (ldconfig -p)"
            } else {
                ""
            },
            path.map_or_else(|| " is unset".to_owned(), |p| format!("={p}"))
        ))
        .evidence(said.id, view.said_by(said))
        .evidence_of(listing.map(|p| (p.id, format!("{} was run", p.program))))
        .evidence_of(
            view.exit_event(ended.index)
                .map(|e| (e, "the process failed".to_owned())),
        )
        .in_process(said.pid);
    draft = match present(view) {
        Some((copy, event)) => draft
            .cause(format!("A copy is at {copy}."))
            .evidence(event, format!("{copy} exists"))
            .remedy(format!(
                "Put {} on LD_LIBRARY_PATH, or into the loader cache.",
                super::words::directory(&copy)
            )),
        None => draft.remedy("Install the NVIDIA driver, or pass it into the container (--gpus all); no libcuda.so.1 was found on this machine."),
    };
    Some(draft.proven_if(listing.is_some(), "where it looked"))
}

fn wanted(failed: &LibraryFailed) -> &str {
    let missing = failed.missing.as_deref().filter(|m| !m.is_empty());
    missing.unwrap_or(&failed.requested)
}

fn is_libcuda(requested: &str) -> bool {
    let file = name(requested);
    file == "libcuda.so" || file.starts_with("libcuda.so.")
}

fn not_found(view: &View<'_>, failed: &Seen<LibraryFailed>, asked: &str) -> Option<Draft> {
    let process = failed.process?;
    let answered = view.loaded_part(Some(process), "libcuda").next().is_some();
    if answered {
        return None;
    }
    let ended = view.failed_line(process)?;
    let said = view.messages().find(|m| {
        view.concerns(m, process)
            && (m.what.text.contains("libcuda.so")
                || matches!(
                    m.what.pattern.as_str(),
                    "no-driver" | "libcuda-not-found" | "no-device"
                ))
    });
    if said.is_none() && !provider::ended_over(view, failed.process, failed.t, asked) {
        return None;
    }
    let asker = asker::of_library(
        view.model,
        failed
            .what
            .missing_for
            .as_deref()
            .or(failed.what.requested_by.as_deref()),
        view.model
            .python_of(&failed.what.python, failed.what.request),
        failed.process,
    );
    let searched = places(&failed.what.candidates);
    let present = present(view);
    let file = name(asked);
    let mut draft = Draft::of("libcuda-not-found", Severity::Error)
        .component(&asker.component)
        .title(match &present {
            Some((path, _)) if file == "libcuda.so" => {
                format!("libcuda.so was asked for, and only {} exists", name(path))
            }
            _ => format!("{file} was not found"),
        })
        .cause(format!(
            "{} asked for {file}; it was found nowhere{}.",
            asker.component,
            if searched.is_empty() {
                String::new()
            } else {
                format!(" (searched: {searched})")
            }
        ))
        .evidence(
            failed.id,
            format!("the request failed: {}", quoted(&failed.what.error)),
        )
        .evidence_of(said.map(|m| (m.id, view.said_by(m))))
        .evidence_of(
            view.exit_event(ended.index)
                .map(|e| (e, "the process failed".to_owned())),
        )
        .in_process(failed.pid);
    if let Some(sentence) = asker::of_frames(
        view.model
            .python_of(&failed.what.python, failed.what.request),
    )
    .and_then(|a| a.sentence())
    {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    draft = match present {
        Some((path, event)) if file == "libcuda.so" => draft
            .cause(format!(
                "The driver is there as {path}, under its SONAME; the name without a number is for linking only, and nothing of that name was found."
            ))
            .evidence(event, format!("{path} exists"))
            .remedy(format!(
                "Use a release of {} that asks for libcuda.so.1, or give the driver the name that it asks for: ln -s {path} DIR/libcuda.so, with DIR on LD_LIBRARY_PATH.",
                asker.component
            ))
            .remedy_of(development_name(view)),
        Some((path, event)) => draft
            .cause(format!("A copy is at {path}, where nothing looked."))
            .evidence(event, format!("{path} exists"))
            .remedy(format!("Put {} on LD_LIBRARY_PATH, or into the loader cache.", super::words::directory(&path))),
        None => draft.remedy("Install the NVIDIA driver, or pass it into the container (--gpus all); no libcuda.so.1 was found on this machine."),
    };
    Some(draft.proven_if(said.is_some(), "what the program said when it ended"))
}

/// A libcuda.so.1 that is known to exist.
fn present(view: &View<'_>) -> Option<(String, u64)> {
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| {
            name(&f.what.path).starts_with("libcuda.so.")
                && f.what.variant.as_deref() != Some("stub")
        })
        .collect();
    files.sort_by_key(|f| f.id);
    files
        .first()
        .map(|f| (f.what.path.clone(), f.id))
        .or_else(|| {
            view.model
                .libraries()
                .iter()
                .find(|l| name(&l.what.path).starts_with("libcuda.so."))
                .map(|l| (l.what.path.clone(), l.id))
        })
}

/// A directory that has the development name too.
fn development_name(view: &View<'_>) -> Option<String> {
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| name(&f.what.path) == "libcuda.so" && f.what.variant.as_deref() != Some("stub"))
        .collect();
    files.sort_by_key(|f| f.id);
    let directory = super::words::directory(&files.first()?.what.path).to_owned();
    Some(format!(
        "Until then, put {directory} on LD_LIBRARY_PATH: it has libcuda.so too."
    ))
}
