//! `nvcc-differs-from-built-for`: a component compiled with a CUDA major that its framework was not built for.
//!
//! What nvcc 12 links needs libcudart.so.12, which a process of CUDA 13 does not have. Proof: the compile, torch's
//! release, and what came of it: torch's own refusal, or the module that did not load (or bound the other major).
//! Another minor is no fault, and another major without a failure a note.

use super::{
    Draft, View,
    aftermath::Aftermath,
    cudart_not_found::major_of,
    provider::{self, Reason},
    view::Tool,
    words::{name, tool_rule},
};
use crate::{report::Severity, resolve::tool::Kind, toolkit::Version};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for nvcc in view.tools_of(Kind::Nvcc) {
        let Some(version) = &nvcc.version else {
            continue;
        };
        let asker = view.asker(nvcc);
        let Some((package, built)) = view.built_for(&asker.component) else {
            continue;
        };
        if version.version.major == built.version.major {
            continue;
        }
        let refusal = view
            .said(&["cuda-mismatch"])
            .find(|m| view.concerns(m, view.origin(nvcc.process).index));
        if nvcc.only_asked && refusal.is_none() {
            continue;
        }
        let product = product_failed(view, nvcc, version.version.major);
        let severity = if refusal.is_some() || product.is_some() {
            Severity::Error
        } else {
            Severity::Note
        };
        let found = view.found(nvcc);
        let mut draft = Draft::of("nvcc-differs-from-built-for", severity)
            .component(&asker.component)
            .title(format!(
                "{} {} {}, and {} is built for CUDA {}",
                asker.component,
                if nvcc.only_asked {
                    "asked"
                } else {
                    "compiled with"
                },
                nvcc.named(),
                if asker.component == package {
                    "itself"
                } else {
                    package.as_str()
                },
                built.version.without_patch()
            ))
            .cause(format!(
                "{} {} {} at {}, {}; {package} is built for CUDA {}.",
                asker.component,
                if nvcc.only_asked {
                    "asked"
                } else {
                    "compiled with"
                },
                nvcc.named(),
                nvcc.path(),
                tool_rule(&found),
                built.version.without_patch()
            ))
            .evidence(
                nvcc.process.id,
                format!("{} ran, {}", nvcc.path(), tool_rule(&found)),
            )
            .evidence(
                version.event,
                format!(
                    "{} is release {} ({})",
                    nvcc.path(),
                    version.version,
                    version.how()
                ),
            )
            .evidence(
                built.event,
                format!(
                    "{package} is built for CUDA {} ({})",
                    built.version, built.from
                ),
            )
            .in_process(view.origin(nvcc.process).pid);
        if let Some(sentence) = asker.sentence() {
            draft = draft.cause(format!("The request came from {sentence}."));
        }
        if let Some(message) = refusal {
            draft = draft
                .cause(format!("{}.", view.said_by(message)))
                .evidence(message.id, view.said_by(message));
        }
        if let Some((event, object, wanted)) = &product {
            draft = draft
                .cause(format!(
                    "What it linked, {}, needs {wanted}, which this process does not have.",
                    name(object)
                ))
                .evidence(
                    *event,
                    format!("{object} did not load: {wanted} was not found"),
                );
        }
        let major = built.version.major;
        draft = match view.offer("nvcc", nvcc.path(), |v| v.major == major) {
            Some(o) => draft
                .remedy(format!(
                    "Set CUDA_HOME={}: its nvcc {} is of the major that {package} is built for; then delete what was built before.",
                    o.root, o.version
                ))
                .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
            None => draft.remedy(format!(
                "Install a CUDA {major} toolkit and set CUDA_HOME to it; no nvcc of that major was found on this machine."
            )),
        };
        drafts.push(draft.proven());
    }
    if drafts.is_empty() {
        drafts.extend(by_refusal(view));
    }
    drafts
}

/// The refusal alone, where nothing else tells what the framework is built for.
fn by_refusal(view: &View<'_>) -> Option<Draft> {
    let said = view.said(&["cuda-mismatch"]).next()?;
    let process = said.process?;
    let nvcc = view
        .tools_of(Kind::Nvcc)
        .filter(|t| t.process.start <= said.t)
        .filter(|t| view.concerns(said, view.origin(t.process).index))
        .last()?;
    let found = view.found(nvcc);
    let asker = view.asker(nvcc);
    let version = nvcc.version.as_ref();
    let built = releases_in(&said.what.text)
        .into_iter()
        .find(|v| version.is_none_or(|k| !k.version.same_release(*v)));
    let names_it = version.is_some_and(|k| {
        releases_in(&said.what.text)
            .iter()
            .any(|v| v.same_release(k.version))
    });
    let severity = Aftermath::of_process(view, Some(process)).of_a_sentence(names_it);
    let mut draft = Draft::of("nvcc-differs-from-built-for", severity)
        .component(&asker.component)
        .title(match built {
            Some(built) => format!(
                "{} found {}, and its framework is built for CUDA {built}",
                asker.component,
                nvcc.named()
            ),
            None => format!(
                "{} found {}, which its framework is not built for",
                asker.component,
                nvcc.named()
            ),
        })
        .cause(format!(
            "{} asked {} at {}, {}.",
            asker.component,
            nvcc.named(),
            nvcc.path(),
            tool_rule(&found)
        ))
        .cause(format!("{}.", view.said_by(said)))
        .evidence(
            nvcc.process.id,
            format!("{} ran, {}", nvcc.path(), tool_rule(&found)),
        )
        .evidence(said.id, view.said_by(said))
        .in_process(said.pid);
    if let Some(known) = version {
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
    let offer = built.and_then(|b| view.offer("nvcc", nvcc.path(), |v| v.major == b.major));
    draft = match (offer, built) {
        (Some(o), _) => draft
            .remedy(format!(
                "Set CUDA_HOME={}: its nvcc {} is of the major that the framework is built for.",
                o.root, o.version
            ))
            .evidence(o.event, format!("nvcc {} exists at {}", o.version, o.path)),
        (None, Some(built)) => draft.remedy(format!(
            "Install a CUDA {} toolkit and set CUDA_HOME to it; no nvcc of that major was found on this machine.",
            built.major
        )),
        (None, None) => draft.remedy("Set CUDA_HOME to a toolkit of the major that the framework is built for."),
    };
    Some(draft.proven_if(
        built.is_some(),
        "the release that the framework is built for",
    ))
}

/// Releases of CUDA that a sentence names.
fn releases_in(text: &str) -> Vec<Version> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.contains('.'))
        .filter_map(Version::parse)
        .filter(|v| (9..=30).contains(&v.major))
        .collect()
}

/// A module that needs the compiler's major and did not load after it was built.
fn product_failed(view: &View<'_>, nvcc: &Tool<'_>, major: u32) -> Option<(u64, String, String)> {
    let origin = view.origin(nvcc.process).index;
    provider::failures(view).into_iter().find_map(|f| {
        let Reason::NoFile { name: wanted } = &f.reason else {
            return None;
        };
        let is_runtime =
            name(wanted).starts_with("libcudart") && major_of(name(wanted)) == Some(major);
        let here = f.process.is_some_and(|p| view.related(p, origin)) && f.t >= nvcc.process.start;
        let built = view.model.cache_fact(&f.object).is_some()
            || view.report.builds.iter().any(|b| {
                b.output
                    .as_deref()
                    .is_some_and(|o| name(o) == name(&f.object))
            });
        (is_runtime && here && built).then(|| (f.event, f.object.clone(), name(wanted).to_owned()))
    })
}
