//! CuPy 14: what cuda-pathfinder finds, headers by another rule than the library (resolution.md 1.8).

use super::{Component, JitCache, NOTHING, Step, replaces, search};

/// CuPy.
pub(super) const CUPY: Component = Component {
    name: "cupy",
    aliases: &[
        "cupy",
        "cupy-cuda11x",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "cupy-backends",
    ],
    searches: &[
        search(
            "nvrtc",
            &[
                Step::Wheels,
                Step::Conda,
                Step::Loaded,
                Step::Loader,
                Step::Root("CUDA_PATH"),
                Step::Root("CUDA_HOME"),
            ],
        ),
        search(
            "headers",
            &[
                Step::Conda,
                Step::Root("CUDA_PATH"),
                Step::Directory("/usr/local/cuda"),
            ],
        ),
    ],
    overrides: &[replaces("NVCC", "nvcc", "nvcc")],
    caches: &[JitCache {
        variable: "CUPY_CACHE_DIR",
        directory: "~/.cupy/kernel_cache",
        not_keyed: "the driver and CUDA_HOME; nvrtc's version is in the key",
    }],
    ..NOTHING
};
