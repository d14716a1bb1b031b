//! `host-compiler-unsupported`: nvcc refused the host compiler.
//!
//! Proof: its sentence (`unsupported GNU version! gcc versions later than 13 are not supported!`). The compiler that
//! ran below nvcc, and the variable that chose it, are named when they were seen.

use super::{
    Draft, View,
    arch_unsupported::speaks_for,
    view::Tool,
    words::{quoted, tool_rule},
};
use crate::resolve::tool::Kind;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let Some(message) = view.said(&["unsupported-host-compiler"]).next() else {
        return Vec::new();
    };
    let nvcc: Option<&Tool<'_>> = view
        .tools_of(Kind::Nvcc)
        .filter(|t| !t.only_asked && speaks_for(view, message, t))
        .last();
    let host = nvcc.and_then(|n| {
        view.tools_of(Kind::HostCompiler)
            .find(|t| view.descends(t.process.index, n.process.index))
    });
    let chosen_by = nvcc.and_then(|n| chosen_by(view, n));
    let asker = nvcc.map(|n| view.asker(n)).unwrap_or_default();
    let most = most_supported(&message.what.text);
    let named = host.map_or_else(
        || "the host compiler".to_owned(),
        |h| {
            let version = view
                .version_of(h.path())
                .map(|k| format!(" {}", k.version))
                .unwrap_or_default();
            format!("{}{version}", h.path())
        },
    );
    let mut draft = Draft::error("host-compiler-unsupported")
        .component(&asker.component)
        .title(format!(
            "{} does not take {named}",
            nvcc.map_or_else(|| "nvcc".to_owned(), Tool::named)
        ))
        .cause(format!(
            "{} was given {named} as host compiler{} and refused it: {}.",
            nvcc.map_or_else(
                || "nvcc".to_owned(),
                |n| format!("{} at {}", n.named(), n.path())
            ),
            chosen_by
                .as_ref()
                .map(|(_, words)| format!(" ({words})"))
                .unwrap_or_default(),
            quoted(&message.what.text)
        ))
        .evidence(message.id, view.said_by(message))
        .in_process(message.pid);
    if let Some(nvcc) = nvcc {
        draft = draft
            .evidence(
                nvcc.process.id,
                format!("{} ran, {}", nvcc.path(), tool_rule(&view.found(nvcc))),
            )
            .in_process(view.origin(nvcc.process).pid);
    }
    if let Some(host) = host {
        draft = draft.evidence(host.process.id, format!("{} ran below it", host.path()));
    }
    let better = most.and_then(|most| {
        view.offers("host_compiler")
            .into_iter()
            .find(|o| o.version.major <= most)
    });
    draft = match (&better, most) {
        (Some(o), _) => draft
            .remedy(format!("Set NVCC_CCBIN={}: it is {}.", o.path, o.version))
            .evidence(o.event, format!("{} is {}", o.path, o.version)),
        (None, Some(most)) => draft.remedy(format!(
            "Install a compiler of release {most} or older and name it by NVCC_CCBIN (or CC and CXX)."
        )),
        (None, None) => draft.remedy("Name a compiler that this nvcc takes by NVCC_CCBIN (or CC and CXX)."),
    };
    if let Some(nvcc) = nvcc
        && let Some(version) = &nvcc.version
        && let Some(o) = view.offer("nvcc", nvcc.path(), |v| v > version.version)
    {
        draft = draft
            .remedy(format!(
                "Or set CUDA_HOME={}: nvcc {} is newer and takes newer compilers.",
                o.root, o.version
            ))
            .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path));
    }
    vec![draft.proven_if(nvcc.is_some(), "the run of nvcc that said so")]
}

fn chosen_by(view: &View<'_>, nvcc: &Tool<'_>) -> Option<(u64, String)> {
    let argv = &nvcc.process.what.argv;
    let flag = argv
        .iter()
        .position(|a| a == "-ccbin" || a == "--compiler-bindir")
        .and_then(|i| argv.get(i + 1).cloned())
        .or_else(|| {
            argv.iter()
                .find_map(|a| a.strip_prefix("-ccbin=").map(str::to_owned))
        });
    if let Some(value) = flag {
        return Some((nvcc.process.id, format!("-ccbin {value}")));
    }
    ["NVCC_CCBIN", "CC", "CXX", "CUDAHOSTCXX"]
        .iter()
        .find_map(|name| {
            view.env(nvcc.process, name)
                .map(|v| (nvcc.process.id, format!("{name}={v}")))
        })
}

/// 13 of `gcc versions later than 13 are not supported`.
fn most_supported(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("later than ")?;
    rest.chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .ok()
}
