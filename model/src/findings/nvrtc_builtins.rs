//! `nvrtc-builtins-not-found`: NVRTC did not find its builtins of exactly its own release.
//!
//! Proof: the failed request for `libnvrtc-builtins.so.X.Y` that libnvrtc made, or NVRTC's sentence, and a compile that
//! failed. Silent when a later request succeeded.

use super::{
    Draft, View,
    words::{directory, name, places, quoted},
};
use crate::{report::Severity, resolve::asker};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let is_builtins = |n: &str| name(n).starts_with("libnvrtc-builtins");
    let failed = view.model.library_failures().iter().find(|f| {
        is_builtins(&f.what.requested) || f.what.missing.as_deref().is_some_and(is_builtins)
    });
    let said = view
        .said(&["nvrtc-builtins", "nvrtc-error", "cannot-open-shared-object"])
        .find(|m| m.what.text.contains("nvrtc-builtins"));
    let compile = view.calls(&["nvrtcCompileProgram"]).find(|c| {
        c.what.result.is_some_and(|r| r != 0)
            && c.what.log.as_deref().is_none_or(|l| l.contains("builtins"))
    });
    let Some(process) = failed
        .and_then(|f| f.process)
        .or_else(|| said.and_then(|m| m.process))
        .or_else(|| {
            compile
                .filter(|c| {
                    c.what
                        .log
                        .as_deref()
                        .is_some_and(|l| l.contains("builtins"))
                })
                .and_then(|c| c.process)
        })
    else {
        return Vec::new();
    };
    let failed_at = failed.map_or(0, |f| f.t);
    let later = view
        .loaded(Some(process))
        .any(|l| is_builtins(&l.what.path) && l.t > failed_at);
    let hurt = said.is_some() || compile.is_some() || view.failed_line(process).is_some();
    if later || !hurt {
        return Vec::new();
    }
    let nvrtc = failed
        .and_then(|f| {
            f.what
                .requested_by
                .clone()
                .or_else(|| f.what.missing_for.clone())
        })
        .filter(|p| name(p).starts_with("libnvrtc"))
        .or_else(|| {
            view.loaded_part(Some(process), "nvrtc")
                .last()
                .map(|l| l.what.path.clone())
        });
    let wanted = failed
        .map(|f| {
            f.what
                .missing
                .clone()
                .unwrap_or_else(|| f.what.requested.clone())
        })
        .or_else(|| said.and_then(|m| builtins_in(&m.what.text)))
        .unwrap_or_else(|| "libnvrtc-builtins".to_owned());
    let wanted = name(&wanted).to_owned();
    let asker = asker::of_library(
        view.model,
        nvrtc.as_deref(),
        failed
            .map(|f| view.model.python_of(&f.what.python, f.what.request))
            .unwrap_or_default(),
        Some(process),
    );
    let library = nvrtc.clone().unwrap_or_else(|| "libnvrtc".to_owned());
    let mut draft = Draft::of("nvrtc-builtins-not-found", Severity::Error)
        .component(&asker.component)
        .title(format!("NVRTC did not find {wanted}"))
        .cause(format!(
            "{library} needs {wanted}, of exactly its own release, and did not find it{}.",
            failed
                .map(|f| places(&f.what.candidates))
                .filter(|p| !p.is_empty())
                .map(|p| format!(" (searched: {p})"))
                .unwrap_or_default()
        ))
        .cause(match view.model.file(&library) {
            Some(f) if f.what.runpath.is_none() && f.what.rpath.is_none() => {
                "This libnvrtc has no RUNPATH, so that the directory it lies in is not searched."
            }
            _ => "",
        })
        .evidence_of(failed.map(|f| {
            (
                f.id,
                format!("the request failed: {}", quoted(&f.what.error)),
            )
        }))
        .evidence_of(said.map(|m| (m.id, view.said_by(m))))
        .evidence_of(compile.map(|c| {
            (
                c.id,
                format!(
                    "nvrtcCompileProgram answered {}",
                    c.what.result.unwrap_or_default()
                ),
            )
        }))
        .in_process(view.model.process(process).map_or(0, |p| p.pid));
    let mut copies: Vec<_> = view
        .model
        .files()
        .filter(|f| name(&f.what.path) == wanted)
        .collect();
    copies.sort_by_key(|f| f.id);
    draft = match copies.first() {
        Some(copy) => draft
            .remedy(format!(
                "Put {} on LD_LIBRARY_PATH, or load {} before NVRTC is used.",
                directory(&copy.what.path),
                copy.what.path
            ))
            .evidence(copy.id, format!("{} exists", copy.what.path)),
        None => match &nvrtc {
            Some(nvrtc) if nvrtc.contains('/') => draft.remedy(format!(
                "Install the package that {library} is from in full: {wanted} belongs into {}; or load another release of NVRTC with its builtins.",
                directory(nvrtc)
            )),
            _ => draft.remedy(format!("Install {wanted} beside libnvrtc.")),
        },
    };
    vec![draft.proven_if(failed.is_some(), "the failed request itself")]
}

fn builtins_in(text: &str) -> Option<String> {
    let at = text.find("libnvrtc-builtins")?;
    let rest = text.get(at..)?;
    Some(
        rest.split([' ', '\'', '"', ':', ','])
            .next()?
            .trim_end_matches('.')
            .to_owned(),
    )
}
