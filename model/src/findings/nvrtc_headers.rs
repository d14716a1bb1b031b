//! `nvrtc-headers-differ`: NVRTC of one release was given headers of another.
//!
//! Library and headers are looked up by separate rules. Proof: NVRTC's release in the process, the include directory
//! that was given (an option of the compile, or of a compiler that was run for it) and the release in its headers, and
//! a compile that failed. Silent when the compile succeeded, and for headers that nvcc reads for itself.

use super::{
    Draft, View,
    aftermath::Aftermath,
    arch_unsupported::nvrtc_version,
    view::{Known, exit_words},
    words::{directory, name},
};
use crate::{
    fold::{Process, ProcessIndex},
    resolve::{
        absolute, asker,
        tool::{Kind, under},
    },
    toolkit::Version,
};

/// Variables by which packages find the headers of an environment.
const WHERE: &[&str] = &[
    "CONDA_PREFIX",
    "CUDA_PATH",
    "CUDA_HOME",
    "NVTE_CUDA_INCLUDE_DIR",
    "NUMBA_CUDA_INCLUDE_PATH",
];

/// An include directory that was used, and the failure of the compile that used it.
struct Included {
    directory: String,
    header: Known,
    used: u64,
    failure: u64,
    words: String,
    came: Aftermath,
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for process in view.model.processes() {
        let Some(nvrtc) = view
            .loaded_part(Some(process.index), "nvrtc")
            .find(|l| !name(&l.what.path).contains("builtins"))
        else {
            continue;
        };
        let Some((version, event)) =
            nvrtc_version(view, Some(process.index), Some(&nvrtc.what.path))
                .or_else(|| nvrtc_version(view, Some(process.index), None))
        else {
            continue;
        };
        let included = by_options(view, process).or_else(|| by_compiler(view, process.index));
        let Some(included) = included.filter(|i| !i.header.version.same_release(version)) else {
            continue;
        };
        drafts.push(differ(
            view,
            process,
            &nvrtc.what.path,
            (version, event),
            nvrtc.id,
            &included,
        ));
    }
    drafts
}

/// The `-I` options of a compile that NVRTC itself refused.
fn by_options(view: &View<'_>, process: &Process) -> Option<Included> {
    let call = view.calls(&["nvrtcCompileProgram"]).find(|c| {
        c.process == Some(process.index) && c.what.result.is_some_and(|r| r != 0 && r != 5)
    })?;
    let words = match call.what.log.as_deref().map(str::trim) {
        Some(log) if !log.is_empty() => log.lines().next().unwrap_or_default().to_owned(),
        _ => format!(
            "nvrtcCompileProgram answered {}",
            call.what.result.unwrap_or_default()
        ),
    };
    call.what.args.iter().find_map(|option| {
        let directory = include_of(option)?;
        let directory = absolute(&process.what.cwd, directory);
        let header = header_version(view, &directory)?;
        Some(Included {
            directory,
            header,
            used: call.id,
            failure: call.id,
            words: words.clone(),
            came: Aftermath::of_work(view, call, &["nvrtcCompileProgram"]),
        })
    })
}

/// A compiler that was run by the process, without nvcc above it, and failed on headers of a toolkit.
fn by_compiler(view: &View<'_>, process: ProcessIndex) -> Option<Included> {
    view.tools_of(Kind::HostCompiler)
        .filter(|t| !t.only_asked && view.failed(t.process.index))
        .filter(|t| view.descends(t.process.index, process))
        .filter(|t| {
            view.line(t.process.index)
                .all(|p| Kind::of(p.name()) != Some(Kind::Nvcc))
        })
        .find_map(|tool| {
            let exit = view.exit_of(tool.process.index)?;
            // A header that is missing is told of as such.
            let missing = view
                .said(&["header-not-found"])
                .any(|m| view.concerns(m, tool.process.index));
            if missing {
                return None;
            }
            let read = view.model.accesses().iter().find_map(|a| {
                let is_header = matches!(
                    name(&a.what.path),
                    "cuda_runtime_api.h" | "cuda.h" | "cuda_runtime.h"
                );
                let inside = is_header
                    && a.what.errno == 0
                    && a.process
                        .is_some_and(|p| view.descends(p, tool.process.index));
                let version = view.version_of(inside.then_some(&a.what.path)?)?;
                Some((directory(&a.what.path).to_owned(), version, a.id))
            });
            let given = || {
                tool.process.what.argv.iter().find_map(|a| {
                    let directory = absolute(&tool.process.what.cwd, include_of(a)?);
                    let header = header_version(view, &directory)?;
                    Some((directory, header, tool.process.id))
                })
            };
            let (directory, header, used) = read.or_else(given)?;
            Some(Included {
                directory,
                header,
                used,
                failure: view.exit_event(tool.process.index).unwrap_or(used),
                words: exit_words(exit),
                came: Aftermath::of_tool(view, tool),
            })
        })
}

