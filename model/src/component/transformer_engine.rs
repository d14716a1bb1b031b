//! Transformer Engine: system libraries before the wheels' (resolution.md 1.12).

use super::{Component, NOTHING, Step, search};

const LIBRARY: &[Step] = &[
    Step::Root("CUDA_HOME"),
    Step::Root("CUDA_PATH"),
    Step::Directory("/usr/local/cuda"),
    Step::Loader,
    Step::Wheels,
];

/// Transformer Engine.
pub(super) const TRANSFORMER_ENGINE: Component = Component {
    name: "transformer-engine",
    aliases: &[
        "transformer-engine",
        "transformer-engine-cu12",
        "transformer-engine-cu13",
        "transformer-engine-torch",
    ],
    searches: &[
        search("nvrtc", LIBRARY),
        search("cudnn", LIBRARY),
        search(
            "headers",
            &[Step::Root("NVTE_CUDA_INCLUDE_DIR"), Step::Wheels],
        ),
    ],
    ..NOTHING
};
