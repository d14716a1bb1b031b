//! `cudart-two-majors` and `cudart-same-soname-twice`: several copies of the CUDA runtime in one process.
//!
//! Two majors share no state: a stream or handle of one is nothing to the other. Two copies of one major are harmless
//! when they are of one release. Either is a note unless something failed of it: a sentence about libcudart, a call
//! that rejected a handle, or a JIT-built module that binds another major than its component was built for. Copies that
//! are linked into a library (NCCL's) are normal and not counted.

use std::sync::Arc;

use super::{
    Draft, View,
    cudart_not_found::major_of,
    words::{library_rule, name, quoted},
};
use crate::{
    event::{Call, Message},
    fold::{Loaded, ProcessIndex, Seen},
    report::{Build, Severity},
    resolve::{absolute, asker},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for process in view.model.processes() {
        let mut copies: Vec<&Seen<Loaded>> = Vec::new();
        for library in view.loaded_part(Some(process.index), "cudart") {
            let known = copies
                .iter()
                .any(|c| view.real(real_of(c)) == view.real(real_of(library)));
            if !known {
                copies.push(library);
            }
        }
        if copies.len() < 2 {
            continue;
        }
        let mut majors: Vec<u32> = copies.iter().filter_map(|c| major(view, c)).collect();
        majors.sort_unstable();
        majors.dedup();
        drafts.push(if majors.len() > 1 {
            two_majors(view, process.index, &copies, &majors)
        } else {
            twice(view, process.index, &copies)
        });
    }
    drafts
}

fn real_of(library: &Seen<Loaded>) -> &str {
    if library.what.realpath.is_empty() {
        &library.what.path
    } else {
        &library.what.realpath
    }
}

fn major(view: &View<'_>, library: &Seen<Loaded>) -> Option<u32> {
    library
        .what
        .soname
        .as_deref()
        .and_then(major_of)
        .or_else(|| major_of(name(&library.what.path)))
        .or_else(|| view.version_of(&library.what.path).map(|k| k.version.major))
}

fn two_majors(
    view: &View<'_>,
    process: ProcessIndex,
    copies: &[&Seen<Loaded>],
    majors: &[u32],
) -> Draft {
    let image = view.model.process(process);
    let pid = image.map_or(0, |p| p.pid);
    let said = refusal(view, process);
    let rejected = rejected(view, process);
    let foreign = foreign_module(view, process, copies);
    // Two runtimes that do not go together crash a program; one that ends with a status had reasons of its own.
    let ended = view.failed_line(process);
    let crashed = ended
        .and_then(|p| view.exit_of(p.index))
        .is_some_and(|e| e.signal.is_some());
    let failed = ended.is_some();
    let severity = if said.is_some() || rejected.is_some() {
        Severity::Error
    } else if foreign.is_some() || crashed {
        Severity::Warning
    } else {
        Severity::Note
    };
    let list = majors
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(" and ");
    let asker = copies
        .last()
        .map(|c| {
            asker::of_library(
                view.model,
                c.what.requested_by.as_deref(),
                view.python(&c.what),
                c.process,
            )
        })
        .unwrap_or_default();
    let mut draft = Draft::of("cudart-two-majors", severity)
        .component(&asker.component)
        .title(format!(
            "libcudart of CUDA {list} are loaded in one process"
        ))
        .cause(format!("Two CUDA runtimes are in process {pid}:"))
        .in_process(pid);
    for copy in copies {
        let loaded = &copy.what;
        let users = users(view, process, &loaded.path);
        let by_probe = users.is_empty();
        let asked_by = asker::of_frames(view.python(loaded)).and_then(|a| a.sentence());
        let needed = if by_probe {
            format!(
                "needed by nobody, loaded only because {} asked for it by name",
                asked_by
                    .or_else(|| loaded.requested_by.clone())
                    .unwrap_or_else(|| "the program".to_owned())
            )
        } else {
            format!("needed by {}", super::words::few(&users, 3))
        };
        let version = view
            .version_of(&loaded.path)
            .map(|k| format!(" ({})", k.version))
            .unwrap_or_default();
        let line = format!(
            "{}{version}, {}, {needed}",
            loaded.path,
            library_rule(loaded.rule, &loaded.rule_detail)
        );
        draft = draft.cause(format!("{line};")).evidence(copy.id, line);
    }
    if let Some(message) = said {
        draft = draft
            .cause(format!(
                "the program refused: {}.",
                quoted(&message.what.text)
            ))
            .evidence(message.id, view.said_by(message));
    }
    if let Some(call) = rejected {
        draft = draft
            .cause(format!("{} rejected a handle (400).", call.what.function))
            .evidence(
                call.id,
                format!("{} gave 400 (invalid resource handle)", call.what.function),
            );
    }
    if let Some((event, text)) = &foreign {
        draft = draft.cause(text).evidence(*event, text.clone());
    }
    draft = remedies(view, draft, copies);
    if failed && said.is_none() && rejected.is_none() && foreign.is_none() {
        draft
            .possible()
            .missing("a sign that the failure of the process comes from it")
    } else {
        draft.proven()
    }
}