fn include_of(option: &str) -> Option<&str> {
    ["--include-path=", "-I=", "-I"]
        .iter()
        .find_map(|p| option.strip_prefix(p))
        .map(str::trim)
        .filter(|d| !d.is_empty())
}

fn header_version(view: &View<'_>, directory: &str) -> Option<Known> {
    ["cuda_runtime_api.h", "cuda.h"]
        .iter()
        .find_map(|h| view.version_of(&format!("{}/{h}", directory.trim_end_matches('/'))))
}

fn differ(
    view: &View<'_>,
    process: &Process,
    path: &str,
    (version, event): (Version, u64),
    loaded: u64,
    included: &Included,
) -> Draft {
    let header = included.header.version.without_patch();
    let version = version.without_patch();
    let asker = asker::of_call(view.model, &[], None, Some(process.index));
    let mut draft = Draft::of("nvrtc-headers-differ", included.came.of_a_refusal())
        .component(&asker.component)
        .title(format!("NVRTC {version} was given headers of {header}"))
        .cause(format!(
            "NVRTC {version} ({path}) and headers of {header} ({}) came together, and the compile failed ({}).",
            included.directory,
            included.words.trim()
        ))
        .evidence(loaded, format!("{path} was loaded"))
        .evidence(event, format!("NVRTC is {version}"))
        .evidence(included.used, format!("{} was the include directory", included.directory))
        .evidence(included.header.event, format!("the headers in {} state {} ({})", included.directory, included.header.version, included.header.how()))
        .evidence(included.failure, included.words.clone())
        .told_aftermath(view, Some(process.index), included.came)
        .in_process(process.pid);
    let root = prefix(view.real(path));
    let unset: Vec<&str> = WHERE
        .iter()
        .take(2)
        .filter(|n| process.env(n).is_none_or(str::is_empty))
        .copied()
        .collect();
    let on_path = root.filter(|r| {
        process.env("PATH").is_some_and(|p| {
            p.split(':')
                .any(|e| e.trim_end_matches('/') == format!("{r}/bin"))
        })
    });
    if let Some(decided) = WHERE.iter().find_map(|n| {
        process
            .env(n)
            .filter(|v| under(&included.directory, v))
            .map(|v| format!("{n}={v}"))
    }) {
        draft = draft.cause(format!("The headers came by {decided}."));
    } else if let (Some(root), true) = (on_path, unset.contains(&"CONDA_PREFIX")) {
        draft = draft
            .cause(format!(
                "CONDA_PREFIX is unset although {root}/bin is on PATH: the environment is on PATH but not activated, and the search for headers fell back to {}.",
                included.directory
            ))
            .evidence(process.id, format!("PATH has {root}/bin, CONDA_PREFIX is unset"))
            .remedy(format!("Activate the environment (CONDA_PREFIX={root}): its headers are then found."));
    } else if unset.len() == 2 {
        draft = draft
            .cause("CONDA_PREFIX and CUDA_PATH are unset, so that the headers were looked for in a default place.")
            .evidence(process.id, "CONDA_PREFIX and CUDA_PATH are unset".to_owned());
    }
    let own = root.and_then(|root| {
        let mut files: Vec<_> = view
            .model
            .files()
            .filter(|f| {
                under(&f.what.path, root)
                    && f.what.part.as_deref() == Some("headers")
                    && view
                        .version_of(&f.what.path)
                        .is_some_and(|k| k.version.same_release(version))
            })
            .collect();
        files.sort_by_key(|f| f.id);
        files
            .first()
            .map(|f| (directory(&f.what.path).to_owned(), f.id))
    });
    draft = match own {
        Some((directory, event)) => draft
            .remedy(format!("Let the headers in {directory} be used: they are of {version}."))
            .evidence(event, format!("{directory} has headers of {version}")),
        None => draft.remedy(format!(
            "Install the headers of CUDA {version} (nvidia-cuda-runtime and nvidia-cuda-cccl, or the -dev packages) where {path} is from, or unset what leads to {}.",
            included.directory
        )),
    };
    draft.proven()
}

/// `/env` of `/env/lib/libnvrtc.so.12`.
fn prefix(library: &str) -> Option<&str> {
    let directory = directory(library);
    ["/lib", "/lib64", "/targets/x86_64-linux/lib"]
        .iter()
        .rev()
        .find_map(|end| directory.strip_suffix(end))
}
