//! By what command another build of a package is installed: those for one CUDA release lie on an index of their own.

use super::View;
use crate::{component, fold::normalized, toolkit::Version};

/// The command that installs the build of a distribution for the CUDA release of torch, as the end of a sentence. Empty
/// when it is not known which distribution it is.
pub(super) fn command(view: &View<'_>, owner: &str, cuda: Version) -> String {
    let bare = normalized(owner.split(' ').next().unwrap_or(owner));
    let Some(installed) = view.model.distribution(&bare) else {
        return String::new();
    };
    let tag = tag(view, cuda);
    let version = installed.what.version.split('+').next().unwrap_or_default();
    let name = &installed.what.name;
    let pip = |index: &str| {
        format!("pip install --force-reinstall --no-deps {name}=={version} --index-url {index}")
    };
    match component::name_of(&bare).as_str() {
        "torch" => pip(&format!("https://download.pytorch.org/whl/{tag}")),
        "vllm" => format!(
            "pip install --force-reinstall --no-deps with the wheel that has +{tag} in its name, from https://github.com/vllm-project/vllm/releases/tag/v{version}"
        ),
        _ => match bare.as_str() {
            "torchvision" | "torchaudio" | "xformers" => {
                pip(&format!("https://download.pytorch.org/whl/{tag}"))
            }
            "sgl-kernel" | "sglang-kernel" => pip(&format!("https://docs.sglang.io/whl/{tag}/")),
            "flashinfer-jit-cache" => pip(&format!("https://flashinfer.ai/whl/{tag}")),
            _ => format!(
                "{}, where INDEX is what its installation page names for {tag}",
                pip("INDEX")
            ),
        },
    }
}

/// `cu129`: as torch's own version says it, else of the release.
fn tag(view: &View<'_>, cuda: Version) -> String {
    let local = view
        .model
        .distribution("torch")
        .and_then(|d| d.what.version.split_once('+'))
        .map(|(_, local)| local)
        .filter(|local| {
            local
                .strip_prefix("cu")
                .is_some_and(|digits| digits.starts_with(&cuda.major.to_string()))
        });
    match local {
        Some(local) => local.to_owned(),
        None => format!("cu{}{}", cuda.major, cuda.minor),
    }
}
