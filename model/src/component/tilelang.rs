//! TileLang: the usual rules, then NVIDIA's wheel; stand-ins for the runtime libraries (resolution.md 1.7).

use super::{Component, JitCache, NOTHING, Step, search};

/// TileLang.
pub(super) const TILELANG: Component = Component {
    name: "tilelang",
    aliases: &["tilelang"],
    searches: &[search(
        "nvcc",
        &[
            Step::Root("CUDA_HOME"),
            Step::Root("CUDA_PATH"),
            Step::Path("nvcc"),
            Step::Wheels,
            Step::Directory("/usr/local/cuda"),
        ],
    )],
    caches: &[JitCache {
        variable: "TILELANG_CACHE_DIR",
        directory: "~/.tilelang/cache",
        not_keyed: "everything of CUDA",
    }],
    ..NOTHING
};
