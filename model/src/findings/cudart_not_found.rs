//! `cudart-not-found`: an object needs a libcudart (or another library of a toolkit) of a major that is nowhere.
//!
//! Proof: the failed load with the missing SONAME, the object that needs it, and the places that were searched. The
//! title says which major is mapped instead. Silent for probes of a program that asks for several majors by name and
//! takes what it gets, and for loads that a later try made good.

use super::{
    Draft, View,
    provider::{self, Failure, Reason},
    words::{directory, name, places, quoted},
};
use crate::{
    report::Severity,
    resolve::{absolute, asker},
    toolkit::{Part, Version},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let failures = provider::failures(view);
    let mut drafts = Vec::new();
    let mut told: Vec<(Option<usize>, &str)> = Vec::new();
    for failure in &failures {
        // libcudnn_ops.so.9.1, libcudnn_ops.so.9 and libcudnn_ops.so are one question under three names.
        let question = (failure.process, provider::stem(&failure.object));
        let is_probe = matches!(&failure.reason, Reason::NoFile { name: wanted }
            if name(&failure.object) == name(wanted));
        if is_probe && told.contains(&question) {
            continue;
        }
        if let Some(draft) = missing(view, failure) {
            if is_probe {
                told.push(question);
            }
            drafts.push(draft);
        }
    }
    drafts
}

