//! `build-tool-missing`: a program of the build (ninja, a host compiler, cuobjdump, which) is not on PATH.
//!
//! Proof: exec attempts of the bare name that all failed with ENOENT, or a shell's `not found`, and a failure of the
//! process that asked. Silent when a later attempt succeeded, when another tool took its place, and for nvcc, which has
//! a kind of its own.

use std::collections::HashMap;

use super::{
    Draft, View,
    words::{directory, errno_words, few, name},
};
use crate::{
    event::{EventId, ExecFailed},
    fold::{ProcessIndex, Seen},
    resolve::{asker, tool::Kind},
};

const EACCES: i32 = 13;

/// Programs whose absence stops a build.
const TOOLS: &[&str] = &[
    "ninja",
    "ninja-build",
    "cmake",
    "make",
    "c++",
    "g++",
    "gcc",
    "cc",
    "clang",
    "clang++",
    "ld",
    "as",
    "ar",
    "cuobjdump",
    "nvdisasm",
    "ptxas",
    "fatbinary",
    "nvlink",
    "which",
    "git",
    "cicc",
    "cc1",
    "cc1plus",
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut by_tool: HashMap<(ProcessIndex, &str), Vec<&Seen<ExecFailed>>> = HashMap::new();
    for failure in view.model.exec_failures() {
        let tool = name(&failure.what.path);
        if let Some(process) = failure.process
            && is_build_tool(tool)
            && matches!(failure.what.errno, 2 | 20 | 13)
        {
            by_tool.entry((process, tool)).or_default().push(failure);
        }
    }
    let mut found: Vec<_> = by_tool.into_iter().collect();
    found.sort_by_key(|((process, _), failures)| (*process, failures.first().map(|f| f.id)));
    let mut drafts: Vec<Draft> = found
        .into_iter()
        .filter_map(|((process, tool), failures)| by_exec(view, process, tool, &failures))
        .collect();
    drafts.extend(by_shell(view));
    if drafts.is_empty() {
        drafts.extend(by_sentence(view));
    }
    drafts
}

fn is_build_tool(name: &str) -> bool {
    TOOLS.contains(&name) || Kind::of(name) == Some(Kind::HostCompiler)
}

/// What packages say that looked through PATH themselves and ran nothing.
const SENTENCES: &[(&str, &str)] = &[
    ("Ninja is required", "ninja"),
    ("ailed to find C compiler", "cc"),
];

fn by_sentence(view: &View<'_>) -> Option<Draft> {
    let (said, tool) = view
        .said(&["ninja-missing", "compiler-missing"])
        .find_map(|m| {
            let (_, tool) = SENTENCES.iter().find(|(s, _)| m.what.text.contains(s))?;
            Some((m, *tool))
        })?;
    let process = said.process?;
    let failed = view.failed_line(process)?;
    if ran_later(view, process, tool, said.t) || replaced(view, process, tool, said.t) {
        return None;
    }
    let image = view.model.process(process)?;
    let asker = asker::of_call(view.model, &[], None, Some(process));
    let path: Vec<&str> = image
        .env("PATH")
        .map(|p| p.split(':').collect())
        .unwrap_or_default();
    let variables: Vec<String> = ["CC", "CXX"]
        .iter()
        .map(|name| match view.env(image, name) {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} is unset"),
        })
        .collect();
    let mut draft = Draft::error("build-tool-missing")
        .component(&asker.component)
        .title(format!("{} found no {tool}", asker.component))
        .cause(format!(
            "{} looked for {tool} and found none: it is in none of the directories of PATH ({}).",
            asker.component,
            few(&path, 6)
        ))
        .evidence(said.id, view.said_by(said))
        .evidence_of(
            view.exit_event(failed.index)
                .map(|e| (e, "the process failed".to_owned())),
        )
        .in_process(said.pid);
    if tool == "cc" {
        let variables = variables.join(", ");
        draft = draft.cause(format!("{variables}.")).evidence(
            image.id,
            format!("the environment at its start: {variables}"),
        );
    }
    Some(remedy(view, draft, process, tool).proven())
}

