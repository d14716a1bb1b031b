//! `toolkit-incomplete`: a toolkit has a compiler but not all that a build needs.
//!
//! Proof: a header of CUDA that a compile did not find, a library that the linker did not find, or a program that nvcc
//! runs and that is not there, and the failure of that compile. `nvcc --version` working is no sign of completeness.
//! Silent for headers that are not CUDA's, and for look-ups that fail in one directory and succeed in the next.

use super::{
    Draft, View,
    aftermath::Aftermath,
    arch_unsupported::speaks_for,
    toolkit_mixed::root_of,
    view::{Tool, exit_words, is_failure},
    words::{directory, few, name, quoted},
};
use crate::{
    event::Message,
    fold::{ProcessIndex, Seen},
    report::Severity,
    resolve::{asker, tool::Kind},
};

/// What a header belongs to: the stem of the run-time library, and the packages of NVIDIA's repositories and of PyPI.
const HEADERS: &[(&str, &str, &str, &str)] = &[
    ("curand", "curand", "libcurand-dev", "nvidia-curand"),
    ("cublas", "cublas", "libcublas-dev", "nvidia-cublas"),
    ("cusparse", "cusparse", "libcusparse-dev", "nvidia-cusparse"),
    ("cusolver", "cusolver", "libcusolver-dev", "nvidia-cusolver"),
    ("cufft", "cufft", "libcufft-dev", "nvidia-cufft"),
    ("nvrtc", "nvrtc", "cuda-nvrtc-dev", "nvidia-cuda-nvrtc"),
    (
        "nvJitLink",
        "nvJitLink",
        "libnvjitlink-dev",
        "nvidia-nvjitlink",
    ),
    ("nvml", "nvidia-ml", "cuda-nvml-dev", "nvidia-ml"),
    ("nvToolsExt", "nvToolsExt", "cuda-nvtx", "nvidia-nvtx"),
    ("nvtx3", "nvToolsExt", "cuda-nvtx", "nvidia-nvtx"),
    ("cupti", "cupti", "cuda-cupti-dev", "nvidia-cuda-cupti"),
    ("cudnn", "cudnn", "libcudnn-dev", "nvidia-cudnn"),
    ("nccl", "nccl", "libnccl-dev", "nvidia-nccl"),
    (
        "cuda_profiler",
        "cudart",
        "cuda-profiler-api",
        "nvidia-cuda-runtime",
    ),
    ("crt/", "", "cuda-crt", "nvidia-cuda-crt"),
    ("cuda/std", "", "cuda-cccl", "nvidia-cuda-cccl"),
    ("thrust/", "", "cuda-cccl", "nvidia-cuda-cccl"),
    ("cub/", "", "cuda-cccl", "nvidia-cuda-cccl"),
    ("nv/target", "", "cuda-cccl", "nvidia-cuda-cccl"),
    (
        "cooperative_groups",
        "cudart",
        "cuda-cudart-dev",
        "nvidia-cuda-runtime",
    ),
    ("cuda", "cudart", "cuda-cudart-dev", "nvidia-cuda-runtime"),
    (
        "driver_types",
        "cudart",
        "cuda-cudart-dev",
        "nvidia-cuda-runtime",
    ),
    (
        "vector_types",
        "cudart",
        "cuda-cudart-dev",
        "nvidia-cuda-runtime",
    ),
    (
        "device_launch_parameters",
        "cudart",
        "cuda-cudart-dev",
        "nvidia-cuda-runtime",
    ),
    (
        "nv",
        "",
        "the toolkit's -dev packages",
        "nvidia-cuda-runtime",
    ),
];

/// Programs that nvcc runs, and the wheel that has them.
const INNER: &[(&str, &str)] = &[
    ("cicc", "nvidia-nvvm"),
    ("ptxas", "nvidia-cuda-nvcc"),
    ("fatbinary", "nvidia-cuda-nvcc"),
    ("cudafe++", "nvidia-cuda-nvcc"),
    ("nvlink", "nvidia-cuda-nvcc"),
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    drafts.extend(headers(view));
    drafts.extend(link_libraries(view));
    drafts.extend(inner_programs(view));
    drafts.extend(libdevice(view));
    drafts
}

// ---- libdevice ---------------------------------------------------------------------------------------------------

