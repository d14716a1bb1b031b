//! `library-unusable`: a library was found, and the loader could not take it: an empty or damaged file, code for another
//! machine, a file system that is mounted noexec, no room for its thread-local storage.
//!
//! Proof: the loader's sentence and the file. The search ends there, so a copy that comes later is never looked at. Silent
//! when the same library was loaded by a later try, and for what is no CUDA's nor any cache's when nothing failed.

use super::{
    Draft, View,
    aftermath::Aftermath,
    provider::{self, Defect, Failure, Reason},
    words::{directory, name, quoted},
};
use crate::{
    component,
    event::Outcome,
    resolve::{absolute, asker},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    provider::failures(view)
        .iter()
        .filter_map(|failure| match &failure.reason {
            Reason::Unusable { file, defect } => unusable(view, failure, file, *defect),
            _ => None,
        })
        .collect()
}

fn unusable(view: &View<'_>, failure: &Failure<'_>, file: &str, defect: Defect) -> Option<Draft> {
    let severity = provider::severity(view, failure)?;
    let cwd = failure
        .process
        .and_then(|p| view.model.process(p))
        .map(|p| p.what.cwd.clone())
        .unwrap_or_default();
    let path = absolute(&cwd, file);
    let cached = view.model.cache_fact(&path);
    let is_toolkits = !view.part_of(&path).is_empty();
    let came = Aftermath::of_process(view, failure.process);
    if cached.is_none() && !is_toolkits && came != Aftermath::Failed {
        return None;
    }
    let python = failure.python(view).to_vec();
    let by = failure.seen.and_then(|s| s.what.requested_by.clone());
    let asker = asker::of_library(view.model, by.as_deref(), &python, failure.process);
    let component = cached.map_or(asker.component.as_str(), |c| c.what.owner.as_str());
    let fact = view.model.file(&path);
    let is_empty = defect == Defect::TooShort && fact.is_some_and(|f| f.what.size == 0);
    let mut draft = Draft::of("library-unusable", severity)
        .component(component)
        .title(format!(
            "{} cannot be loaded: {}",
            name(&path),
            what(defect)
        ))
        .cause(format!(
            "{path} was found, and the loader could not take it: {}.",
            what(defect)
        ))
        .evidence(
            failure.event,
            format!("the load failed: {}", quoted(&failure.text)),
        )
        .evidence_of(
            provider::said_so(view, failure)
                .filter(|m| m.id != failure.event)
                .map(|m| (m.id, view.said_by(m))),
        )
        .in_process(failure.pid);
    if is_empty && let Some(fact) = fact {
        draft = draft
            .cause("The file is empty.")
            .evidence(fact.id, format!("{path} has 0 bytes"));
    }
    if let Some(sentence) = asker::of_frames(&python).and_then(|a| a.sentence()) {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    let next = failure
        .candidates()
        .iter()
        .find(|c| c.outcome == Outcome::NotTried && c.path != path)
        .map(|c| c.path.clone())
        .or_else(|| other_copy(view, &path));
    if let Some(next) = &next {
        draft = draft
            .cause(format!("Another copy is at {next}."))
            .evidence_of(
                view.model
                    .file(next)
                    .map(|f| (f.id, format!("{next} exists"))),
            );
    }
    Some(
        remedies(view, draft, failure, &path, defect, next.as_deref())
            .proven_if(failure.seen.is_some(), "the failed request itself"),
    )
}

fn what(defect: Defect) -> &'static str {
    match defect {
        Defect::TooShort => "the file is empty or cut off",
        Defect::NoElf => "the file is no ELF object",
        Defect::OtherMachine => "it is for another machine",
        Defect::NotMapped => "its code may not be mapped",
        Defect::ExecutableStack => "it asks for an executable stack",
        Defect::NoRoomForTls => "no room is left for its thread-local storage",
        Defect::Forbidden => "this user may not read it",
    }
}

