//! `toolkit-mixed-releases` and `headers-differ-from-nvcc`: the compiler is of one release, the headers of another.
//!
//! Within one directory (wheels of different releases installed into one tree) it is mixed; from two directories
//! (CPATH, `-I`, NVCC_APPEND_FLAGS) the headers differ. Proof: nvcc's release, the release in the header that was
//! opened, and a failure that belongs to the pair: CCCL's sentence, or a compile that failed. Without a failure a note:
//! nvcc itself does not mind.

use std::{collections::HashSet, sync::Arc};

use super::{
    Draft, View,
    view::{Known, Tool, exit_words, is_failure},
    words::{directory, quoted, tool_rule},
};
use crate::{
    event::{FileAccess, Message},
    fold::Seen,
    report::Severity,
    resolve::tool::{Kind, under},
    toolkit::Version,
};

/// Variables that put include directories before the compiler's own.
const INCLUDE_VARIABLES: &[&str] = &[
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "NVCC_APPEND_FLAGS",
    "NVCC_PREPEND_FLAGS",
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut pairs: HashSet<(String, String)> = HashSet::new();
    let headers: Vec<(&Seen<Arc<FileAccess>>, Known)> = view
        .model
        .accesses()
        .iter()
        .filter(|a| a.what.errno == 0 && is_version_header(&a.what.path))
        .filter_map(|a| Some((a, view.version_of(&a.what.path)?)))
        .collect();
    for (access, header) in headers {
        let Some(process) = access.process else {
            continue;
        };
        let Some(nvcc) = nvcc_for(view, process) else {
            continue;
        };
        let Some(known) = &nvcc.version else { continue };
        if known.version.same_release(header.version)
            || !pairs.insert((nvcc.path().to_owned(), access.what.path.clone()))
        {
            continue;
        }
        drafts.push(differ(view, nvcc, known, access, &header));
    }
    drafts.extend(older_linker(view));
    drafts
}

/// nvlink was given objects of a newer release: `Input file 'a.o' newer than toolkit (130 vs 128)`.
fn older_linker(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["objects-newer-than-linker"]).next()?;
    let (objects, linker) = releases_of_link(&said.what.text)?;
    let tool = view
        .tools()
        .iter()
        .filter(|t| {
            matches!(
                super::words::name(t.path()),
                "nvlink" | "nvcc" | "fatbinary"
            )
        })
        .rfind(|t| super::arch_unsupported::speaks_for(view, said, t))?;
    let asker = view.asker(tool);
    let rule = tool_rule(&view.found(tool));
    let mut draft = Draft::error("toolkit-mixed-releases")
        .component(&asker.component)
        .title(format!(
            "{} {linker} was given objects of CUDA {objects}",
            tool.process.name()
        ))
        .cause(format!(
            "{} is of CUDA {linker}, {rule}; the objects were compiled with CUDA {objects}: {}.",
            tool.path(),
            quoted(&said.what.text)
        ))
        .evidence(tool.process.id, format!("{} ran, {rule}", tool.path()))
        .evidence(said.id, view.said_by(said))
        .in_process(tool.process.pid)
        .in_process(view.origin(tool.process).pid);
    let compiler = view.tools_of(Kind::Nvcc).find(|t| {
        t.version
            .as_ref()
            .is_some_and(|k| k.version.same_release(objects))
    });
    if let Some(compiler) = compiler {
        draft = draft
            .cause(format!(
                "The compiler of this run is {} at {}.",
                compiler.named(),
                compiler.path()
            ))
            .evidence(compiler.process.id, format!("{} ran", compiler.path()));
    }
    draft = match view.offer("nvcc", "", |v| v.same_release(objects)) {
        Some(o) => draft
            .remedy(format!(
                "Link with the tools of {}, whose nvcc is {}.",
                o.root, o.version
            ))
            .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
        None => draft.remedy(format!(
            "Compile and link with one toolkit: of CUDA {objects}, or of {linker}."
        )),
    };
    Some(draft.proven())
}

