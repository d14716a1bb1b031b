//! cuda-pathfinder and cuda-bindings: site-packages, conda, what is loaded, the loader, CUDA_PATH before CUDA_HOME
//! (resolution.md 1.10).

use super::{Component, NOTHING, Step, search};

const LIBRARY: &[Step] = &[
    Step::Wheels,
    Step::Conda,
    Step::Loaded,
    Step::Loader,
    Step::Root("CUDA_PATH"),
    Step::Root("CUDA_HOME"),
];

/// cuda-pathfinder.
pub(super) const CUDA_PATHFINDER: Component = Component {
    name: "cuda-pathfinder",
    aliases: &["cuda-pathfinder"],
    plumbing: true,
    searches: &[
        search("nvrtc", LIBRARY),
        search("cudart", LIBRARY),
        search("nvjitlink", LIBRARY),
        // PATH is not searched.
        search(
            "nvcc",
            &[
                Step::Wheels,
                Step::Conda,
                Step::Root("CUDA_PATH"),
                Step::Root("CUDA_HOME"),
            ],
        ),
    ],
    ..NOTHING
};

/// cuda-bindings: has libcudart linked into itself.
pub(super) const CUDA_BINDINGS: Component = Component {
    name: "cuda-bindings",
    aliases: &["cuda-bindings", "cuda-python", "cuda"],
    plumbing: true,
    ..NOTHING
};
