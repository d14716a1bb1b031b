//! `libcuda-compat`: the user-mode driver in a process is not the one of the loaded kernel module.
//!
//! A cuda-compat package in the image, or an old copy, came before the host's driver. Proof: the file that was mapped and
//! its rule, and the driver's answer 803 (user-mode and kernel driver do not fit) or 804 (forward compatibility on
//! hardware that has none). A compat driver that works is a note.

use super::{
    Draft, View,
    aftermath::Aftermath,
    words::{directory, library_rule, name},
};
use crate::{
    event::{Outcome, Rule},
    fold::{Loaded, Seen},
    report::Severity,
    resolve::asker,
    toolkit::{DriverRelease, driver_cuda},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.model
        .libraries()
        .iter()
        .filter(|l| l.what.rule != Rule::AlreadyLoaded && view.part_of(&l.what.path) == "libcuda")
        .filter(|l| !super::libcuda_stub::is_stub(view, l))
        .filter_map(|l| compat(view, l))
        .collect()
}

/// The release in the real name of a file of the driver: 575.57.08 of `libcuda.so.575.57.08`.
pub(super) fn release_of(view: &View<'_>, path: &str, realpath: &str) -> Option<DriverRelease> {
    let real = if realpath.is_empty() {
        view.real(path)
    } else {
        realpath
    };
    [real, path].iter().find_map(|p| {
        let (_, release) = name(p).split_once(".so.")?;
        DriverRelease::parse(release)
    })
}

fn is_compat(view: &View<'_>, library: &Loaded) -> bool {
    let says = |path: &str| {
        path.split('/')
            .any(|part| part == "compat" || part.starts_with("cuda-compat"))
            || view
                .model
                .file(path)
                .is_some_and(|f| f.what.variant.as_deref() == Some("compat"))
    };
    says(&library.path) || says(&library.realpath)
}

fn compat(view: &View<'_>, library: &Seen<Loaded>) -> Option<Draft> {
    let loaded = &library.what;
    let refused = view.model.calls().iter().find(|c| {
        c.process == library.process
            && (c.what.function.starts_with("cu"))
            && matches!(c.what.result, Some(803 | 804))
    });
    let said = view
        .said(&["driver-mismatch", "compat-unsupported"])
        .find(|m| library.process.is_some_and(|p| view.concerns(m, p)));
    let is_compat = is_compat(view, loaded);
    if refused.is_none() && said.is_none() && !is_compat {
        return without_gpu(view, library);
    }
    let code = refused.and_then(|c| c.what.result).or_else(|| {
        said.map(|m| {
            if m.what.pattern == "compat-unsupported" {
                804
            } else {
                803
            }
        })
    });
    let came = Aftermath::of_gpu_use(view, library.process);
    let severity = if code.is_some() {
        // 803 and 804 say that the wrong file was chosen, whatever became of it.
        came.of_a_refusal()
    } else {
        Severity::Note
    };
    let release = release_of(view, &loaded.path, &loaded.realpath);
    let words = |release: &Option<DriverRelease>| {
        release
            .as_ref()
            .map(|r| {
                let cuda = driver_cuda(r.branch())
                    .map(|c| format!(", CUDA {c}"))
                    .unwrap_or_default();
                format!(" (driver {r}{cuda})")
            })
            .unwrap_or_default()
    };
    let rule = library_rule(loaded.rule, &loaded.rule_detail);
    let asker = asker::of_library(
        view.model,
        loaded.requested_by.as_deref(),
        view.python(loaded),
        library.process,
    );
    let what = if is_compat {
        "a cuda-compat copy"
    } else {
        "not the copy of the loaded kernel module"
    };
    let mut draft = Draft::of("libcuda-compat", severity)
        .component(&asker.component)
        .title(match code {
            Some(code) => format!("libcuda.so.1 is {what}, and the driver answers {code}"),
            None => format!("libcuda.so.1 is {what}; it works here"),
        })
        .cause(format!(
            "libcuda.so.1 is {}{}, {what}, chosen {rule}.",
            loaded.path,
            words(&release)
        ))
        .evidence(library.id, format!("{} was loaded, {rule}", loaded.path))
        .in_process(library.pid);
    let kernel = view
        .model
        .drivers()
        .iter()
        .find_map(|d| Some((d, DriverRelease::parse(d.what.version.as_deref()?)?)));
    if let Some((fact, kernel)) = &kernel {
        draft = draft
            .cause(format!("The kernel module is {kernel}."))
            .evidence(
                fact.id,
                format!("the kernel module is {kernel} ({})", fact.what.from),
            );
    }
    if let Some(call) = refused {
        let result = call.what.result.unwrap_or_default();
        draft = draft.evidence(call.id, format!("{} answered {result}", call.what.function));
    }
    if let Some(message) = said {
        draft = draft.evidence(message.id, view.said_by(message));
    }
    draft = draft.cause(match code {
        Some(803) => "Error 803: user-mode driver and kernel module are of different releases, and this pair is not supported.",
        Some(804) => "Error 804: the user-mode driver is newer than the kernel module, and this hardware has no forward compatibility.",
        _ => "",
    });
    if code.is_some() {
        draft = draft.told_aftermath(view, library.process, came);
    }
    let loser = loser(view, library);
    if let Some((path, event)) = &loser {
        let release = release_of(view, path, "");
        draft = draft
            .cause(format!(
                "The other copy, {path}{}, comes later in the search.",
                words(&release)
            ))
            .evidence(
                *event,
                format!("{path} is there and comes later in the search"),
            );
    }
    if !is_compat && loser.is_none() && code == Some(803) {
        draft = draft.remedy("If the driver's packages were updated since the machine was started, restart it, so that the kernel module is that of the library; in a container, update the host's driver or use an image without a driver of its own.");
        return Some(draft.proven_if(refused.is_some(), "the driver call that answered so"));
    }
    draft = match loaded.rule {
        Rule::LdLibraryPath => draft.remedy(format!(
            "Take {} out of LD_LIBRARY_PATH, or put {} before it.",
            directory(&loaded.path),
            loser
                .as_ref()
                .map_or("the host driver's directory", |(p, _)| directory(p))
        )),
        Rule::LdSoCache => draft.remedy(format!(
            "Remove {} from /etc/ld.so.conf.d and run ldconfig, or put {} on LD_LIBRARY_PATH.",
            directory(&loaded.path),
            loser
                .as_ref()
                .map_or("the host driver's directory", |(p, _)| directory(p))
        )),
        _ => draft.remedy(format!(
            "Let the host's driver be found before {}.",
            loaded.path
        )),
    };
    if code == Some(804) {
        draft = draft.remedy("Update the kernel driver, or use a toolkit of the driver's own CUDA release: forward compatibility exists on data-center GPUs only.");
    }
    Some(draft.proven_if(
        code.is_none() || refused.is_some(),
        "the driver call that answered so",
    ))
}

