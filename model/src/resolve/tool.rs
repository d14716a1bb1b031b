//! Build tools: which programs they are, and by which rule one of them was found.

use crate::{
    commandline::{Tool, tool_of},
    event::{Candidate, EventId, Outcome, Rule},
    fold::{Model, Process},
};

/// What a build tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The CUDA compiler driver.
    Nvcc,
    /// The PTX assembler.
    Ptxas,
    /// Another program of a CUDA toolkit.
    CudaTool,
    /// A C or C++ compiler driver.
    HostCompiler,
    /// A program that a host compiler runs.
    HostTool,
    /// ninja, make, cmake.
    BuildSystem,
    /// A shell, `which`, a launcher such as `env` or ccache: runs what it is told.
    Shell,
}

impl Kind {
    /// The kind of a program by its file name; `None` when it is no build tool.
    pub fn of(name: &str) -> Option<Kind> {
        Some(match tool_of(name) {
            Tool::Nvcc => Kind::Nvcc,
            Tool::Ptxas => Kind::Ptxas,
            Tool::Cicc
            | Tool::Cudafe
            | Tool::Nvlink
            | Tool::Fatbinary
            | Tool::Cuobjdump
            | Tool::Nvdisasm
            | Tool::Bin2c
            | Tool::Nvprune => Kind::CudaTool,
            Tool::HostCompiler => Kind::HostCompiler,
            Tool::CompilerStage | Tool::Assembler | Tool::Linker | Tool::ObjectTool => {
                Kind::HostTool
            }
            Tool::Ninja | Tool::Make | Tool::Cmake => Kind::BuildSystem,
            Tool::Shell | Tool::Launcher | Tool::Which => Kind::Shell,
            Tool::Ldconfig | Tool::NvidiaSmi | Tool::Python | Tool::Other => return None,
        })
    }

    /// The part of a toolkit that the report files it under.
    pub fn part(self) -> Option<&'static str> {
        match self {
            Kind::Nvcc => Some("nvcc"),
            Kind::Ptxas => Some("ptxas"),
            Kind::HostCompiler => Some("host_compiler"),
            _ => None,
        }
    }
}

/// What is said of a copy that a package brings along without a name of its own.
pub(crate) const OWN_COPY: &str = "its own copy";

/// By which rule a tool was found, and what decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The rule.
    pub rule: Rule,
    /// The variable, PATH entry, build file or tool that decided.
    pub detail: String,
    /// Places that were tried.
    pub candidates: Vec<Candidate>,
    /// Events of the places that were tried.
    pub events: Vec<EventId>,
}

/// The rule by which the program of a process was found: the earliest cause that was seen. A value of the environment
/// that leads to the path comes before a PATH walk, that before a build file, that before the tool's own place.
pub fn rule_of(model: &Model, process: &Process) -> Found {
    let program = process.program.as_str();
    let parent = effective_parent(model, process);
    let origin = origin(model, process);
    let mut found = Found {
        candidates: tried(model, process),
        ..Found::default()
    };
    found.events = tried_events(model, process);
    let (rule, detail) = decide(model, process, program, parent, origin);
    found.rule = rule;
    found.detail = detail;
    found.candidates.push(Candidate {
        path: program.to_owned(),
        rule,
        outcome: Outcome::Chosen,
    });
    found
}