/// NVIDIA's mathematics in LLVM's form, which XLA and others link into what they compile.
fn libdevice(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["libdevice-missing"]).last()?;
    let process = said.process?;
    // XLA says so at its start on many a machine that then never needs it.
    let severity = Aftermath::of_process(view, Some(process)).of_a_sentence(false);
    let missing: Vec<(u64, &str)> = view
        .model
        .accesses()
        .iter()
        .filter(|a| a.what.errno == 2 && name(&a.what.path).starts_with("libdevice"))
        .filter(|a| a.process.is_some_and(|p| view.related(p, process)))
        .map(|a| (a.id, a.what.path.as_str()))
        .collect();
    let root = missing.iter().find_map(|(_, path)| {
        let (root, _) = path.split_once("/nvvm/libdevice")?;
        Some(root).filter(|r| r.starts_with('/'))
    });
    let asker = asker::of_call(view.model, &[], None, Some(process));
    let mut draft = Draft::of("toolkit-incomplete", severity)
        .component(&asker.component)
        .title(match root {
            Some(root) => format!("The toolkit at {root} has no libdevice"),
            None => "No libdevice was found".to_owned(),
        })
        .cause(format!(
            "{} needs nvvm/libdevice/libdevice.10.bc and did not find it{}: {}.",
            asker.component,
            if missing.is_empty() {
                String::new()
            } else {
                let tried: Vec<&str> = missing.iter().map(|(_, path)| *path).collect();
                format!(" (tried {})", few(&tried, 3))
            },
            quoted(&said.what.text)
        ))
        .evidence(said.id, view.said_by(said))
        .in_process(said.pid);
    for (event, path) in missing.iter().take(4) {
        draft = draft.evidence(*event, format!("{path} gave ENOENT"));
    }
    if let Some(image) = view.model.process(process)
        && let Some(flags) = view.env(image, "XLA_FLAGS")
    {
        draft = draft
            .cause(format!("XLA_FLAGS={flags}."))
            .evidence(image.id, format!("XLA_FLAGS={flags} in the environment"));
    }
    Some(
        draft
            .remedy("Install the wheel nvidia-cuda-nvcc (-cu12 for CUDA 12), which brings libdevice, or name a complete toolkit (XLA_FLAGS=--xla_gpu_cuda_data_dir=…).")
            .proven_if(!missing.is_empty(), "the look-up that failed"),
    )
}

// ---- headers -----------------------------------------------------------------------------------------------------

fn headers(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for message in view.said(&["header-not-found"]) {
        let Some(header) = header_in(&message.what.text) else {
            continue;
        };
        let Some(process) = message.process else {
            continue;
        };
        if told.contains(&header) {
            continue;
        }
        if let Some(draft) = missing_header(view, &header, process, Some(message)) {
            told.push(header);
            drafts.push(draft);
        }
    }
    // Where the sentence was not seen: a compiler that looked for the header in vain and failed.
    for access in view.model.accesses().iter().filter(|a| a.what.errno == 2) {
        let Some(process) = access.process else {
            continue;
        };
        let header = name(&access.what.path).to_owned();
        if !header.ends_with(".h") || told.contains(&header) {
            continue;
        }
        let compiler = view
            .line(process)
            .find(|p| Kind::of(p.name()) == Some(Kind::HostCompiler))
            .filter(|p| view.exit_of(p.index).is_some_and(is_failure));
        if compiler.is_none() {
            continue;
        }
        let found = view.model.accesses().iter().any(|a| {
            a.what.errno == 0 && name(&a.what.path) == header && a.process == access.process
        });
        if found {
            continue;
        }
        if let Some(draft) = missing_header(view, &header, process, None) {
            told.push(header);
            drafts.push(draft.evidence(access.id, format!("{} gave ENOENT", access.what.path)));
        }
    }
    drafts
}