fn by_exec(
    view: &View<'_>,
    process: ProcessIndex,
    tool: &str,
    failures: &[&Seen<ExecFailed>],
) -> Option<Draft> {
    let first = failures.first()?;
    if is_for_nvcc(view, process, tool) {
        return None;
    }
    if ran_later(view, process, tool, first.t) || replaced(view, process, tool, first.t) {
        return None;
    }
    let complaint = complaint(view, process, tool);
    let failed = view.failed_line(process);
    if complaint.is_none() && failed.is_none() {
        return None;
    }
    let by_path = failures.iter().all(|f| f.what.path.contains('/'))
        && failures.len() == 1
        && first.what.tried.is_empty()
        && !is_path_entry(view, process, &first.what.path);
    let asker = asker::of_call(
        view.model,
        &first.what.python,
        first.what.caller.as_ref(),
        first.process,
    );
    // There, and not to be run: that says more than the directories of PATH which have none.
    let unstartable = failures
        .iter()
        .copied()
        .find(|f| f.what.path.contains('/') && f.what.errno == EACCES);
    let image = view.model.process(process)?;
    let mut searched: Vec<&str> = failures
        .iter()
        .flat_map(|f| f.what.tried.iter().map(String::as_str))
        .chain(
            failures
                .iter()
                .map(|f| f.what.path.as_str())
                .filter(|p| p.contains('/')),
        )
        .map(directory)
        .collect();
    if searched.is_empty() {
        searched = image
            .env("PATH")
            .map(|p| p.split(':').collect())
            .unwrap_or_default();
    }
    searched.dedup();
    let mut draft = Draft::error("build-tool-missing")
        .component(&asker.component)
        .title(format!("{} could not start {tool}", asker.component))
        .cause(if unstartable.is_some() || by_path {
            let failure = unstartable.unwrap_or(first);
            format!(
                "{} could not start {}: {}.",
                asker.component,
                failure.what.path,
                errno_words(failure.what.errno)
            )
        } else if is_compiler_stage(tool) {
            format!(
                "{} could not start {tool}, a part of itself.",
                asker.component
            )
        } else {
            format!(
                "{} could not start {tool}: it is in none of the directories of PATH ({}).",
                asker.component,
                few(&searched, 6)
            )
        })
        .in_process(image.pid);
    if let Some(sentence) = asker.sentence() {
        draft = draft.cause(format!("The request came from {sentence}."));
    }
    for failure in failures.iter().take(8) {
        draft = draft.evidence(
            failure.id,
            format!(
                "exec of {} gave {}",
                failure.what.path,
                errno_words(failure.what.errno)
            ),
        );
    }
    if let Some(message) = complaint {
        draft = draft.evidence(message.id, view.said_by(message));
    }
    if let Some(event) = failed.and_then(|p| view.exit_event(p.index)) {
        draft = draft.evidence(event, "the process failed".to_owned());
    }
    if let Some(failure) = unstartable {
        let path = &failure.what.path;
        return Some(
            draft
                .remedy(format!(
                    "Let {path} be run: chmod +x {path}, or install it again if copying or unpacking took its permission. A file system that is mounted noexec refuses it as well."
                ))
                .proven(),
        );
    }
    if let Some((event, setting)) = by_path
        .then(|| setting_that_names(view, process, &first.what.path))
        .flatten()
    {
        return Some(
            draft
                .cause(format!("{setting} names it."))
                .evidence(event, format!("the environment at its start: {setting}"))
                .remedy(format!(
                    "Let {} name a file that is there, or unset it.",
                    setting.split('=').next().unwrap_or_default()
                ))
                .proven(),
        );
    }
    let root = super::toolkit_mixed::root_of(&first.what.path);
    if by_path && matches!(Kind::of(tool), Some(Kind::CudaTool | Kind::Ptxas)) {
        // A tool of a toolkit, asked for in a toolkit that does not have it.
        draft = draft.remedy(format!(
            "Install the part of the toolkit at {root} that has {tool} (package cuda-{tool}), or set CUDA_HOME to one that has it."
        ));
        if let Some(offer) = view.offer(tool, &first.what.path, |_| true) {
            draft = draft
                .remedy(format!("{} has {tool} {}.", offer.root, offer.version))
                .evidence(offer.event, format!("{} exists", offer.path));
        }
        return Some(draft.proven());
    }
    Some(remedy(view, draft, process, tool).proven())
}