/// 13.0 and 12.8 of `newer than toolkit (130 vs 128)`.
fn releases_of_link(text: &str) -> Option<(Version, Version)> {
    let (_, rest) = text.split_once("newer than toolkit (")?;
    let (objects, rest) = rest.split_once(" vs ")?;
    let linker = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let release = |number: &str| {
        let number: u32 = number.trim().parse().ok()?;
        Some(Version::release(number / 10, number % 10))
    };
    Some((release(objects)?, release(linker)?))
}

/// The compiler that a header was opened for: the nvcc above the reader, else the one that the reader asked or ran.
fn nvcc_for<'v, 'a>(view: &'v View<'a>, process: usize) -> Option<&'v Tool<'a>> {
    let above = view
        .line(process)
        .find_map(|p| view.tool(p.index).filter(|t| t.kind == Kind::Nvcc));
    above.or_else(|| {
        // A host compiler that runs for something else says nothing of nvcc.
        if view.tool(process).is_some() {
            return None;
        }
        view.tools_of(Kind::Nvcc)
            .filter(|t| view.descends(t.process.index, process))
            .last()
    })
}

fn differ(
    view: &View<'_>,
    nvcc: &Tool<'_>,
    known: &Known,
    access: &Seen<Arc<FileAccess>>,
    header: &Known,
) -> Draft {
    let include = directory(&access.what.path);
    let root = root_of(nvcc.path());
    let mixed = under(include, root) || under(view.real(include), view.real(root));
    let said = complaint(view, nvcc);
    let failed = view
        .exit_of(nvcc.process.index)
        .filter(|e| is_failure(*e) && !nvcc.only_asked);
    // An architecture or a flag that nvcc refuses has nothing to do with headers.
    let failed = failed.filter(|_| !refuses_command_line(view, nvcc));
    let severity = if said.is_some() {
        Severity::Error
    } else if failed.is_some() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let (compiler, headers) = (
        known.version.without_patch(),
        header.version.without_patch(),
    );
    let asker = view.asker(nvcc);
    let id = if mixed {
        "toolkit-mixed-releases"
    } else {
        "headers-differ-from-nvcc"
    };
    let mut draft = Draft::of(id, severity)
        .component(&asker.component)
        .title(if mixed {
            format!("{root} holds two releases: compiler {compiler}, headers {headers}")
        } else {
            format!("nvcc {compiler} compiled against headers of {headers} from {include}")
        })
        .in_process(nvcc.process.pid)
        .in_process(access.pid)
        .in_process(view.origin(nvcc.process).pid)
        .evidence(
            nvcc.process.id,
            format!("{} ran, {}", nvcc.path(), tool_rule(&view.found(nvcc))),
        )
        .evidence(
            known.event,
            format!(
                "{} is release {} ({})",
                nvcc.path(),
                known.version,
                known.how()
            ),
        )
        .evidence(access.id, format!("{} was read", access.what.path))
        .evidence(
            header.event,
            format!(
                "{} states {} ({})",
                access.what.path,
                header.version,
                header.how()
            ),
        );
    draft = if mixed {
        draft.cause(format!(
            "One directory, two releases: nvcc {compiler}{} and headers {headers}{} both lie in {root}.",
            owner_words(view, nvcc.path(), &["nvidia-cuda-nvcc"], compiler),
            owner_words(view, &access.what.path, &["nvidia-cuda-runtime", "nvidia-cuda-cccl"], headers),
        ))
    } else {
        draft
            .cause(format!(
                "nvcc {compiler} at {} was given headers of {headers} from {include}.",
                nvcc.path()
            ))
            .cause(who_put_it(view, nvcc, include))
    };
    if let Some(message) = said {
        draft = draft
            .cause(format!(
                "The pair was refused: {}.",
                quoted(&message.what.text)
            ))
            .evidence(message.id, view.said_by(message));
    } else if let Some(exit) = failed {
        draft = draft
            .cause(format!("The compile failed ({}).", exit_words(exit)))
            .evidence_of(
                view.exit_event(nvcc.process.index)
                    .map(|e| (e, exit_words(exit))),
            );
    }
    if let Some((name, built)) = view.built_for(&asker.component) {
        draft = draft.evidence(
            built.event,
            format!("{name} is built for CUDA {}", built.version),
        );
    }
    draft = if mixed {
        align(view, draft, root, compiler, headers)
    } else {
        separate(view, draft, nvcc, include, compiler)
    };
    draft.proven_if(
        said.is_some() || severity == Severity::Note,
        "a sentence that names the pair as the reason",
    )
}