/// Answers of a driver that cannot reach the GPU: invalid device context, not initialized, no device, unknown (cuda.h).
const UNREACHABLE: &[i64] = &[3, 100, 101, 999];

/// A driver library that reaches no GPU while another one came later in the search: a Linux driver inside WSL, the
/// image's own driver beside the host's.
fn without_gpu(view: &View<'_>, library: &Seen<Loaded>) -> Option<Draft> {
    let loaded = &library.what;
    let call = view.model.calls().iter().find(|c| {
        c.process == library.process
            && c.what.function == "cuInit"
            && c.what.result.is_some_and(|r| UNREACHABLE.contains(&r))
            && !library
                .process
                .is_some_and(|p| super::gpu_not_visible::is_explained(view, p, c.t))
    })?;
    let failed = library.process.and_then(|p| view.failed_line(p));
    let (other, event) = loser(view, library)?;
    // A machine without a GPU answers so to every copy.
    let severity = match failed {
        Some(_) => Severity::Error,
        None => Severity::Note,
    };
    let release = |path: &str, real: &str| {
        release_of(view, path, real)
            .map(|r| format!(" (driver {r})"))
            .unwrap_or_default()
    };
    let rule = library_rule(loaded.rule, &loaded.rule_detail);
    let result = call.what.result.unwrap_or_default();
    let asker = asker::of_library(
        view.model,
        loaded.requested_by.as_deref(),
        view.python(loaded),
        library.process,
    );
    let mut draft = Draft::of("libcuda-compat", severity)
        .component(&asker.component)
        .title(format!(
            "{} reaches no GPU (cuInit answered {result}), and another driver library lost to it",
            loaded.path
        ))
        .cause(format!(
            "libcuda.so.1 is {}{}, chosen {rule}; cuInit answered {result}.",
            loaded.path,
            release(&loaded.path, &loaded.realpath)
        ))
        .cause(format!(
            "The other copy, {other}{}, comes later in the search.",
            release(&other, "")
        ))
        .cause(if other.contains("/wsl/") {
            "On WSL the driver is the one that Windows provides; a driver package of the distribution hides it."
        } else {
            ""
        })
        .evidence(library.id, format!("{} was loaded, {rule}", loaded.path))
        .evidence(call.id, format!("cuInit answered {result}"))
        .evidence(event, format!("{other} is there and comes later in the search"))
        .evidence_of(
            failed
                .and_then(|f| view.exit_event(f.index))
                .map(|e| (e, "the process failed".to_owned())),
        )
        .in_process(library.pid)
        .remedy(format!(
            "Let {other} be found first: put {} before {} in the search.",
            directory(&other),
            directory(&loaded.path)
        ))
        .missing("an answer of the other copy");
    if other.contains("/wsl/") {
        draft = draft.remedy("Remove the distribution's driver package from WSL.");
    }
    Some(draft)
}

/// The copy that would have been found next.
fn loser(view: &View<'_>, library: &Seen<Loaded>) -> Option<(String, u64)> {
    let own = view.real(&library.what.path);
    let next = library
        .what
        .candidates
        .iter()
        .filter(|c| c.outcome == Outcome::NotTried && view.real(&c.path) != own)
        .find_map(|c| Some((c.path.clone(), view.model.file(&c.path)?.id)));
    next.or_else(|| {
        let mut files: Vec<_> = view
            .model
            .files()
            .filter(|f| {
                f.what.part.as_deref() == Some("libcuda")
                    && f.what.variant.as_deref() != Some("stub")
                    && f.what.path != library.what.path
                    && view.real(&f.what.path) != own
                    && f.what.path != library.what.realpath
            })
            .collect();
        files.sort_by_key(|f| f.id);
        files.first().map(|f| (f.what.path.clone(), f.id))
    })
    .or_else(|| {
        library
            .what
            .candidates
            .iter()
            .find(|c| c.outcome == Outcome::NotTried && c.rule == library.what.rule)
            .map(|c| (c.path.clone(), library.id))
    })
}