fn missing_header(
    view: &View<'_>,
    header: &str,
    process: ProcessIndex,
    message: Option<&Seen<Message>>,
) -> Option<Draft> {
    let known = HEADERS.iter().find(|(stem, ..)| header.starts_with(stem))?;
    let (_, library, package, wheel) = *known;
    let toolkit = toolkit_of_build(view, process, message);
    let (root, nvcc) = toolkit?;
    let looked: Vec<(u64, &str)> = view
        .model
        .accesses()
        .iter()
        .filter(|a| a.what.errno == 2 && a.what.path.ends_with(&format!("/{header}")))
        .map(|a| (a.id, directory(&a.what.path)))
        .collect();
    let mut places: Vec<&str> = looked.iter().map(|(_, d)| *d).collect();
    places.dedup();
    let release = nvcc
        .as_ref()
        .and_then(|n| n.version.as_ref())
        .map(|k| k.version.without_patch().to_string());
    let asker = nvcc.as_ref().map_or_else(
        || {
            view.model
                .process(process)
                .map(|p| asker::of_process(view.model, p))
                .unwrap_or_default()
        },
        |n| view.asker(n),
    );
    let of = release
        .as_deref()
        .map(|r| format!(" {r}"))
        .unwrap_or_default();
    let mut draft = Draft::of("toolkit-incomplete", Severity::Error)
        .component(&asker.component)
        .title(format!(
            "The toolkit at {root} has nvcc{of} but not {header}"
        ))
        .cause(format!(
            "The toolkit at {root} is partial: {}{header} is in none of the include directories{}.",
            nvcc.as_ref()
                .map(|n| format!("{} works ({}), but ", n.named(), n.path()))
                .unwrap_or_default(),
            if places.is_empty() {
                String::new()
            } else {
                format!(" ({})", few(&places, 3))
            }
        ))
        .in_process(view.model.process(process).map_or(0, |p| p.pid));
    if let Some(message) = message {
        draft = draft
            .cause(format!(
                "The compile stopped: {}.",
                quoted(&message.what.text)
            ))
            .evidence(message.id, view.said_by(message));
    }
    for (event, place) in looked.iter().take(4) {
        draft = draft.evidence(*event, format!("{place}/{header} gave ENOENT"));
    }
    if let Some(nvcc) = &nvcc {
        draft = draft
            .evidence(nvcc.process.id, format!("{} ran", nvcc.path()))
            .in_process(view.origin(nvcc.process).pid);
        if let Some(known) = &nvcc.version {
            draft = draft.evidence(
                known.event,
                format!(
                    "{} is release {} ({})",
                    nvcc.path(),
                    known.version,
                    known.how()
                ),
            );
        }
        draft = lone_symlink(view, draft, nvcc.path(), header);
    }
    if let Some((path, event)) = run_time_library(view, library) {
        draft = draft
            .cause(format!("Only the run-time library is there: {path}."))
            .evidence(event, format!("{path} exists"));
    }
    let major = release
        .as_deref()
        .and_then(|r| r.split('.').next())
        .unwrap_or_default();
    draft = draft.remedy(format!(
        "Install {package} (or the wheel {wheel}{}) of the same release{of}, use a devel image, or set CUDA_HOME to a complete toolkit.",
        if major == "12" { "-cu12" } else { "" }
    ));
    if let Some((other, event)) = header_elsewhere(view, header, &root) {
        draft = draft
            .remedy(format!("{other} has {header}."))
            .evidence(event, format!("{other}/{header} exists"));
    }
    Some(draft.proven_if(message.is_some(), "the compiler's own sentence"))
}

/// The toolkit whose headers a compile was to use: the nvcc above it, the `-I` of a toolkit, the nvcc that was asked.
fn toolkit_of_build<'v, 'a>(
    view: &'v View<'a>,
    process: ProcessIndex,
    message: Option<&Seen<Message>>,
) -> Option<(String, Option<&'v Tool<'a>>)> {
    let above = view
        .line(process)
        .find_map(|p| view.tool(p.index).filter(|t| t.kind == Kind::Nvcc));
    if let Some(nvcc) = above {
        return Some((root_of(nvcc.path()).to_owned(), Some(nvcc)));
    }
    // The sentence may have been read from a pipe by whoever ran the compilers.
    let failed_nvcc = view.tools_of(Kind::Nvcc).rfind_like(|t| {
        !t.only_asked
            && view.exit_of(t.process.index).is_some_and(is_failure)
            && message.is_some_and(|m| speaks_for(view, m, t))
    });
    if let Some(nvcc) = failed_nvcc {
        return Some((root_of(nvcc.path()).to_owned(), Some(nvcc)));
    }
    let asked = view
        .tools_of(Kind::Nvcc)
        .filter(|t| view.related(view.origin(t.process).index, process))
        .last();
    let nvcc = asked?;
    let root = root_of(nvcc.path()).to_owned();
    Some((root, Some(nvcc)))
}

trait Last: Iterator + Sized {
    /// The last item that fits, for iterators that only go forward.
    fn rfind_like(self, fits: impl Fn(&Self::Item) -> bool) -> Option<Self::Item> {
        self.filter(|item| fits(item)).last()
    }
}