fn align(view: &View<'_>, draft: Draft, root: &str, compiler: Version, headers: Version) -> Draft {
    let target = view
        .built_for("torch")
        .map_or(headers, |(_, k)| k.version.without_patch());
    let draft = draft.remedy(format!(
        "Install nvidia-cuda-nvcc, nvidia-cuda-crt, nvidia-nvvm and nvidia-cuda-cccl of release {target} into {root}, so that compiler {compiler} and headers {headers} become one release."
    ));
    match view.offer("nvcc", "", |v| v.same_release(target)) {
        Some(o) if o.root != root => draft
            .remedy(format!(
                "Or set CUDA_HOME={}, which is {target} throughout.",
                o.root
            ))
            .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
        _ => draft,
    }
}

fn separate(
    view: &View<'_>,
    draft: Draft,
    nvcc: &Tool<'_>,
    include: &str,
    compiler: Version,
) -> Draft {
    let set = variable_for(view, nvcc, include);
    let draft = match set {
        Some((name, _)) => draft.remedy(format!(
            "Take {include} out of {name}: nvcc {compiler} brings its own headers."
        )),
        None => draft.remedy(format!(
            "Take {include} out of the include directories of this build: nvcc {compiler} brings its own headers."
        )),
    };
    let target = include.trim_end_matches("/include").to_owned();
    match view
        .offers("nvcc")
        .into_iter()
        .find(|o| under(&o.path, &target) && o.path != nvcc.path())
    {
        Some(o) => draft
            .remedy(format!(
                "Or set CUDA_HOME={target}, whose nvcc {} has these headers.",
                o.version
            ))
            .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
        None => draft,
    }
}

fn who_put_it(view: &View<'_>, nvcc: &Tool<'_>, include: &str) -> String {
    if let Some((name, value)) = variable_for(view, nvcc, include) {
        return format!("{name}={value} puts them before its own.");
    }
    let flag = nvcc.process.what.argv.iter().find(|a| a.contains(include));
    match flag {
        Some(flag) => format!("The command line says {flag}."),
        None => String::new(),
    }
}

fn variable_for<'a>(
    view: &View<'a>,
    nvcc: &Tool<'a>,
    include: &str,
) -> Option<(&'static str, &'a str)> {
    INCLUDE_VARIABLES.iter().find_map(|name| {
        let value = nvcc
            .process
            .env(name)
            .or_else(|| view.env(nvcc.process, name))?;
        value.contains(include).then_some((*name, value))
    })
}

/// ` (wheel nvidia-cuda-nvcc 13.3.33)`.
fn owner_words(view: &View<'_>, path: &str, names: &[&str], release: Version) -> String {
    view.owner_of(path, names, release)
        .map(|owner| format!(" (wheel {owner})"))
        .unwrap_or_default()
}

/// CCCL's refusal, for this compile or by whoever asked both releases.
fn complaint<'a>(view: &View<'a>, nvcc: &Tool<'a>) -> Option<&'a Seen<Message>> {
    let origin = view.origin(nvcc.process).index;
    view.said(&["headers-incompatible"])
        .find(|m| view.concerns(m, nvcc.process.index) || view.concerns(m, origin))
}

fn refuses_command_line(view: &View<'_>, nvcc: &Tool<'_>) -> bool {
    view.said(&[
        "unsupported-gpu-architecture",
        "value-not-defined-for-option",
        "nvcc-fatal",
    ])
    .any(|m| super::arch_unsupported::speaks_for(view, m, nvcc))
}

fn is_version_header(path: &str) -> bool {
    matches!(
        super::words::name(path),
        "cuda.h" | "cuda_runtime_api.h" | "cuda_runtime.h"
    )
}

/// `/x` of `/x/bin/nvcc`.
pub(super) fn root_of(tool: &str) -> &str {
    let bin = directory(tool);
    bin.strip_suffix("/bin").unwrap_or(bin)
}