fn decide(
    model: &Model,
    process: &Process,
    program: &str,
    parent: Option<&Process>,
    origin: Option<&Process>,
) -> (Rule, String) {
    // What nvcc runs, it finds beside itself (resolution.md 2.2).
    if let Some(parent) = parent
        && matches!(Kind::of(parent.name()), Some(Kind::Nvcc))
        && same_toolkit(parent, process)
    {
        return (Rule::ToolRelative, format!("beside {}", parent.program));
    }
    let environment = origin.or(parent).unwrap_or(process);
    if let Some(decided) = by_variable(environment, program) {
        return decided;
    }
    let under_build = parent.filter(|p| matches!(Kind::of(p.name()), Some(Kind::BuildSystem)));
    let home_set = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .any(|v| environment.env(v).is_some_and(|v| !v.is_empty()));
    if let Some(build) = under_build
        && home_set
        && program.starts_with('/')
    {
        return (Rule::BuildFile, build_file(build));
    }
    let fact = model.file(program);
    let kind = fact.and_then(|f| f.what.toolkit_kind.as_deref());
    if let Some((entry, position)) = path_entry(environment, program) {
        let unset = if home_set { "" } else { ", CUDA_HOME unset" };
        return (Rule::Path, format!("PATH entry {position}: {entry}{unset}"));
    }
    if let Some(build) = under_build {
        return (Rule::BuildFile, build_file(build));
    }
    let owner = fact.and_then(|f| f.what.distribution.clone());
    match kind {
        Some("bundled") => {
            return (
                Rule::Bundled,
                owner.map_or_else(
                    || OWN_COPY.to_owned(),
                    |o| format!("the copy that {o} carries"),
                ),
            );
        }
        Some("wheel") => return (Rule::Wheel, owner.unwrap_or_default()),
        Some("conda") => {
            return (
                Rule::Conda,
                fact.and_then(|f| f.what.toolkit.clone())
                    .unwrap_or_default(),
            );
        }
        _ => {}
    }
    for directory in ["/usr/local/cuda", "/opt/cuda"] {
        if under(program, directory) || program.starts_with("/usr/local/cuda-") {
            return (Rule::DefaultDirectory, directory.to_owned());
        }
    }
    if crate::resolve::asker::after_site_packages(program).is_some() {
        return (Rule::Bundled, "a copy inside site-packages".to_owned());
    }
    match model.exec_of(process).map(|e| e.what.path.contains('/')) {
        Some(true) => (Rule::AbsolutePath, "asked for by its path".to_owned()),
        _ => (Rule::Unknown, String::new()),
    }
}

fn build_file(build: &Process) -> String {
    let arguments = &build.what.argv;
    let after = |flag: &str| arguments.iter().skip_while(|a| *a != flag).nth(1).cloned();
    after("-f").unwrap_or_else(|| {
        let directory = after("-C").unwrap_or_else(|| build.what.cwd.clone());
        format!("{}/build.ninja", directory.trim_end_matches('/'))
    })
}

/// A variable of the environment whose value is the file, or a directory above it.
fn by_variable(process: &Process, program: &str) -> Option<(Rule, String)> {
    let homes = [("CUDA_HOME", Rule::CudaHome), ("CUDA_PATH", Rule::CudaPath)];
    let exact = process
        .env
        .iter()
        .find(|(name, value)| !is_search_list(name) && value.as_str() == program);
    if let Some((name, value)) = exact {
        return Some((Rule::OverrideVariable, format!("{name}={value}")));
    }
    for (name, rule) in homes {
        if let Some(value) = process
            .env(name)
            .filter(|v| !v.is_empty() && under(program, v))
        {
            return Some((rule, format!("{name}={value}")));
        }
    }
    process
        .env
        .iter()
        .find(|(name, value)| {
            let names_a_root = name.starts_with("CUDA")
                || name.starts_with("NVTE_")
                || name.ends_with("_CUDA_HOME");
            names_a_root && !is_search_list(name) && value.starts_with('/') && under(program, value)
        })
        .map(|(name, value)| (Rule::OverrideVariable, format!("{name}={value}")))
}

/// Variables that hold lists of directories, or that lead everywhere.
fn is_search_list(name: &str) -> bool {
    matches!(
        name,
        "PATH"
            | "LD_LIBRARY_PATH"
            | "LD_PRELOAD"
            | "PYTHONPATH"
            | "LIBRARY_PATH"
            | "CPATH"
            | "HOME"
            | "CUDA_CACHE_PATH"
    )
}

/// Whether `path` lies in `directory`, compared by components.
pub fn under(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    !directory.is_empty()
        && path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The PATH entry that holds the program, and its position from 1.
fn path_entry<'a>(process: &'a Process, program: &str) -> Option<(&'a str, usize)> {
    let directory = program.rsplit_once('/')?.0;
    process
        .env("PATH")?
        .split(':')
        .enumerate()
        .find(|(_, entry)| entry.trim_end_matches('/') == directory)
        .map(|(at, entry)| (entry, at + 1))
}

/// The process that ran this one, shells left out.
pub fn effective_parent<'a>(model: &'a Model, process: &Process) -> Option<&'a Process> {
    let mut at = process.parent.and_then(|i| model.process(i));
    while let Some(parent) = at {
        if !matches!(Kind::of(parent.name()), Some(Kind::Shell)) {
            return Some(parent);
        }
        at = parent.parent.and_then(|i| model.process(i));
    }
    None
}