impl<I: Iterator> Last for I {}

/// nvcc looks beside the place it was called through: a link to it alone finds nothing (resolution.md 2.2).
fn lone_symlink(view: &View<'_>, draft: Draft, nvcc: &str, header: &str) -> Draft {
    let real = view.real(nvcc);
    if directory(real) == directory(nvcc)
        || !matches!(header, "cuda_runtime.h" | "crt/host_config.h")
    {
        return draft;
    }
    let event = view.model.file(nvcc).map_or(0, |f| f.id);
    draft
        .cause(format!(
            "{nvcc} is a link to {real}; nvcc looks for headers beside the link, and there are none."
        ))
        .remedy(format!("Call {real} itself, or set CUDA_HOME={}.", root_of(real)))
        .evidence(event, format!("{nvcc} leads to {real}"))
}

fn run_time_library(view: &View<'_>, stem: &str) -> Option<(String, u64)> {
    if stem.is_empty() {
        return None;
    }
    let file_name = format!("lib{stem}.so");
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| name(&f.what.path).starts_with(&file_name))
        .collect();
    files.sort_by_key(|f| f.id);
    files
        .first()
        .map(|f| (f.what.path.clone(), f.id))
        .or_else(|| {
            view.model.toolkits().iter().find_map(|t| {
                let path = t
                    .what
                    .parts
                    .values()
                    .find(|p| name(p).starts_with(&file_name))?;
                Some((path.clone(), t.id))
            })
        })
        .or_else(|| {
            let loaded = view
                .model
                .libraries()
                .iter()
                .find(|l| name(&l.what.path).starts_with(&file_name))?;
            Some((loaded.what.path.clone(), loaded.id))
        })
}

fn header_elsewhere(view: &View<'_>, header: &str, not: &str) -> Option<(String, u64)> {
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| f.what.path.ends_with(&format!("/{header}")) && !f.what.path.starts_with(not))
        .collect();
    files.sort_by_key(|f| f.id);
    files
        .first()
        .map(|f| (directory(&f.what.path).to_owned(), f.id))
}

/// `curand_kernel.h` of `x.cu:1:10: fatal error: curand_kernel.h: No such file or directory`.
fn header_in(text: &str) -> Option<String> {
    let word = if let Some((_, rest)) = text.split_once("fatal error: ") {
        rest.split(": No such file").next()?
    } else {
        text.split_once("could not open source file \"")?
            .1
            .split('"')
            .next()?
    };
    let word = word.trim();
    (word.len() < 120 && !word.contains(' ')).then(|| word.to_owned())
}

// ---- libraries of the link step ----------------------------------------------------------------------------------