/// The variable of a process, or of one above it, whose value has this path in it.
fn setting_that_names(
    view: &View<'_>,
    process: ProcessIndex,
    path: &str,
) -> Option<(EventId, String)> {
    view.line(process).find_map(|image| {
        let environment = &image.env;
        environment
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "PATH" | "LD_LIBRARY_PATH" | "_"))
            .find(|(_, value)| value.split([' ', '=', '"', '\'']).any(|word| word == path))
            .map(|(name, value)| (image.id, format!("{name}={value}")))
    })
}

/// `sh: 1: ninja: not found`, where the shell looked through PATH without an exec.
fn by_shell(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for message in view.said(&[
        "command-not-found",
        "nvcc-not-found",
        "ninja-missing",
        "program-not-found",
    ]) {
        let Some(process) = message.process else {
            continue;
        };
        let text = message.what.text.as_str();
        let tool = TOOLS.iter().find(|t| {
            text.ends_with(&format!(": {t}: not found"))
                || text.ends_with(&format!(" {t}: not found"))
                || text.ends_with(&format!(": {t}: command not found"))
                || text.ends_with(&format!("'{t}'"))
                || text.contains(&format!("cannot execute '{t}'"))
                || text.contains(&format!("{t}: No such file or directory"))
        });
        let Some(tool) = tool else { continue };
        if view.failed_line(process).is_none() && is_compiler_stage(tool) {
            continue;
        }
        let known = view.model.exec_failures().iter().any(|f| {
            name(&f.what.path) == *tool && f.process.is_some_and(|p| view.related(p, process))
        });
        if known || ran_later(view, process, tool, message.t) || is_for_nvcc(view, process, tool) {
            continue;
        }
        let asker = view
            .model
            .process(process)
            .map(|p| asker::of_process(view.model, p))
            .unwrap_or_default();
        let path = view
            .model
            .process(process)
            .and_then(|p| p.env("PATH"))
            .map(|p| few(&p.split(':').collect::<Vec<_>>(), 6))
            .unwrap_or_default();
        let draft = Draft::error("build-tool-missing")
            .component(&asker.component)
            .title(format!("{} could not start {tool}", asker.component))
            .cause(format!(
                "A shell could not start {tool}: it is in none of the directories of PATH ({path})."
            ))
            .evidence(message.id, view.said_by(message))
            .in_process(message.pid)
            .proven();
        drafts.push(remedy(view, draft, process, tool));
    }
    drafts
}

/// A part of the toolkit that nvcc looked for: then the toolkit is incomplete.
fn is_for_nvcc(view: &View<'_>, process: ProcessIndex, tool: &str) -> bool {
    matches!(Kind::of(tool), Some(Kind::CudaTool | Kind::Ptxas))
        && view
            .line(process)
            .any(|p| Kind::of(p.name()) == Some(Kind::Nvcc))
}

fn ran_later(view: &View<'_>, process: ProcessIndex, tool: &str, t: u64) -> bool {
    // `as` may be a link to x86_64-linux-gnu-as: the file has another name than what was asked for.
    let asked = |argv: &[String]| argv.first().is_some_and(|a| name(a) == tool);
    view.model.processes().iter().any(|p| {
        (p.name() == tool || asked(&p.what.argv))
            && p.start >= t
            // The kernel may tell the attempts when the program that they led to has been told already.
            && (p.index == process
                || p.parent.is_some_and(|parent| view.related(parent, process)))
    })
}

/// gcc failing and clang found, ninja failing and ninja-build found.
fn replaced(view: &View<'_>, process: ProcessIndex, tool: &str, t: u64) -> bool {
    const SAME: &[&[&str]] = &[
        &["c++", "g++", "clang++"],
        &["cc", "gcc", "clang"],
        &["ninja", "ninja-build", "make"],
    ];
    SAME.iter()
        .filter(|group| group.contains(&tool))
        .any(|group| group.iter().any(|other| ran_later(view, process, other, t)))
}