/// The nvcc that a process is, or that runs it by way of compilers and shells.
pub fn under_nvcc<'a>(model: &'a Model, process: &'a Process) -> Option<&'a Process> {
    let mut at = Some(process);
    while let Some(process) = at {
        match Kind::of(process.name()) {
            Some(Kind::Nvcc) => return Some(process),
            Some(Kind::BuildSystem) | None => return None,
            Some(_) => at = process.parent.and_then(|i| model.process(i)),
        }
    }
    None
}

/// The process that is no build tool and from which this one descends: its environment is what the user set.
pub fn origin<'a>(model: &'a Model, process: &Process) -> Option<&'a Process> {
    let mut at = process.parent.and_then(|i| model.process(i));
    let mut last = None;
    while let Some(parent) = at {
        last = Some(parent);
        if Kind::of(parent.name()).is_none() {
            return Some(parent);
        }
        at = parent.parent.and_then(|i| model.process(i));
    }
    last
}

fn same_toolkit(tool: &Process, other: &Process) -> bool {
    let root = |p: &Process| {
        p.program.rsplit_once("/bin/").map(|(root, _)| {
            root.trim_end_matches("/nvvm")
                .trim_end_matches("/bin/..")
                .to_owned()
        })
    };
    let (Some(a), Some(b)) = (root(tool), root(other)) else {
        return false;
    };
    under(&other.program, &a) || a == b
}

/// Places where the same program was tried before, in the same process or by the same parent.
fn tried(model: &Model, process: &Process) -> Vec<Candidate> {
    failures(model, process)
        .map(|failure| Candidate {
            path: failure.what.path.clone(),
            rule: Rule::Path,
            outcome: if failure.what.errno == 13 {
                Outcome::Unreadable
            } else {
                Outcome::Missing
            },
        })
        .collect()
}

fn tried_events(model: &Model, process: &Process) -> Vec<EventId> {
    failures(model, process)
        .map(|failure| failure.id)
        .take(20)
        .collect()
}

fn failures<'a>(
    model: &'a Model,
    process: &'a Process,
) -> impl Iterator<Item = &'a crate::fold::Seen<crate::event::ExecFailed>> {
    let name = process.name();
    model.exec_failures().iter().filter(move |failure| {
        failure.pid == process.pid
            && failure.t <= process.start
            && failure.what.path.rsplit('/').next() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_compilers_go_by_many_names() {
        for name in [
            "cc",
            "c++",
            "g++-12",
            "x86_64-linux-gnu-gcc-13",
            "clang++-17",
            "gcc-real",
            "gcc",
        ] {
            assert_eq!(Kind::of(name), Some(Kind::HostCompiler), "{name}");
        }
        for name in [
            "python3",
            "gccgo",
            "app",
            "ldconfig",
            "libcudart.so.13",
            "nvcc.profile",
        ] {
            assert_eq!(Kind::of(name), None, "{name}");
        }
    }

    #[test]
    fn tools_of_a_toolkit_and_what_runs_them() {
        for (name, kind) in [
            ("nvcc", Kind::Nvcc),
            ("nvcc-12.8", Kind::Nvcc),
            ("nvcc.bin", Kind::Nvcc),
            ("ptxas-blackwell", Kind::Ptxas),
            ("cudafe++", Kind::CudaTool),
            ("nvprune", Kind::CudaTool),
            ("cc1plus", Kind::HostTool),
            ("ld.mold", Kind::HostTool),
            ("lto-wrapper", Kind::HostTool),
            ("ninja", Kind::BuildSystem),
            ("sh", Kind::Shell),
            ("env", Kind::Shell),
            ("sccache", Kind::Shell),
            ("which", Kind::Shell),
        ] {
            assert_eq!(Kind::of(name), Some(kind), "{name}");
        }
    }

    #[test]
    fn a_directory_contains_by_components() {
        assert!(under("/a/cuda/bin/nvcc", "/a/cuda"));
        assert!(under("/a/cuda/bin/nvcc", "/a/cuda/"));
        assert!(!under("/a/cuda-12/bin/nvcc", "/a/cuda"));
        assert!(!under("/a", ""));
    }
}