fn missing(view: &View<'_>, failure: &Failure<'_>) -> Option<Draft> {
    let wanted = match &failure.reason {
        Reason::NoFile { name } => super::words::name(name).to_owned(),
        Reason::NoVersion { version, .. } if version.starts_with("libcudart.so.") => {
            version.clone()
        }
        _ => return None,
    };
    let part = Part::of_file_name(&wanted);
    // libcuda, the builtins and the driver's compiler have kinds of their own.
    if matches!(
        part,
        Part::Libcuda | Part::NvrtcBuiltins | Part::Ptxjitcompiler | Part::CudartStub
    ) {
        return None;
    }
    let beside = beside_the_asker(view, failure, &wanted);
    // What is no toolkit's is none of ours, but for a part of a package that lies beside whoever asked for it.
    if part == Part::Other && beside.is_none() {
        return None;
    }
    let mut severity = provider::severity(view, failure)?;
    let is_probe =
        name(&failure.object) == wanted || failure.object.is_empty() && failure.seen.is_some();
    if is_probe {
        // Asked for by its name: harmless unless the program says that it is not.
        if other_copy(view, failure, part) {
            return None;
        }
        let said = provider::said_so(view, failure);
        let failed = failure
            .process
            .is_some_and(|p| view.failed_line(p).is_some());
        severity = match said {
            Some(_) if failed => Severity::Error,
            Some(said) if is_complaint(&said.what.text) => Severity::Warning,
            None if failed
                && provider::ended_over(view, failure.process, failure.t, &failure.object) =>
            {
                Severity::Error
            }
            None if provider::ended_over_a_plugin(view, failure)
                && (beside.is_some()
                    || view
                        .loaded_part(failure.process, part.name())
                        .next()
                        .is_some()) =>
            {
                Severity::Error
            }
            _ => return None,
        };
    }
    let python = failure.python(view).to_vec();
    let by = failure.seen.and_then(|s| s.what.requested_by.clone());
    let object = if is_probe {
        by.unwrap_or_default()
    } else {
        failure.object.clone()
    };
    // Facts of a file are kept by its whole path; a program may ask by another.
    let file = match failure.process.and_then(|p| view.model.process(p)) {
        Some(image) if !object.is_empty() => absolute(&image.what.cwd, &object),
        _ => object.clone(),
    };
    let asker = asker::of_library(
        view.model,
        Some(file.as_str()).filter(|f| !f.is_empty()),
        &python,
        failure.process,
    );
    let id = if part == Part::Cudart {
        "cudart-not-found"
    } else {
        "library-not-found"
    };
    let is_a_librarys = object.contains(".so") && !asker::is_python_itself(&object);
    let who = if is_probe && !is_a_librarys || object.is_empty() {
        asker.component.clone()
    } else {
        object.clone()
    };
    let mapped: Vec<_> = view
        .loaded_part(failure.process, part.name())
        .filter(|l| name(&l.what.path) != wanted)
        .collect();
    let instead = mapped.last().map(|l| {
        let version = view
            .version_of(&l.what.path)
            .map(|k| format!(" ({})", k.version))
            .unwrap_or_default();
        (l.id, format!("{}{version}", l.what.path))
    });
    let searched = places(failure.candidates());
    let mut draft = Draft::of(id, severity)
        .component(&asker.component)
        .title(format!(
            "{} needs {wanted}, and nothing provides it",
            name(&who)
        ))
        .cause(format!(
            "{who} needs {wanted}{}; it was found nowhere{}.",
            needs_words(view, &file),
            if searched.is_empty() {
                String::new()
            } else {
                format!(" (searched: {searched})")
            }
        ))
        .evidence(
            failure.event,
            format!("the load failed: {}", quoted(&failure.text)),
        )
        .evidence_of(provider::said_so(view, failure).map(|m| (m.id, view.said_by(m))))
        .in_process(failure.pid);
    if let Some((event, words)) = &instead {
        draft = draft
            .cause(format!("The process has {words} instead."))
            .evidence(*event, format!("{words} is loaded"));
    }
    let other = view
        .offers(part.name())
        .into_iter()
        .find(|o| instead.is_none() && name(&o.path) != wanted);
    if let Some(other) = &other {
        draft = draft
            .cause(format!(
                "What is there instead is {} ({}).",
                other.path, other.version
            ))
            .evidence(other.event, format!("{} exists", other.path));
    }
    if let Some(sentence) = asker::of_frames(&python).and_then(|a| a.sentence()) {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    let wanted_major = major_of(&wanted);
    if let Some((package, built)) = view.built_for("torch")
        && wanted_major.is_some_and(|m| m != built.version.major)
        && part == Part::Cudart
    {
        draft = draft
            .cause(format!(
                "{package} is built for CUDA {}: the two are for different CUDA majors.",
                built.version.without_patch()
            ))
            .evidence(
                built.event,
                format!(
                    "{package} is built for CUDA {} ({})",
                    built.version, built.from
                ),
            );
        let owner = owner_words(view, &file, &asker.component);
        let command = command_words(view, &owner, &object, built.version);
        draft = draft.remedy(format!(
            "Install the build of {owner} for CUDA {}, as {package} is{command}.",
            built.version.major
        ));
    } else if let Some(words) = instead
        .as_ref()
        .map(|(_, words)| words)
        .or(other.as_ref().map(|o| &o.path))
    {
        let owner = owner_words(view, &file, &asker.component);
        let release = mapped
            .last()
            .filter(|_| part == Part::Cudart)
            .and_then(|l| view.version_of(&l.what.path));
        let command = release
            .map(|known| command_words(view, &owner, &object, known.version))
            .unwrap_or_default();
        draft = draft.remedy(format!(
            "Install the build of {owner} for the CUDA major of {words}{command}."
        ));
    }
    let copy = view
        .offers(part.name())
        .into_iter()
        .find(|o| name(&o.path) == wanted || o.path.ends_with(&format!("/{wanted}")));
    if let Some(by) = asker_elsewhere(view, failure) {
        let (home, away) = (directory(&by).to_owned(), directory(&object).to_owned());
        return Some(
            draft
                .cause(format!(
                    "It was asked for by its bare name by {by}, whose own directory has none: {object} is of another installation."
                ))
                .remedy_first(format!(
                    "Complete {home}: its package lacks {}, so install it again or in a release that has it; and take {away} out of the search (LD_LIBRARY_PATH, or the distribution's package).",
                    name(&object)
                ))
                .proven_if(failure.seen.is_some(), "the failed request itself"),
        );
    }
    if let Some(claimed) = failure.seen.and_then(|s| s.what.claimed.as_ref()) {
        let installed = view.model.distribution(&claimed.distribution);
        let pinned = installed.map_or_else(
            || claimed.distribution.clone(),
            |d| format!("{}=={}", d.what.name, d.what.version),
        );
        draft.finding.remedy.clear();
        draft = draft
            .cause(format!(
                "{pinned} is installed and its RECORD names {}, which is not there: another wheel that shares the file was uninstalled, or an install was cut short.",
                claimed.path
            ))
            .evidence_of(installed.map(|d| (d.id, format!("{pinned} is installed"))))
            .remedy(format!(
                "Install it again: pip install --force-reinstall --no-deps {pinned}."
            ));
        return Some(draft.proven_if(failure.seen.is_some(), "the failed request itself"));
    }
    if let Some((path, event)) = beside {
        draft.finding.remedy.clear();
        draft = draft
            .cause(format!(
                "It lies beside whoever asked, at {path}, and nothing looks there: it was asked for by its bare name."
            ))
            .evidence(event, format!("{path} exists"))
            .remedy(format!("Put {} on LD_LIBRARY_PATH.", directory(&path)));
        return Some(draft.proven_if(
            provider::said_so(view, failure).is_some(),
            "what the program said of it when it ended",
        ));
    }
    // `libnvrtc.so` is what a linker looks for; at run time there is only the file of the SONAME.
    if let Some(versioned) = mapped
        .last()
        .filter(|_| wanted.ends_with(".so"))
        .filter(|l| provider::stem(&l.what.path) == provider::stem(&wanted))
    {
        let cwd = failure
            .process
            .and_then(|p| view.model.process(p))
            .map_or("", |p| p.what.cwd.as_str());
        let path = absolute(cwd, &versioned.what.path);
        draft.finding.remedy.clear();
        draft = draft
            .cause(format!(
                "{wanted} is the development name; the file that is there is called {}.",
                name(&path)
            ))
            .remedy(format!(
                "Make a link of that name in a directory on LD_LIBRARY_PATH: ln -s {path} DIRECTORY/{wanted}."
            ));
        return Some(draft.proven_if(
            provider::said_so(view, failure).is_some(),
            "what the program said of it when it ended",
        ));
    }
    if part == Part::Nvml {
        draft.finding.remedy.clear();
        return Some(
            draft
                .remedy("Give the container the driver's utilities (NVIDIA_DRIVER_CAPABILITIES=compute,utility, with --gpus), or install the NVIDIA driver: libnvidia-ml.so.1 is part of it, and no toolkit has it.")
                .proven_if(failure.seen.is_some(), "the failed request itself"),
        );
    }
    draft = match copy {
        Some(copy) => draft
            .remedy(format!(
                "Or let {} be found: put {} on LD_LIBRARY_PATH.",
                copy.path,
                super::words::directory(&copy.path)
            ))
            .evidence(copy.event, format!("{} exists", copy.path)),
        None if draft.finding.remedy.is_empty() => draft.remedy(format!(
            "Install the library {wanted}{}, or a build of {} that needs another; no copy was found on this machine.",
            wheel_words(part, &wanted),
            name(&who)
        )),
        None => draft,
    };
    if is_probe && provider::said_so(view, failure).is_none() {
        return Some(draft.missing("what the program said when it ended"));
    }
    Some(draft.proven_if(failure.seen.is_some(), "the failed request itself"))
}

/// How the build of a package for a release is installed, as the end of a sentence.
fn command_words(view: &View<'_>, owner: &str, object: &str, cuda: Version) -> String {
    match super::install::command(view, owner, cuda) {
        command if command.is_empty() && object.is_empty() => String::new(),
        command if command.is_empty() => format!(
            ", from where its project keeps those for CUDA {} (pip show -f PACKAGE lists the files of a package, as {})",
            cuda.major,
            name(object)
        ),
        command => format!(": {command}"),
    }
}

/// The wheel that brings a library whose major is that of CUDA: ` (pip: nvidia-cublas-cu12)`. Those for CUDA 13 carry no
/// major in their names.
fn wheel_words(part: Part, wanted: &str) -> String {
    let stem = match part {
        Part::Cudart => "nvidia-cuda-runtime",
        Part::Nvrtc => "nvidia-cuda-nvrtc",
        Part::Nvjitlink => "nvidia-nvjitlink",
        Part::Cublas | Part::CublasLt => "nvidia-cublas",
        _ => return String::new(),
    };
    match major_of(wanted) {
        Some(major @ (11 | 12)) => format!(" (pip: {stem}-cu{major})"),
        Some(_) => format!(" (pip: {stem})"),
        None => String::new(),
    }
}

/// The library which asked for this one by its bare name, where both are parts of one thing and lie in two directories:
/// cuDNN's graph and a sub-library of the system's cuDNN.
fn asker_elsewhere(view: &View<'_>, failure: &Failure<'_>) -> Option<String> {
    let seen = failure.seen?;
    let by = seen.what.requested_by.as_deref()?;
    let part = view.part_of(&failure.object);
    let is_one_thing = !part.is_empty() && view.part_of(by) == part;
    (is_one_thing
        && !seen.what.requested.contains('/')
        && name(&failure.object) == seen.what.requested
        && directory(by) != directory(&failure.object))
    .then(|| by.to_owned())
}

/// The file of that very name in the directory of the library that asked for it by its bare name.
fn beside_the_asker(view: &View<'_>, failure: &Failure<'_>, wanted: &str) -> Option<(String, u64)> {
    let seen = failure.seen?;
    let by = seen.what.requested_by.as_deref()?;
    if seen.what.requested != wanted || asker::is_python_itself(by) {
        return None;
    }
    let cwd = failure
        .process
        .and_then(|p| view.model.process(p))
        .map(|p| p.what.cwd.as_str())
        .unwrap_or_default();
    let path = absolute(cwd, &format!("{}/{wanted}", directory(by)));
    let fact = view.model.file(&path)?;
    Some((path, fact.id))
}

/// Whether a program that goes on complains of a library, and does not only tell what it found and what not.
fn is_complaint(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "could not load",
        "cannot load",
        "failed to load",
        "unable to load",
        "falling back",
        "not available",
        "unavailable",
        "will not be used",
        "disabl",
        "skipping",
    ];
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Whether the same process has the part under another name after a probe that failed.
fn other_copy(view: &View<'_>, failure: &Failure<'_>, part: Part) -> bool {
    view.loaded_part(failure.process, part.name())
        .next()
        .is_some()
        && failure
            .process
            .is_none_or(|p| view.failed_line(p).is_none())
}

fn needs_words(view: &View<'_>, object: &str) -> String {
    match view.model.file(object) {
        Some(fact) => match (&fact.what.runpath, &fact.what.rpath) {
            (Some(runpath), _) => format!(" (RUNPATH {runpath})"),
            (None, Some(rpath)) => format!(" (RPATH {rpath})"),
            _ => String::new(),
        },
        None => String::new(),
    }
}

fn owner_words(view: &View<'_>, object: &str, component: &str) -> String {
    view.model
        .file(object)
        .and_then(|f| f.what.distribution.clone())
        .or_else(|| view.carrier(object))
        .unwrap_or_else(|| {
            if object.is_empty() {
                component.to_owned()
            } else {
                name(object).to_owned()
            }
        })
}

/// 13 of `libcudart.so.13`.
pub(super) fn major_of(soname: &str) -> Option<u32> {
    let (_, rest) = soname.split_once(".so.")?;
    rest.split('.').next()?.parse().ok()
}
