//! numba-cuda: the unversioned libcuda.so first, the rest through cuda-pathfinder (resolution.md 1.9).

use super::{Component, JitCache, NOTHING, Step, search};

/// numba-cuda.
pub(super) const NUMBA_CUDA: Component = Component {
    name: "numba-cuda",
    aliases: &["numba-cuda", "numba"],
    searches: &[
        // `libcuda.so` before `libcuda.so.1`: a toolkit's stub on LD_LIBRARY_PATH answers.
        search("libcuda", &[Step::Loader]),
        search(
            "nvrtc",
            &[Step::Wheels, Step::Conda, Step::Loaded, Step::Loader],
        ),
    ],
    caches: &[JitCache {
        variable: "NUMBA_CACHE_DIR",
        directory: "__pycache__",
        not_keyed: "nvrtc's patch level and the driver; libcudart's version is in the key",
    }],
    ..NOTHING
};