fn link_libraries(view: &View<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for message in view.said(&["library-not-found-by-ld"]) {
        let Some(library) = message
            .what
            .text
            .split_once("cannot find -l")
            .map(|(_, r)| {
                r.split([':', ' ', '\n'])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
        else {
            continue;
        };
        let is_cuda = ["cuda", "nv", "cu", "nccl"]
            .iter()
            .any(|p| library.starts_with(p));
        let Some(process) = message.process.filter(|_| is_cuda) else {
            continue;
        };
        let linker = view.tools().iter().rfind(|t| {
            !t.only_asked
                && t.process
                    .what
                    .argv
                    .iter()
                    .any(|a| *a == format!("-l{library}"))
        });
        let searched: Vec<&str> = linker
            .map(|t| {
                t.process
                    .what
                    .argv
                    .iter()
                    .filter_map(|a| a.strip_prefix("-L"))
                    .filter(|d| d.contains("cuda") || d.contains("nvidia"))
                    .collect()
            })
            .unwrap_or_default();
        let asker = view
            .model
            .process(process)
            .map(|p| asker::of_process(view.model, p))
            .unwrap_or_default();
        let root = searched.first().map(|d| {
            d.trim_end_matches("/stubs")
                .trim_end_matches("/lib64")
                .to_owned()
        });
        let place = root.clone().unwrap_or_else(|| "in use".to_owned());
        let mut draft = Draft::error("toolkit-incomplete")
            .component(&asker.component)
            .title(format!("The linker found no lib{library}.so in the toolkit {place}"))
            .cause(format!(
                "The link step looked for lib{library}.so{} and did not find it: {}.",
                if searched.is_empty() { String::new() } else { format!(" in {}", few(&searched, 3)) },
                quoted(&message.what.text)
            ))
            .cause(if library == "cuda" {
                "libcuda.so is the driver's; where there is none, as in an image, a toolkit has a stand-in for the linker in lib64/stubs."
            } else {
                "A toolkit from wheels has lib instead of lib64 and only names with a version (libcudart.so.13)."
            })
            .evidence(message.id, view.said_by(message))
            .in_process(message.pid)
            .proven();
        if let Some(linker) = linker {
            draft = draft.evidence(
                linker.process.id,
                format!("{} was run with -l{library}", linker.path()),
            );
        }
        if library == "cuda"
            && let Some(root) = &root
        {
            drafts.push(draft.remedy(format!(
                "Give the link step the stand-in of the toolkit: LIBRARY_PATH={root}/lib64/stubs for the build (not LD_LIBRARY_PATH, which the program itself would follow). Without that directory the package cuda-driver-dev of the toolkit's release is missing."
            )));
            continue;
        }
        let not = root.clone().unwrap_or_default();
        draft = match view
            .offer("nvcc", "", |_| true)
            .filter(|o| o.kind == "system" && o.root != not)
        {
            Some(o) => draft
                .remedy(format!(
                    "Set CUDA_HOME={}, an installed toolkit ({}).",
                    o.root, o.version
                ))
                .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
            None => draft.remedy(match &root {
                Some(root) => format!(
                    "Set CUDA_HOME to a toolkit with lib64/lib{library}.so, or make the names that are missing: ln -s lib {root}/lib64 and ln -s lib{library}.so.N {root}/lib/lib{library}.so, N being the number that is there."
                ),
                None => format!("Set CUDA_HOME to a toolkit with lib64/lib{library}.so."),
            }),
        };
        drafts.push(draft);
    }
    drafts
}

// ---- programs that nvcc runs -------------------------------------------------------------------------------------

fn inner_programs(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for nvcc in view.tools_of(Kind::Nvcc).filter(|t| !t.only_asked) {
        let Some(exit) = view.exit_of(nvcc.process.index).filter(|e| is_failure(*e)) else {
            continue;
        };
        for (program, wheel) in INNER {
            let failure = view.model.exec_failures().iter().find(|f| {
                name(&f.what.path) == *program
                    && f.process
                        .is_some_and(|p| view.descends(p, nvcc.process.index))
            });
            let said = view
                .said(&["command-not-found", "nvcc-not-found", "program-not-found"])
                .find(|m| {
                    m.what.text.contains(program)
                        && (m.what.text.contains("not found")
                            || m.what.text.contains("No such file"))
                        && speaks_for(view, m, nvcc)
                });
            let ran = view.tools().iter().any(|t| {
                t.process.name() == *program && view.descends(t.process.index, nvcc.process.index)
            });
            if ran || failure.is_none() && said.is_none() {
                continue;
            }
            let root = root_of(nvcc.path());
            let asker = view.asker(nvcc);
            let mut draft = Draft::error("toolkit-incomplete")
                .component(&asker.component)
                .title(format!("The toolkit at {root} has nvcc but not {program}"))
                .cause(format!(
                    "{} at {} could not run {program} and failed ({}).",
                    nvcc.named(),
                    nvcc.path(),
                    exit_words(exit)
                ))
                .evidence(nvcc.process.id, format!("{} ran", nvcc.path()))
                .evidence_of(failure.map(|f| (f.id, format!("exec of {} failed", f.what.path))))
                .evidence_of(said.map(|m| (m.id, view.said_by(m))))
                .in_process(nvcc.process.pid)
                .in_process(view.origin(nvcc.process).pid)
                .remedy(format!(
                    "Install {wheel} of the same release, or set CUDA_HOME to a complete toolkit."
                ))
                .proven();
            if let Some(o) = view.offer("nvcc", nvcc.path(), |_| true) {
                draft = draft
                    .remedy(format!("{} has nvcc {}.", o.root, o.version))
                    .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path));
            }
            drafts.push(draft);
        }
    }
    drafts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_header_is_read_from_each_compilers_words() {
        for (text, header) in [
            (
                "<stdin>:2:10: fatal error: curand_kernel.h: No such file or directory",
                Some("curand_kernel.h"),
            ),
            (
                "x.cu(3): catastrophic error: could not open source file \"nvrtc.h\"",
                Some("nvrtc.h"),
            ),
            ("fatal error: too many errors", None),
        ] {
            assert_eq!(header_in(text).as_deref(), header, "{text}");
        }
    }
}
