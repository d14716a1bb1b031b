//! `toolkit-root-malformed`: a variable that should name one directory holds something else.
//!
//! A list (`:/usr/local/cuda`), quotes, a `~` that nobody expanded, blanks, the `bin` directory, the compiler itself.
//! Proof: the value in the environment and a failed exec, look-up or sentence whose path is made of that value. Silent
//! when nothing that used the value failed; a trailing slash is harmless.

use super::{
    Draft, View,
    words::{errno_words, quoted},
};
use crate::{fold::Process, resolve::asker, resolve::tool::under};

/// Variables that name the root of one toolkit.
const ROOTS: &[&str] = &[
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDADIR",
    "CUDAToolkit_ROOT",
    "CUDA_TOOLKIT_ROOT_DIR",
    "CUDACXX",
    "FLASHINFER_NVCC",
    "PYTORCH_NVCC",
    "DG_JIT_NVCC_COMPILER",
    "TRITON_PTXAS_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH",
];

/// What is wrong with a value, and what was meant by it.
struct Fault {
    words: &'static str,
    meant: Vec<String>,
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for process in view.model.processes() {
        for name in ROOTS {
            let Some(value) = process.env(name) else {
                continue;
            };
            if seen.contains(&(*name, value)) {
                continue;
            }
            let Some(fault) = fault_of(name, value) else {
                continue;
            };
            seen.push((*name, value));
            drafts.extend(malformed(view, process, name, value, &fault));
        }
    }
    drafts
}

fn fault_of(name: &str, value: &str) -> Option<Fault> {
    let is_file = matches!(
        name,
        "CUDACXX" | "FLASHINFER_NVCC" | "PYTORCH_NVCC" | "DG_JIT_NVCC_COMPILER"
    ) || name.starts_with("TRITON_");
    let trimmed = value.trim_end_matches('/');
    let fault = |words, meant: Vec<&str>| {
        Some(Fault {
            words,
            meant: meant
                .into_iter()
                .map(str::to_owned)
                .filter(|m| !m.is_empty())
                .collect(),
        })
    };
    if value.contains(':') {
        return fault(
            "a list, but it is used as one path",
            value.split(':').collect(),
        );
    }
    if value.contains(['"', '\'']) {
        return fault(
            "with quotes that are part of it",
            vec![value.trim_matches(['"', '\''])],
        );
    }
    if value.starts_with('~') {
        return fault("with a ~ that nobody expands", Vec::new());
    }
    if value.trim() != value || value.contains('\n') {
        return fault("with blanks that are part of it", vec![value.trim()]);
    }
    if value.contains("$") {
        return fault("with a variable in it that nobody expands", Vec::new());
    }
    if is_file {
        return None;
    }
    if trimmed.ends_with("/bin") {
        return fault(
            "the directory of the tools, not the toolkit's root",
            vec![trimmed.trim_end_matches("/bin")],
        );
    }
    if trimmed.ends_with("/nvcc") {
        return fault(
            "the compiler, not the toolkit's root",
            vec![trimmed.trim_end_matches("/nvcc").trim_end_matches("/bin")],
        );
    }
    None
}

fn malformed(
    view: &View<'_>,
    process: &Process,
    name: &str,
    value: &str,
    fault: &Fault,
) -> Option<Draft> {
    let stem = value.trim_end_matches('/');
    let uses = |path: &str| path.contains(stem);
    let exec = view
        .model
        .exec_failures()
        .iter()
        .find(|f| uses(&f.what.path));
    let file = view.model.accesses().iter().find(|a| {
        a.what.errno != 0 && uses(&a.what.path) && is_part_of_toolkit(&a.what.path, stem)
    });
    let said = view
        .messages()
        .find(|m| m.what.text.contains(stem) && view.concerns(m, process.index));
    // A shell that could not find the program says so by its status alone.
    let shell = view.model.processes().iter().find(|p| {
        view.exit_of(p.index).is_some_and(|e| e.code == Some(127))
            && p.what.argv.iter().any(|a| a.contains(&format!("{stem}/")))
    });
    let hurt = said.is_some() || shell.is_some() || view.failed_line(process.index).is_some();
    let wrong_use = exec.is_some() || file.is_some() || said.is_some() || shell.is_some();
    if !wrong_use || !(hurt || exec.is_some()) {
        return None;
    }
    let path = exec
        .map(|f| f.what.path.as_str())
        .or_else(|| file.map(|a| a.what.path.as_str()))
        .map(|p| from_value(p, stem).to_owned());
    let asker = match (exec, file) {
        (Some(f), _) => match f.process.and_then(|i| view.model.process(i)) {
            Some(p) if f.what.python.is_empty() => asker::of_process(view.model, p),
            _ => asker::of_call(
                view.model,
                &f.what.python,
                f.what.caller.as_ref(),
                f.process,
            ),
        },
        (None, Some(a)) => asker::of_call(view.model, &a.what.python, None, a.process),
        _ => asker::of_call(view.model, &[], None, Some(process.index)),
    };
    let mut draft = Draft::error("toolkit-root-malformed")
        .component(&asker.component)
        .title(format!("{name} is {}: {}", quoted(value), fault.words))
        .cause(format!("{name} holds {}, {}.", quoted(value), fault.words))
        .evidence(process.id, format!("{name}={value} in the environment"))
        .in_process(process.pid);
    if let Some(path) = &path {
        let errno = exec
            .map(|f| f.what.errno)
            .or_else(|| file.map(|a| a.what.errno))
            .unwrap_or(2);
        draft = draft.cause(format!(
            "{path} was tried and gave {}{}.",
            errno_words(errno),
            shell.map_or("", |_| ", exit status 127")
        ));
    } else if shell.is_some() {
        draft = draft.cause(format!(
            "A command that begins with {stem}/ was run by a shell and ended with exit status 127 (not found)."
        ));
    }
    draft = draft.evidence_of(exec.map(|f| {
        (
            f.id,
            format!("exec of {} gave {}", f.what.path, errno_words(f.what.errno)),
        )
    }));
    draft = draft.evidence_of(file.map(|a| {
        (
            a.id,
            format!("{} gave {}", a.what.path, errno_words(a.what.errno)),
        )
    }));
    draft = draft.evidence_of(said.map(|m| (m.id, view.said_by(m))));
    draft = draft.evidence_of(
        shell.and_then(|p| Some((view.exit_event(p.index)?, "exit status 127".to_owned()))),
    );
    for pid in [
        exec.map(|f| f.pid),
        file.map(|a| a.pid),
        shell.map(|p| p.pid),
    ]
    .into_iter()
    .flatten()
    {
        draft = draft.in_process(pid);
    }
    draft = remedy(view, draft, process, name, fault);
    let proven = exec.is_some() || file.is_some();
    Some(draft.proven_if(proven, "the failed look-up itself"))
}

