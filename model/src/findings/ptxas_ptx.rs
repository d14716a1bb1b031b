//! `ptxas-too-old-for-ptx` and `ptxas-shadowed`: ptxas was given PTX that is newer than it reads.
//!
//! Proof: its own sentence (`Unsupported .version 8.5; current version is '8.1'`). When PATH chose it and a wheel or a
//! package carries a copy that reads this PTX, PATH is the cause and the old assembler its consequence.

use super::{
    Draft, View,
    arch_unsupported::speaks_for,
    view::{Tool, exit_words, is_failure},
    words::tool_rule,
};
use crate::{
    component,
    event::{Message, Rule},
    fold::Seen,
    resolve::tool::Kind,
    toolkit::{Version, first_toolkit_for_ptx, ptx_isa_of, reads_ptx},
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    view.tools_of(Kind::Ptxas)
        .filter(|t| view.exit_of(t.process.index).is_some_and(is_failure))
        .flat_map(|t| refused(view, t))
        .collect()
}

fn refused(view: &View<'_>, ptxas: &Tool<'_>) -> Vec<Draft> {
    let Some((message, isa, reads)) = view
        .said(&["ptx-version-unsupported", "ptxas-fatal", "tool-fatal"])
        .filter(|m| speaks_for(view, m, ptxas))
        .find_map(|m| isa_in(&m.what.text).map(|(isa, reads)| (m, isa, reads)))
    else {
        return Vec::new();
    };
    let reads = reads.or_else(|| ptx_isa_of(ptxas.version.as_ref()?.version));
    let old = too_old(view, ptxas, message, isa, reads);
    let found = view.found(ptxas);
    let better = view
        .offers("ptxas")
        .into_iter()
        .filter(|o| view.real(&o.path) != view.real(ptxas.path()))
        .find(|o| {
            reads_ptx(o.version, isa) == Some(true)
                && matches!(o.kind.as_str(), "wheel" | "bundled" | "conda")
        });
    let (Rule::Path, Some(better)) = (found.rule, better) else {
        return vec![old];
    };
    let asker = view.asker(ptxas);
    let owner = better
        .owner
        .clone()
        .map(|o| format!(" of the wheel {o}"))
        .unwrap_or_default();
    let draft = Draft::error("ptxas-shadowed")
        .component(&asker.component)
        .title(format!(
            "{} from PATH was taken instead of ptxas {}, which would have worked",
            ptxas.named(),
            better.version
        ))
        .cause(format!(
            "{} took {} at {}, {}, ahead of ptxas {}{owner} at {}.",
            asker.component,
            ptxas.named(),
            ptxas.path(),
            tool_rule(&found),
            better.version,
            better.path
        ))
        .cause(sentence(isa, reads, ptxas))
        .evidence(ptxas.process.id, format!("{} ran", ptxas.path()))
        .evidence(message.id, view.said_by(message))
        .evidence(
            better.event,
            format!("ptxas {} exists at {}", better.version, better.path),
        )
        .evidence_of(version_evidence(ptxas))
        .remedy(format!(
            "Take {} out of PATH for this process: ptxas {} at {} reads PTX {isa}.",
            super::words::directory(ptxas.path()),
            better.version,
            better.path
        ))
        .in_process(ptxas.process.pid)
        .in_process(view.origin(ptxas.process).pid)
        .proven();
    vec![draft, old]
}

fn too_old(
    view: &View<'_>,
    ptxas: &Tool<'_>,
    message: &Seen<Message>,
    isa: Version,
    reads: Option<Version>,
) -> Draft {
    let asker = view.asker(ptxas);
    let found = view.found(ptxas);
    let exit = view.exit_of(ptxas.process.index).unwrap_or_default();
    let mut draft = Draft::error("ptxas-too-old-for-ptx")
        .component(&asker.component)
        .title(format!("{} cannot read PTX {isa}", ptxas.named()))
        .cause(format!(
            "{} ran {} at {}, {}.",
            asker.component,
            ptxas.named(),
            ptxas.path(),
            tool_rule(&found)
        ))
        .cause(sentence(isa, reads, ptxas))
        .evidence(ptxas.process.id, format!("{} ran", ptxas.path()))
        .evidence(message.id, view.said_by(message))
        .evidence_of(version_evidence(ptxas))
        .evidence_of(
            view.exit_event(ptxas.process.index)
                .map(|e| (e, exit_words(exit))),
        )
        .in_process(ptxas.process.pid)
        .in_process(view.origin(ptxas.process).pid)
        .proven();
    let carrier = view.carrier(ptxas.path()).unwrap_or(asker.component);
    let variable = component::override_of(&carrier, ptxas.process.name()).map(|o| o.variable);
    draft = match view.offer("ptxas", ptxas.path(), |v| reads_ptx(v, isa) == Some(true)) {
        Some(offer) => draft
            .remedy(match variable {
                Some(variable) => format!(
                    "Set {variable}={}: ptxas {} reads PTX {isa}.",
                    offer.path, offer.version
                ),
                None => format!(
                    "Use ptxas {} at {}: it reads PTX {isa}.",
                    offer.version, offer.path
                ),
            })
            .evidence(
                offer.event,
                format!("ptxas {} exists at {}", offer.version, offer.path),
            ),
        None => draft.remedy(match first_toolkit_for_ptx(isa) {
            Some(first) => {
                format!("Install ptxas {first} or newer; none was found on this machine.")
            }
            None => "Install a newer ptxas; none was found on this machine.".to_owned(),
        }),
    };
    draft
}

fn sentence(isa: Version, reads: Option<Version>, ptxas: &Tool<'_>) -> String {
    match reads {
        Some(reads) => format!(
            "The PTX is ISA {isa}; {} reads up to {reads}.",
            ptxas.named()
        ),
        None => format!(
            "The PTX is ISA {isa}, which {} does not read.",
            ptxas.named()
        ),
    }
}

fn version_evidence(ptxas: &Tool<'_>) -> Option<(u64, String)> {
    let known = ptxas.version.as_ref()?;
    Some((
        known.event,
        format!(
            "{} is release {} ({})",
            ptxas.path(),
            known.version,
            known.how()
        ),
    ))
}

/// 8.5 and 8.1 of `Unsupported .version 8.5; current version is '8.1'`.
pub(super) fn isa_in(text: &str) -> Option<(Version, Option<Version>)> {
    let (_, rest) = text.split_once("Unsupported .version ")?;
    let isa = Version::parse(rest)?.without_patch();
    let reads = rest
        .split_once("current version is '")
        .and_then(|(_, v)| Version::parse(v))
        .map(Version::without_patch);
    Some((isa, reads))
}
