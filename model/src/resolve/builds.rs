//! Compilations as trees: ninja → nvcc → cicc, ptxas, fatbinary, c++; shells left out.

use std::collections::HashMap;

use super::{
    asker,
    tool::{self, Kind},
};
use crate::{
    commandline::REBUILT_SINCE,
    fold::{Model, Process, ProcessIndex},
    report::Build,
};

/// All runs of build tools that built something, parents before children.
pub fn builds(model: &Model) -> Vec<Build> {
    let mut builds: Vec<Build> = Vec::new();
    let mut of_process: HashMap<ProcessIndex, u32> = HashMap::new();
    for process in model.processes() {
        let Some(kind) = Kind::of(process.name()).filter(|k| *k != Kind::Shell) else {
            continue;
        };
        let parent =
            tool::effective_parent(model, process).and_then(|p| of_process.get(&p.index).copied());
        if process.what.forked {
            // A fork of a tool is the moment before it runs another: what follows is still the tool's.
            of_process.extend(parent.map(|parent| (process.index, parent)));
            continue;
        }
        if is_question(kind, process) {
            continue;
        }
        let id = builds.len() as u32 + 1;
        of_process.insert(process.index, id);
        let fact = model
            .file(&process.program)
            .or_else(|| model.file(&process.what.exe));
        let arguments = process.arguments();
        builds.push(Build {
            id,
            parent,
            tool: process.name().to_owned(),
            path: process.program.clone(),
            version: fact.and_then(|f| f.what.version.clone()),
            argv: process.what.argv.clone(),
            cwd: process.what.cwd.clone(),
            output: output_of(arguments),
            archs: archs_of(arguments),
            started_by: Some(asker::of_process(model, process).component).filter(|c| !c.is_empty()),
            pid: process.pid,
            start_ns: process.start,
            exit: process.exit,
            duration_ns: process.end.map(|end| end.saturating_sub(process.start)),
            message: message_of(model, process),
            why: why(model, process),
            events: [Some(process.id), process.exit_event]
                .into_iter()
                .flatten()
                .collect(),
        });
    }
    builds
}

/// Whether the tool was only asked something (`--version`), which builds nothing.
pub(crate) fn is_question(kind: Kind, process: &Process) -> bool {
    let arguments = process.arguments();
    let asks = |a: &String| {
        matches!(
            a.as_str(),
            "--version"
                | "-V"
                | "-v"
                | "--help"
                | "-h"
                | "-dumpversion"
                | "-dumpfullversion"
                | "-dumpmachine"
                | "--list-gpu-arch"
                | "--list-gpu-code"
                | "-print-prog-name=ld"
                | "-###"
                | "--dryrun"
        ) || a.starts_with("-print-")
    };
    match kind {
        // `ninja -v` is a verbose build.
        Kind::BuildSystem => arguments.iter().any(|a| a == "--version" || a == "--help"),
        _ if arguments.is_empty() => kind != Kind::HostTool,
        Kind::HostCompiler if arguments.iter().any(|a| a == "-v") => arguments.len() == 1,
        _ => {
            arguments.iter().all(asks)
                || arguments
                    .iter()
                    .any(|a| a == "--version" || a == "--list-gpu-arch")
        }
    }
}

/// The value of `-o`, in each of the spellings that the tools know.
fn output_of(arguments: &[String]) -> Option<String> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-o" | "--output-file" | "--create" => return arguments.next().cloned(),
            other => {
                for prefix in ["--output-file=", "-out=", "-o=", "--create="] {
                    if let Some(value) = other.strip_prefix(prefix) {
                        return Some(value.to_owned());
                    }
                }
            }
        }
    }
    None
}

/// Architectures that a command line asks for: `sm_120f`, `compute_90a`.
pub(crate) fn archs_of(arguments: &[String]) -> Vec<String> {
    let mut archs: Vec<String> = Vec::new();
    let mut take = |text: &str| {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            let is_arch = ["sm_", "compute_", "lto_"].iter().any(|p| {
                word.strip_prefix(p)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            });
            if is_arch && !archs.iter().any(|a| a == word) {
                archs.push(word.to_owned());
            }
        }
    };
    let mut arguments = arguments.iter().peekable();
    while let Some(argument) = arguments.next() {
        let flag = argument.trim_start_matches('-');
        let takes_arch = [
            "arch",
            "gencode",
            "generate-code",
            "gpu-name",
            "gpu-architecture",
            "gpu-code",
            "code",
        ]
        .iter()
        .any(|f| {
            flag == *f
                || flag
                    .strip_prefix(f)
                    .is_some_and(|rest| rest.starts_with('='))
        });
        if !takes_arch || !argument.starts_with('-') {
            continue;
        }
        if flag.contains('=') {
            take(flag);
        } else if let Some(value) = arguments.peek() {
            take(value);
        }
    }
    archs
}

/// Why it ran again: what the collector saw of its source and its output when it began.
fn why(model: &Model, process: &Process) -> Option<String> {
    let note = model
        .notes()
        .iter()
        .find(|note| note.process == Some(process.index) && note.what.about == REBUILT_SINCE)?;
    Some(note.what.text.clone())
}

/// The last thing that a failed tool said.
fn message_of(model: &Model, process: &Process) -> Option<String> {
    if process.exit.is_some_and(|e| e.is_success()) {
        return None;
    }
    model
        .messages()
        .iter()
        .rfind(|m| m.process == Some(process.index))
        .map(|m| m.what.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn architectures_in_every_spelling() {
        for (line, archs) in [
            (
                "-gencode=arch=compute_120f,code=sm_120f -c x.cu",
                vec!["compute_120f", "sm_120f"],
            ),
            (
                "-gencode arch=compute_90a,code=[sm_90a,compute_90a]",
                vec!["compute_90a", "sm_90a"],
            ),
            ("-arch sm_120 x.ptx", vec!["sm_120"]),
            ("--gpu-name=sm_121a -o sm_90.cubin x.ptx", vec!["sm_121a"]),
            ("-DARCH=sm_90", vec![]),
        ] {
            assert_eq!(archs_of(&words(line)), archs, "{line}");
        }
    }

    #[test]
    fn outputs_in_every_spelling() {
        for line in ["-c x.cu -o k.o", "-out=k.o k.ptx", "--output-file k.o"] {
            assert_eq!(output_of(&words(line)).as_deref(), Some("k.o"), "{line}");
        }
    }
}