fn remedy(view: &View<'_>, draft: Draft, process: &Process, name: &str, fault: &Fault) -> Draft {
    let there = fault.meant.iter().find_map(|meant| {
        let meant = meant.trim_end_matches('/');
        exists(view, process, meant).map(|(event, what)| (meant.to_owned(), event, what))
    });
    if let Some((meant, event, what)) = there {
        return draft
            .cause(format!("{meant}, the same without it, is a toolkit that is there ({what})."))
            .remedy(format!("Set {name}={meant}, exactly one directory."))
            .remedy("Delete build files that were written with the old value (build.ninja in the JIT cache).")
            .evidence(event, what);
    }
    match view.offer("nvcc", "", |_| true) {
        Some(offer) => draft
            .remedy(format!(
                "Set {name}={}: it has nvcc {}.",
                offer.root, offer.version
            ))
            .evidence(
                offer.event,
                format!("nvcc {} exists at {}", offer.version, offer.path),
            ),
        None => draft.remedy(format!(
            "Set {name} to exactly one directory, the root of a toolkit."
        )),
    }
}

/// Whether a directory is known to be a toolkit: by a fact, by a run of one of its tools, or as the place before `bin`
/// in PATH.
fn exists(view: &View<'_>, process: &Process, root: &str) -> Option<(u64, String)> {
    if let Some(toolkit) = view
        .model
        .toolkits()
        .iter()
        .find(|t| t.what.root.trim_end_matches('/') == root)
    {
        let nvcc = toolkit.what.parts.get("nvcc").cloned();
        return Some((
            toolkit.id,
            match (nvcc, &toolkit.what.version) {
                (Some(nvcc), Some(version)) => format!("{nvcc}, {version}"),
                (Some(nvcc), None) => nvcc,
                _ => format!("{root} is a toolkit"),
            },
        ));
    }
    if let Some(tool) = view.tools().iter().find(|t| under(t.path(), root)) {
        return Some((tool.process.id, format!("{} ran", tool.path())));
    }
    let mut files: Vec<_> = view
        .model
        .files()
        .filter(|f| under(&f.what.path, root) && f.what.part.is_some())
        .collect();
    files.sort_by_key(|f| f.id);
    if let Some(file) = files.first() {
        return Some((file.id, file.what.path.clone()));
    }
    let bin = format!("{root}/bin");
    process
        .env("PATH")
        .filter(|p| p.split(':').any(|e| e.trim_end_matches('/') == bin))
        .map(|_| (process.id, format!("PATH has {bin}")))
}

/// The part of a path that begins with the value, without a working directory that was put before it.
fn from_value<'a>(path: &'a str, value: &str) -> &'a str {
    path.find(value)
        .and_then(|at| path.get(at..))
        .unwrap_or(path)
}

fn is_part_of_toolkit(path: &str, root: &str) -> bool {
    path.find(root)
        .and_then(|at| path.get(at + root.len()..))
        .is_some_and(|rest| {
            ["/bin/", "/include", "/lib", "/nvvm", "/version"]
                .iter()
                .any(|p| rest.starts_with(p))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_root() {
        for (name, value, faulty) in [
            ("CUDA_HOME", ":/usr/local/cuda", true),
            ("CUDA_HOME", "/a/cuda:/b/cuda", true),
            ("CUDA_HOME", "\"/usr/local/cuda\"", true),
            ("CUDA_HOME", "~/cuda", true),
            ("CUDA_HOME", "/usr/local/cuda ", true),
            ("CUDA_PATH", "/usr/local/cuda/bin", true),
            ("CUDA_HOME", "/usr/local/cuda/bin/nvcc", true),
            ("CUDA_HOME", "/usr/local/cuda/", false),
            ("CUDA_HOME", "/usr/local/cuda-12.8", false),
            ("CUDACXX", "/usr/local/cuda/bin/nvcc", false),
        ] {
            assert_eq!(fault_of(name, value).is_some(), faulty, "{name}={value}");
        }
    }
}
