//! `arch-list-unknown`: TORCH_CUDA_ARCH_LIST names an architecture that this torch has no name for.
//!
//! torch translates the list by a table of its own, whatever the compiler knows: it takes no `f` suffix, and no
//! architecture that is newer than itself. Proof: its sentence, and the variable.

use super::{Draft, View, aftermath::Aftermath, words::quoted};
use crate::resolve::asker;

const VARIABLE: &str = "TORCH_CUDA_ARCH_LIST";

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let said = view
        .said(&["arch-unknown-to-torch"])
        .find_map(|m| Some((m, arch_in(&m.what.text)?)));
    let Some((message, arch)) = said else {
        return Vec::new();
    };
    let Some(image) = message.process.and_then(|p| view.model.process(p)) else {
        return Vec::new();
    };
    let value = view.env(image, VARIABLE);
    let names_it = value.is_some_and(|v| v.split([';', ' ']).any(|entry| entry == arch));
    let severity = Aftermath::of_process(view, message.process).of_a_sentence(names_it);
    let asker = asker::of_call(view.model, &[], None, message.process);
    let torch = view.model.distribution("torch");
    let torch_words = torch.map_or_else(
        || "this torch".to_owned(),
        |d| format!("torch {}", d.what.version),
    );
    let mut draft = Draft::of("arch-list-unknown", severity)
        .component(&asker.component)
        .title(format!("{torch_words} has no architecture {arch}"))
        .cause(format!(
            "{} builds through torch, which refused: {}. torch has a table of its own, whatever nvcc knows.",
            asker.component,
            quoted(&message.what.text)
        ))
        .evidence(message.id, view.said_by(message))
        .evidence_of(torch.map(|d| (d.id, format!("{torch_words} is installed"))))
        .in_process(message.pid);
    if let Some(value) = value {
        draft = draft.cause(format!("{VARIABLE}={value}.")).evidence(
            image.id,
            format!("the environment at its start: {VARIABLE}={value}"),
        );
    }
    let plain = arch.trim_end_matches(['a', 'f']);
    draft = if arch.ends_with('f') {
        draft.remedy(format!(
            "Write {plain} or {plain}a in {VARIABLE}: torch takes no family suffix (FLASHINFER_CUDA_ARCH_LIST does)."
        ))
    } else {
        draft.remedy(format!(
            "Take {arch} out of {VARIABLE}, or install a torch that is new enough for it."
        ))
    };
    vec![draft.proven_if(names_it, "the variable that names it")]
}

/// 12.0f of `Unknown CUDA arch (12.0f) or GPU not supported`.
fn arch_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Unknown CUDA arch (")?;
    let (arch, _) = rest.split_once(')')?;
    let is_arch = arch.starts_with(|c: char| c.is_ascii_digit()) && arch.len() < 12;
    is_arch.then(|| arch.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_read_from_the_sentence_and_not_from_the_code() {
        assert_eq!(
            arch_in("ValueError: Unknown CUDA arch (12.0f) or GPU not supported").as_deref(),
            Some("12.0f")
        );
        assert_eq!(
            arch_in(r#"raise ValueError(f"Unknown CUDA arch ({arch}) or GPU not supported")"#),
            None
        );
    }
}