fn remedies(
    view: &View<'_>,
    draft: Draft,
    failure: &Failure<'_>,
    path: &str,
    defect: Defect,
    next: Option<&str>,
) -> Draft {
    let first = next.map(|next| format!("Let {next} be found first."));
    let is_drivers = matches!(
        view.part_of(path),
        "libcuda" | "nvml" | "ptxjitcompiler" | "nvvm"
    );
    let cached = view.model.cache_fact(path);
    match defect {
        Defect::TooShort if is_drivers => draft
            .remedy_of(first)
            .remedy(format!(
                "Remove {path} from the image: it was left behind by a build under the NVIDIA runtime, which lays the host's file over it while it runs. Start the container with that runtime (--gpus all) to have the host's driver."
            )),
        Defect::TooShort | Defect::NoElf if cached.is_some() => draft.remedy(format!(
            "Delete {} to have it built anew.",
            directory(path)
        )),
        Defect::TooShort | Defect::NoElf => draft.remedy_of(first).remedy(format!(
            "Install {} again: the file is damaged (an interrupted download, a Git LFS pointer, a full disk).",
            owner(view, path)
        )),
        Defect::OtherMachine => draft.remedy_of(first).remedy(format!(
            "Install the build of {} for this machine: {path} is for another architecture or word size.",
            owner(view, path)
        )),
        Defect::NotMapped => not_mapped(view, draft, failure, path),
        Defect::ExecutableStack => draft.remedy(format!(
            "Clear the mark in the file (patchelf --clear-execstack {path}), or install a build without it: glibc 2.41 and newer refuse such libraries when they are loaded at run time."
        )),
        Defect::NoRoomForTls => draft.remedy(format!(
            "Load it at the start, when there is room: LD_PRELOAD={path}, or import its package before the others; or raise GLIBC_TUNABLES=glibc.rtld.optional_static_tls."
        )),
        Defect::Forbidden => draft
            .remedy_of(first)
            .remedy(format!("Let this user read {path} and its directories.")),
    }
}

/// A file whose pages may not be executed: its file system is mounted noexec, or memory is limited.
fn not_mapped(view: &View<'_>, draft: Draft, failure: &Failure<'_>, path: &str) -> Draft {
    let Some(cache) = view.model.cache_fact(path) else {
        return draft
            .remedy(format!(
                "If {} is mounted noexec (findmnt -T {path}), move {} to another file system or mount it with exec; if memory is limited (ulimit -v), raise the limit.",
                directory(path),
                name(path)
            ))
            .missing("how the file system is mounted");
    };
    let place = &cache.what.directory;
    let mounted = view.model.directory(place).filter(|d| d.what.noexec);
    let variable = component::find(&cache.what.owner)
        .and_then(|c| c.caches.iter().map(|c| c.variable).find(|v| !v.is_empty()));
    let set = failure
        .process
        .and_then(|p| view.model.process(p))
        .and_then(|image| {
            let names = component::ALL
                .iter()
                .flat_map(|c| c.caches)
                .map(|c| c.variable);
            names.filter(|name| !name.is_empty()).find_map(|name| {
                let value = image.env(name).filter(|v| path.starts_with(*v))?;
                Some((image.id, name, value.to_owned()))
            })
        });
    let mut draft = draft;
    if let Some(fact) = mounted {
        draft = draft
            .cause(format!(
                "The file system of {place} ({}) is mounted noexec.",
                fact.what.filesystem
            ))
            .evidence(fact.id, format!("{place} is mounted noexec"));
    }
    if let Some((event, name, value)) = &set {
        draft = draft
            .cause(format!("{name}={value} put the cache there."))
            .evidence(*event, format!("{name}={value}"));
    }
    let variable = set.as_ref().map(|(_, name, _)| *name).or(variable);
    draft.remedy(match variable {
        Some(variable) => format!(
            "Let {variable} name a directory on a file system without noexec, or mount it with exec: the JIT loads what it builds from there."
        ),
        None => format!("Move the cache {place} to a file system without noexec, or mount it with exec."),
    })
}

/// The distribution of a file, or the file itself.
fn owner(view: &View<'_>, path: &str) -> String {
    view.model
        .file(path)
        .and_then(|f| f.what.distribution.clone())
        .or_else(|| view.carrier(path))
        .unwrap_or_else(|| name(path).to_owned())
}

/// A file of the same name elsewhere which is known to be a library.
fn other_copy(view: &View<'_>, path: &str) -> Option<String> {
    let mut copies: Vec<_> = view
        .model
        .files()
        .filter(|f| {
            name(&f.what.path) == name(path) && f.what.path != path && f.what.soname.is_some()
        })
        .collect();
    copies.sort_by_key(|f| f.id);
    copies.first().map(|f| f.what.path.clone())
}