/// What the program said of several runtimes, or of a handle that is none of this runtime's.
fn refusal<'a>(view: &View<'a>, process: ProcessIndex) -> Option<&'a Seen<Message>> {
    view.messages().find(|m| {
        let text = m.what.text.to_ascii_lowercase();
        view.concerns(m, process)
            && (text.contains("libcudart") && !text.contains("cannot open")
                || text.contains("invalid resource handle"))
    })
}

/// CUDA_ERROR_INVALID_HANDLE.
const INVALID_HANDLE: i64 = 400;

/// A call that rejected a handle.
fn rejected<'a>(view: &View<'a>, process: ProcessIndex) -> Option<&'a Seen<Arc<Call>>> {
    view.model
        .calls()
        .iter()
        .find(|c| c.process == Some(process) && c.what.result == Some(INVALID_HANDLE))
}

/// A JIT-built module of this process that binds another major than its component was built for.
fn foreign_module(
    view: &View<'_>,
    process: ProcessIndex,
    copies: &[&Seen<Loaded>],
) -> Option<(u64, String)> {
    copies.iter().find_map(|copy| {
        let by = copy.what.requested_by.as_deref()?;
        let fact = view.model.cache_fact(by)?;
        let (package, built) = view.built_for(&fact.what.owner)?;
        let major = major(view, copy)?;
        let loaded = view.loaded(Some(process)).any(|l| l.what.path == by);
        (major != built.version.major && loaded).then(|| {
            (
                fact.id,
                format!(
                    "{by} was built for CUDA {major}, {package} for CUDA {}.",
                    built.version.without_patch()
                ),
            )
        })
    })
}

/// Objects of a process that have a library as a needed one.
fn users(view: &View<'_>, process: ProcessIndex, path: &str) -> Vec<String> {
    let file_name = name(path);
    let mut users: Vec<String> = Vec::new();
    for library in view.loaded(Some(process)) {
        let needs = view
            .model
            .file(&library.what.path)
            .is_some_and(|f| f.what.needed.iter().any(|n| n == file_name));
        if needs {
            users.push(name(&library.what.path).to_owned());
        }
        // What the loader itself asked for on behalf of an object, not the program by a call.
        if library.what.path == path
            && view.is_own_need(&library.what)
            && let Some(by) = &library.what.requested_by
        {
            users.push(name(by).to_owned());
        }
    }
    users.sort();
    users.dedup();
    users
}