fn complaint<'a>(
    view: &View<'a>,
    process: ProcessIndex,
    tool: &str,
) -> Option<&'a Seen<crate::event::Message>> {
    view.messages().find(|m| {
        view.concerns(m, process)
            && m.what.text.contains(tool)
            && [
                "No such file",
                "not found",
                "required",
                "Failed to find",
                "cannot find",
            ]
            .iter()
            .any(|w| m.what.text.contains(w))
    })
}

fn is_path_entry(view: &View<'_>, process: ProcessIndex, path: &str) -> bool {
    view.model
        .process(process)
        .and_then(|p| p.env("PATH"))
        .is_some_and(|p| {
            p.split(':')
                .any(|entry| entry.trim_end_matches('/') == directory(path))
        })
}

/// What a compiler runs by itself: it lies in the compiler's own directory, not on PATH.
fn is_compiler_stage(tool: &str) -> bool {
    matches!(tool, "cc1" | "cc1plus")
}

fn remedy(view: &View<'_>, draft: Draft, process: ProcessIndex, tool: &str) -> Draft {
    if is_compiler_stage(tool) {
        let language = if tool == "cc1plus" { "C++" } else { "C" };
        return draft
            .cause(format!(
                "{tool} is the {language} part of gcc; the driver program was installed without it."
            ))
            .remedy(format!(
                "Install the {language} compiler of the same release as gcc (package g++ on Debian and Ubuntu, gcc-c++ on Fedora and RHEL, gxx in conda), or name another host compiler by NVCC_CCBIN, CC and CXX."
            ));
    }
    let copies: Vec<(String, u64)> = copies(view, process, tool);
    let Some((copy, event)) = copies.into_iter().next() else {
        return draft.remedy(format!(
            "Install {tool}, or put its directory on PATH; none was found on this machine."
        ));
    };
    let beside = interpreter_directories(view, process)
        .iter()
        .any(|d| d == directory(&copy));
    draft
        .cause(if beside {
            format!("It exists at {copy}, beside the running python: its directory is not on PATH, as the environment was not activated.")
        } else {
            format!("It exists at {copy}.")
        })
        .remedy(format!(
            "Put {} on PATH (what activating the environment does), in the unit file or the launcher as well.",
            directory(&copy)
        ))
        .evidence(event, format!("{copy} exists"))
}

/// Files of that name which are known to exist, the one beside the interpreter first.
fn copies(view: &View<'_>, process: ProcessIndex, tool: &str) -> Vec<(String, u64)> {
    let beside = interpreter_directories(view, process);
    let mut copies: Vec<(String, u64)> = view
        .model
        .files()
        .filter(|f| name(&f.what.path) == tool)
        .map(|f| (f.what.path.clone(), f.id))
        .chain(view.model.toolkits().iter().flat_map(|t| {
            t.what
                .parts
                .values()
                .filter(|p| name(p) == tool)
                .map(|p| (p.clone(), t.id))
        }))
        .chain(
            view.model
                .processes()
                .iter()
                .filter(|p| p.name() == tool)
                .map(|p| (p.program.clone(), p.id)),
        )
        .collect();
    copies.sort_by_key(|(path, event)| (!beside.iter().any(|d| d == directory(path)), *event));
    copies
}

/// Directories of the interpreters above a process, as they were called: a virtual environment's python is a link.
fn interpreter_directories(view: &View<'_>, process: ProcessIndex) -> Vec<String> {
    view.line(process)
        .filter(|p| p.name().starts_with("python"))
        .flat_map(|p| {
            let called = p
                .what
                .argv
                .first()
                .filter(|a| a.contains('/'))
                .map(|a| crate::resolve::absolute(&p.what.cwd, a));
            [Some(p.program.clone()), called, Some(p.what.exe.clone())]
        })
        .flatten()
        .map(|p| directory(&p).to_owned())
        .collect()
}