fn remedies(view: &View<'_>, draft: Draft, copies: &[&Seen<Loaded>]) -> Draft {
    let wanted = view.built_for("torch").map(|(_, k)| k.version.major);
    let mut draft = draft;
    if let Some((module, build, copy)) = linked_here(view, copies)
        && let Some(other) = copies.iter().find(|c| c.id != copy.id)
    {
        let flags: Vec<&str> = build
            .argv
            .iter()
            .map(String::as_str)
            .filter(|a| a.starts_with("-L") || a.contains("cudart"))
            .collect();
        let toolkit = major(view, other).and_then(|m| view.offer("nvcc", "", |v| v.major == m));
        if let Some(toolkit) = &toolkit {
            draft = draft
                .remedy(format!(
                    "Build {} with the toolkit of that release: set CUDA_HOME={} (nvcc {}) and delete {module}.",
                    name(module),
                    toolkit.root,
                    toolkit.version
                ))
                .evidence(
                    toolkit.event,
                    format!("nvcc {} exists at {}", toolkit.version, toolkit.path),
                );
        }
        return draft
            .cause(format!(
                "{module} was linked in this run by {} with {}.",
                build.tool,
                super::words::few(&flags, 6)
            ))
            .evidence_of(
                build
                    .events
                    .first()
                    .map(|e| (*e, format!("{} linked {module}", build.tool))),
            )
            .remedy(format!(
                "{}ink {module} with {}: let a directory with that file, and a link libcudart.so to it, come first among the -L.",
                if toolkit.is_some() { "Or l" } else { "L" },
                other.what.path
            ));
    }
    for copy in copies {
        let process = copy.process.unwrap_or_default();
        let unused = users(view, process, &copy.what.path).is_empty();
        let stranger = match wanted {
            Some(wanted) => major(view, copy) != Some(wanted),
            None => unused,
        };
        if !stranger {
            continue;
        }
        draft = draft.remedy(match copy.what.rule {
            crate::event::Rule::LdLibraryPath => format!(
                "Take {} out of LD_LIBRARY_PATH if {} is not the major in use.",
                super::words::directory(&copy.what.path),
                name(&copy.what.path)
            ),
            _ => format!(
                "Keep {} out of this process ({}).",
                copy.what.path,
                library_rule(copy.what.rule, &copy.what.rule_detail)
            ),
        });
    }
    draft
}

/// The copy that a module asked for which was linked in this run, with the module and the run of the linker.
fn linked_here<'a>(
    view: &View<'a>,
    copies: &[&'a Seen<Loaded>],
) -> Option<(&'a str, &'a Build, &'a Seen<Loaded>)> {
    copies.iter().find_map(|copy| {
        let module = copy.what.requested_by.as_deref()?;
        let build = view.report.builds.iter().find(|b| {
            b.output
                .as_deref()
                .is_some_and(|o| absolute(&b.cwd, o) == absolute(&b.cwd, module))
        })?;
        Some((module, build, *copy))
    })
}

fn twice(view: &View<'_>, process: ProcessIndex, copies: &[&Seen<Loaded>]) -> Draft {
    let pid = view.model.process(process).map_or(0, |p| p.pid);
    let releases: Vec<String> = {
        let mut releases: Vec<String> = copies
            .iter()
            .filter_map(|c| view.version_of(&c.what.path))
            .map(|k| k.version.without_patch().to_string())
            .collect();
        releases.sort();
        releases.dedup();
        releases
    };
    // Only of different releases can it be the copies that fail: those of one release refuse handles too, but are far
    // more often not the reason.
    let said = refusal(view, process);
    let rejected = rejected(view, process);
    let failed = view.failed_line(process).is_some();
    let hurt = rejected.is_some() && (failed || releases.len() > 1) || said.is_some() && failed;
    let severity = match (hurt, releases.len() > 1) {
        (true, true) => Severity::Error,
        (true, false) => Severity::Warning,
        (false, _) => Severity::Note,
    };
    let mut draft = Draft::of("cudart-same-soname-twice", severity)
        .title(if releases.len() > 1 {
            format!(
                "{} copies of libcudart of releases {} in one process",
                copies.len(),
                releases.join(" and ")
            )
        } else {
            format!(
                "{} copies of libcudart of one release in one process",
                copies.len()
            )
        })
        .cause(match (hurt, releases.len() > 1) {
            (true, _) => "Each copy keeps its own state: a stream or handle of the one is nothing to the other.",
            (false, true) => "Each copy keeps its own state; nothing was seen to fail of it.",
            (false, false) => "All are of the same release, which is harmless.",
        })
        .in_process(pid);
    for copy in copies {
        let version = view
            .version_of(&copy.what.path)
            .map(|k| format!(" ({})", k.version))
            .unwrap_or_default();
        let line = format!(
            "{}{version}, {}",
            copy.what.path,
            library_rule(copy.what.rule, &copy.what.rule_detail)
        );
        if hurt {
            draft = draft.cause(format!("{line};"));
        }
        draft = draft.evidence(copy.id, line);
    }
    if !hurt {
        return draft.proven();
    }
    draft = draft
        .evidence_of(said.map(|m| (m.id, view.said_by(m))))
        .evidence_of(rejected.map(|c| {
            (
                c.id,
                format!("{} gave 400 (invalid resource handle)", c.what.function),
            )
        }));
    if let Some(message) = said {
        draft = draft.cause(format!("{}.", view.said_by(message)));
    }
    remedies(view, draft, copies).missing("which copy the handle came from")
}
